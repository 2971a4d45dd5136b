"""An attribute that holds in all of several statements, said once around them.

for i:                              attr: A[i]..  -> for i: A[i]..
    attr: A[i]..                    two neighbours of the same attribute -> one around both
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ...tir.expr import PrimExpr
from ...tir.stmt import Allocate, AttrStmt, IfThenElse, SeqStmt, Stmt, seq
from ..passes import Pass
from ..rebuild import map_stmt


def LiftAttrScope(attr_key: str) -> Pass:
    """The attributes `attr_key` as far outside as they hold, but not out of the storage of an Allocate.

    Args:
        attr_key: such as "coproc_uop_scope".
    """
    return Pass("tir.LiftAttrScope", lambda func, ctx: func.with_body(_Lifter(attr_key).whole(func.body)))


@dataclass(frozen=True)
class _Attribute:
    node: Any
    value: PrimExpr

    def same_as(self, other: _Attribute | None) -> bool:
        return other is not None and self.node is other.node and self.value is other.value


class _Lifter:
    def __init__(self, key: str) -> None:
        self._key = key

    def whole(self, stmt: Stmt) -> Stmt:
        """A statement with its attribute around it."""
        return self._wrap(*self._lifted(stmt))

    def _wrap(self, attribute: _Attribute | None, body: Stmt) -> Stmt:
        return body if attribute is None else AttrStmt(attribute.node, self._key, attribute.value, body)

    def _lifted(self, stmt: Stmt) -> tuple[_Attribute | None, Stmt]:
        """The attribute that holds for all of `stmt`, and the statement without it."""
        match stmt:
            case AttrStmt() if stmt.attr_key == self._key:
                return _Attribute(stmt.node, stmt.value), stmt.body
            case Allocate():
                return None, replace(stmt, body=self.whole(stmt.body))
            case SeqStmt():
                return self._sequence(stmt.seq)
            case IfThenElse() if stmt.else_case is not None:
                first, then_case = self._lifted(stmt.then_case)
                second, else_case = self._lifted(stmt.else_case)
                if first is not None and first.same_as(second):
                    return first, IfThenElse(stmt.condition, then_case, else_case)
                return None, IfThenElse(stmt.condition, self._wrap(first, then_case), self._wrap(second, else_case))
        found: list[_Attribute | None] = []

        def inside(inner: Stmt) -> Stmt:
            attribute, body = self._lifted(inner)
            found.append(attribute)
            return body

        result = map_stmt(stmt, inside)
        return (found[0], result) if found else (None, result)

    def _sequence(self, stmts: Sequence[Stmt]) -> tuple[_Attribute | None, Stmt]:
        """One attribute for all, or one around each run of neighbours that share it."""
        lifted = [self._lifted(stmt) for stmt in stmts]
        first = lifted[0][0]
        if first is not None and all(first.same_as(attribute) for attribute, _ in lifted):
            return first, seq(*(body for _, body in lifted))
        runs = groupby(lifted, key=lambda pair: None if pair[0] is None else (id(pair[0].node), id(pair[0].value)))
        parts: list[Stmt] = []
        for _, run in runs:
            members = list(run)
            parts.append(self._wrap(members[0][0], seq(*(body for _, body in members))))
        return None, seq(*parts)
