"""Remove what has no effect: empty loops and branches, values and storage that nobody uses, stores of what is there already."""

from __future__ import annotations

from ...tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import intrinsic_of
from ...tir.stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    is_no_op,
    seq,
)  # fmt: skip
from ..context import PassContext
from ..rebuild import map_stmt, operands, own_expressions, walk_statements


def remove_no_op(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without statements that do nothing; itself if there are none."""
    return func.with_body(_Remover(_used(func.body)).stmt(func.body))


def _used(body: Stmt) -> set[Var]:
    """The variables that some expression, or the buffer of some store, mentions."""
    used: set[Var] = set()
    seen: set[PrimExpr] = set()
    for stmt in walk_statements(body):
        if isinstance(stmt, BufferStore):
            used.add(stmt.buffer.data)
        stack = list(own_expressions(stmt))
        while stack:
            expr = stack.pop()
            if expr not in seen:
                seen.add(expr)
                if isinstance(expr, Var):
                    used.add(expr)
                elif isinstance(expr, BufferLoad):
                    used.add(expr.buffer.data)
                stack.extend(operands(expr))
    return used


def _is_pure(expr: PrimExpr) -> bool:
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and not intrinsic_of(node).pure:
            return False
        stack.extend(operands(node))
    return True


def _left(*exprs: PrimExpr) -> Stmt:
    """What evaluating these does besides giving values."""
    return seq(*(Evaluate(expr) for expr in exprs if not _is_pure(expr)))


class _Remover:
    def __init__(self, used: set[Var]) -> None:
        self._used = used

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without what has no effect."""
        result = map_stmt(stmt, self.stmt)
        match result:
            case For(extent=extent, body=body):
                if isinstance(extent, IntImm) and extent.value <= 0:
                    return NOP
                return _left(result.min, extent) if is_no_op(body) else result
            case IfThenElse():
                return self._branch(result)
            case LetStmt(var=var, value=value, body=body):
                if is_no_op(body) and _is_pure(value):
                    return NOP
                return body if var not in self._used and _is_pure(value) else result
            case Allocate(buffer_var=data, body=body) | AllocateConst(buffer_var=data, body=body):
                return body if data not in self._used or is_no_op(body) else result
            case DeclBuffer(buffer=buffer, body=body):  # of storage that goes, its name does too
                return body if buffer.data not in self._used or is_no_op(body) else result
            case AttrStmt(body=body):
                return NOP if is_no_op(body) else result
            case BufferStore(buffer=buffer, value=BufferLoad() as load, indices=indices):
                same = (
                    load.buffer is buffer
                    and all(a is b for a, b in zip(load.indices, indices, strict=True))
                    and load.predicate is result.predicate
                )
                return NOP if same else result
            case Evaluate(value=value):
                return NOP if _is_pure(value) else result
        return result

    def _branch(self, stmt: IfThenElse) -> Stmt:
        empty = is_no_op(stmt.then_case)
        otherwise = stmt.else_case
        if otherwise is not None and is_no_op(otherwise):
            otherwise = None
        if empty and otherwise is None:
            return _left(stmt.condition)
        if empty and otherwise is not None:
            return IfThenElse(~stmt.condition, otherwise)
        return stmt if otherwise is stmt.else_case else IfThenElse(stmt.condition, stmt.then_case)
