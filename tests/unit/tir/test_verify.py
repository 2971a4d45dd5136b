"""What every function must keep: definitions before uses and once, operands of the right types."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import LoweringError
from tensorexpr.script import from_source
from tensorexpr.tir.buffer import pointer_var
from tensorexpr.tir.verify import verify_ssa, verify_well_formed, violations

TRUE = tir.const(True)
i, j, n = tir.Var("i"), tir.Var("j"), tir.Var("n")
A = tir.decl_buffer((n, 8), name="A")
HANDLE = tir.Var("A", "handle")


def func(body: tir.Stmt, *params: tir.Var) -> tir.PrimFunc:
    return tir.PrimFunc((HANDLE, *params), body, None, {HANDLE: A})


def loop(var: tir.Var, extent: Any, body: tir.Stmt) -> tir.For:
    return tir.For(var, tir.const(0, var.dtype), tir.convert(extent), tir.ForKind.SERIAL, body)


def store(value: Any = 1.0, *indices: Any) -> tir.Stmt:
    return tir.BufferStore(A, tir.convert(value), tuple(map(tir.convert, indices or (0, 0))))


def found(body: tir.Stmt, *params: tir.Var) -> str:
    """The one violation of a function."""
    (only,) = violations(func(body, *params))
    return only


def test_a_well_formed_function() -> None:
    pointer = pointer_var("t", "float32")
    t, view = tir.decl_buffer((8,), name="t", data=pointer), tir.decl_buffer((n * 8,), name="A", data=A.data)
    x, y = tir.Var("x"), tir.Var("y")
    box = tir.decl_buffer((8, 8), name="B")
    body: tir.Stmt = tir.stmt_seq(
        tir.BufferStore(t, box[i, 0] + view[i * 8 + x], (i,)), store(t[tir.Let(y, i * 2, y + y)] + n.astype("float32"), i, 0)
    )
    body = tir.BufferRealize(box, (tir.Range.from_min_extent(i, tir.const(1)), tir.Range.from_min_extent(tir.const(0), n)), TRUE, body)
    body = loop(i, n, tir.Allocate(pointer, "float32", (tir.const(8),), TRUE, tir.LetStmt(x, i % 8, body)))
    main = func(
        tir.BufferRealize(
            A, (tir.Range.from_min_extent(tir.const(0), n), tir.Range.from_min_extent(tir.const(0), tir.const(8))), TRUE, body
        )
    )
    assert violations(main) == []
    assert verify_well_formed(main) and verify_ssa(main)
    assert verify_well_formed(tir.IRModule({"main": main}))


def test_uses_before_and_after_the_scope() -> None:
    assert found(store(1.0, i, 0)) == "i is used in i where it is not defined"
    assert found(tir.stmt_seq(loop(i, 4, store(1.0, i, 0)), store(1.0, 0, i))) == "i is used in i where it is not defined"
    assert found(loop(i, i, store())) == "i is used in i where it is not defined"
    assert found(tir.LetStmt(i, i + 1, store())) == "i is used in i + 1 where it is not defined"
    assert found(tir.stmt_seq(store(tir.Let(j, tir.const(1), j * 2).astype("float32")), store(1.0, 0, j))).startswith("j is used in j")
    # Outside its Let, within one expression.
    assert "j is used" in found(store((tir.Let(j, tir.const(1), j * 2) + j).astype("float32")))


def test_buffers_without_memory_or_with_unknown_sizes() -> None:
    stray, m = tir.decl_buffer((8,), name="S"), tir.Var("m")
    assert found(store(stray[0])) == "buffer S is used where its pointer S is not defined"
    assert found(tir.DeclBuffer(stray, store())) == "buffer S is used where its pointer S is not defined"
    sized = tir.decl_buffer((m,), name="V", data=A.data)
    assert found(store(sized[0])) == "buffer V is shaped by m, which is not defined there"
    realized = tir.BufferRealize(stray, (tir.Range.from_min_extent(tir.const(0), tir.const(8)),), TRUE, store(stray[0]))
    assert found(tir.stmt_seq(realized, store(stray[1]))) == "buffer S is used where its pointer S is not defined"


def test_definitions_are_unique() -> None:
    twice = tir.stmt_seq(loop(i, 4, store()), loop(i, 4, store()))
    assert found(twice) == "i is defined more than once, again by a For"
    assert not verify_ssa(func(twice))
    assert "i is defined more than once" in found(loop(i, 4, store()), i)
    assert "n is defined more than once" in found(tir.LetStmt(n, tir.const(1), store()))
    assert "A is defined more than once" in found(tir.Allocate(A.data, "float32", (tir.const(1),), TRUE, store()))


def test_signatures() -> None:
    assert violations(tir.PrimFunc((n, n), tir.Evaluate(n))) == ["a parameter occurs twice"]
    assert "is no parameter" in violations(tir.PrimFunc((), tir.Evaluate(tir.const(0)), None, {HANDLE: A}))[0]
    assert "gives n, a int32, a buffer" in violations(tir.PrimFunc((n,), tir.Evaluate(tir.const(0)), None, {n: A}))[0]


def test_types_of_operands() -> None:
    assert found(store(1.0, i < 2, 0), i) == "index i < 2 of A is bool, not an integer"
    assert found(store(A[tir.const(0.0), 0])) == "index T.float32(0.0) of A is float32, not an integer"
    ramp = tir.Ramp(tir.const(0), tir.const(1), 4)
    assert "more than one vector index" in found(tir.Evaluate(A[ramp, ramp]))
    masked = tir.BufferLoad(A, (tir.const(0), ramp), tir.Broadcast(TRUE, 8))
    assert found(tir.Evaluate(masked)) == "the predicate of an access to A is boolx8; it needs a bool for each of 4 lanes"
    lanes = tir.Broadcast(TRUE, 4)
    assert found(tir.IfThenElse(lanes, store())) == "the condition T.Broadcast(T.bool(True), 4) is boolx4, not bool"
    assert "is int32, not a handle" in found(tir.Allocate(i, "float32", (tir.const(1),), TRUE, store()))
    short = tir.BufferRealize(tir.decl_buffer((8, 8), name="B"), (tir.Range.from_min_extent(tir.const(0), tir.const(8)),), TRUE, store())
    assert found(short) == "B has 2 dimensions and is realized with 1 bounds"
    assert verify_ssa(func(store(1.0, i < 2, 0), i))  # not its business


def test_a_predicate_has_a_bool_for_each_lane_of_a_vector_element() -> None:
    registers = tir.decl_buffer((2,), "float32x8", "R")
    mask = tir.Broadcast(tir.const(True), 8)
    value = tir.BufferLoad(registers, (tir.const(0),), mask)

    def stored(predicate: tir.PrimExpr) -> list[str]:
        body = tir.BufferStore(registers, value, (tir.const(1),), predicate)
        return violations(func(tir.Allocate(registers.data, registers.dtype, registers.shape, tir.const(True), body)))

    assert stored(mask) == []
    assert stored(tir.const(True)) == ["the predicate of an access to R is bool; it needs a bool for each of 8 lanes"]


def test_modes() -> None:
    bad = func(store(1.0, i, 0)).with_attr("global_symbol", "main")
    with pytest.raises(LoweringError, match="function main is not well formed: i is used in i where it is not defined"):
        verify_well_formed(bad)
    assert verify_well_formed(bad, assert_mode=False) is False
    with pytest.raises(LoweringError):
        verify_well_formed(tir.IRModule({"good": func(store()), "bad": bad}))


def test_a_view_of_a_view_reads_what_is_stated() -> None:
    func: Any = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((8, 8)), B: T.Buffer((8,))):\n    for i in range(8):\n"
        "        with T.block('b'):\n            v = T.axis.spatial(8, i)\n            T.reads(A[v, 0:8])\n            T.writes(B[v])\n"
        "            V = T.match_buffer(A[v, 0:8], (8,))\n            W = T.match_buffer(V[0:4], (4,))\n            B[v] = W[0]"
    )
    assert violations(func) == []
