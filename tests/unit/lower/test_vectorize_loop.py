"""vectorize_loop: vectors where there are any, masks for guards, and lane by lane what has no vector form."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.vectorize_loop import vectorize_loop
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import cast, const, floordiv, floormod, truncdiv
from tensorexpr.tir.expr import Broadcast, BufferLoad, Let, PrimExpr, Ramp, Select, SizeVar, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.intrin import call_extern, call_pure_extern, exp, if_then_else, likely
from tensorexpr.tir.stmt import Allocate, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, seq

from .builder import (
    SERIAL,
    VECTORIZED,
    allocate,
    applied,
    arrays,
    flat,
    func,
    guard,
    load,
    loop,
    loops,
    run,
    statements,
    store,
    stores,
    vectorized,
)

A, B = flat("A", 64), flat("B", 64)


def _vectorized(body: Stmt, *more: object) -> PrimFunc:
    return applied(vectorize_loop, func(body, A, B, *more))  # type: ignore[arg-type]


def test_elementwise() -> None:
    result = _vectorized(loop("i", 4, lambda i: vectorized("v", 8, lambda v: store(B, load(A, i * 8 + v) * 2.0 + 1.0, i * 8 + v))))
    (stored,) = statements(result, BufferStore)
    assert stored.value.dtype == "float32x8"
    assert isinstance(stored.indices[0], Ramp)
    assert str(stored.indices[0].base) == "i * 8"
    assert loops(result) == ["i 0:4"]


def test_scalars_are_broadcast() -> None:
    result = _vectorized(vectorized("v", 8, lambda v: store(B, load(A, 3), v)))
    (stored,) = statements(result, BufferStore)
    assert isinstance(stored.value, Broadcast)
    assert isinstance(stored.value.value, BufferLoad)


def test_strides_and_gathers() -> None:
    result = _vectorized(vectorized("v", 8, lambda v: store(B, load(A, v * 3 + 1) + load(A, floormod(v * v, 7)), v * 2)))
    (stored,) = statements(result, BufferStore)
    assert str(stored.indices[0]) == "T.Ramp(0, 2, 8)"
    assert str(stored.value.a.indices[0]) == "T.Ramp(1, 3, 8)"
    assert not isinstance(stored.value.b.indices[0], Ramp)


@pytest.mark.parametrize("step", [1, 2])
def test_blocks_of_a_fused_axis(step: int) -> None:
    """Lanes within one block have one quotient, and remainders that count up."""

    def body(f: Var, v: Var) -> Stmt:
        at = f * 8 + v
        return store(B, load(A, floordiv(at * step, 16) * 16 + floormod(at * step, 16)) + cast(floordiv(at, 16), "float32"), at)

    result = _vectorized(loop("f", 4, lambda f: vectorized("v", 8, lambda v: body(f, v))))
    (stored,) = statements(result, BufferStore)
    assert isinstance(stored.value.a.indices[0], Ramp)


def test_remainders_across_blocks_hold_for_every_lane() -> None:
    _vectorized(
        loop(
            "f",
            4,
            lambda f: vectorized("v", 8, lambda v: store(B, cast((f * 8 + v - 13) % 5 + (f * 8 + v - 13) // 5, "float32"), f * 8 + v)),
        )
    )


def test_remainders_of_negative_starts() -> None:
    _vectorized(
        loop(
            "i",
            4,
            lambda i: vectorized("v", 4, lambda v: store(B, cast(floormod(v - 16 + i, 4) + truncdiv(v - 7, 3), "float32"), v)),
            low=-2,
        )
    )


def test_guards_become_masks() -> None:
    result = _vectorized(
        loop("i", 3, lambda i: vectorized("v", 8, lambda v: guard(i * 8 + v < 20, store(B, load(A, i * 8 + v), i * 8 + v))))
    )
    (stored,) = statements(result, BufferStore)
    assert stored.predicate is not None
    assert stored.value.predicate is stored.predicate
    assert not statements(result, IfThenElse)


def test_masked_lanes_touch_nothing() -> None:
    """The buffers end where the mask does; the interpreter would report a wild access."""
    a, b = flat("a", 10), flat("b", 10)
    body = vectorized("v", 16, lambda v: guard(v < 10, store(b, load(a, v) + load(a, 9 - v), v)))
    applied(vectorize_loop, func(body, a, b))


def test_scalar_loads_under_a_mask_are_safe() -> None:
    """A[i] is out of bounds where no lane runs."""
    a, b = flat("a", 2), flat("b", 20)
    body = loop("i", 4, lambda i: vectorized("v", 8, lambda v: guard(i * 8 + v < 12, store(b, load(a, i) * 2.0, i * 8 + v))))
    applied(vectorize_loop, func(body, a, b))


def test_scalar_loads_need_no_test_where_a_lane_surely_runs() -> None:
    body = loop("i", 3, lambda i: vectorized("v", 8, lambda v: guard(i * 8 + v < 20, store(B, load(A, i), i * 8 + v))))
    assert "if_then_else" not in stores(_vectorized(body))[0]


def test_masks_of_both_ends() -> None:
    a, b = flat("a", 3), flat("b", 40)

    def body(i: Var, v: Var) -> Stmt:
        at = i * 8 + v
        return guard(all_of(at >= 11, at < 13), store(b, load(a, i), at))

    applied(vectorize_loop, func(loop("i", 5, lambda i: vectorized("v", 8, lambda v: body(i, v))), a, b))


def test_a_guard_whose_branch_changes_what_it_reads() -> None:
    """The first store makes the condition false; the second one still belongs to the branch."""

    def body(v: Var) -> Stmt:
        return guard(load(A, v) > 0.0, seq(store(A, -1.0, v), store(B, 1.0, v)), hint=False)

    _vectorized(vectorized("v", 8, body))


def test_else_cases() -> None:
    def body(v: Var) -> Stmt:
        return IfThenElse(load(A, v) > 0.0, store(A, -1.0, v), store(B, load(A, v), v))

    result = _vectorized(vectorized("v", 8, body))
    assert [s.predicate is not None for s in statements(result, BufferStore)] == [True, True]


def test_conditions_that_all_lanes_share_stay_branches() -> None:
    result = _vectorized(loop("i", 4, lambda i: vectorized("v", 8, lambda v: IfThenElse(i > 1, store(B, 1.0, v), store(B, load(A, v), v)))))
    (branch,) = statements(result, IfThenElse)
    assert branch.condition.dtype == "bool"


def test_what_all_lanes_share_of_a_condition_stays_a_branch() -> None:
    """Only the part that differs is a mask: one of both parts would keep accumulators of a guarded tile out of registers."""

    def body(i: Var, v: Var) -> Stmt:
        return IfThenElse(all_of(likely(v < 3), floormod(i, 2) < 1), store(B, load(A, v), v))

    result = _vectorized(loop("i", 4, lambda i: vectorized("v", 8, lambda v: body(i, v))))
    (branch,), (stored,) = statements(result, IfThenElse), statements(result, BufferStore)
    assert str(branch.condition) == "i % 2 < 1"
    assert stored.predicate is not None and str(stored.predicate) == "T.Ramp(0, 1, 8) < T.Broadcast(3, 8)"


def test_if_then_else_guards_its_loads() -> None:
    a = flat("a", 8)

    def body(v: Var) -> Stmt:
        return store(B, if_then_else(all_of(v >= 2, v < 10), load(a, v - 2), const(7.0)), v)

    result = applied(vectorize_loop, func(vectorized("v", 16, body), a, B))
    (stored,) = statements(result, BufferStore)
    assert isinstance(stored.value, Select)
    assert "predicate" in str(stored.value.true_value)


def test_nested_if_then_else() -> None:
    a = flat("a", 8)

    def body(v: Var) -> Stmt:
        inner = if_then_else(v < 10, load(a, v - 2), load(a, v - 10))
        return store(B, if_then_else(v >= 2, inner, load(a, 0)), v)

    applied(vectorize_loop, func(vectorized("v", 16, body), a, B))


def test_lazy_and_guards_its_loads() -> None:
    a = flat("a", 8)
    body = vectorized("v", 16, lambda v: IfThenElse(all_of(v < 8, load(a, v) > 0.0), store(B, 1.0, v)))
    applied(vectorize_loop, func(body, a, B))


def test_divisions_in_masked_lanes() -> None:
    a, b = flat("a", 16, "int32"), flat("b", 16, "int32")

    def body(v: Var) -> Stmt:
        divisor = load(a, v)
        quotient = if_then_else(divisor.equal(0), const(99), floordiv(const(100), divisor))
        return store(b, quotient, v)

    start = func(vectorized("v", 16, body), a, b)
    applied(vectorize_loop, start, [np.arange(-8, 8, dtype=np.int32), np.zeros(16, np.int32)])


def test_inner_loops_keep_a_vector_body() -> None:
    def body(v: Var) -> Stmt:
        return seq(store(B, 0.0, v), loop("k", 4, lambda k: store(B, load(B, v) + load(A, k * 8 + v), v)))

    result = _vectorized(vectorized("v", 8, body))
    assert loops(result) == ["k 0:4"]
    assert all(s.value.dtype == "float32x8" for s in statements(result, BufferStore))


def test_inner_loops_of_different_length_run_lane_by_lane() -> None:
    def body(v: Var) -> Stmt:
        return loop("k", v + 1, lambda k: store(B, load(B, v) + load(A, k), v))

    result = _vectorized(vectorized("v", 8, body))
    assert loops(result) == ["v 0:8", "k 0:v + 1"]
    assert all(s.value.dtype == "float32" for s in statements(result, BufferStore))


def test_only_what_must_runs_lane_by_lane() -> None:
    def body(v: Var) -> Stmt:
        hard = store(B, call_pure_extern("float32", "cosf", load(A, v)), v + 8)
        return seq(store(B, load(A, v) + 1.0, v), hard, store(B, load(A, v), v + 16))

    result = vectorize_loop(func(vectorized("v", 8, body), A, B), PassContext())
    assert [s.value.dtype for s in statements(result, BufferStore)] == ["float32x8", "float32", "float32x8"]
    assert [s.kind for s in statements(result, For)] == [SERIAL]


def test_reductions_over_lanes_run_lane_by_lane() -> None:
    result = _vectorized(vectorized("v", 8, lambda v: store(B, load(B, 0) + load(A, v), 0)))
    assert loops(result) == ["v 0:8"]


def test_private_storage_gets_a_slot_per_lane() -> None:
    def body(v: Var) -> Stmt:
        def inside(t: object) -> Stmt:
            make = loop("k", 3, lambda k: store(t, load(A, v + k) * 2.0, k))  # type: ignore[arg-type]
            use = loop("k", 3, lambda k: store(B, load(t, 2 - k) + 1.0, v * 3 + k))  # type: ignore[arg-type]
            return seq(make, use)

        return allocate("T", 3, inside)

    result = _vectorized(vectorized("v", 8, body))
    (allocated,) = statements(result, Allocate)
    assert allocated.constant_size() == 24
    assert all(s.value.dtype == "float32x8" for s in statements(result, BufferStore))


def test_lets() -> None:
    def body(v: Var) -> Stmt:
        t, u = Var("t", "float32"), Var("u", "float32")
        return LetStmt(t, load(A, v) * 2.0, LetStmt(u, load(A, 5), store(B, t + u, v)))

    result = _vectorized(vectorized("v", 8, body))
    assert [s.var.dtype for s in statements(result, LetStmt)] == ["float32x8", "float32"]


def test_lets_in_expressions() -> None:
    def value(v: Var) -> PrimExpr:
        t = Var("t", "float32")
        return Let(t, load(A, v) * 2.0, t * t)

    _vectorized(vectorized("v", 8, lambda v: store(B, value(v), v)))


def test_casts_comparisons_and_intrinsics() -> None:
    b = flat("b", 16, "int32")

    def body(v: Var) -> Stmt:
        value = Select(exp(load(A, v) * 0.0) > 0.5, cast(load(A, v), "int32"), v * 7)
        return store(b, value, v)

    applied(vectorize_loop, func(vectorized("v", 16, body), A, b))


def test_symbolic_guard() -> None:
    n = SizeVar("n")

    def body(i: Var, v: Var) -> Stmt:
        at = i * 8 + v
        return guard(at < n, store(B, load(A, at) + load(A, i), at))

    start = func(loop("i", (n + 7) // 8, lambda i: vectorized("v", 8, lambda v: body(i, v))), A, B, n)
    for size in (0, 1, 8, 13, 64):
        applied(vectorize_loop, start, [*arrays(func(start.body, A, B)), size])


def test_loops_of_one_lane_and_symbolic_loops() -> None:
    n = Var("n")
    result = vectorize_loop(func(vectorized("v", 1, lambda v: store(B, load(A, v), v)), A, B), PassContext())
    assert loops(result) == []
    result = vectorize_loop(func(vectorized("v", n, lambda v: store(B, load(A, v), v)), A, B, n), PassContext())
    assert loops(result) == ["v 0:n"]


def test_switched_off() -> None:
    start = func(vectorized("v", 8, lambda v: store(B, load(A, v), v)), A, B)
    assert loops(applied(vectorize_loop, start, config={"tir.disable_vectorize": 1})) == ["v 0:8"]


def test_nested_vector_loops() -> None:
    result = _vectorized(vectorized("u", 4, lambda u: vectorized("v", 8, lambda v: store(B, load(A, u * 8 + v), u * 8 + v))))
    assert loops(result) == ["u 0:4"]
    assert statements(result, BufferStore)[0].value.dtype == "float32x8"


def test_sixty_four_bit_indices() -> None:
    result = _vectorized(loop("v", 8, lambda v: store(B, load(A, v * 2), v), kind=VECTORIZED, dtype="int64"))
    (stored,) = statements(result, BufferStore)
    assert stored.indices[0].dtype == "int64x8"


def test_special_values_survive() -> None:
    a, b = flat("a", 4), flat("b", 4)
    start = func(vectorized("v", 4, lambda v: store(b, Select(load(a, v) > 0.0, load(a, v), const(0.0)), v)), a, b)
    given = [np.array([np.nan, np.inf, -0.0, -np.inf], np.float32), np.zeros(4, np.float32)]
    np.testing.assert_array_equal(run(start, given)[1], run(vectorize_loop(start, PassContext()), given)[1])


def test_masks_of_both_ends_from_nested_guards() -> None:
    a, b = flat("a", 3), flat("b", 40)

    def body(i: Var, v: Var) -> Stmt:
        at = i * 8 + v
        return guard(at >= 11, guard(at < 13, store(b, load(a, i), at)))

    applied(vectorize_loop, func(loop("i", 5, lambda i: vectorized("v", 8, lambda v: body(i, v))), a, b))


def test_what_all_lanes_do_is_done_by_each() -> None:
    """An accumulation of a constant, and a call with effects, happen once per lane."""
    result = _vectorized(vectorized("v", 8, lambda v: store(B, load(B, 0) + 3.0, 0)))
    assert loops(result) == ["v 0:8"]
    start = func(vectorized("v", 8, lambda v: Evaluate(call_extern("int32", "f"))), A, B)
    assert loops(vectorize_loop(start, PassContext())) == ["v 0:8"]


def test_what_all_lanes_store_alike_is_stored_once() -> None:
    result = _vectorized(vectorized("v", 8, lambda v: seq(store(B, load(A, 5), 0), store(B, load(A, v), v + 8))))
    assert [s.value.dtype for s in statements(result, BufferStore)] == ["float32", "float32x8"]


def predicated(function: PrimFunc) -> int:
    """How many loads under a mask the values of all stores have."""
    return sum(text.count("predicate=") for text in stores(function))


def test_conditions_read_elements_that_are_there_in_all_lanes() -> None:
    """A mask for the second comparison's load would make it another load, and that of the third one another again."""

    def body(v: Var) -> Stmt:
        at = cast(load(A, v), "int32")
        return store(B, if_then_else(all_of(at >= 0, load(A, v) < 5.0, load(A, v + 8) > 0.0), load(A, v) + load(A, v + 8), const(7.0)), v)

    assert predicated(_vectorized(vectorized("v", 8, body))) == 0
    # Not what isn't there: the array ends before the last lanes' elements.
    short = flat("short", 12)
    outside = vectorized("v", 8, lambda v: store(B, if_then_else(all_of(v < 4, load(short, v + 8) > 0.0), const(1.0), const(7.0)), v))
    assert predicated(applied(vectorize_loop, func(outside, short, B))) == 1


def test_what_is_read_anyway_is_not_read_again_under_a_mask() -> None:
    short = flat("short", 12)

    def body(v: Var) -> Stmt:
        return store(B, load(A, v) + if_then_else(v < 4, load(A, v) * load(short, 8 + v), const(7.0)), v)

    # The other element is read in the lanes that ask for it.
    assert predicated(applied(vectorize_loop, func(vectorized("v", 8, body), A, short, B))) == 1


def test_what_holds_in_a_branch_is_not_known_behind_it() -> None:
    n, short = SizeVar("n"), flat("short", 8)

    def body(v: Var) -> Stmt:
        inside = IfThenElse(n >= 8, store(B, load(short, v + n - 8), v))
        return seq(inside, store(B, if_then_else(v + n >= 8, load(short, v + n - 8), const(7.0)), v + 8))

    start = func(vectorized("v", 8, body), short, B, n)
    for size in (0, 3, 8):
        result = applied(vectorize_loop, start, [*arrays(func(start.body, short, B)), size])
    assert predicated(result) == 1
