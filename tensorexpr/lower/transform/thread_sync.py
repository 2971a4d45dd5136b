"""Barriers between what one thread writes and another one reads in the same memory.

Statements are taken in order; a barrier stands before the first one that reads what was written, or writes what was read
or written, in `storage_scope` since the last barrier. A loop whose next iteration would do so has one at its start.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...tir.expr import BufferLoad, Call, IterVar, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, seq
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, pointer_scope, sub_statements

_SYNC = "tir.tvm_storage_sync"


def ThreadSync(storage_scope: str) -> Pass:
    """`tvm_storage_sync(storage_scope)` wherever threads would race on memory of that scope.

    Args:
        storage_scope: "shared", "shared.dyn" or "warp".
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_Planner(storage_scope).kernels(func.body))

    return Pass("tir.ThreadSync", run)


@dataclass
class _Accesses:
    """Pointers that were read and written since the last barrier."""

    reads: set[Var] = field(default_factory=set)
    writes: set[Var] = field(default_factory=set)

    def clashes(self, later: _Accesses) -> bool:
        """Whether something later may not overtake this."""
        return bool(self.writes & (later.reads | later.writes) or self.reads & later.writes)

    def add(self, other: _Accesses) -> None:
        """Both."""
        self.reads |= other.reads
        self.writes |= other.writes


class _Planner:
    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._open = _Accesses()

    def kernels(self, stmt: Stmt) -> Stmt:
        """The statement with barriers in what threads run."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            self._open = _Accesses()
            return replace(stmt, body=self._stmt(stmt.body))
        return map_stmt(stmt, self.kernels)

    def _stmt(self, stmt: Stmt) -> Stmt:
        if self._is_barrier(stmt):
            self._open = _Accesses()
            return stmt
        if isinstance(stmt, SeqStmt):
            return seq(*map(self._stmt, stmt.seq))
        if isinstance(stmt, For):
            return self._loop(stmt)
        own = self._own(stmt)
        if isinstance(stmt, IfThenElse) or not list(sub_statements(stmt)):  # a barrier stands before branches, not in them
            whole = self._all(stmt)
            needed = self._open.clashes(whole)
            if needed:
                self._open = _Accesses()
            self._open.add(whole)
            return seq(self._barrier(), stmt) if needed else stmt
        self._open.add(own)
        return map_stmt(stmt, self._stmt)

    def _loop(self, loop: For) -> Stmt:
        waits = self._open.clashes(self._first(loop.body))
        if waits:
            self._open = _Accesses()
        before = _Accesses(set(self._open.reads), set(self._open.writes))
        body = self._stmt(loop.body)
        if self._open.clashes(self._first(body)):  # the next iteration's start meets this one's end
            self._open = before
            body = seq(self._barrier(), self._stmt(loop.body))
        result = replace(loop, body=body)
        return seq(self._barrier(), result) if waits else result

    def _first(self, stmt: Stmt) -> _Accesses:
        """What happens before the first barrier."""
        found = _Accesses()
        parts = stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)
        for part in parts:
            if self._is_barrier(part):
                break
            found.add(self._all(part))
        return found

    def _own(self, stmt: Stmt) -> _Accesses:
        found = _Accesses()
        if isinstance(stmt, BufferStore) and pointer_scope(stmt.buffer.data) == self._scope:
            found.writes.add(stmt.buffer.data)
        for expr in own_expressions(stmt):
            for node in walk(expr):
                if isinstance(node, BufferLoad) and pointer_scope(node.buffer.data) == self._scope:
                    found.reads.add(node.buffer.data)
                elif isinstance(node, Call) and node.op in ("tir.tvm_access_ptr", "tir.address_of"):
                    pointers = {n for n in walk(node) if isinstance(n, Var) and n.dtype == "handle" and pointer_scope(n) == self._scope}
                    found.add(_Accesses(pointers, set(pointers)))
        return found

    def _all(self, stmt: Stmt) -> _Accesses:
        found = self._own(stmt)
        for inner in sub_statements(stmt):
            found.add(self._all(inner))
        return found

    def _is_barrier(self, stmt: Stmt) -> bool:
        if not isinstance(stmt, Evaluate) or not isinstance(stmt.value, Call) or stmt.value.op != _SYNC:
            return False
        scope = stmt.value.args[0]
        return isinstance(scope, StringImm) and scope.value == self._scope

    def _barrier(self) -> Stmt:
        return Evaluate(Call("int32", _SYNC, (StringImm(self._scope),)))
