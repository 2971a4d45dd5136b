"""Prefetches, store predicates, non-temporal stores and separate loads change how programs touch memory, never what they give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.build import build
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import const, maximum
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of
from tests.programs import chain, conv_relu, matmul

Program = tuple[Schedule, Sequence[Tensor]]


def scheduled(args: Sequence[Tensor]) -> Program:
    """A program with the loops as declared."""
    return create_schedule(args[-1].op), args


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 12), st.integers(0, 2), st.integers(1, 40), st.booleans())
def test_prefetches(n: int, m: int, k: int, loop: int, offset: int, parallel: bool) -> None:
    s, (a, b, c) = scheduled(matmul(n, m, k))
    i, j = c.op.axis
    jo, ji = s[c].split(j, factor=4)
    loops = (i, jo, c.op.reduce_axis[0])
    s[c].reorder(i, jo, c.op.reduce_axis[0], ji)
    s[c].vectorize(ji)
    if parallel:
        s[c].parallel(i)
    s[c].prefetch(a, loops[loop], offset)
    s[c].prefetch(b, loops[2 - loop], offset)
    assert_schedule_correct(s, [a, b, c])


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.integers(3, 20), st.integers(1, 3), st.sampled_from(("float32", "float64", "int8")))
def test_prefetches_of_what_other_stages_made(n: int, offset: int, dtype: str) -> None:
    a = te.placeholder((n, 5), dtype, name="A")
    b = te.compute((n, 5), lambda i, j: a[i, j] + a[i, 4 - j], name="B")
    c = te.compute((n - 2, 5), lambda i, j: b[i, j] + b[i + 2, j], name="C")
    out = te.compute((n - 2, 5), lambda i, j: c[i, j] * c[i, 0], name="out")
    s = create_schedule(out.op)
    s[c].compute_at(s[out], out.op.axis[0])
    s[out].prefetch(b, out.op.axis[0], offset)
    s[c].prefetch(b, c.op.axis[1], offset)
    assert_schedule_correct(s, [a, out])


def test_prefetches_of_scalars() -> None:
    """A tensor of rank 0 has one element, and so one line."""
    a, scalar = te.placeholder((4,), name="A"), te.placeholder((), name="scalar")
    b = te.compute((4,), lambda i: a[i] * scalar(), name="B")
    s = create_schedule(b.op)
    s[b].prefetch(scalar, b.op.axis[0], 3)
    assert_schedule_correct(s, [a, scalar, b])


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(
    st.integers(1, 5), st.integers(1, 40), st.sampled_from((1, 3, 4, 8, 16, 32)), st.sampled_from(("float32", "float64", "int8")), st.data()
)
def test_nontemporal_stores(n: int, m: int, lanes: int, dtype: str, data: st.DataObject) -> None:
    a = te.placeholder((n, m), dtype, name="A")
    out = te.compute((n, m), lambda i, j: maximum(a[i, j] + a[i, j], const(0, dtype)), name="out")
    s = create_schedule(out.op)
    s[out].vectorize(s[out].split(out.op.axis[1], factor=lanes)[1])
    if data.draw(st.booleans()):
        s[out].parallel(out.op.axis[0])
    s[out].store_nontemporal()
    assert_schedule_correct(s, [a, out])
    module = build(s, [a, out])
    values = np.arange(n * m).reshape(n, m).astype(dtype)
    room = np.zeros(values.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 64 + data.draw(st.integers(0, 16)) * values.itemsize
    view = room[start : start + values.nbytes].view(dtype).reshape(n, m)
    module(values, view)
    assert np.array_equal(view, np.maximum(values + values, 0).astype(dtype))
    assert not room[:start].any()
    assert not room[start + values.nbytes :].any()


def test_nontemporal_stores_of_a_reduction_and_of_two_outputs() -> None:
    s, args = scheduled(matmul(5, 32, 3))
    s[args[-1]].vectorize(args[-1].op.axis[1])
    s[args[-1]].store_nontemporal()
    assert_schedule_correct(s, args)
    a = te.placeholder((4, 16), name="A")
    x, y = te.compute((4, 16), lambda i, j: (a[i, j] + 1.0, a[i, j] * 2.0), name="both")
    s = create_schedule(x.op)
    s[x].vectorize(x.op.axis[1])
    s[x].store_nontemporal()
    assert_schedule_correct(s, [a, x, y])


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(st.integers(4, 24), st.integers(0, 4), st.integers(1, 8), st.sampled_from((1, 3, 8)), st.booleans(), st.booleans())
def test_an_output_keeps_what_its_predicate_leaves_out(n: int, low: int, period: int, lanes: int, reduce: bool, cached: bool) -> None:
    a = te.placeholder((n, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    out = te.compute((n,), lambda i: te.sum(a[i, k], axis=k) if reduce else a[i, 1] * 2.0, name="out")
    s = create_schedule(out.op)
    i = out.op.axis[0]
    s[out].set_store_predicate(te.all(i >= low, te.any(i % period == 0, i < 3)))
    if cached:
        s.cache_write(out, "local")
        i = s[out].op.axis[0]
    s[out].vectorize(s[out].split(i, factor=lanes)[1])
    values = np.random.default_rng(n).integers(-9, 9, (n, 3)).astype(np.float32)
    whole = values.sum(axis=1) if reduce else values[:, 1] * 2
    index = np.arange(n)
    expected = np.where((index >= low) & ((index % period == 0) | (index < 3)), whole, 7)
    for phase in range(4):
        result = np.full(n, 7, np.float32)
        interpret(lower(s, [a, out], upto=phase)["main"], [values, result])
        assert np.array_equal(result, expected), phase
    result = np.full(n, 7, np.float32)
    build(s, [a, out])(values, result)
    assert np.array_equal(result, expected)


@settings(max_examples=share_of(15), deadline=None, derandomize=True)
@given(st.integers(5, 30), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans())
def test_stores_that_nobody_reads_are_left_out(n: int, before: int, after: int, inline: bool, attach: bool) -> None:
    """B is stored just where C reads it, directly, through an inlined stage and under a condition."""
    size = n + before + after
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i + before] * 2.0, name="C")
    d = te.compute((n,), lambda i: te.if_then_else(i >= 2, c[i] - b[i + before - 2], c[i]), name="D")
    s = create_schedule(d.op)
    i = b.op.axis[0]
    s[b].set_store_predicate(te.all(i >= before, i < size - after))
    if inline:
        s[c].compute_inline()
    if attach and inline:
        s[b].compute_at(s[d], s[d].split(d.op.axis[0], factor=4)[0])
    assert_schedule_correct(s, [a, d])


@pytest.mark.parametrize("unroll", (False, True))
@pytest.mark.parametrize("loops", ((0,), (1,), (2,), (0, 1, 2)))
def test_loads_that_are_not_merged(unroll: bool, loops: tuple[int, ...]) -> None:
    args = conv_relu(2, 6, 8)
    out = args[-1]
    conv = out.op.input_tensors[0]
    s = create_schedule(out.op)
    s[conv.op.input_tensors[0]].compute_inline()
    for number in loops:
        axis = conv.op.reduce_axis[number]
        s[conv].pragma(axis, "no_load_merge")
        if unroll:
            s[conv].unroll(axis)
    s[conv].vectorize(conv.op.axis[2])
    assert_schedule_correct(s, args)


def test_a_chain_with_everything() -> None:
    a, d = chain(24)
    c, b = d.op.input_tensors
    s = create_schedule(d.op)
    i = d.op.axis[0]
    s[c].compute_at(s[d], i)
    s[b].compute_at(s[d], i)
    s[b].rolling_buffer()
    s[b].set_store_predicate(b.op.axis[0] < 24)
    s[d].prefetch(a, i, 4)
    s[d].store_nontemporal()
    assert_schedule_correct(s, [a, d])


def test_an_output_that_is_no_argument_has_ordinary_stores() -> None:
    a = te.placeholder((4, 16), name="A")
    x, _ = te.compute((4, 16), lambda i, j: (a[i, j] + 1.0, a[i, j] * 2.0), name="both")
    s = create_schedule(x.op)
    s[x].vectorize(x.op.axis[1])
    s[x].store_nontemporal()
    assert_schedule_correct(s, [a, x])
