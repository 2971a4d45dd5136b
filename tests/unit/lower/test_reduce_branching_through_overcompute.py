"""reduce_branching_through_overcompute: whole local tiles, where no one can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.reduce_branching_through_overcompute import reduce_branching_through_overcompute as overcompute
from tensorexpr.schedule import create_schedule
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import const, floordiv
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import PrimExpr, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import IfThenElse, LetStmt, Stmt, seq

from .builder import allocate, applied, flat, func, guard, load, loop, statements, store

Update = Callable[[Buffer, Buffer, Var, Var, Var], Stmt]


def _update(local: Buffer, a: Buffer, t: Var, k: Var, i: Var) -> Stmt:
    return guard(t * 4 + i < 9, store(local, load(local, i) + load(a, (t * 4 + i) * 5 + k), i))


def _tiles(padded: int = 60, update: Update = _update, limit: int | None = 9) -> PrimFunc:
    """C = row sums of A in three tiles of four rows, the last with one, summed in a local buffer. A has `padded` elements."""
    a, c = flat("A", padded), flat("C", 9)

    def tile(t: Var) -> Stmt:
        def sums(local: Buffer) -> Stmt:
            init = seq() if limit is None else loop("i", 4, lambda i: guard(t * 4 + i < limit, store(local, 0.0, i)))
            sum_ = loop("k", 5, lambda k: loop("i", 4, lambda i: update(local, a, t, k, i)))
            out = loop("i", 4, lambda i: guard(t * 4 + i < 9, store(c, load(local, i), t * 4 + i)))
            return seq(init, sum_, out)

        return allocate("L", 4, sums)

    return func(loop("t", 3, tile), a, c)


def test_only_the_last_store_is_guarded() -> None:
    result = applied(overcompute, _tiles())
    (left,) = statements(result, IfThenElse)
    assert left.then_case.buffer.name == "C"


def test_sources_that_would_be_read_out_of_bounds() -> None:
    start = _tiles(padded=59)
    assert applied(overcompute, start) is start


def test_elements_beyond_the_allocation() -> None:
    """Three elements are enough while the guard keeps the fourth away."""
    start = func(
        allocate("L", 3, lambda local: loop("i", 4, lambda i: guard(i < 3, store(local, 1.0, i)))),
        flat("C", 1),
    )
    assert applied(overcompute, start) is start


def test_a_guard_that_says_something_else_about_an_element_stays() -> None:
    """Every element is initialised, so that what a guarded update leaves alone is looked at."""
    start = _tiles(limit=20)
    assert applied(overcompute, start) is start


def _of_the_reduction(local: Buffer, a: Buffer, t: Var, k: Var, i: Var) -> Stmt:
    return guard(t * 4 + k < 9, store(local, load(a, (t * 4 + i) * 5 + k), i))


def _of_both(local: Buffer, a: Buffer, t: Var, k: Var, i: Var) -> Stmt:
    return guard(floordiv(t * 4 + i + k, 2) < 5, store(local, load(a, (t * 4 + i) * 5 + k), i))


def _of_a_let(local: Buffer, a: Buffer, t: Var, k: Var, i: Var) -> Stmt:
    end = Var("end", "int32")
    return LetStmt(end, 9 - k, guard(t * 4 + i < end, store(local, load(a, (t * 4 + i) * 5 + k), i)))


def _two_to_one(local: Buffer, a: Buffer, t: Var, k: Var, i: Var) -> Stmt:
    return guard(t * 4 + i < 9, store(local, load(a, (t * 4 + i) * 5 + k), floordiv(i, 2)))


@pytest.mark.parametrize(("update", "limit"), [(_of_the_reduction, None), (_of_both, None), (_of_a_let, None), (_two_to_one, 9)])
def test_guards_that_are_not_about_the_element(update: Update, limit: int | None) -> None:
    start = _tiles(update=update, limit=limit)
    assert applied(overcompute, start) is start


def _tile_of_panel(fill: Callable[[Buffer, Buffer], Stmt]) -> PrimFunc:
    """C = A + A, through a panel that `fill` makes."""
    a, c = flat("A", 9), flat("C", 9)

    def tile(panel: Buffer, t: Var) -> Stmt:
        def body(local: Buffer) -> Stmt:
            twice = loop("i", 4, lambda i: guard(t * 4 + i < 9, store(local, load(panel, t * 4 + i) * 2.0, i)))
            out = loop("i", 4, lambda i: guard(t * 4 + i < 9, store(c, load(local, i), t * 4 + i)))
            return seq(twice, out)

        return allocate("L", 4, body)

    return func(allocate("P", 12, lambda panel: seq(fill(panel, a), loop("t", 3, lambda t: tile(panel, t)))), a, c)


def _padded(panel: Buffer, a: Buffer) -> Stmt:
    def value(i: PrimExpr) -> PrimExpr:
        return tir.if_then_else(i < 9, load(a, i), const(0.0))

    return loop("p", 3, lambda p: loop("q", 4, lambda q: store(panel, value(p * 4 + q), p * 4 + q)))


def test_a_panel_that_is_padded() -> None:
    assert len(statements(applied(overcompute, _tile_of_panel(_padded)), IfThenElse)) == 1


def test_a_panel_that_is_not_filled() -> None:
    for fill in (
        lambda panel, a: loop("p", 9, lambda p: store(panel, load(a, p), p)),
        lambda panel, a: loop("p", 12, lambda p: guard(p < 9, store(panel, load(a, p), p))),
        lambda panel, a: guard(const(1) < 2, loop("q", 12, lambda q: store(panel, load(a, q % 9), q))),
    ):
        start = _tile_of_panel(fill)
        found = statements(applied(overcompute, start), IfThenElse)
        assert sum(one.then_case.buffer.name == "L" for one in found if hasattr(one.then_case, "buffer")) == 1


def test_division_by_what_may_be_zero_stays_guarded() -> None:
    a, c = flat("A", 12, "int32"), flat("C", 9, "int32")

    def tile(t: Var) -> Stmt:
        def body(local: Buffer) -> Stmt:
            value = loop("i", 4, lambda i: guard(t * 4 + i < 9, store(local, floordiv(const(7), load(a, t * 4 + i)), i)))
            return seq(value, loop("i", 4, lambda i: guard(t * 4 + i < 9, store(c, load(local, i), t * 4 + i))))

        return allocate("L", 4, body, "int32")

    start = func(loop("t", 3, tile), a, c)
    with PassContext() as ctx:
        assert overcompute(start, ctx) is start


def test_in_a_schedule_at_the_end_of_phase_1() -> None:
    """A product whose left side is read with whole tiles to spare has one body for all its row tiles."""
    a, b = te.placeholder((12, 5), name="A"), te.placeholder((5, 16), name="B")
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute((9, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c.op)
    cached = s.cache_write(c, "local")
    io, _ = s[c].split(c.op.axis[0], factor=4)
    s[c].vectorize(c.op.axis[1])
    s[cached].compute_at(s[c], io)
    (ci, cj), (ck,) = cached.op.axis, cached.op.reduce_axis
    s[cached].reorder(ck, ci, cj)
    s[cached].vectorize(cj)
    with PassContext(config={"tir.add_lower_pass": [(1, tir.transform.ReduceBranchingThroughOvercompute())]}):
        text = tvm.lower(s, [a, b, c], upto=1).script()
        assert text.count("if T.likely") == 1
        assert_schedule_correct(s, [a, b, c])
