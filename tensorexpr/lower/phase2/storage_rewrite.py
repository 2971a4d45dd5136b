"""Place allocations: out of serial loops, and in memory that another buffer no longer needs.

Allocations of constant size move to the top of the function, or of the parallel loop whose iterations each need their
own. There, buffers of one scope and element type whose lifetimes don't meet share storage. A buffer lives from its first
to its last access; one that a loop accesses, but does not own, lives throughout that loop.
"""

from __future__ import annotations

from ...dataclass import dataclass, replace
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, For, ForKind, Stmt
from ..context import PassContext
from ..lifetimes import Lifetimes
from ..rebuild import FreeVars, map_expr, map_stmt, pointer_scope, walk_statements

# Loops whose iterations each need their own storage.
_AT_ONCE = (ForKind.PARALLEL, ForKind.THREAD_BINDING)


def storage_rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with allocations hoisted and shared; itself if there are none, or with `tir.disable_storage_rewrite`."""
    if ctx.flag("tir.disable_storage_rewrite") or not any(_is_movable(s) for s in walk_statements(func.body)):
        return func
    placer = _Placer()
    return func.with_body(placer.renamed(placer.placed(func.body)))


def _is_movable(stmt: Stmt) -> bool:
    return (
        isinstance(stmt, Allocate)
        and stmt.constant_size() is not None
        and isinstance(stmt.condition, IntImm)
        and _scope(stmt) != "register"
    )


def _scope(stmt: Allocate) -> str:
    return pointer_scope(stmt.buffer_var)


@dataclass(slots=True)
class _Host:
    """Storage in use until `last`."""

    stmt: Allocate
    last: int
    size: int


class _Placer:
    def __init__(self) -> None:
        self._free = FreeVars()
        self._hosts: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}
        self._exprs: dict[PrimExpr, PrimExpr] = {}

    def placed(self, body: Stmt) -> Stmt:
        """`body`, a region, with its movable allocations at its top; the same for the parallel loops inside."""
        region = Lifetimes(self._free, _is_movable, _AT_ONCE)
        region.survey(body)
        hosts = self._shared(region)
        inner = body
        # An unchanged region keeps its identity, so that nothing after this pass is rebuilt for it.
        for host in hosts:  # already where they belong?
            if inner is not host.stmt:
                break
            inner = host.stmt.body
        else:
            if len(hosts) == len(region.lives):
                return map_stmt(body, self._keep) if hosts else self._stripped(body)
        result = self._stripped(body)
        for host in reversed(hosts):
            result = replace(host.stmt, extents=(IntImm("int32", host.size),), body=result)
        return result

    def _keep(self, stmt: Stmt) -> Stmt:
        """`_stripped` below allocations that stay."""
        return map_stmt(stmt, self._keep) if _is_movable(stmt) else self._stripped(stmt)

    def _shared(self, region: Lifetimes) -> list[_Host]:
        """Storage for a region, first come first served: the smallest dead one that suffices, else the largest, enlarged."""
        hosts: list[_Host] = []
        # By their first accesses: what is dead by now is dead for all that follow.
        for life in sorted(region.lives.values(), key=lambda life: life.first):
            size = life.stmt.constant_size() or 0
            if life.first < 0:
                continue  # nobody accesses it
            # One dtype and one scope: the host stands in for the buffer without a cast of its pointer.
            # Dead before, not in the same statement: C[i] = A[n - i] in one memory would overwrite what it still reads.
            dead = [h for h in hosts if h.last < life.first and h.stmt.dtype == life.stmt.dtype and _scope(h.stmt) == _scope(life.stmt)]
            if not dead:
                hosts.append(_Host(life.stmt, life.last, size))
                continue
            fitting = [h for h in dead if h.size >= size]
            chosen = min(fitting, key=lambda h: h.size) if fitting else max(dead, key=lambda h: h.size)
            chosen.last, chosen.size = life.last, max(chosen.size, size)
            self._hosts[life.stmt.buffer_var] = chosen.stmt.buffer_var
        return hosts

    def _stripped(self, stmt: Stmt) -> Stmt:
        """`stmt` without the allocations that moved to the top of its region."""
        if isinstance(stmt, Allocate) and _is_movable(stmt):
            return self._stripped(stmt.body)
        if isinstance(stmt, For) and stmt.kind in _AT_ONCE:
            body = self.placed(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return map_stmt(stmt, self._stripped)

    def renamed(self, stmt: Stmt) -> Stmt:
        """`stmt` with every sharer's accesses going to its host's storage."""
        if not self._hosts:
            return stmt
        if isinstance(stmt, BufferStore) and stmt.buffer.data in self._hosts:
            indices = tuple(map(self._expr, stmt.indices))
            predicate = None if stmt.predicate is None else self._expr(stmt.predicate)
            return BufferStore(self._buffer(stmt.buffer), self._expr(stmt.value), indices, predicate)
        return map_stmt(stmt, self.renamed, self._expr)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        known = self._exprs.get(expr)
        if known is None:
            known = map_expr(expr, self._expr) if not isinstance(expr, Var) else self._hosts.get(expr, expr)
            if isinstance(known, BufferLoad) and known.buffer.data in self._hosts:
                known = BufferLoad(self._buffer(known.buffer), known.indices, known.predicate)
            self._exprs[expr] = known
        return known

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(buffer, data=self._hosts[buffer.data])
        return self._buffers[buffer]
