"""Strides of aligned storage: they leave the offset, they are as small as can be, and elements stay apart."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.lower.phase1.layout import aligned
from tensorexpr.schedule import create_schedule
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int, const
from tensorexpr.tir.rewriting import substitute
from tensorexpr.tir.stmt import Allocate
from tests.effort import share_of

from .builder import statements


@settings(max_examples=share_of(100), deadline=None, derandomize=True)
@given(st.data())
def test_strides(data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    aligns = []
    for dimension in range(len(extents)):
        if data.draw(st.booleans()):
            factor = data.draw(st.integers(1, 16))
            aligns.append((dimension, factor, data.draw(st.integers(0, factor - 1))))
    strides, size = aligned([const(extent) for extent in extents], aligns)
    values, needed = [as_int(stride) for stride in strides], 1
    for dimension in reversed(range(len(extents))):
        stride = values[dimension]
        assert stride is not None
        wanted = next(((factor, offset) for number, factor, offset in aligns if number == dimension), (1, 0))
        assert stride % wanted[0] == wanted[1]
        assert needed <= stride < needed + wanted[0]
        needed = stride * extents[dimension]
    assert as_int(size) == needed


def test_symbolic_rows() -> None:
    n = te.var("n")
    a = te.placeholder((4, n), name="A")
    b = te.compute((4, n), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((n, 4), lambda j, i: b[i, j], name="C")
    s = create_schedule(c.op)
    s[b].storage_align(b.op.axis[0], 16, 1)
    (storage,) = statements(tvm.lower(s, [a, c], upto=1)["main"], Allocate)
    for size in (1, 16, 17, 18):
        rows = substitute(storage.extents[0], {n: const(size)})
        assert as_int(Analyzer().simplify(rows)) == 4 * (size + (1 - size) % 16)
    assert_schedule_correct(s, [a, c], sizes=[{n: 1}, {n: 17}, {n: 40}])


def test_a_later_request_for_an_axis_replaces_the_first() -> None:
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 4), lambda j, i: b[i, j], name="C")
    s = create_schedule(c.op)
    s[b].storage_align(b.op.axis[0], 16)
    s[b].storage_align(b.op.axis[0], 8, 1)
    (storage,) = statements(tvm.lower(s, [a, c], upto=1)["main"], Allocate)
    assert storage.constant_size() == 36
