"""Bytes that are copied as 16-bit words where the instruction multiplies such: when, what of, and that sums stay exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te, topi
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule.te_schedule import Schedule, create_schedule
from tensorexpr.spaces.products import plans_by_dots
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

HERE = Target("llvm -num-cores=2")


def product(left: str = "uint8", right: str = "int8", rows: int = 12, columns: int = 64, depth: int = 32) -> list[Tensor]:
    a, b = te.placeholder((rows, depth), left, name="A"), te.placeholder((depth, columns), right, name="B")
    k = te.reduce_axis((0, depth), name="k")
    return [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")]


def windows(channels: int = 16, columns: int = 32, size: int = 3, stride: int = 1, left: str = "uint8", plane: int = 6) -> list[Tensor]:
    """A convolution with channels last."""
    x = te.placeholder((1, plane, plane, channels), left, name="X")
    w = te.placeholder((size, size, channels, columns), "int8", name="W")
    return [x, w, topi.nn.conv2d_nhwc(x, w, stride, size // 2, 1, "int32")]


def words_of(tensors: list[Tensor], cpu: str) -> list[str]:
    """The stages of the default schedule that hold words."""
    s = default_schedule(tensors, Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -num-cores=2"))
    return [stage.name for stage in s.tree.stages if stage.op.output_dtype(0) == "int16"]


@pytest.mark.parametrize(
    "tensors, cpu, expected",
    [
        (product(), "haswell", ["A.global"]),
        (product("int8"), "znver3", ["A.global"]),
        (product("int16"), "haswell", []),  # words as they come, given as such
        (product(columns=16), "haswell", []),  # one panel, which converts each byte once
        (product(), "alderlake", []),  # an instruction for bytes
        (windows(), "haswell", ["pad_temp.global"]),
        (windows(columns=16), "haswell", ["pad_temp.global"]),  # one panel, but each tap reads a pixel
    ],
    ids=["product", "signed", "words", "one-panel", "avx-vnni", "windows", "windows-of-one-panel"],
)
def test_bytes_that_several_panels_or_taps_read_are_copied_as_words(tensors: list[Tensor], cpu: str, expected: list[str]) -> None:
    found = [name for name in words_of(tensors, cpu) if name not in {tensor.op.name for tensor in tensors}]
    assert found == expected


def test_a_border_is_part_of_the_copy() -> None:
    s = default_schedule(windows(), Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-cores=2"))
    assert "s[pad_temp].compute_inline()" in s.as_python()


def test_taps_in_a_run_are_one_loop_with_the_channels() -> None:
    def loops(tensors: list[Tensor]) -> str:
        return str(default_schedule(tensors, Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-cores=2")))

    assert "rx.rc.outer.fused (0, 24)" in loops(windows(16))  # 3 taps of 8 pairs
    assert "ry.rx.rc" not in loops(windows(16))  # the next row of a window begins elsewhere
    assert "rx.rc" not in loops(windows(15))  # pairs of an odd number don't divide a pixel
    assert "reduce rc.outer (0, 2) unroll" in loops(windows(3))


@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize(
    "tensors",
    [product, lambda left: product(left, depth=33), lambda left: windows(left=left), lambda left: windows(3, size=5, stride=2, left=left)],
    ids=["product", "odd-depth", "windows", "three-channels"],
)
def test_sums_are_exact_at_the_limits_of_bytes(tensors: Any, left: str) -> None:
    args = tensors(left)
    target = Target("llvm -mcpu=haswell -num-cores=2")
    target = target if target.runs_here else HERE
    random = np.random.default_rng(0)
    given = []
    for tensor in args[:2]:
        limits = np.iinfo(tensor.dtype)
        shape = [int(extent) for extent in tensor.shape]
        given.append(random.choice([limits.min, limits.min + 1, limits.max], shape).astype(tensor.dtype))
    found = np.empty([int(extent) for extent in args[2].shape], np.int32)
    tensorexpr.build(default_schedule(args, target), args, target)(*given, found)
    a, b = (te.placeholder(tensor.shape, "int32", name=tensor.op.name) for tensor in args[:2])
    expected = np.empty_like(found)
    stride, size = (2, 5) if args[1].shape[0] == 5 else (1, 3)
    plain = topi.matmul(a, b) if len(a.shape) == 2 else topi.nn.conv2d_nhwc(a, b, stride, size // 2, 1, "int32")
    tensorexpr.build(create_schedule(plain.op), [a, b, plain])(*(one.astype("int32") for one in given), expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("outputs, channels", [(4, 16), (9, 7)])
@pytest.mark.parametrize("kind, cpu", [("uint8", "haswell"), ("int8", "skylake-avx512"), ("bfloat16", "cooperlake")])
def test_pixels_in_the_lanes_by_weights_of_one_tap(kind: str, cpu: str, outputs: int, channels: int) -> None:
    out, small = ("float32", "bfloat16") if kind == "bfloat16" else ("int32", "int8")
    x, w = te.placeholder((1, channels, 6, 32), kind, name="X"), te.placeholder((outputs, channels, 1, 1), small, name="W")
    args = [x, w, topi.nn.conv2d_nchw(x, w, 1, 0, 1, out)]
    target = Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -num-cores=2")
    s = default_schedule(args, target)
    # Neighbours along the sum are neighbours in memory, but not along the last index: the weights are copied.
    assert "tensorize" in s.as_python() and any(stage.name == "W.global" for stage in s.tree.stages)
    with target:
        assert_schedule_correct(s, args, phases=(0,), compiled=target.runs_here)


def converted(dtype: str = "uint8") -> tuple[Schedule, list[Tensor]]:
    """What reads its input by conversions alone."""
    a = te.placeholder((5, 7), dtype, name="A")
    b = te.compute((5, 7), lambda i, j: a[i, j].astype("int32") * 3 + a[4 - i, j].astype("int16").astype("int32"), name="B")
    return create_schedule(b.op), [a, b]


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint16", "int64"])
def test_a_copy_in_a_wider_dtype_changes_nothing(dtype: str) -> None:
    s, (a, b) = converted()
    copy = s.cache_read(a, "local", [b], dtype=dtype)
    assert copy.dtype == dtype
    assert f'dtype="{dtype}"' in s.as_python()
    assert_schedule_correct(s, [a, b])


def test_a_copy_in_the_same_dtype_is_a_plain_one() -> None:
    s, (a, b) = converted()
    assert s.cache_read(a, "local", [b], dtype="uint8").dtype == "uint8"
    assert "dtype" not in s.as_python()


def bare() -> tuple[Schedule, list[Tensor]]:
    a = te.placeholder((5,), "uint8", name="A")
    b = te.compute((5,), lambda i: a[i] + a[4 - i], name="B")
    return create_schedule(b.op), [a, b]


@pytest.mark.parametrize(
    "made, dtype, words",
    [
        (converted, "int8", "hasn't every number of uint8"),
        (lambda: converted("int8"), "uint32", "hasn't every number of int8"),
        (converted, "float32", "integers alone are copied to a wider dtype"),
        (lambda: converted("float32"), "int64", "integers alone are copied to a wider dtype"),
        (converted, "int16x4", "integers alone are copied to a wider dtype"),
        (bare, "int16", "reads elements without converting them"),
    ],
)
def test_copies_that_would_change_numbers_are_refused(made: Any, dtype: str, words: str) -> None:
    s, (a, b) = made()
    before = s.as_python()
    with pytest.raises(ScheduleError, match=words):
        s.cache_read(a, "local", [b], dtype=dtype)
    assert s.as_python() == before


@pytest.mark.parametrize("columns", [64, 72, 96, 264])
@pytest.mark.parametrize("cpu, registers", [("haswell", 16), ("skylake-avx512", 32)])
def test_a_product_on_its_way_has_a_register(columns: int, cpu: str, registers: int) -> None:
    target = Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -num-cores=2")
    args = product(rows=49, columns=columns)
    tree = create_schedule(args[-1].op).tree
    for plan in plans_by_dots(tree, tree.stages[-1], target):
        rows, vectors = plan.tile.rows, plan.tile.vectors
        assert rows * vectors + vectors + 2 <= registers  # accumulators, vectors, a broadcast and a product
