"""Vectors of an odd number of lanes: one masked access where masks are free, and never a byte beyond the lanes."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te


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
