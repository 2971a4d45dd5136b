"""register_promotion: values leave memory where that is safe, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.register_promotion import register_promotion
from tensorexpr.lower.phase2.unroll_loop import unroll_loop
from tensorexpr.lower.phase2.unroll_register_tile import unroll_register_tile
from tensorexpr.lower.phase2.vectorize_loop import vectorize_loop
from tensorexpr.tir.expr import BufferLoad, IntImm, Ramp, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.intrin import call_extern, if_then_else
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import Allocate, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, seq

from .builder import VECTORIZED, allocate, applied, arrays, check_kept, flat, func, guard, load, loop, matmul, parallel, statements, store

A, B, C = flat("A", 64), flat("B", 64), flat("C", 64)


def _registers(function: PrimFunc) -> int:
    """How many slots of registers there are."""
    return sum(s.constant_size() for s in statements(function, Allocate) if s.buffer_var.type_annotation.storage_scope == "register")


def _memory_accesses(stmt: Stmt, name: str) -> int:
    """Accesses to the memory of a buffer inside a statement."""
    nodes = [node for node in walk(stmt) if isinstance(node, (BufferLoad, BufferStore))]
    return sum(node.buffer.name == name and node.buffer.scope() != "register" for node in nodes)


def _promoted(body: Stmt, *params: Any, **attrs: Any) -> PrimFunc:
    return applied(register_promotion, func(body, *params, **attrs))


def test_an_accumulator_is_loaded_before_its_loop_and_stored_after() -> None:
    result = _promoted(loop("i", 8, lambda i: loop("k", 8, lambda k: store(B, load(B, i) + load(A, i * 8 + k), i))), A, B)
    inner = statements(result, For)[1]
    assert _registers(result) == 1
    assert _memory_accesses(inner, "B") == 0
    assert _memory_accesses(result.body, "B") == 2


def test_an_init_before_the_loop_needs_no_load() -> None:
    def body(i: Var) -> Stmt:
        return seq(store(B, 0.0, i), loop("k", 8, lambda k: store(B, load(B, i) + load(A, i * 8 + k), i)))

    result = _promoted(loop("i", 8, body), A, B)
    assert _memory_accesses(result.body, "B") == 1


def test_what_follows_the_loop_reads_the_register() -> None:
    def body(i: Var) -> Stmt:
        reduction = loop("k", 8, lambda k: store(B, load(B, i) + load(A, i * 8 + k), i))
        return seq(store(B, 0.0, i), reduction, store(C, load(B, i) * 2.0, i))

    result = _promoted(loop("i", 8, body), A, B, C)
    assert _memory_accesses(result.body, "B") == 1


def test_the_outermost_legal_loop_is_taken() -> None:
    def body(i: Var) -> Stmt:
        return loop("k", 4, lambda k: loop("l", 2, lambda m: store(B, load(B, i) + load(A, i * 8 + k * 2 + m), i)))

    result = _promoted(loop("i", 8, body), A, B)
    assert _memory_accesses(statements(result, For)[1], "B") == 0


def test_a_tile_keeps_its_init_update_and_epilogue_in_registers() -> None:
    start = matmul(8, 64, 5, 4, 32, 16)
    unrolled_tile = unroll_loop(unroll_register_tile(vectorize_loop(start, PassContext()), PassContext()), PassContext())
    result = applied(register_promotion, unrolled_tile)
    reduction = next(s for s in statements(result, For) if s.loop_var.name == "k")
    assert _registers(result) == 8
    assert _memory_accesses(reduction, "C") == 0
    assert _memory_accesses(result.body, "C") == 8


def test_another_access_to_the_buffer_forbids_it() -> None:
    start = func(loop("k", 8, lambda k: store(B, load(B, 0) + load(B, k + 1), 0)), B)
    assert register_promotion(start, PassContext()) is start


def test_an_index_that_the_loop_changes_forbids_it() -> None:
    start = func(loop("k", 8, lambda k: store(B, load(B, k) + 1.0, k)), B)
    assert register_promotion(start, PassContext()) is start


def test_overlapping_vectors_forbid_it() -> None:
    def vector(at: int) -> Ramp:
        return Ramp(IntImm("int32", at), IntImm("int32", 1), 4)

    body = loop("k", 4, lambda k: seq(store(B, load(B, vector(0)) * 2.0, vector(0)), store(B, load(B, vector(2)) + 1.0, vector(2))))
    start = func(body, B)
    assert register_promotion(start, PassContext()) is start
    check_kept(start, start)


def test_vectors_and_scalars_side_by_side() -> None:
    vector = Ramp(IntImm("int32", 0), IntImm("int32", 1), 4)
    body = loop("k", 4, lambda k: seq(store(B, load(B, vector) * 2.0, vector), store(B, load(B, 4) + load(A, k), 4)))
    result = _promoted(body, A, B)
    assert sorted(s.dtype for s in statements(result, Allocate)) == ["float32", "float32x4"]


def test_loops_that_may_not_run_touch_nothing() -> None:
    """B has no element i where the loop over k is empty."""
    small = flat("S", 4)
    n = Var("n")
    body = loop("i", 8, lambda i: loop("k", n - i, lambda k: store(small, load(small, i) + load(A, k), i)))
    result = applied(register_promotion, func(body, A, small, n), [*arrays(func(body, A, small)), 4])
    assert _registers(result) == 1
    assert _memory_accesses(statements(result, For)[1], "S") == 0


def test_an_init_makes_empty_loops_safe() -> None:
    n = Var("n")
    body = loop("i", 8, lambda i: seq(store(B, 0.0, i), loop("k", n, lambda k: store(B, load(B, i) + load(A, k), i))))
    for size in (0, 3):
        result = applied(register_promotion, func(body, A, B, n), [*arrays(func(body, A, B)), size])
    assert not statements(result, IfThenElse)


def test_invariant_guards_admit_what_they_guard() -> None:
    small = flat("S", 4)
    body = loop("i", 8, lambda i: loop("k", 8, lambda k: guard(i < 4, store(small, load(small, i) + load(A, k), i))))
    result = _promoted(body, A, small)
    assert _memory_accesses(statements(result, For)[1], "S") == 0


def test_guards_that_the_loop_changes_need_another_access() -> None:
    body = loop("i", 8, lambda i: loop("k", 8, lambda k: guard(i + k < 9, store(B, load(B, i) + load(A, k), i))))
    start = func(body, A, B)
    assert register_promotion(start, PassContext()).body is start.body
    first = loop("i", 8, lambda i: seq(store(B, 1.0, i), loop("k", 8, lambda k: guard(i + k < 9, store(B, load(B, i) + load(A, k), i)))))
    result = _promoted(first, A, B)
    assert _memory_accesses(statements(result, For)[1], "B") == 0


def test_accesses_under_different_guards_forbid_it() -> None:
    n = Var("n")

    def body(k: Var) -> Stmt:
        return seq(guard(n > 3, store(B, load(B, 0) + 1.0, 0)), guard(n < 2, store(B, load(B, 0) * 2.0, 0)))

    start = func(loop("k", 4, body), B, n)
    for size in (0, 2, 5):
        result = applied(register_promotion, start, [*arrays(func(start.body, B)), size])
    assert result is start


def test_conditional_loads_alone_forbid_it() -> None:
    small = flat("S", 4)

    def body(i: Var, k: Var) -> Stmt:
        return store(C, if_then_else(k < 0, load(small, i), load(A, k)), k)

    applied(register_promotion, func(loop("i", 8, lambda i: loop("k", 8, lambda k: body(i, k))), A, small, C))


def test_masked_accumulators() -> None:
    small = flat("S", 6)
    body = loop("k", 4, lambda k: loop("v", 8, lambda v: guard(v < 6, store(small, load(small, v) + load(A, k), v)), kind=VECTORIZED))
    vector = vectorize_loop(func(body, A, small), PassContext())
    result = applied(register_promotion, vector)
    assert _registers(result) == 1
    assert _memory_accesses(statements(result, For)[0], "S") == 0


def test_parallel_loops_are_no_place_for_registers() -> None:
    start = func(parallel("p", 1, lambda p: store(B, load(B, 0) + load(A, p), 0)), A, B)
    assert register_promotion(start, PassContext()) is start


def test_registers_do_not_cross_parallel_loops() -> None:
    body = loop("k", 4, lambda k: parallel("p", 1, lambda p: store(B, load(B, 0) + load(A, k), 0)))
    start = func(body, A, B)
    assert register_promotion(start, PassContext()) is start


def test_aliasing_parameters_stay_in_memory() -> None:
    body = loop("k", 8, lambda k: store(B, load(B, 0) + load(A, k), 0))
    start = func(body, A, B, **{"tir.noalias": False})
    assert register_promotion(start, PassContext()) is start


def test_calls_that_get_the_pointer_forbid_it() -> None:
    body = loop("k", 8, lambda k: seq(store(B, load(B, 0) + 1.0, 0), Evaluate(call_extern("int32", "look", B.data))))
    start = func(body, B)
    assert register_promotion(start, PassContext()) is start


def test_bases_that_a_let_binds_inside_stay() -> None:
    def body(k: Var) -> Stmt:
        place = Var("place")
        return LetStmt(place, k // 8, store(B, load(B, place) + load(A, k), place))

    start = func(loop("k", 8, body), A, B)
    assert register_promotion(start, PassContext()) is start
    check_kept(start, start)


def test_local_buffers_disappear() -> None:
    def inside(t: Any) -> Stmt:
        return seq(store(t, load(A, 0), 0), store(t, load(A, 1), 1), loop("k", 8, lambda k: store(B, load(t, 0) * load(t, 1), k)))

    result = _promoted(allocate("T", 2, inside), A, B)
    assert _memory_accesses(result.body, "T") == 0
    assert _registers(result) == 2


def test_local_buffers_with_a_variable_index_stay() -> None:
    def inside(t: Any) -> Stmt:
        return seq(loop("i", 2, lambda i: store(t, load(A, i), i)), store(B, load(t, 0), 0))

    start = func(allocate("T", 2, inside), A, B)
    assert register_promotion(start, PassContext()) is start


def test_too_many_values_stay() -> None:
    many = [store(B, load(B, i) + load(A, i), i) for i in range(63)]
    start = func(loop("k", 4, lambda k: seq(*many, *(store(C, load(C, i) + load(A, i), i) for i in range(63)))), A, B, C)
    result = applied(register_promotion, start)
    assert _registers(result) == 63  # one of the two buffers


def test_a_masked_load_of_a_plain_register_keeps_its_mask() -> None:
    vector = Ramp(IntImm("int32", 0), IntImm("int32", 1), 4)

    def inside(t: Any) -> Stmt:
        mask = load(A, vector) > 0.0
        return seq(store(t, load(A, vector), vector), store(B, BufferLoad(t, (vector,), mask) + 1.0, vector))

    result = _promoted(allocate("T", 4, inside), A, B)
    assert _memory_accesses(result.body, "T") == 0


def test_special_values_survive() -> None:
    start = func(loop("k", 3, lambda k: store(B, load(B, 0) * load(A, k), 0)), A, B)
    args = arrays(start)
    args[0][:3] = [np.nan, np.inf, -0.0]
    check_kept(start, register_promotion(start, PassContext()), args)


def test_a_guard_outside_the_loop_does_not_speak_for_those_inside() -> None:
    n = Var("n")
    inside = loop("k", 4, lambda k: guard(k < n, store(B, load(B, 0) + load(A, k), 0)))
    start = func(seq(inside, guard(n > 3, store(B, load(B, 0) * 2.0, 0))), A, B, n)
    for size in (0, 2, 4):
        applied(register_promotion, start, [*arrays(func(start.body, A, B)), size])


def test_a_conditional_init_does_not_replace_the_load() -> None:
    n = Var("n")
    start = func(seq(guard(n > 3, store(B, 0.0, 0)), loop("k", 4, lambda k: store(B, load(B, 0) + load(A, k), 0))), A, B, n)
    for size in (0, 4):
        result = applied(register_promotion, start, [*arrays(func(start.body, A, B)), size])
    assert _registers(result) == 1


def test_lanes_that_a_mask_leaves_out_read_as_zero() -> None:
    vector = Ramp(IntImm("int32", 0), IntImm("int32", 1), 4)
    mask = vector < 3

    def update(k: Var) -> Stmt:
        return BufferStore(B, BufferLoad(B, (vector,), mask) + load(A, k), (vector,), mask)

    body = seq(loop("k", 4, update), store(C, BufferLoad(B, (vector,), mask), vector))
    applied(register_promotion, func(body, A, B, C))
