"""Undefined variables, operation counts, allocated bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.errors import DeclarationError
from tensorexpr.tir.analysis import calculate_allocated_bytes, estimate_tir_flops, expr_deep_equal, undefined_vars
from tensorexpr.tir.buffer import pointer_var

TRUE = tir.const(True)
i, j, n, q = tir.Var("i"), tir.Var("j"), tir.Var("n"), tir.Var("q")


def loop(var: tir.Var, extent: Any, body: tir.Stmt) -> tir.For:
    return tir.For(var, tir.const(0), tir.convert(extent), tir.ForKind.SERIAL, body)


def test_undefined_vars() -> None:
    f = tir.decl_buffer((n,), name="F")
    body = loop(i, n, tir.BufferStore(f, f[i] + q.astype("float32"), (i,)))
    assert undefined_vars(body) == [n, f.data, q]
    assert undefined_vars(body, [n, q]) == [f.data]
    assert undefined_vars(i + tir.Let(j, q, j * 2)) == [i, q]
    assert undefined_vars(tir.Let(j, q, j * 2) + j * 2) == [q, j]  # one node, once inside its scope and once not
    assert undefined_vars(tir.stmt_seq(body, tir.Evaluate(i))) == [n, f.data, q, i]
    k = tir.Var("k")
    axis = tir.IterVar(tir.Range.from_min_extent(tir.const(0), n), k, tir.IterVar.COMM_REDUCE)
    combiner = tir.CommReducer((i,), (j,), (i + j,), (tir.const(0),))
    assert undefined_vars(tir.Reduce(combiner, (k * q,), (axis,), TRUE)) == [n, q]


def test_expr_deep_equal() -> None:
    assert expr_deep_equal(i + 1, i + 1)
    assert not expr_deep_equal(i + 1, j + 1)


A = tir.decl_buffer((64, 64), name="A")
X = A[i, 0]
FLOPS = [
    (X + 1.0, 1),
    ((i * 3 + j * 5).astype("float32"), 3),
    (tir.Select(X > 0.0, X, X + 1.0), 1),
    (tir.if_then_else(i < 3, X * X + 1.0, X), 2),
    (tir.exp(X), 0),
    (tir.max(X, X + 1.0), 2),
    (A[i // 2, i % 3], 0),
]


@pytest.mark.parametrize(("value", "expected"), FLOPS, ids=lambda v: str(v))
def test_operations_of_a_value(value: tir.PrimExpr, expected: int) -> None:
    assert estimate_tir_flops(tir.BufferStore(A, value, (i, j))) == expected


def test_operations_of_programs() -> None:
    k = tir.Var("k")
    update = loop(k, 64, tir.BufferStore(A, A[i, j] + A[i, k] * A[k, j], (i, j)))
    nest = loop(i, 64, loop(j, 64, tir.stmt_seq(tir.BufferStore(A, tir.const(0.0), (i, j)), update)))
    assert estimate_tir_flops(nest) == 2 * 64**3
    func = tir.PrimFunc((), nest)
    assert estimate_tir_flops(tir.IRModule({"main": func, "more": func})) == 4 * 64**3
    branches = tir.IfThenElse(i < 3, tir.BufferStore(A, X + X, (i, j)), tir.BufferStore(A, X, (i, j)))
    assert estimate_tir_flops(loop(j, 5, branches)) == 5
    with pytest.raises(DeclarationError, match="operations of loop i over n can't be counted"):
        estimate_tir_flops(loop(i, n, branches))


def test_allocated_bytes_are_the_peak() -> None:
    def allocate(size: int, dtype: str, scope: str, body: tir.Stmt) -> tir.Stmt:
        return tir.Allocate(pointer_var("t", dtype, scope), dtype, (tir.const(size), tir.const(2)), TRUE, body)

    leaf: tir.Stmt = tir.Evaluate(i)
    box = tir.decl_buffer((9,), "float64", "B", scope="local")
    realized = tir.BufferRealize(box, (tir.Range.from_min_extent(i, tir.const(3)),), TRUE, leaf)
    body = allocate(
        10, "float32", "global", tir.stmt_seq(allocate(5, "int8", "global", realized), allocate(3, "float32x4", "global", leaf))
    )
    func = tir.PrimFunc((i,), tir.stmt_seq(body, allocate(1, "int8", "global", leaf)))
    assert calculate_allocated_bytes(func) == {"main": {"global": 80 + 96, "local": 24}}
    assert calculate_allocated_bytes(tir.IRModule({"f": func})) == {"f": {"global": 176, "local": 24}}
