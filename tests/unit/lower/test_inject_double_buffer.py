"""inject_double_buffer: which buffers are doubled, how the loop ends, and what keeps a buffer single."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.inject_double_buffer import SCOPE, inject_double_buffer
from tensorexpr.tir.arithmetic import convert
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import Call, IntImm, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import Allocate, Evaluate, For, ForKind, Stmt, seq

from .builder import allocate, applied, check_kept, flat, func, guard, load, loop, loops, statements, store

A, B = flat("A", 64), flat("B", 64)
SPLITS = pytest.mark.parametrize("split_loop", [0, 1, 2, 4])


def marked(name: str, size: int, body: Callable[[Buffer], Stmt]) -> Allocate:
    """Storage to be doubled."""
    return replace(allocate(name, size, body), annotations=FrozenMap({SCOPE: True}))


def fill(buffer: Buffer, i: Any, source: Buffer = A) -> Stmt:
    """Four elements."""
    return loop("p", 4, lambda p: store(buffer, load(source, i * 4 + p) + 1.0, p))


def use(buffer: Buffer, i: Any) -> Stmt:
    """Read the four elements."""
    return loop("q", 4, lambda q: store(B, load(buffer, q) * 2.0, i * 4 + q))


def rows(extent: Any = 5, kind: ForKind = ForKind.SERIAL) -> For:
    """A loop whose iterations fill and use a buffer."""
    return loop("i", extent, lambda i: marked("T", 4, lambda t: seq(fill(t, i), use(t, i))), kind)


def config(split_loop: int) -> dict[str, Any]:
    """The pass's option."""
    return {"tir.InjectDoubleBuffer": {"split_loop": split_loop}}


def sizes(function: PrimFunc) -> list[int | None]:
    """What is allocated, which has no marks any more."""
    found = statements(function, Allocate)
    assert not any(stmt.annotations for stmt in found)
    return [stmt.constant_size() for stmt in found]


@SPLITS
@pytest.mark.parametrize("extent", [1, 2, 3, 6, 9])
def test_doubled(split_loop: int, extent: int) -> None:
    result = applied(inject_double_buffer, func(rows(extent), A, B), config=config(split_loop))
    assert sizes(result) == [8]


def test_the_next_iteration_is_filled_before_this_one_is_read() -> None:
    result = applied(inject_double_buffer, func(rows(), A, B))
    assert loops(result) == ["p 0:4", "i 0:4", "p 0:4", "q 0:4", "q 0:4"]


@SPLITS
@pytest.mark.parametrize("extent", [0, -1])
def test_a_loop_without_iterations_fills_nothing(split_loop: int, extent: int) -> None:
    result = applied(inject_double_buffer, func(rows(extent), A, B), config=config(split_loop))
    assert sizes(result) == [4]
    given, found = np.ones(64, np.float32), np.zeros(64, np.float32)
    interpret(result, [given, found])
    assert not found.any()


@SPLITS
def test_loops_of_any_length(split_loop: int) -> None:
    n = Var("n")
    start = func(rows(n), A, B, n)
    with PassContext(config=config(split_loop)) as ctx:
        result = inject_double_buffer(start, ctx)
    assert sizes(result) == [8]
    given = np.arange(64, dtype=np.float32)
    for count in range(8):
        expected, found = np.zeros(64, np.float32), np.zeros(64, np.float32)
        interpret(start, [given, expected, count])
        interpret(result, [given, found, count])
        np.testing.assert_array_equal(found, expected)


def test_a_buffer_made_of_another_that_is_doubled_too() -> None:
    def body(i: Var) -> Stmt:
        def second(t: Buffer, u: Buffer) -> Stmt:
            return seq(loop("r", 4, lambda r: store(u, load(t, 3 - r), r)), use(u, i))

        return marked("T", 4, lambda t: seq(fill(t, i), marked("U", 4, lambda u: second(t, u))))

    result = applied(inject_double_buffer, func(loop("i", 5, body), A, B))
    assert sizes(result) == [8, 8]


def test_storage_in_between_stays_where_it_is() -> None:
    def body(i: Var) -> Stmt:
        def rest(t: Buffer, u: Buffer) -> Stmt:
            return seq(fill(t, i), loop("r", 4, lambda r: store(u, load(t, r), r)), use(u, i))

        return allocate("U", 4, lambda u: marked("T", 4, lambda t: rest(t, u)))

    result = applied(inject_double_buffer, func(loop("i", 5, body), A, B))
    assert sizes(result) == [8, 4, 4]  # U in the loop and for the last iteration


def test_nested() -> None:
    def outer(i: Var) -> Stmt:
        def inner(t: Buffer, j: Var) -> Stmt:
            copy = marked("U", 4, lambda u: seq(loop("r", 4, lambda r: store(u, load(t, r) + j.astype("float32"), r)), use(u, i * 2 + j)))
            return copy

        return marked("T", 4, lambda t: seq(fill(t, i), loop("j", 2, lambda j: inner(t, j))))

    assert 8 in sizes(applied(inject_double_buffer, func(loop("i", 4, outer), A, B)))


def refused(body: Callable[[Var], Stmt], kind: ForKind = ForKind.SERIAL) -> None:
    """The buffer stays single, and no mark is left."""
    start = func(loop("i", 5, body, kind), A, B)
    result = applied(inject_double_buffer, start)
    assert 8 not in sizes(result)


def test_filled_from_what_the_loop_makes() -> None:
    refused(lambda i: marked("T", 4, lambda t: seq(store(t, load(A, i), 0), store(A, load(t, 0) + 1.0, i + 1))))


def test_filling_writes_something_else() -> None:
    refused(lambda i: marked("T", 4, lambda t: seq(store(B, 1.0, i + 32), fill(t, i), use(t, i))))


def test_filled_from_storage_of_the_same_iteration() -> None:
    def body(i: Var) -> Stmt:
        return allocate("U", 4, lambda u: seq(fill(u, i), marked("T", 4, lambda t: seq(store(t, load(u, 1), 0), store(B, load(t, 0), i)))))

    refused(body)


def test_nothing_fills_it() -> None:
    refused(lambda i: marked("T", 4, lambda t: store(B, 1.0, i)))


def test_a_parallel_loop() -> None:
    refused(lambda i: marked("T", 4, lambda t: seq(fill(t, i), use(t, i))), ForKind.PARALLEL)


def test_a_size_that_changes_from_iteration_to_iteration() -> None:
    def body(i: Var) -> Stmt:
        made = marked("T", 4, lambda t: seq(fill(t, i * 0), use(t, i)))
        return replace(made, extents=(i + 4,))

    start = func(loop("i", 5, body), A, B)
    result = inject_double_buffer(start, PassContext())
    check_kept(start, result)
    assert [str(stmt.extents[0]) for stmt in statements(result, Allocate)] == ["i + 4"]


def test_under_a_condition_of_the_iteration() -> None:
    refused(lambda i: guard(i < 3, marked("T", 4, lambda t: seq(fill(t, i), use(t, i)))))


def prefetch(buffer: Buffer, index: Any) -> Stmt:
    """A hint that an element will be read."""
    arguments = (load(buffer, index), *(IntImm("int32", value) for value in (0, 3, 1)))
    return Evaluate(Call("int32", "tir.prefetch", arguments))


def test_hints_run_ahead_too() -> None:
    def body(i: Var) -> Stmt:
        return marked(
            "T", 4, lambda t: seq(loop("h", 4, lambda h: seq(prefetch(A, i * 4 + h), store(t, load(A, i * 4 + h), h))), use(t, i))
        )

    assert sizes(applied(inject_double_buffer, func(loop("i", 5, body), A, B))) == [8]


def test_foreign_code_keeps_its_place(caplog: pytest.LogCaptureFixture) -> None:
    def body(i: Var) -> Stmt:
        return marked("T", 4, lambda t: seq(Evaluate(Call("int32", "tir.call_extern", (convert("f"),))), fill(t, i), use(t, i)))

    with caplog.at_level("DEBUG", "tensorexpr"):
        result = inject_double_buffer(func(loop("i", 5, body), A, B), PassContext())
    assert sizes(result) == [4]
    assert "T stays single in the loop i" in caplog.text
