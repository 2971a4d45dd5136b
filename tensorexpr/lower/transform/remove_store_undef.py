"""Stores of undefined values, taken out: whoever reads them may find anything."""

from __future__ import annotations

from ...errors import LoweringError
from ...tir.expr import Call, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import NOP, BufferStore, LetStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt
from .combinators import Sequential


def RemoveStoreUndef() -> Pass:
    """No store of `T.undef()`, and no statement that had nothing else to do.

    Raises:
        LoweringError: when it runs, where the value is used for something else than a store.
    """
    from . import factory

    return Sequential([Pass("tir.RemoveStoreUndefInternal", _remove), factory("RemoveNoOp")()], name="tir.RemoveStoreUndef")


def _remove(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    result = func.with_body(_Remover().stmt(func.body))
    left = next((node for node in walk(result.body) if isinstance(node, Call) and node.op == "tir.undef"), None)
    if left is not None:
        raise LoweringError("T.undef() is used in an index, a condition or a call; it may only be stored, as nobody knows what it is")
    return result


class _Remover:
    def __init__(self) -> None:
        self._undefined: set[Var] = set()

    def _is_undefined(self, value: PrimExpr) -> bool:
        """True where the value depends on an undefined one, but not by way of an index."""
        return any(
            node in self._undefined or (isinstance(node, Call) and node.op == "tir.undef")
            for node in walk(value)
            if isinstance(node, (Var, Call))
        )

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without stores of undefined values."""
        if isinstance(stmt, BufferStore) and self._is_undefined(stmt.value):
            if any(map(self._is_undefined, stmt.indices)):
                raise LoweringError(f"a store to {stmt.buffer.name} has T.undef() in its index")
            return NOP
        if isinstance(stmt, LetStmt) and self._is_undefined(stmt.value):
            self._undefined.add(stmt.var)
            return self.stmt(stmt.body)
        return map_stmt(stmt, self.stmt)
