"""Guarded arrays: where they lie, what they notice, what they forbid."""

from __future__ import annotations

import ctypes
import mmap
import signal
import subprocess
import sys
from math import prod

import numpy as np
import pytest

from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tune.measure.memory import ALIGNMENT, OFFSET, GuardedArray, frozen_copy

SHAPES = [(), (0,), (1,), (1000,), (1024,), (33, 65), (4, 0, 3), (1 << 20, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_arrays_lie_as_numpy_puts_them_and_end_at_a_page(shape: tuple[int, ...]) -> None:
    guarded = GuardedArray(shape, np.dtype(np.float32))
    assert guarded.array.shape == shape
    assert guarded.address == guarded.array.__array_interface__["data"][0] or not guarded.array.size
    assert guarded.address % ALIGNMENT == OFFSET
    end = guarded.address + 4 * prod(shape)
    assert -end % mmap.PAGESIZE < ALIGNMENT
    assert guarded.is_intact


@pytest.mark.parametrize("offset", [-1, 0])
def test_bytes_beside_the_array_are_watched(offset: int) -> None:
    guarded = GuardedArray((1000,), np.dtype(np.float32))
    guarded.array[:] = 1.0
    assert guarded.is_intact
    ctypes.memset(guarded.address + offset if offset < 0 else guarded.address + 4000, 0, 1)
    assert not guarded.is_intact


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "bool"])
def test_poison_is_no_plausible_value(dtype: str) -> None:
    guarded = GuardedArray((3, 5), to_numpy(dtype))
    guarded.poison()
    values = guarded.array
    if values.dtype.kind in "iub":
        assert (values.view(np.uint8) == 0xA5).all()
    else:
        assert np.isnan(values.astype(np.float64)).all()


def test_a_frozen_copy_holds_the_values_and_refuses_new_ones() -> None:
    source = np.arange(12, dtype=np.int32).reshape(3, 4)
    frozen = frozen_copy(source)
    np.testing.assert_array_equal(frozen.array, source)
    with pytest.raises(ValueError, match="read-only"):
        frozen.array[0, 0] = 1


@pytest.mark.parametrize(
    ("array", "offset", "dies"),
    [
        ("frozen_copy(np.zeros(8))", 0, True),
        ("GuardedArray((1020,), np.dtype(np.float32))", 4080, True),
        ("GuardedArray((1020,), np.dtype(np.float32))", -17, True),
        ("GuardedArray((1020,), np.dtype(np.float32))", 4079, False),
    ],
)
def test_native_code_dies_where_it_must_not_write(array: str, offset: int, dies: bool) -> None:
    program = (
        "import ctypes, numpy as np\n"
        "from tensorexpr.tune.measure.memory import GuardedArray, frozen_copy\n"
        f"kept = {array}\n"
        f"ctypes.memset(kept.address + {offset}, 0, 1)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": ":".join(filter(None, sys.path))}, check=False)
    assert ended.returncode == (-signal.SIGSEGV if dies else 0)
