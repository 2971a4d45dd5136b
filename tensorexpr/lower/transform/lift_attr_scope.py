"""An attribute that holds in all of several statements, said once around them.

for i:                              attr: A[i]..  -> for i: A[i]..
    attr: A[i]..                    two neighbours of the same attribute -> one around both
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ...dataclass import dataclass, replace
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, Call, IterVar, PrimExpr, Var
from ...tir.rewriting import variables, walk
from ...tir.scopes import parts
from ...tir.stmt import Allocate, AttrStmt, SeqStmt, Stmt, seq
from ..passes import Pass
from ..rebuild import map_stmt, sub_statements


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

    def uses(self, defined: Sequence[Var]) -> bool:
        """Whether it speaks of a variable: in its value, as its node, or as the memory of a buffer."""
        subject = self.node.data if isinstance(self.node, Buffer) else self.node.var if isinstance(self.node, IterVar) else self.node
        used = variables(self.value) | (variables(subject) if isinstance(subject, PrimExpr) else set())
        return any(var in used for var in defined)


def _reads_memory(value: PrimExpr) -> bool:
    """Whether a value may be another one a statement further out: `attr(None, key, n[0])` behind a store to n."""
    return any(isinstance(node, (BufferLoad, Call)) for node in walk(value))


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
            case AttrStmt() if stmt.attr_key == self._key and not _reads_memory(stmt.value):
                return _Attribute(stmt.node, stmt.value), stmt.body
            case Allocate():
                return None, replace(stmt, body=self.whole(stmt.body))
            case SeqStmt():
                return self._sequence(stmt.seq)
        found = [self._lifted(inner) for inner in sub_statements(stmt)]
        first = found[0][0] if found else None
        # Arms of a condition, and the init of a block, leave together what they share; a loop keeps what its variable is part of.
        shared = first is not None and all(first.same_as(one) for one, _ in found) and not first.uses(parts(stmt).defines)
        bodies = iter([body if shared else self._wrap(one, body) for one, body in found])
        return first if shared else None, map_stmt(stmt, lambda _: next(bodies))

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
