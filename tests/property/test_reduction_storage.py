"""Properties 12, 13 and 14: cut loops around tiles that don't fit, starts of any combiner, storage outside all reduction loops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import BufferLoad, IterVar, PrimExpr
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import BufferRealize, BufferStore, For, Stmt
from tests.effort import share_of

EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 8, 13))
FACTORS = st.sampled_from((1, 2, 3, 4, 5, 8, 16))
PARTITION = {"tir.LoopPartition": {"partition_const_loop": True, "no_unroll_loop_with_extent_one": True}}


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(extent=EXTENTS, outer=FACTORS, inner=FACTORS, hint=st.booleans(), vector=st.booleans())
@example(extent=13, outer=5, inner=3, hint=False, vector=True)
@example(extent=7, outer=4, inner=5, hint=True, vector=False)
def test_12_two_splits_meet_while_loops_are_cut(extent: int, outer: int, inner: int, hint: bool, vector: bool) -> None:
    a = te.placeholder((extent + 2,), name="A")
    b = te.compute((extent + 2,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((extent,), lambda i: b[i] - b[i + 2], name="C")
    s = create_schedule(c.op)
    io, ii = s[c].split(c.op.axis[0], factor=outer)
    bo, bi = s[b].split(b.op.axis[0], factor=inner)
    s[b].compute_at(s[c], io)
    if hint:
        s[c].pragma(io, "loop_partition_hint", True)
        s[b].pragma(bo, "loop_partition_hint", True)
    if vector:
        s[c].vectorize(ii)
        s[b].vectorize(bi)
    with PassContext(config=PARTITION):
        assert_schedule_correct(s, [a, c])


def _argmin(first: tuple[PrimExpr, PrimExpr], second: tuple[PrimExpr, PrimExpr]) -> tuple[Any, Any]:
    earlier = te.any(first[1] < second[1], te.all(first[1] <= second[1], first[0] <= second[0]))
    return te.if_then_else(earlier, first[0], second[0]), te.if_then_else(earlier, first[1], second[1])


PRODUCT = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name="product")
ARGMIN = te.comm_reducer(_argmin, lambda d0, d1: (te.const(-1, d0), te.const(1 << 20, d1)), name="argmin")


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(
    n=EXTENTS,
    k=EXTENTS,
    fi=FACTORS,
    fk=FACTORS,
    order=st.permutations(range(4)),
    which=st.sampled_from(("product", "argmin")),
    given_start=st.booleans(),
)
@example(n=7, k=5, fi=4, fk=3, order=[3, 2, 1, 0], which="argmin", given_start=False)
def test_13_starts_of_other_combiners(n: int, k: int, fi: int, fk: int, order: list[int], which: str, given_start: bool) -> None:
    """The start is stored under the guards of the spatial axes only, for one value or several, also where it isn't the identity."""
    a = te.placeholder((n, k), "int32", name="A")
    r = te.reduce_axis((0, k), name="k")
    if which == "product":
        start = {"init": te.const(3, "int32")} if given_start else {}
        results: tuple[Tensor, ...] = (te.compute((n,), lambda i: PRODUCT(a[i, r], axis=r, **start), name="B"),)
    else:
        results = te.compute((n,), lambda i: ARGMIN((r.var, a[i, r]), axis=r), name="B")
    s = create_schedule(results[0].op)
    loops = [*s[results[0]].split(results[0].op.axis[0], factor=fi), *s[results[0]].split(s[results[0]].op.reduce_axis[0], factor=fk)]
    s[results[0]].reorder(*(loops[place] for place in order))
    assert_schedule_correct(s, [a, *results])


@settings(max_examples=share_of(20), deadline=None, derandomize=True)
@given(
    order=st.permutations(range(6)), fi=FACTORS, fj=FACTORS, fk=FACTORS, scope=st.sampled_from(("local", "global")), at=st.integers(0, 1)
)
@example(order=[4, 0, 5, 1, 2, 3], fi=2, fj=3, fk=2, scope="local", at=0)
def test_14_storage_is_outside_all_loops_of_its_reduction(order: list[int], fi: int, fj: int, fk: int, scope: str, at: int) -> None:
    n, m, k = 5, 7, 6
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = create_schedule(c.op)
    tile = s.cache_write(c, scope)
    outer, _ = s[c].split(s[c].op.axis[at], factor=4)
    s[tile].compute_at(s[c], outer if at == 0 else s[c].op.axis[0])
    loops: list[IterVar] = []
    for axis, factor in zip((*s[tile].op.axis, *s[tile].op.reduce_axis), (fi, fj, fk), strict=True):
        loops += s[tile].split(axis, factor=factor)
    s[tile].reorder(*(loops[place] for place in order))
    check_storage(lower(s, [a, b, c], upto=0)["main"].body)
    assert_schedule_correct(s, [a, b, c], phases=(0, 2))


def check_storage(stmt: Stmt) -> None:
    """Between a buffer's storage and its updates there are loops; around the storage there are none of the reduction."""
    found = 0
    for node in walk(stmt):
        if isinstance(node, BufferRealize):
            stores = [n for n in walk(node.body) if isinstance(n, BufferStore) and n.buffer is node.buffer]
            updates = [n for n in stores if any(isinstance(e, BufferLoad) and e.buffer is node.buffer for e in walk(n.value))]
            assert updates and len(stores) > len(updates), "the start and the updates lie in the storage"
            inside = {n.loop_var.name.split(".")[0] for n in walk(node.body) if isinstance(n, For)}
            around = {n.loop_var.name for n in walk(stmt) if isinstance(n, For) and any(x is node for x in walk(n))}
            assert "k" in inside and not any(name.startswith("k") for name in around)
            found += 1
    assert found == 1


@pytest.mark.parametrize("fk", [1, 2, 6, 8])
def test_14_a_result_that_is_an_argument_is_updated_in_place(fk: int) -> None:
    """With the reduction outermost every element is started before the first update."""
    a = te.placeholder((6, 5), "int32", name="A")
    r = te.reduce_axis((0, 6), name="k")
    b = te.compute((5,), lambda i: te.sum(a[r, i], axis=r), name="B")
    s = create_schedule(b.op)
    s[b].reorder(*s[b].split(r, factor=fk), b.op.axis[0])
    assert_schedule_correct(s, [a, b])
