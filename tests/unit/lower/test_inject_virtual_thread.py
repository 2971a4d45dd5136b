"""inject_virtual_thread: what is interleaved, what is shared, and that the program computes the same."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.inject_virtual_thread import inject_virtual_thread
from tensorexpr.lower.phase2.storage_rewrite import storage_rewrite
from tensorexpr.tir.arithmetic import convert
from tensorexpr.tir.expr import BufferLoad, Call, IntImm, Ramp, Var
from tensorexpr.tir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, While, seq
from tensorexpr.tir.thread import bound_tag

from .builder import allocate, applied, flat, func, load, loop, loops, statements, store, stores, threads

A, B = flat("A", 64), flat("B", 64)


def _chain(t: Var, differs: bool = True) -> Stmt:
    """T = A + 1 (of the thread's part or of the first), then B = 2 T."""

    def inside(temporary: Any) -> Stmt:
        make = loop("i", 4, lambda i: store(temporary, load(A, t * 4 + i if differs else i) + 1.0, i))
        return seq(make, loop("j", 4, lambda j: store(B, load(temporary, j) * 2.0, t * 4 + j)))

    return allocate("T", 4, inside)


def _sizes(function: Any) -> list[int]:
    return [stmt.constant_size() for stmt in statements(function, Allocate)]


def test_threads_are_interleaved_statement_by_statement() -> None:
    result = applied(inject_virtual_thread, func(threads("t", 2, _chain), A, B))
    assert loops(result) == ["i 0:4", "j 0:4"]
    assert [line.partition(" = ")[0] for line in stores(result)] == ["T_1[i]", "T_1[i + 4]", "B[j]", "B[j + 4]"]
    assert _sizes(result) == [8]


@pytest.mark.parametrize(("tag", "size", "count"), [("vthread", 4, 4), ("vthread.y", 4, 4), ("cthread", 12, 6)])
def test_what_is_the_same_for_all_threads(tag: str, size: int, count: int) -> None:
    result = applied(inject_virtual_thread, func(threads("t", 3, lambda t: _chain(t, differs=False), tag), A, B))
    assert _sizes(result) == [size]
    assert len(stores(result)) == count


def test_many_threads_stay_a_loop() -> None:
    result = applied(inject_virtual_thread, func(threads("t", 17, lambda t: loop("i", 2, lambda i: store(B, load(A, t), t * 2 + i))), A, B))
    assert loops(result) == ["i 0:2", "t 0:17"]


def test_one_thread_is_no_loop() -> None:
    result = applied(inject_virtual_thread, func(threads("t", 1, _chain), A, B))
    assert (loops(result), _sizes(result)) == (["i 0:4", "j 0:4"], [4])


def test_nested_threads() -> None:
    result = applied(inject_virtual_thread, func(threads("t", 2, lambda t: threads("u", 3, lambda u: _chain(t * 3 + u), "cthread")), A, B))
    assert _sizes(result) == [24]
    assert len(stores(result)) == 12


def test_a_condition_that_differs_goes_along() -> None:
    def body(t: Var) -> Stmt:
        def inside(temporary: Any) -> Stmt:
            chosen = IfThenElse(t < 2, store(temporary, 1.0, 0), store(temporary, 2.0, 0))
            return seq(loop("i", 4, lambda i: chosen), store(B, load(temporary, 0), t))

        return allocate("T", 1, inside)

    result = applied(inject_virtual_thread, func(threads("t", 4, body), B))
    assert _sizes(result) == [4]  # what is stored depends on the thread through the condition alone
    assert not statements(result, IfThenElse)  # of constants by now


def test_loops_whose_extent_differs_are_copied_whole() -> None:
    result = applied(inject_virtual_thread, func(threads("t", 3, lambda t: loop("i", t + 1, lambda i: store(B, 1.0, t * 8 + i))), B))
    assert loops(result) == ["t 0:3", "i 0:t + 1"]


def test_names_for_values_that_differ() -> None:
    value = Var("value", "float32")

    def body(t: Var) -> Stmt:
        return loop("i", 2, lambda i: LetStmt(value, load(A, t * 2 + i), store(B, value * 2.0, t * 2 + i)))

    result = applied(inject_virtual_thread, func(threads("t", 2, body), A, B))
    assert len(statements(result, LetStmt)) == 2


def test_while_loops() -> None:
    def body(t: Var) -> Stmt:
        def inside(counter: Any) -> Stmt:
            steps = seq(store(B, load(A, t), t * 4 + load(counter, 0)), store(counter, load(counter, 0) + 1, 0))
            return seq(store(counter, 0, 0), While(load(counter, 0) < 4, steps))

        return allocate("N", 1, inside, "int32")

    shared = applied(inject_virtual_thread, func(threads("t", 2, body), A, B))
    assert (_sizes(shared), len(statements(shared, While))) == ([1], 1)
    apart = applied(inject_virtual_thread, func(threads("t", 2, body, "cthread"), A, B))
    assert _sizes(apart) == [2]
    assert loops(apart) == ["t 0:2"]


def test_vectors_are_interleaved_whole() -> None:
    def body(t: Var) -> Stmt:
        def inside(temporary: Any) -> Stmt:
            lanes = Ramp(IntImm("int32", 0), IntImm("int32", 1), 4)
            there = Ramp(t * 4, IntImm("int32", 1), 4)
            return seq(BufferStore(temporary, BufferLoad(A, (there,)), (lanes,)), BufferStore(B, BufferLoad(temporary, (lanes,)), (there,)))

        return allocate("T", 4, inside)

    result = applied(inject_virtual_thread, func(threads("t", 2, body), A, B))
    assert _sizes(result) == [8]
    assert not loops(result)


def test_memory_that_foreign_code_sees_is_not_cut_up() -> None:
    def body(t: Var) -> Stmt:
        return allocate("T", 4, lambda x: seq(Evaluate(Call("int32", "tir.call_extern", (convert("f"), x.data))), store(B, load(x, 0), t)))

    start = func(threads("t", 2, body), B)
    result = inject_virtual_thread(start, PassContext())
    (only,) = statements(result, For)
    assert (only.kind, only.thread_binding) == (ForKind.SERIAL, None)
    assert _sizes(result) == [4]


def test_totals_beyond_32_bits() -> None:
    def body(t: Var) -> Stmt:
        return allocate("T", 1 << 30, lambda x: seq(store(x, load(A, t), t), store(B, load(x, t), t)))

    result = inject_virtual_thread(func(threads("t", 4, body), A, B), PassContext())
    assert [str(stmt.extents[0]) for stmt in statements(result, Allocate)] == ["T.int64(4294967296)"]
    assert all(stmt.indices[0].dtype == "int64" for stmt in statements(result, BufferStore) if stmt.buffer.name == "T")


def test_devices_threads_are_left_alone() -> None:
    start = func(threads("t", 4, _chain, "threadIdx.x"), A, B)
    assert inject_virtual_thread(start, PassContext()) is start
    rewritten = applied(storage_rewrite, start)  # each thread keeps its own storage
    outer = rewritten.body
    assert bound_tag(outer) == "threadIdx.x"
    assert isinstance(outer, For) and isinstance(outer.body, Allocate)


def test_what_differs_only_from_the_second_iteration_on() -> None:
    def body(t: Var) -> Stmt:
        def inside(first: Any, second: Any) -> Stmt:
            steps = loop("i", 3, lambda i: seq(store(second, load(first, 0), 0), store(first, load(A, t * 4 + i), 0)))
            return seq(store(first, 0.0, 0), steps, store(B, load(second, 0), t))

        return allocate("T", 1, lambda first: allocate("U", 1, lambda second: inside(first, second)))

    assert _sizes(applied(inject_virtual_thread, func(threads("t", 2, body), A, B))) == [2, 2]


def test_what_differs_through_a_condition_further_out() -> None:
    def body(t: Var) -> Stmt:
        def inside(temporary: Any) -> Stmt:
            chosen = IfThenElse(t < 1, loop("k", 2, lambda k: store(temporary, 1.0, k)), loop("k", 2, lambda k: store(temporary, 2.0, k)))
            return seq(chosen, store(B, load(temporary, 1), t))

        return allocate("T", 2, inside)

    assert _sizes(applied(inject_virtual_thread, func(threads("t", 2, body), B))) == [4]
