"""Vectors of an odd number of lanes: one masked access where masks are free, and never a byte beyond the lanes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir


def scaled(lanes: int, dtype: str = "float32") -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((4, lanes), dtype, "A")
    b = te.compute((4, lanes), lambda i, j: a[i, j] + te.const(1, dtype), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    return s, [a, b]


def assembly(lanes: int, dtype: str, target: str) -> str:
    s, args = scaled(lanes, dtype)
    return str(tvm.build(s, args, target).get_source("ll"))


@pytest.mark.parametrize("lanes, dtype", [(14, "float32"), (7, "float64"), (3, "int32"), (33, "int8"), (20, "int16")])
def test_with_masks_it_is_one_access(lanes: int, dtype: str) -> None:
    text = assembly(lanes, dtype, "llvm -mcpu=skylake-avx512")
    assert text.count("call void @llvm.masked.store") == 1 and f"<{lanes} x" in text


@pytest.mark.parametrize(
    "lanes, dtype, target",
    [
        (14, "float32", "llvm -mcpu=haswell"),  # no mask registers
        (16, "float32", "llvm -mcpu=skylake-avx512"),  # whole registers
        (2, "float32", "llvm -mcpu=skylake-avx512"),
        (14, "int8", "llvm -mcpu=knl"),  # masks 32 and 64 bits only
    ],
)
def test_elsewhere_nothing_changes(lanes: int, dtype: str, target: str) -> None:
    assert "call void @llvm.masked.store" not in assembly(lanes, dtype, target)


def lanes_from(first: int, end: int) -> tir.PrimExpr:
    """The mask of the lanes [first, end) of 8."""
    numbers = tir.Ramp(tir.IntImm("int32", 0), tir.IntImm("int32", 1), 8)
    above, below = (tir.Broadcast(tir.IntImm("int32", lane), 8) for lane in (first, end))
    if first and end < 8:
        return tir.And(numbers >= above, numbers < below)
    return numbers >= above if first else numbers < below


@pytest.mark.parametrize("first, end", [(0, 5), (3, 8), (7, 8), (0, 1), (2, 6)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=znver3", "llvm -mcpu=haswell", "llvm -mcpu=skylake-avx512"])
def test_stores_of_lanes_that_never_change(first: int, end: int, dtype: str, target: str) -> None:
    """Where masked stores are dear, or there are none, a constant run of lanes is stored alone."""
    x, y = tir.decl_buffer((8,), dtype, "x"), tir.decl_buffer((8,), dtype, "y")
    every = tir.Ramp(tir.IntImm("int32", 0), tir.IntImm("int32", 1), 8)
    body = tir.BufferStore(y, tir.BufferLoad(x, (every,)), (every,), lanes_from(first, end))
    built = tvm.build(tir.PrimFunc((x.data, y.data), body, buffer_map={x.data: x, y.data: y}), target=target)
    if not tvm.Target(target).machine.mask_registers:
        is_cheap = tvm.Target(target).machine.masked_store_cycles == 1 and dtype != "int8" and first
        assert ("call void @llvm.masked.store" in built.get_source("ll")) == bool(is_cheap)
    if target == "llvm":
        out = np.full(8, 7).astype(dtype)
        built(np.arange(8).astype(dtype), out)
        assert out.tolist() == [lane if first <= lane < end else 7 for lane in range(8)]


@pytest.mark.parametrize("lanes", [*range(1, 18), 21, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_elements_behind_the_vector_stay(lanes: int, dtype: str) -> None:
    a = te.placeholder((lanes,), dtype, "A")
    b = te.compute((lanes,), lambda i: ~a[i] if dtype == "bool" else a[i] + te.const(1, dtype), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    func = tvm.build(s, [a, b])
    memory = np.full(lanes + 64, 7).astype(dtype)
    x = np.zeros(lanes, dtype)
    func(x, memory[32 : 32 + lanes])
    untouched = np.full(lanes + 64, 7).astype(dtype)
    untouched[32 : 32 + lanes] = 1
    np.testing.assert_array_equal(memory, untouched)
