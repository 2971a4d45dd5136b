"""Random loop programs (nests, branches, bindings, registers, workspaces, masks, parallel loops): compiled equals interpreted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.target import Target
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import intrin
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.expr import Broadcast, IntImm, PrimExpr, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import Allocate, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from tests.effort import share_of

from ..unit.codegen.harness import compile_function, flat, load, primfunc, ramp, store

SIZE = 64
TRUE = IntImm("bool", 1)


@dataclass
class Scope:
    """What a statement may use: integer variables (0 to 7), arrays to read, an array to write, slots of registers."""

    variables: tuple[Var, ...]
    readable: tuple[Buffer, ...]
    writable: tuple[Buffer, ...]
    slots: tuple[tuple[Buffer, int], ...] = ()
    parallel: bool = False
    names: list[int] = field(default_factory=lambda: [0])

    def name(self, hint: str) -> str:
        """A fresh name."""
        self.names[0] += 1
        return f"{hint}{self.names[0]}"

    def but(self, **changes: object) -> Scope:
        """This scope with some things changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@st.composite
def indices(draw: st.DrawFn, scope: Scope) -> PrimExpr:
    """An index within the arrays: often one of a few, so that reads and writes meet; sometimes read from memory itself."""
    choice = draw(st.integers(0, 5))
    if choice <= 2:
        return IntImm("int32", draw(st.sampled_from((0, 1, 5))))
    if choice == 3:
        place = draw(st.sampled_from((IntImm("int32", 0), *scope.variables[-1:])))
        return ops.floormod(load(draw(st.sampled_from(scope.readable)), place), SIZE)
    total: PrimExpr = IntImm("int32", draw(st.integers(0, SIZE)))
    for var in draw(st.lists(st.sampled_from(scope.variables), max_size=3)) if scope.variables else ():
        factor = draw(st.sampled_from((-8, -1, 1, 2, 3, 16)))
        total = total + (ops.floordiv(var * factor, 3) if draw(st.integers(0, 3)) == 0 else var * factor)
    return ops.floormod(total, SIZE)


@st.composite
def values(draw: st.DrawFn, scope: Scope, depth: int = 2) -> PrimExpr:
    """An int32."""
    choice = draw(st.integers(0, 6 if depth else 2))
    if choice == 0 or (choice == 2 and not scope.slots):
        return load(draw(st.sampled_from(scope.readable)), draw(indices(scope)))
    if choice == 1:
        return draw(st.sampled_from((*scope.variables, IntImm("int32", 7))))
    if choice == 2:
        return load(*draw(st.sampled_from(scope.slots)))
    a, b = draw(values(scope, depth - 1)), draw(values(scope, depth - 1))
    if choice == 3:
        return intrin.if_then_else(a < b, load(draw(st.sampled_from(scope.readable)), draw(indices(scope))), b)
    build: Callable[[PrimExpr, PrimExpr], PrimExpr] = draw(st.sampled_from((ops.add, ops.subtract, ops.multiply, ops.maximum)))
    return build(a, b)


def _store(draw: st.DrawFn, scope: Scope) -> Stmt:
    use_slots: bool = draw(st.booleans())
    if scope.slots and use_slots:
        return store(*draw(st.sampled_from(scope.slots)), draw(values(scope)))
    target = draw(st.sampled_from(scope.writable))
    choice = draw(st.integers(0, 3))
    if choice or scope.parallel:
        return store(target, draw(indices(scope)), draw(values(scope)))
    start = IntImm("int32", draw(st.integers(0, SIZE - 8)))
    mask = ramp(0, 8) < Broadcast(draw(values(scope, 0)), 8)
    source = load(draw(st.sampled_from(scope.readable)), ramp(draw(st.integers(0, SIZE - 22)), 8, draw(st.sampled_from((1, 2, 3)))))
    guarded = intrin.if_then_else(mask, source, Broadcast(draw(values(scope, 1)), 8))
    return store(target, ramp(start, 8), guarded, mask if draw(st.booleans()) else None)


@st.composite
def statements(draw: st.DrawFn, scope: Scope, depth: int) -> Stmt:
    """A statement."""
    choice = draw(st.integers(0, 5 if depth else 0))
    if choice <= 1:
        return seq(*(_store(draw, scope) for _ in range(draw(st.integers(1, 3)))))
    if choice == 2:
        var, extent = Var(scope.name("i"), "int32"), draw(st.sampled_from((0, 1, 3, 8)))
        size: PrimExpr = IntImm("int32", extent)
        symbolic: bool = draw(st.booleans())
        if scope.variables and symbolic:
            size = scope.variables[-1]
        inner = scope.but(variables=(*scope.variables, var))
        return For(var, IntImm("int32", 0), size, ForKind.SERIAL, draw(statements(inner, depth - 1)))
    if choice == 3:
        condition = draw(values(scope, 1)) < draw(values(scope, 1))
        otherwise = draw(statements(scope, depth - 1)) if draw(st.booleans()) else None
        return IfThenElse(condition, draw(statements(scope, depth - 1)), otherwise)
    if choice == 4:
        var = Var(scope.name("let"), "int32")
        bound = ops.floormod(draw(values(scope, 1)), 8)
        return LetStmt(var, bound, draw(statements(scope.but(variables=(*scope.variables, var)), depth - 1)))
    return seq(draw(statements(scope, depth - 1)), draw(_allocations(scope, depth)), draw(statements(scope, depth - 1)))


@st.composite
def _allocations(draw: st.DrawFn, scope: Scope, depth: int) -> Stmt:
    if draw(st.booleans()):
        buffer = decl_buffer((2,), "int32", scope.name("reg"), scope="register")
        slots = tuple((buffer, i) for i in range(2))
        init = seq(*(store(buffer, i, draw(values(scope, 0))) for i in range(2)))
        inner = scope.but(slots=scope.slots + slots)
        size = 2
    else:
        buffer = flat(scope.name("tmp"), SIZE, "int32")
        var = Var(scope.name("i"), "int32")
        init = For(var, IntImm("int32", 0), IntImm("int32", SIZE), ForKind.SERIAL, store(buffer, var, var * 3))
        inner = scope.but(readable=(*scope.readable, buffer), writable=(*scope.writable, buffer))
        size = SIZE if draw(st.booleans()) else 1 << 15
        buffer = Buffer(buffer.data, "int32", (IntImm("int32", size),), name=buffer.name)
    return Allocate(buffer.data, "int32", (IntImm("int32", size),), TRUE, seq(init, draw(statements(inner, depth - 1))))


@st.composite
def programs(draw: st.DrawFn) -> tuple[PrimFunc, list[Any], int]:
    """A function of three arrays and a number, and what to call it with."""
    a, b, out = (flat(name, SIZE, "int32") for name in ("a", "b", "out"))
    n = Var("n", "int32")
    body = draw(statements(Scope((n,), (a, b, out), (b, out)), 3))
    func = primfunc([a, b, out, n], body, noalias=draw(st.booleans()))
    rng = np.random.default_rng(0)
    return func, [rng.integers(-20, 20, SIZE).astype(np.int32) for _ in range(3)], draw(st.integers(0, 7))


@settings(deadline=None, derandomize=True, max_examples=share_of(80))
@given(programs(), st.booleans())
def test_compiled_programs_equal_interpreted_ones(drawn: tuple[PrimFunc, list[Any], int], optimise: bool) -> None:
    func, arrays, count = drawn
    expected, got = ([x.copy() for x in arrays] for _ in range(2))
    interpret(func, [*expected, count])
    assert compile_function(func, optimise=optimise)(*got, count) == 0
    for have, want in zip(got, expected, strict=True):
        assert (have == want).all(), func


@settings(deadline=None, derandomize=True, max_examples=share_of(40))
@given(st.data())
def test_parallel_programs_equal_interpreted_ones(data: st.DataObject) -> None:
    """Each iteration writes a row of its own, through whatever is private to it."""
    a, out = flat("a", SIZE, "int32"), flat("out", SIZE * 9, "int32")
    n, row = Var("n", "int32"), Var("row", "int32")
    private = flat("private", SIZE, "int32")
    inner = data.draw(statements(Scope((n, row), (a, private), (private,)), 2))
    fill, copy = Var("fill", "int32"), Var("copy", "int32")

    def over(var: Var, body: Stmt) -> Stmt:
        return For(var, IntImm("int32", 0), IntImm("int32", SIZE), ForKind.SERIAL, body)

    first = over(fill, store(private, fill, fill - row))
    last = over(copy, store(out, row * SIZE + copy, load(private, copy)))
    size = data.draw(st.sampled_from((SIZE, 1 << 15)))
    whole = Allocate(private.data, "int32", (IntImm("int32", size),), TRUE, seq(first, inner, last))
    func = primfunc([a, out, n], For(row, IntImm("int32", 0), IntImm("int32", data.draw(st.integers(0, 8))), ForKind.PARALLEL, whole))
    source = np.arange(SIZE, dtype=np.int32)
    count = data.draw(st.integers(0, 7))
    expected, got = (np.zeros(SIZE * 9, np.int32) for _ in range(2))
    interpret(func, [source.copy(), expected, count])
    target = Target(f"llvm -num-cores={data.draw(st.sampled_from((1, 2)))}")
    assert compile_function(func, target)(source.copy(), got, count) == 0
    assert (got == expected).all(), func
