"""Conditions out of the loops that don't change them, through other conditions and allocations on the way.

    for i:                                   if n > 2:
        if i > 3:                                for i:
            for j:                     ->            if i > 3:
                if n > 2: A[j] = 0                       for j: A[j] = 0

A sequence of statements stops it, as each of the others would have to be written twice; so does a condition that reads
memory which the loop writes.
"""

from __future__ import annotations

from dataclasses import replace

from ...tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import (
    NOP,
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    is_no_op,
)
from ..context import PassContext
from ..options import HoistIfThenElseConfig
from ..passes import Pass
from ..rebuild import Copier, FreeVars, map_stmt

_TRANSPARENT = (Allocate, AllocateConst, AssertStmt, AttrStmt, DeclBuffer, LetStmt)


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """Invariant conditions outside their loops; those on thread axes where `support_block_scope_hosting` allows it.

    Args:
        variant: "basic" leaves conditions on thread axes whatever the context says.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        over_threads = variant != "basic" and ctx.option(HoistIfThenElseConfig).support_block_scope_hosting
        return func.with_body(_Hoister(bool(over_threads)).stmt(func.body))

    return Pass("tir.HoistIfThenElse", run)


class _Hoister:
    def __init__(self, over_threads: bool) -> None:
        self._over_threads = over_threads
        self._threads: set[Var] = set()
        self._free = FreeVars()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with conditions as far outside as they may go."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
            self._threads.add(stmt.node.var)
        result = map_stmt(stmt, self.stmt)
        return self._out_of(result) if isinstance(result, For) else result

    def _out_of(self, loop: For) -> Stmt:
        """The loop with the first condition that may leave it outside, and so on inside."""
        condition = self._candidate(loop, loop.body, {loop.loop_var})
        if condition is None:
            return loop
        taken = _settled(loop, condition, True)
        other = _settled(loop, condition, False)
        then_case = self._out_of(taken) if isinstance(taken, For) else taken
        if is_no_op(other):
            return IfThenElse(condition, then_case)
        fresh = Copier({}).stmt(other)
        return IfThenElse(condition, then_case, self._out_of(fresh) if isinstance(fresh, For) else fresh)

    def _candidate(self, loop: For, stmt: Stmt, inside: set[Var]) -> PrimExpr | None:
        """The first condition below `stmt`, not behind a sequence or a loop, that may leave `loop`."""
        if isinstance(stmt, IfThenElse):
            if self._may_leave(stmt.condition, loop, inside):
                return stmt.condition
            found = self._candidate(loop, stmt.then_case, inside)
            return found if found is not None or stmt.else_case is None else self._candidate(loop, stmt.else_case, inside)
        if isinstance(stmt, _TRANSPARENT):
            defined = {stmt.var} if isinstance(stmt, LetStmt) else set()
            if isinstance(stmt, AttrStmt) and isinstance(stmt.node, IterVar):
                defined = {stmt.node.var}
            return self._candidate(loop, stmt.body, inside | defined)
        return None

    def _may_leave(self, condition: PrimExpr, loop: For, inside: set[Var]) -> bool:
        used = self._free(condition)
        if isinstance(condition, IntImm) or used & inside or (used & self._threads and not self._over_threads):
            return False
        written = {node.buffer.data for node in walk(loop.body) if isinstance(node, BufferStore)}
        reads = {node.buffer.data for node in walk(condition) if isinstance(node, BufferLoad)}
        opaque = any(isinstance(node, Call) and "extern" in node.op for node in walk(loop.body))
        return not reads & written and not (reads and opaque)


def _settled(stmt: Stmt, condition: PrimExpr, value: bool) -> Stmt:
    """The statement where `condition` is known; what does nothing goes."""
    if isinstance(stmt, IfThenElse) and stmt.condition is condition:
        case = stmt.then_case if value else stmt.else_case
        return NOP if case is None else _settled(case, condition, value)
    result = map_stmt(stmt, lambda inner: _settled(inner, condition, value))
    if isinstance(result, IfThenElse) and result is not stmt:
        other = None if result.else_case is None or is_no_op(result.else_case) else result.else_case
        if is_no_op(result.then_case):
            return NOP if other is None else IfThenElse(~result.condition, other)
        return replace(result, else_case=other)
    if result is not stmt and isinstance(result, (For, *_TRANSPARENT)) and is_no_op(result.body) and not isinstance(result, AssertStmt):
        return NOP
    return result
