"""What compute_at computes is exactly what consumers read: checked by counting, on small extents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_func_correct
from tensorexpr.tir.block import BlockRealize
from tensorexpr.tir.expr import IntImm, PrimExpr, Var
from tensorexpr.tir.rewriting import substitute
from tensorexpr.tir.stmt import For, SeqStmt, Stmt
from tests.effort import share_of

SOME = settings(max_examples=share_of(25), deadline=None, derandomize=True)
Instance = tuple[int, ...]


def instances(stmt: Stmt, name: str, known: dict[Var, PrimExpr], found: Counter[Instance]) -> None:
    """Counts how often a block runs at each point of its axes, by running the loops."""
    if isinstance(stmt, BlockRealize):
        values = [number(value, known) for value in stmt.iter_values]
        if not number(stmt.predicate, known):
            return
        if stmt.block.name_hint == name:
            found[tuple(values)] += 1
        elif not stmt.block.iter_vars:
            instances(stmt.block.body, name, known, found)
    elif isinstance(stmt, For):
        for step in range(number(stmt.extent, known)):
            instances(stmt.body, name, {**known, stmt.loop_var: IntImm(stmt.loop_var.dtype, step)}, found)
    elif isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            instances(part, name, known, found)


def number(expr: PrimExpr, known: dict[Var, PrimExpr]) -> int:
    """An expression of loop variables as a number."""
    found = substitute(expr, known)
    assert isinstance(found, IntImm), found
    return found.value


def runs(sch: tir.Schedule, name: str, loop: tir.Var | None = None) -> dict[int, Counter[Instance]]:
    """How often a block runs at each point, by the value of the outermost loop."""
    body = sch.mod["main"].body
    assert isinstance(body, BlockRealize)
    outer = body.block.body
    assert isinstance(outer, For)
    found: dict[int, Counter[Instance]] = {}
    for step in range(number(outer.extent, {})):
        count: Counter[Instance] = Counter()
        instances(outer.body, name, {outer.loop_var: IntImm(outer.loop_var.dtype, step)}, count)
        found[step] = count
    return found


def reading(n: int, m: int, places: list[tuple[int, int]]) -> list[Tensor]:
    """C[i] is the sum of B[k * i + c] over (k, c) among places; n elements of B, m of C."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")

    def value(i: Var) -> PrimExpr:
        total = b(places[0][0] * i + places[0][1])
        for scale, offset in places[1:]:
            total = total + b[scale * i + offset]
        return total

    return [a, te.compute((m,), value, name="C")]


@SOME
@given(
    m=st.integers(1, 9),
    places=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 4)), min_size=1, max_size=3),
    factor=st.integers(1, 5),
)
@example(m=5, places=[(1, 0), (1, 4)], factor=2)
def test_8_compute_at_runs_the_hull_of_what_is_read(m: int, places: list[tuple[int, int]], factor: int) -> None:
    n = max(scale * (m - 1) + offset for scale, offset in places) + 1
    args = reading(n, m, places)
    sch = tir.Schedule(te.create_prim_func(args))
    outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
    sch.compute_at("B", outer)
    made, used = runs(sch, "B"), runs(sch, "C")
    for step, count in made.items():
        points = [point[0] for point in used[step]]
        read = {scale * i + offset for scale, offset in places for i in points}
        have = {point[0] for point in count}
        assert read <= have <= set(range(n))
        assert max(count.values()) == 1
        whole = [scale * i + offset for scale, offset in places for i in range(step * factor, step * factor + factor)]
        hull = set(range(min(whole), max(whole) + 1)) & set(range(n))
        assert have == hull
    assert_func_correct(sch.mod["main"], args, phases=(0,), compiled=False)


@SOME
@given(n=st.integers(1, 6), m=st.integers(1, 6), factor=st.integers(1, 4), level=st.integers(0, 2), fused=st.booleans())
def test_reverse_compute_at_runs_each_point_once(n: int, m: int, factor: int, level: int, fused: bool) -> None:
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    args = [a, te.compute((m, n), lambda i, j: b[j, i] + 1.0, name="C")]
    sch = tir.Schedule(te.create_prim_func(args))
    i, j = sch.get_loops("B")
    loops = [*sch.split(sch.fuse(i, j), [None, factor])] if fused else [*sch.split(i, [None, factor]), j]
    try:
        sch.reverse_compute_at("C", loops[min(level, len(loops) - 1)])
    except ScheduleError:
        assert fused, "splits alone can always be followed"
        return
    total: Counter[Instance] = sum(runs(sch, "C").values(), Counter())
    assert total == Counter({(i, j): 1 for i in range(m) for j in range(n)})
    assert_func_correct(sch.mod["main"], args, phases=(0,), compiled=False)


@SOME
@given(n=st.integers(1, 6), m=st.integers(1, 6), offset=st.integers(0, 2), split=st.integers(1, 6), inverse=st.booleans())
def test_inlining_leaves_no_buffer(n: int, m: int, offset: int, split: int, inverse: bool) -> None:
    a = te.placeholder((n * m + offset,), name="A")
    b = te.compute((n * m + offset,), lambda i: a[i] * 2.0, name="B")
    args = [a, te.compute((n, m), lambda i, j: b[i * m + j + offset] + 1.0, name="C")]
    sch = tir.Schedule(te.create_prim_func(args))
    sch.split(sch.get_loops("B")[0], [None, split])
    request: Callable[[str], None] = sch.reverse_compute_inline if inverse else sch.compute_inline
    request("C" if inverse else "B")
    assert "B = T.alloc_buffer" not in sch.mod.script()
    assert_func_correct(sch.mod["main"], args, phases=(0,), compiled=False)


@SOME
@given(seed=st.integers(0, 1000), decision=st.integers(-3, 4))
def test_sampled_locations_are_legal(seed: int, decision: int) -> None:
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] * 2.0, name="B")
    args = [a, te.compute((4, 6), lambda i, j: b[i, j] + 1.0, name="C")]
    for given_decision in (None, decision):
        sch = tir.Schedule(te.create_prim_func(args), seed=seed)
        sch.compute_at("B", sch.sample_compute_location("B", decision=given_decision))
        assert sch.trace is not None
        decided = next(iter(sch.trace.decisions.values()))
        assert decided in (-2, -1, 0, 1)
        assert given_decision is None or decided == {-3: -1, 2: 1, 3: 1, 4: 1}.get(decision, decision)
        assert_func_correct(sch.mod["main"], args, phases=(0,), compiled=False)


def test_every_location_is_drawn() -> None:
    sch = tir.Schedule(te.create_prim_func(reading(6, 4, [(1, 0), (1, 2)])), seed=3)
    for _ in range(40):
        sch.sample_compute_location("B")
    assert sch.trace is not None
    assert set(sch.trace.decisions.values()) == {-2, -1, 0}


def test_results_are_the_same_for_parallel_consumers() -> None:
    args = reading(12, 10, [(1, 0), (1, 2)])
    sch = tir.Schedule(te.create_prim_func(args))
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 3])
    sch.parallel(outer)
    sch.compute_at("B", outer)
    assert_func_correct(sch.mod["main"], args)
    assert np.prod([len(sch.get_loops(name)) for name in ("B", "C")]) == 4


def test_padding_runs_too() -> None:
    """Points of C that read nothing of B are computed all the same, wherever B is."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] * 2.0, name="B")
    args = [a, te.compute((8,), lambda i: tir.if_then_else(tir.all(i >= 1, i < 7), b[i - 1], 0.0), name="C")]
    sch = tir.Schedule(te.create_prim_func(args))
    outer = sch.add_unit_loop(sch.get_loops("B")[0])
    sch.reverse_compute_at("C", outer)
    assert_func_correct(sch.mod["main"], args, phases=(0,), compiled=False)
