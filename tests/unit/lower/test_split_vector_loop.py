"""Long vector loops in whole registers: what is cut, into what, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.split_vector_loop import split_vector_loop
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import For
from tests.effort import share_of


def function(extent: int, dtype: str = "float32") -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((3, extent), dtype, "A")
    b = te.compute((3, extent), lambda i, j: a[i, j] + te.const(1, dtype), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    return s, [a, b]


def loops(extent: int, dtype: str = "float32") -> list[tuple[str, int]]:
    s, args = function(extent, dtype)
    func = tvm.lower(s, args, upto=1)["main"]
    assert isinstance(func, PrimFunc)
    cut = split_vector_loop(func.with_attr("target", tvm.Target("llvm -mcpu=skylake-avx512")), PassContext())
    return [(x.kind.name, int(str(x.extent))) for x in walk_statements(cut.body) if isinstance(x, For)][1:]


@pytest.mark.parametrize("extent", [3, 14, 16, 32, 64, 128])
def test_what_llvm_cuts_well_stays(extent: int) -> None:
    assert loops(extent) == [("VECTORIZED", extent)]


def test_other_numbers_of_registers_are_a_loop() -> None:
    assert loops(48) == [("UNROLLED", 3), ("VECTORIZED", 16)]
    assert loops(16 * 1024) == [("SERIAL", 1024), ("VECTORIZED", 16)]
    assert loops(24, "float64") == [("UNROLLED", 3), ("VECTORIZED", 8)]


def test_the_rest_is_a_vector_of_its_own() -> None:
    assert loops(17) == [("VECTORIZED", 16), ("VECTORIZED", 1)]
    assert loops(55) == [("UNROLLED", 3), ("VECTORIZED", 16), ("VECTORIZED", 7)]


def test_the_widest_element_counts() -> None:
    a = te.placeholder((48,), "int8", "A")
    b = te.compute((48,), lambda i: a[i].astype("int64"), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    func = tvm.lower(s, [a, b], upto=1)["main"]
    assert isinstance(func, PrimFunc)
    cut = split_vector_loop(func.with_attr("target", tvm.Target("llvm -mcpu=skylake-avx512")), PassContext())
    assert [int(str(x.extent)) for x in walk_statements(cut.body) if isinstance(x, For)] == [6, 8]


def test_without_vectors_nothing_is_cut() -> None:
    s, args = function(48)
    func = tvm.lower(s, args, upto=1)["main"]
    assert isinstance(func, PrimFunc)
    assert split_vector_loop(func, PassContext(config={"tir.disable_vectorize": 1})) is func


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(st.integers(1, 300), st.sampled_from(["float32", "float64", "int8"]))
def test_every_extent_computes_the_same(extent: int, dtype: str) -> None:
    s, args = function(extent, dtype)
    assert_schedule_correct(s, args)


def test_a_register_tile_of_three_registers_stays_in_registers() -> None:
    m, n, k = 8, 48, 20
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    s[c].reorder(r, i, j)
    s[c].vectorize(j)
    text = tvm.lower(s, [a, b, c]).script()
    assert 'T.allocate([24], "float32x16", "register")' in text
    func = tvm.build(s, [a, b, c])
    x, y, out = np.ones((m, k), "float32"), np.ones((k, n), "float32"), np.empty((m, n), "float32")
    func(x, y, out)
    np.testing.assert_array_equal(out, np.full((m, n), k))
