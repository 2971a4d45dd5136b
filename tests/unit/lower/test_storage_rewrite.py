"""storage_rewrite: allocations leave serial loops, never parallel ones, and share what is dead."""

from __future__ import annotations

from typing import Any

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.storage_rewrite import storage_rewrite
from tensorexpr.tir.expr import IntImm, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import Allocate, For, Stmt, seq

from .builder import TRUE, allocate, applied, flat, func, load, loop, parallel, statements, store

A, B = flat("A", 64), flat("B", 64)


def _chain(sizes: list[int], source: Any, dtypes: list[str] | None = None) -> Stmt:
    """Stage after stage, each in a buffer of its own that only the next one reads."""
    if not sizes:
        return loop("i", 8, lambda i: store(B, load(source, i), i))

    def inside(t: Any) -> Stmt:
        make = loop("i", min(sizes[0], 8), lambda i: store(t, load(source, i) + 1.0, i))
        return seq(make, _chain(sizes[1:], t))

    return allocate("T", sizes[0], inside)


def _sizes(function: PrimFunc) -> list[int]:
    return [stmt.constant_size() for stmt in statements(function, Allocate)]


def test_a_chain_needs_two_buffers() -> None:
    assert _sizes(applied(storage_rewrite, func(_chain([8] * 7, A), A, B))) == [8, 8]


def test_shared_storage_is_large_enough_for_all() -> None:
    assert sorted(_sizes(applied(storage_rewrite, func(_chain([8, 16, 32, 8, 64], A), A, B)))) == [16, 64]


def test_other_types_and_scopes_are_not_shared() -> None:
    def second(t: Any) -> Stmt:
        return seq(
            store(B, load(t, 0), 0), allocate("U", 8, lambda u: seq(store(u, 1, 0), store(B, load(u, 0).astype("float32"), 1)), "int32")
        )

    assert len(_sizes(applied(storage_rewrite, func(allocate("T", 8, lambda t: seq(store(t, 2.0, 0), second(t))), B)))) == 2

    def local(t: Any) -> Stmt:
        return seq(store(B, load(t, 0), 0), allocate("U", 8, lambda u: seq(store(u, 1.0, 0), store(B, load(u, 0), 1)), scope="local"))

    assert len(_sizes(applied(storage_rewrite, func(allocate("T", 8, lambda t: seq(store(t, 2.0, 0), local(t))), B)))) == 2


def test_allocations_leave_serial_loops() -> None:
    def body(i: Var) -> Stmt:
        return allocate("T", 4, lambda t: seq(store(t, load(A, i), 0), store(B, load(t, 0), i)))

    result = applied(storage_rewrite, func(loop("i", 8, body), A, B))
    assert isinstance(result.body, Allocate)


def test_allocations_stay_inside_parallel_loops() -> None:
    def body(p: Var) -> Stmt:
        return loop("i", 4, lambda i: allocate("T", 4, lambda t: seq(store(t, load(A, i), 0), store(B, load(t, 0), p * 4 + i))))

    result = applied(storage_rewrite, func(parallel("p", 4, body), A, B))
    assert isinstance(result.body, For)
    assert isinstance(result.body.body, Allocate)


def test_a_buffer_that_a_loop_reads_lives_throughout_the_loop() -> None:
    """T is read in every round, so U, first written after that read, may not take its place."""

    def inside(t: Any) -> Stmt:
        def body(i: Var) -> Stmt:
            return allocate("U", 8, lambda u: seq(store(B, load(t, 0), i), store(u, load(A, i), 0), store(B, load(B, i) + load(u, 0), i)))

        return seq(store(t, 5.0, 0), loop("i", 8, body))

    assert len(_sizes(applied(storage_rewrite, func(allocate("T", 8, inside), A, B)))) == 2


def test_a_buffer_of_one_round_may_share_with_one_before_the_loop() -> None:
    def inside(t: Any) -> Stmt:
        rounds = loop("i", 8, lambda i: allocate("U", 8, lambda u: seq(store(u, load(A, i), 0), store(B, load(u, 0), i))))
        return seq(store(t, 5.0, 0), store(B, load(t, 0), 0), rounds)

    assert _sizes(applied(storage_rewrite, func(allocate("T", 8, inside), A, B))) == [8]


def test_read_and_written_in_one_statement_is_not_shared() -> None:
    def inside(t: Any) -> Stmt:
        return seq(store(t, 5.0, 0), allocate("U", 8, lambda u: seq(store(u, load(t, 0) + 1.0, 0), store(B, load(u, 0), 0))))

    assert len(_sizes(applied(storage_rewrite, func(allocate("T", 8, inside), B)))) == 2


def test_buffers_shared_by_threads_live_throughout_the_parallel_loop() -> None:
    def inside(t: Any) -> Stmt:
        def body(p: Var) -> Stmt:
            return allocate("U", 8, lambda u: seq(store(u, load(t, p), 0), store(B, load(u, 0), p)))

        return seq(loop("i", 8, lambda i: store(t, load(A, i), i)), parallel("p", 8, body))

    result = applied(storage_rewrite, func(allocate("T", 8, inside), A, B))
    assert [isinstance(stmt, Allocate) for stmt in (result.body, statements(result, For)[1].body)] == [True, True]


def test_unused_storage_goes() -> None:
    assert not _sizes(applied(storage_rewrite, func(allocate("T", 8, lambda t: store(B, 1.0, 0)), B)))


def test_storage_of_variable_size_stays() -> None:
    n = Var("n")
    t = flat("T", n)
    body = loop("i", 2, lambda i: Allocate(t.data, "float32", (n,), TRUE, seq(store(t, 1.0, 0), store(B, load(t, 0), i))))
    start = func(body, B, n)
    assert storage_rewrite(start, PassContext()) is start


def test_registers_stay() -> None:
    start = func(loop("i", 2, lambda i: allocate("T", 1, lambda t: seq(store(t, 1.0, 0), store(B, load(t, 0), i)), scope="register")), B)
    assert storage_rewrite(start, PassContext()) is start


def test_what_is_in_place_stays_as_it_is() -> None:
    start = func(allocate("T", 8, lambda t: seq(store(t, 1.0, 0), store(B, load(t, 0), 0))), B)
    assert storage_rewrite(start, PassContext()).body is start.body


def test_switched_off() -> None:
    start = func(_chain([8] * 4, A), A, B)
    assert storage_rewrite(start, PassContext(config={"tir.disable_storage_rewrite": 1})) is start


def test_sizes_stay_constants() -> None:
    result = storage_rewrite(func(_chain([8, 16], A), A, B), PassContext())
    assert all(isinstance(extent, IntImm) for stmt in statements(result, Allocate) for extent in stmt.extents)
