"""Visitors and mutators as classes."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import tir
from tensorexpr.script import from_source
from tensorexpr.tir import functor

FUNC: Any = from_source(
    "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), n: T.int32):\n"
    "    for i in range(8):\n        if i < n:\n            A[i] = A[i] + n\n"
    "        else:\n            A[i] = n // 2\n"
)


def test_a_visitor_sees_nodes_where_they_are_used() -> None:
    @functor.visitor
    class Seen(functor.PyStmtExprVisitor):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def visit_for_(self, op: tir.For) -> None:
            self.seen.append(f"for {op.loop_var}")
            super().visit_for_(op)  # type: ignore[misc]

        def visit_var_(self, op: tir.Var) -> None:
            self.seen.append(op.name)

        def visit_floor_div_(self, op: tir.FloorDiv) -> None:
            self.seen.append("//")

    visitor = Seen()
    visitor.visit_stmt(FUNC.body)
    assert visitor.seen[0] == "for i" and visitor.seen.count("//") == 1
    assert visitor.seen[1:4] == ["i", "n", "i"]


def test_a_mutator_makes_another_program() -> None:
    @functor.mutator
    class Other(functor.PyStmtExprMutator):
        def visit_add_(self, op: tir.Add) -> tir.PrimExpr:
            return self.visit_expr(op.a) - op.b  # type: ignore[no-any-return]

        def visit_if_then_else_(self, op: tir.IfThenElse) -> tir.Stmt:
            return self.visit_stmt(op.then_case)  # type: ignore[no-any-return]

    made = Other().visit_stmt(FUNC.body)
    assert "A[i] = A[i] - n" in FUNC.with_body(made).script() and "else" not in str(made)

    class Nothing(functor.PyStmtExprMutator):
        pass

    assert functor.mutator(Nothing)().visit_stmt(FUNC.body) is FUNC.body


def test_misspelt_methods_are_refused() -> None:
    with pytest.raises(TypeError, match="visit_addition_ is the method of no node"):

        @functor.visitor
        class Wrong(functor.PyStmtExprVisitor):
            def visit_addition_(self, op: tir.Add) -> None:
                pass

    with pytest.raises(TypeError, match="is no subclass of"):
        functor.mutator(int)
