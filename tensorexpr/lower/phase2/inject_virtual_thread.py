"""Interleave the virtual threads of loops bound to "vthread" and "cthread".

The loop over the threads moves inwards to the statements that differ between them, where few threads become copies one
after the other. What is allocated inside and differs gets room for every thread.

    threads t in 2:                    A[16] = allocate
        A[8] = allocate                for i in 8:
        for i in 8:               ->       A[i] = f(0, i)
            A[i] = f(t, i)                 A[8 + i] = f(1, i)
        for i in 8:                    for i in 8:
            B[t*8 + i] = A[i]              B[i] = A[i]
                                           B[8 + i] = A[8 + i]

Threads are independent, as iterations of parallel loops are. Those of "vthread" share statements that are the same for
all of them and only write what is allocated inside; those of "cthread" share nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import LoweringError
from ...tir.arithmetic import add, as_int
from ...tir.expr import BufferLoad, IntImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from ...tir.thread import VIRTUAL_TAGS, bound_tag
from ..context import PassContext
from ..copies import Copies, allocated, has_effect, has_pointers
from ..rebuild import Copier, FreeVars, map_stmt, own_expressions, sub_statements, walk_statements

_MOST_COPIES = 16
_SHARING_NOTHING = "cthread"


def inject_virtual_thread(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without loops over virtual threads; itself if there are none.

    Raises:
        LoweringError: for a number of virtual threads that is no constant.
    """
    if not any(_is_virtual(stmt) for stmt in walk_statements(func.body)):
        return func
    return func.with_body(_interleaved(func.body))


def _is_virtual(stmt: Stmt) -> bool:
    return bound_tag(stmt) in VIRTUAL_TAGS


def _interleaved(stmt: Stmt) -> Stmt:
    """`stmt` with its virtual threads interleaved, the inner ones first."""
    result = map_stmt(stmt, _interleaved)
    if not isinstance(result, For) or not _is_virtual(result):
        return result
    count = as_int(result.extent)
    if count is None:
        raise LoweringError(
            f"the loop {result.loop_var.name} over {bound_tag(result)} has the extent {result.extent}; the number of virtual threads is a "
            "constant: split the axis with nparts and bind that"
        )
    if count == 1:
        return Copier({result.loop_var: result.min}).stmt(result.body)
    own = allocated(result.body)
    # Foreign code sees the memory, or a reduction over threads puts its result there: every thread has its own, one after the other.
    if has_pointers(result.body, own) or any(_fills(inner, own) for inner in walk_statements(result.body)):
        return replace(result, kind=ForKind.SERIAL, thread_binding=None)
    free = FreeVars()
    return _Interleaving(result, count, _differing(result, free), free).stmt(result.body)


def _fills(stmt: Stmt, own: set[Var]) -> bool:
    """True for a call with an effect that is given elements of allocated memory, as `tvm_thread_allreduce(1, x, True, result[0], t)` is."""
    given = walk(stmt.value) if isinstance(stmt, Evaluate) and has_effect(stmt) else ()
    return any(isinstance(node, BufferLoad) and node.buffer.data in own for node in given)


def _differing(loop: For, free: FreeVars) -> set[Var]:
    """The variables and allocations whose values depend on the thread, its own variable included."""
    found = {loop.loop_var}
    own = allocated(loop.body)
    if bound_tag(loop) == _SHARING_NOTHING:
        return found | own

    def survey(stmt: Stmt, differs: bool) -> None:
        here = any(not found.isdisjoint(free(expr)) for expr in own_expressions(stmt))
        if isinstance(stmt, LetStmt):
            if here:
                found.add(stmt.var)
            here = False  # its body runs for every thread
        elif isinstance(stmt, BufferStore) and (here or differs) and stmt.buffer.data in own:
            found.add(stmt.buffer.data)
        for inner in sub_statements(stmt):
            survey(inner, differs or here)

    size = 0
    # Until nothing is new: what a loop stores at its end may be read at its beginning.
    while len(found) > size:
        size = len(found)
        survey(loop.body, False)
    return found


class _Interleaving:
    """One loop over virtual threads on its way inwards."""

    def __init__(self, loop: For, count: int, differing: set[Var], free: FreeVars) -> None:
        self._loop = loop
        self._count = count
        self._differing = differing
        self._free = free
        self._own = allocated(loop.body)
        self._copies = Copies(count)

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement for all threads."""
        match stmt:
            case BufferStore(buffer=buffer):
                private = buffer.data in self._own and buffer.data not in self._differing
                # The same value to the same element for every thread: once is enough.
                return stmt if private and not self._differs(stmt) else self._threads(stmt)
            case Evaluate():
                # An effect happens once for each thread, even if no thread's number is in it.
                return self._threads(stmt) if has_effect(stmt) or self._differs(stmt) else stmt
            case Allocate() if not self._differs(stmt):
                if stmt.buffer_var not in self._differing:
                    return map_stmt(stmt, self.stmt)
                room = self._copies.multiplied(stmt)
                return replace(room, body=self.stmt(stmt.body))
            case SeqStmt() | DeclBuffer():
                return map_stmt(stmt, self.stmt)
            case For() | While() | IfThenElse() | LetStmt() | AssertStmt() | AttrStmt() if not self._differs(stmt):
                return map_stmt(stmt, self.stmt)
        return self._threads(stmt)

    def _differs(self, stmt: Stmt) -> bool:
        """True if what stands directly in a statement depends on the thread."""
        return any(not self._differing.isdisjoint(self._free(expr)) for expr in own_expressions(stmt))

    def _threads(self, stmt: Stmt) -> Stmt:
        """A statement once for each thread."""
        var, low = self._loop.loop_var, self._loop.min
        # Copies of a loop run one after the other, not interleaved, and only make the program longer.
        if self._count <= _MOST_COPIES and not any(isinstance(inner, (For, While)) for inner in walk_statements(stmt)):
            numbers = [IntImm("int32", number) for number in range(self._count)]
            copies = (Copier({var: add(low, IntImm(var.dtype, n.value))}).stmt(self._copies.redirected(stmt, n)) for n in numbers)
            return seq(*copies)
        fresh = Var(var.name, var.dtype)
        body = Copier({var: fresh}).stmt(self._copies.redirected(stmt, var - low))
        return For(fresh, low, self._loop.extent, ForKind.SERIAL, body)
