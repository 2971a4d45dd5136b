"""Maps of tensors for the copy engine: what it takes, and that the driver is asked for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.errors import ArgumentError, TargetError
from tensorexpr.runtime.cuda_device import CudaDevice
from tensorexpr.runtime.cuda_driver import Driver
from tensorexpr.runtime.tensor_maps import TensorMap
from tensorexpr.script import from_source

from .driver_stand_in import Library

_BOXES = """@T.prim_func
def main(A: T.Buffer((20, 128), "float16"), B: T.Buffer((32, 128), "float16")):
    bx = T.launch_thread("blockIdx.x", 8)
    tx = T.launch_thread("threadIdx.x", 64)
    S = T.allocate([512], "float16", "shared")
    Sb = T.Buffer((512,), "float16", data=S, scope="shared")
    T.create_barriers(1)
    if tx == 0:
        T.ptx_init_barrier_thread_count(0, 1)
    T.tvm_storage_sync("shared")
    if tx == 0:
        T.ptx_arrive_barrier_expect_tx(0, 1024)
        T.ptx_cp_async_bulk_tensor(
            "float16", S, 0, T.ptx_tensor_map(A.data, "float16", 0, 2, 20, 128, 128, 8, 64), 0, bx // 2 * 8, bx % 2 * 64
        )
    T.ptx_wait_barrier(0, 0)
    for i in range(8):
        B[bx // 2 * 8 + i, bx % 2 * 64 + tx] = Sb[i * 64 + tx]
"""


def _map(**changes: Any) -> TensorMap:
    values: dict[str, Any] = {"address": 4096, "dtype": "float16", "shape": (20, 128), "strides": (128,), "box": (8, 64), "swizzle": 128}
    return TensorMap(**values | changes)


def test_a_map_is_read_as_it_was_packed() -> None:
    packed = _map().packed()
    assert len(packed) == 128 and TensorMap.unpacked(packed) == _map(dtype="uint16")


@pytest.mark.parametrize(
    "changes, wish",
    [
        ({"address": 4104}, "an address that is a multiple of 16, not 0x1008"),
        ({"strides": (132,)}, "strides of whole 16 bytes, not .264. bytes"),
        ({"box": (512, 64)}, "sides of a box from 1 to 256"),
        ({"box": (8, 60)}, "rows of a box of whole 16 bytes, not 120"),
        ({"box": (8, 128)}, "rows of a box of at most 128 bytes, which are swizzled, not 256"),
        ({"shape": (20, 0)}, "extents from 1"),
        ({"box": (8, 8, 64)}, "2 sides of the box and 1 strides"),
        ({"shape": (1,) * 6, "strides": (8,) * 5, "box": (8,) * 6}, "a tensor of 1 to 5 dimensions, not 6"),
        ({"swizzle": 16}, "a swizzle of 0, 32, 64, 128 bytes, not 16"),
    ],
)
def test_what_the_engine_does_not_take(changes: dict[str, Any], wish: str) -> None:
    with pytest.raises(ArgumentError, match=f"a tensor map wants {wish}.*use T.ptx_cp_async"):
        _map(**changes)


def test_the_driver_makes_maps() -> None:
    library = Library()
    device = CudaDevice(2, 0, Driver(library))
    module = tvm.build(from_source(_BOXES), target="cuda -arch=sm_90a")
    a = np.random.default_rng(3).standard_normal((20, 128)).astype("float16")
    on_device, b = device.make_array(a.shape, "float16"), device.make_array((32, 128), "float16")
    module(on_device.copyfrom(a), b)
    assert "cuTensorMapEncodeTiled" in library.calls
    assert np.array_equal(b.numpy()[:20], a) and not b.numpy()[20:24].any()


def test_a_driver_that_makes_no_maps() -> None:
    library = Library()
    del library.cuTensorMapEncodeTiled  # type: ignore[attr-defined]  # made by setattr
    with pytest.raises(TargetError, match=r"CUDA 12\.0 and later"):
        Driver(library).tensor_map(_map())
    with pytest.raises(TargetError, match="not of int4"):
        Driver(Library()).tensor_map(_map(dtype="int4", swizzle=0, box=(8, 64)))
