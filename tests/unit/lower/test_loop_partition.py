"""loop_partition: the main part of a guarded loop has no guard, and nothing runs twice or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.loop_partition import loop_partition
from tensorexpr.lower.pragmas import PARTITION_HINT
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import const, maximum, minimum
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.expr import Max, Min, SizeVar, Var
from tensorexpr.tir.intrin import if_then_else, likely
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq

from .builder import (
    PARALLEL,
    SERIAL,
    applied,
    flat,
    func,
    guard,
    load,
    loop,
    loops,
    parallel,
    statements,
    store,
    stores,
    unrolled,
    vectorized,
)


def _split(buffer: object, extent: int, factor: int, kind: object = SERIAL) -> Stmt:
    """A loop of `extent` iterations split by `factor`, adding 1 to each element."""

    def body(io: Var, ii: Var) -> Stmt:
        i = io * factor + ii
        return guard(i < extent, store(buffer, load(buffer, i) + 1.0, i))  # type: ignore[arg-type]

    return loop("io", -(-extent // factor), lambda io: loop("ii", factor, lambda ii: body(io, ii)), kind)  # type: ignore[arg-type]


def test_imperfect_split() -> None:
    a = flat("A", 10)
    result = applied(loop_partition, func(_split(a, 10, 4), a))
    assert loops(result) == ["io 0:2", "ii 0:4", "ii 0:2"]
    assert not statements(result, IfThenElse)


def test_factor_beyond_the_extent() -> None:
    a = flat("A", 3)
    result = applied(loop_partition, func(_split(a, 3, 8), a))
    assert loops(result) == ["io 0:1", "ii 0:3"]
    assert not statements(result, IfThenElse)


def test_guard_that_never_holds() -> None:
    a = flat("A", 4)
    result = applied(loop_partition, func(loop("i", 4, lambda i: guard(i + 5 < 3, store(a, 1.0, i))), a))
    assert not statements(result, BufferStore)


def test_guard_from_below_and_above() -> None:
    a = flat("A", 20)

    def body(i: Var) -> Stmt:
        return IfThenElse(likely((i - 3) >= 0) & likely(i < 15), store(a, 1.0, i), store(a, 2.0, i))

    result = applied(loop_partition, func(loop("i", 20, body), a))
    assert loops(result) == ["i 0:3", "i 3:15", "i 15:20"]
    assert not statements(result, IfThenElse)


def test_the_latest_of_several_starts_and_the_first_of_several_ends() -> None:
    a, b = flat("A", 20), flat("B", 20)

    def body(i: Var) -> Stmt:
        return seq(*(guard(c, store(x, 1.0, i)) for x, c in ((a, i >= 3), (b, i >= 5), (a, i < 16), (b, i < 13))))

    result = applied(loop_partition, func(loop("i", 20, body), a, b))
    main = next(stmt for stmt in statements(result, For) if str(stmt.min) == "5")
    assert str(main.extent) == "8" and not statements(func(main, a, b), IfThenElse)


def test_two_splits_make_four_regions() -> None:
    a = flat("A", 7 * 10)

    def body(io: Var, jo: Var, ii: Var, ji: Var) -> Stmt:
        i, j = io * 4 + ii, jo * 4 + ji
        return guard(i < 7, guard(j < 10, store(a, load(a, i * 10 + j) + 1.0, i * 10 + j)))

    def inner(io: Var, jo: Var) -> Stmt:
        return loop("ii", 4, lambda ii: loop("ji", 4, lambda ji: body(io, jo, ii, ji)))

    result = applied(loop_partition, func(loop("io", 2, lambda io: loop("jo", 3, lambda jo: inner(io, jo))), a))
    assert len(statements(result, BufferStore)) == 4
    assert not statements(result, IfThenElse)


def test_three_levels_of_one_axis() -> None:
    a = flat("A", 23)

    def body(x: Var, y: Var, z: Var) -> Stmt:
        i = (x * 2 + y) * 5 + z
        return guard(i < 23, store(a, load(a, i) + 1.0, i))

    nest = loop("x", 3, lambda x: loop("y", 2, lambda y: loop("z", 5, lambda z: body(x, y, z))))
    result = applied(loop_partition, func(nest, a))
    assert loops(result) == ["x 0:2", "y 0:2", "z 0:5", "z 0:3"]


def test_splits_that_meet() -> None:
    """The extent of the inner loop depends on the outer one, as compute_at makes it."""
    a = flat("A", 40)

    def body(io: Var, x: Var) -> Stmt:
        i = io * 6 + x
        return guard(i < 32, guard(i - 3 >= 0, store(a, load(a, i) + 1.0, i)))

    result = applied(loop_partition, func(loop("io", 6, lambda io: loop("x", 7, lambda x: body(io, x))), a))
    assert not statements(result, IfThenElse)


def test_parallel_loops_choose_inside() -> None:
    a = flat("A", 10)
    result = applied(loop_partition, func(_split(a, 10, 4, PARALLEL), a))
    assert loops(result) == ["io 0:3 PARALLEL", "ii 0:4", "ii 0:2"]
    (choice,) = statements(result, IfThenElse)
    assert str(choice.condition) == "io < 2"


def test_parallel_loops_that_are_too_long_get_shorter() -> None:
    a = flat("A", 10)
    result = applied(loop_partition, func(parallel("i", 16, lambda i: guard(i < 10, store(a, 1.0, i))), a))
    assert loops(result) == ["i 0:10 PARALLEL"]
    assert not statements(result, IfThenElse)


def test_fused_loops_choose_inside() -> None:
    a = flat("A", 7 * 3)

    def body(f: Var, ii: Var) -> Stmt:
        i, j = f // 3 * 4 + ii, f % 3
        return guard(i < 7, store(a, load(a, i * 3 + j) + 1.0, i * 3 + j))

    result = applied(loop_partition, func(loop("f", 6, lambda f: loop("ii", 4, lambda ii: body(f, ii))), a))
    (choice,) = [s for s in statements(result, IfThenElse) if s.else_case is not None]
    assert "ii" not in str(choice.condition)


def test_edges_of_two_fused_axes_are_bodies_of_their_own() -> None:
    """7 x 10 in blocks of 4 x 4: in the last row of blocks 3 rows are left, in the last column of blocks 2 columns."""
    a = flat("A", 7 * 10)

    def body(f: Var, ii: Var, ji: Var) -> Stmt:
        i, j = f // 3 * 4 + ii, f % 3 * 4 + ji
        return guard(i < 7, guard(j < 10, store(a, load(a, i * 10 + j) + 1.0, i * 10 + j)))

    nest = parallel("f", 6, lambda f: loop("ii", 4, lambda ii: loop("ji", 4, lambda ji: body(f, ii, ji))))
    result = applied(loop_partition, func(nest, a))
    assert "likely" not in str(result.body)
    (_, *inner) = loops(result)
    assert sorted(set(inner)) == ["ii 0:3", "ii 0:4", "ji 0:2", "ji 0:4"]


def test_symbolic_extent() -> None:
    n = SizeVar("n")
    a = flat("A", 64)

    def body(io: Var, ii: Var) -> Stmt:
        return guard(io * 4 + ii < n, store(a, load(a, io * 4 + ii) + 1.0, io * 4 + ii))

    start = func(loop("io", (n + 3) // 4, lambda io: loop("ii", 4, lambda ii: body(io, ii))), a, n)
    for size in (0, 1, 3, 4, 5, 17, 32):
        result = applied(loop_partition, start, [np.zeros(64, np.float32), size])
    assert loops(result)[0] == "io 0:n // 4"
    assert len(statements(result, IfThenElse)) == 1


def test_vector_loops_are_not_cut() -> None:
    a = flat("A", 10)
    result = applied(loop_partition, func(vectorized("v", 16, lambda v: guard(v < 10, store(a, 1.0, v))), a))
    assert loops(result) == ["v 0:16 VECTORIZED"]


def test_vector_loops_count_as_inner_loops() -> None:
    a = flat("A", 40)
    nest = loop("o", 3, lambda o: vectorized("v", 16, lambda v: guard(o * 16 + v < 40, store(a, 1.0, o * 16 + v))))
    result = applied(loop_partition, func(nest, a))
    assert loops(result) == ["o 0:2", "v 0:16 VECTORIZED", "v 0:16 VECTORIZED"]
    assert len(statements(result, IfThenElse)) == 1


def test_unrolled_loops_are_cut_at_constants() -> None:
    a = flat("A", 5)
    result = applied(loop_partition, func(unrolled("i", 8, lambda i: guard(i < 5, store(a, 1.0, i))), a))
    assert loops(result) == ["i 0:5 UNROLLED"]


def test_conditions_without_a_hint_need_the_option() -> None:
    a = flat("A", 20)
    start = func(loop("i", 20, lambda i: guard(i < 15, store(a, 1.0, i), hint=False)), a)
    assert loop_partition(start, PassContext()).body is start.body
    result = applied(loop_partition, start, config={"tir.LoopPartition": {"partition_const_loop": True}})
    assert loops(result) == ["i 0:15"]


def test_growth_is_bounded() -> None:
    a = flat("A", 5**4)

    def nest(axes: list[Var], depth: int) -> Stmt:
        if depth == 4:
            place = ((axes[0] * 4 + axes[1]) * 5 + axes[2] * 4 + axes[3]) * 25
            return guard(axes[0] * 4 + axes[1] < 5, guard(axes[2] * 4 + axes[3] < 5, store(a, 1.0, place)))
        return loop(f"i{depth}", 2 if depth % 2 == 0 else 4, lambda i: nest([*axes, i], depth + 1))

    many = func(seq(*(nest([], 0) for _ in range(40))), a)
    result = applied(loop_partition, many, config={"tir.LoopPartition": {"max_growth": 2}})
    assert len(statements(result, BufferStore)) <= 2 * 64
    assert statements(result, IfThenElse)


def test_conditions_that_read_memory_stay() -> None:
    a = flat("A", 10, "int32")
    body = loop("i", 10, lambda i: guard(load(a, i) < 3, store(a, 7, i)))
    start = func(body, a)
    assert loop_partition(start, PassContext()).body is start.body


def test_conditions_on_bound_values_stay() -> None:
    a = flat("A", 10)

    def body(i: Var) -> Stmt:
        last = Var("last")
        return LetStmt(last, i // 2 + 3, guard(i < last, store(a, 1.0, i)))

    applied(loop_partition, func(loop("i", 10, body), a))


def test_sixty_four_bit_loops() -> None:
    a = flat("A", 10)

    def body(io: Var, ii: Var) -> Stmt:
        return guard(io * 4 + ii < 10, store(a, 1.0, io * 4 + ii))

    start = func(loop("io", 3, lambda io: loop("ii", 4, lambda ii: body(io, ii), dtype="int64"), dtype="int64"), a)
    assert loops(applied(loop_partition, start))[-1] == "ii T.int64(0):T.int64(2)"


def test_functions_without_guards_stay_as_they_are() -> None:
    a = flat("A", 10)
    start = func(loop("i", 10, lambda i: store(a, 1.0, i)), a)
    assert loop_partition(start, PassContext()) is start


def test_iterations_that_do_nothing_are_left_out() -> None:
    a = flat("A", 20)
    below = applied(loop_partition, func(loop("i", 20, lambda i: guard(i - 4 >= 0, store(a, 1.0, i))), a))
    assert loops(below) == ["i 4:20"]
    both = applied(loop_partition, func(loop("i", 20, lambda i: guard(i * 3 >= 13, guard(i * 2 < 25, store(a, 1.0, i)))), a))
    assert loops(both) == ["i 5:13"]


def test_iterations_are_needed_if_any_statement_runs() -> None:
    a = flat("A", 20)
    body = loop("i", 20, lambda i: seq(guard(i < 5, store(a, 1.0, i)), guard(i >= 12, store(a, 2.0, i))))
    assert loops(applied(loop_partition, func(body, a)))[-1].endswith(":20")


def test_a_parallel_loop_with_a_guard_of_its_own_variable_only() -> None:
    a = flat("A", 20)
    body = parallel("i", 20, lambda i: seq(guard(i < 5, store(a, 1.0, i)), guard(i >= 12, store(a, 2.0, i))))
    applied(loop_partition, func(body, a))


def _padded() -> Stmt:
    """B[i] = A[i - 1] + A[i + 1], with zeros outside."""

    def body(io: Var, r: Var, ii: Var) -> Stmt:
        i = io * 4 + ii
        at = i + r * 2 - 1
        value = if_then_else(all_of(at >= 0, at < 12), load(PADDED[0], at), const(0.0))
        return store(PADDED[1], load(PADDED[1], i) + value, i)

    return loop("io", 3, lambda io: loop("r", 2, lambda r: loop("ii", 4, lambda ii: body(io, r, ii))))


PADDED = (flat("A", 12), flat("B", 12))


def test_padding_is_cut_on_request() -> None:
    start = func(_padded(), *PADDED)
    assert loop_partition(start, PassContext()) is start
    result = applied(loop_partition, start, config={"tir.LoopPartition": {"partition_const_loop": True}})
    assert "if_then_else" not in str(stores(result))


def test_padding_is_cut_at_a_hint() -> None:
    hinted = replace(_padded(), annotations=FrozenMap({PARTITION_HINT: True}))  # type: ignore[type-var]
    result = applied(loop_partition, func(hinted, *PADDED))
    assert "if_then_else" not in str(stores(result))
    assert not any(stmt.annotations for stmt in statements(result, For))


def test_padding_of_a_fused_loop() -> None:
    a, b = flat("A", 12), flat("B", 36)

    def body(f: Var, r: Var) -> Stmt:
        at = f % 12 + r - 1
        return store(b, load(b, f) + if_then_else(all_of(at >= 0, at < 12), load(a, at), const(0.0)), f)

    start = func(loop("f", 36, lambda f: loop("r", 3, lambda r: body(f, r))), a, b)
    result = applied(loop_partition, start, config={"tir.LoopPartition": {"partition_const_loop": True}})
    assert "if_then_else" not in stores(result)[0]


def test_a_statement_that_never_runs_needs_no_iterations() -> None:
    """What one statement would need beyond the loop's end is no reason to run another there."""
    a = flat("A", 20)
    body = loop("i", 5, lambda i: seq(store(a, 1.0, i), guard(i >= 12, store(a, 2.0, i))))
    assert loops(applied(loop_partition, func(body, a))) == ["i 0:5"]


def test_borders_that_meet_are_bodies_of_their_own() -> None:
    """Two tiles, each with a border: neither has a test, and only the columns that exist."""
    a, c = flat("A", 16), flat("C", 8)

    def body(o: Var, r: Var, i: Var) -> Stmt:
        x = o * 4 + i + r
        return guard(all_of(x >= 1, x < 9), store(c, load(c, o * 4 + i) + load(a, x), o * 4 + i), hint=False)

    nest = loop("o", 2, lambda o: loop("r", 3, lambda r: loop("i", 4, lambda i: body(o, r, i))), loop_partition_hint=True)
    result = applied(loop_partition, func(nest, a, c))
    assert not statements(result, IfThenElse)
    assert loops(result) == ["o 0:1", "i 1:4", "r 1:3", "i 0:4", "r 0:2", "i 0:4", "i 0:3"]


def test_three_tiles_of_which_none_is_free_of_borders() -> None:
    a, c = flat("A", 32), flat("C", 6)

    def body(o: Var, r: Var, i: Var) -> Stmt:
        x = o * 2 + i + r
        return guard(all_of(x >= 3, x < 7), store(c, load(c, o * 2 + i) + load(a, x), o * 2 + i))

    result = applied(loop_partition, func(loop("o", 3, lambda o: loop("r", 5, lambda r: loop("i", 2, lambda i: body(o, r, i)))), a, c))
    assert not statements(result, IfThenElse)


def test_no_test_where_nothing_inside_is_spared() -> None:
    """A guard that the loops inside don't touch is tested once, where it stands."""
    a = flat("A", 12)

    def body(o: Var, i: Var, v: Var) -> Stmt:
        return guard((o + i) % 3 * 4 < 5, store(a, 1.0, (o * 2 + i) * 2 + v))

    start = func(loop("o", 3, lambda o: loop("i", 2, lambda i: loop("v", 2, lambda v: body(o, i, v)))), a)
    assert len(statements(applied(loop_partition, start), IfThenElse)) == 1


@pytest.mark.parametrize("kind", [SERIAL, PARALLEL])
def test_vectors_whose_neighbours_are_clamped_at_the_ends_only(kind: ForKind) -> None:
    a, b = flat("A", 64), flat("B", 64)

    def body(io: Var, ii: Var) -> Stmt:
        i = io * 8 + ii
        return store(b, load(a, maximum(minimum(i - 2, 61), 0)) + load(a, minimum(i + 1, 63)), i)

    function = func(loop("io", 8, lambda io: vectorized("ii", 8, lambda ii: body(io, ii)), kind), a, b)
    result = applied(loop_partition, function)
    bodies = statements(result, BufferStore)
    clamped = [any(isinstance(node, (Max, Min)) for node in walk(one.value)) for one in bodies]
    assert not all(clamped) and any(clamped)
    if kind is SERIAL:
        assert clamped == [True, False, True] and "io 1:7" in loops(result)


def test_clamps_that_lanes_share_cut_nothing() -> None:
    a, b = flat("A", 64), flat("B", 64)
    shared = func(loop("io", 8, lambda io: vectorized("ii", 8, lambda ii: store(b, load(a, maximum(io - 2, 0)) + 1.0, io * 8 + ii))), a, b)
    serial = func(loop("i", 64, lambda i: store(b, load(a, maximum(i - 2, 0)), i)), a, b)
    for function in (shared, serial):
        assert len(statements(applied(loop_partition, function), BufferStore)) == 1
