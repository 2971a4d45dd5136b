"""Buffers of blocks move to the innermost place that holds all their uses, so that they are as small as can be.

A buffer stays outside of the loops of a reduction that is written into it, and of any loop one of whose iterations may
read what another one wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ...arith.block_access import is_self_contained
from ...dataclass import dataclass, field, replace
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute, variables
from ...tir.scopes import parts, uses
from ...tir.stmt import BufferBind, BufferStore, For, Stmt
from ..context import PassContext
from ..rebuild import map_stmt, walk_statements
from .blocks import has_blocks, is_pipeline, stated

Scope = For | BlockRealize
TRUE = IntImm("bool", 1)


def plan_and_update_buffer_allocation_location(func: PrimFunc, ctx: PassContext, states: bool = False) -> PrimFunc:
    """`func` with every buffer of a block allocated where its uses meet; buffers without a use are gone.

    Args:
        states: new blocks state what they touch; else only where software pipelines will ask for it.
    """
    if not has_blocks(func):
        return func
    uses_of = _Uses()
    uses_of.visit(func.body)
    places: dict[Scope, list[Buffer]] = {}
    for buffer in uses_of.order:
        place = _place(uses_of, buffer)
        if place is not None:
            places.setdefault(place, []).append(buffer)
    buffers = None
    if states or any(map(is_pipeline, walk_statements(func.body))):
        buffers = {buffer.data: buffer for buffer in (*func.buffer_map.values(), *uses_of.order)}
    return func.with_body(_Placing(places, buffers).stmt(func.body))


@dataclass(slots=True)
class _Uses:
    """For each buffer the path to its declaration, and the longest path that all its uses have in common."""

    order: list[Buffer] = field(default_factory=list)
    declared: dict[Var, tuple[Scope, ...]] = field(default_factory=dict)  # by pointer, the block itself included
    common: dict[Var, tuple[Scope, ...]] = field(default_factory=dict)
    first_is_read: dict[Var, bool] = field(default_factory=dict)
    written: set[Var] = field(default_factory=set)
    values: dict[Var, PrimExpr] = field(default_factory=dict)  # of axes, in terms of loops
    _path: list[Scope] = field(default_factory=list)

    def visit(self, stmt: Stmt) -> None:
        """Note the uses in a statement, in the order in which they happen."""
        own = parts(stmt)
        for expr in own.exprs:
            found, buffers = uses(expr)
            for buffer in buffers:
                self._use(buffer.data, writes=False)
            for var in (v for v in found if v.dtype == "handle"):
                self._use(var, writes=self._is_handed_on_to_be_written(var))
                if var in self.declared:
                    self.written.add(var)  # or it may be, by the call
        match stmt:
            case BufferStore():
                self._use(stmt.buffer.data, writes=True)
            case BufferBind():
                self._use(stmt.source.buffer.data, writes=True)
            case BlockRealize():
                self._enter(stmt)
                return
            case Block():
                for match in stmt.match_buffers:
                    self._use(match.source.buffer.data, writes=True)
            case For():
                self._path.append(stmt)
        for body in own.bodies:
            self.visit(body)
        if isinstance(stmt, For):
            self._path.pop()

    def _enter(self, stmt: BlockRealize) -> None:
        for axis, value in zip(stmt.block.iter_vars, stmt.iter_values, strict=True):
            # Outer blocks first, so that the values of axes end up in terms of loops alone.
            self.values[axis.var] = substitute(value, self.values)
        self._path.append(stmt)
        for buffer in stmt.block.alloc_buffers:
            self.order.append(buffer)
            self.declared[buffer.data] = tuple(self._path)
        self.visit(stmt.block)
        self._path.pop()

    def _use(self, var: Var, writes: bool) -> None:
        declared = self.declared.get(var)
        if declared is None:
            return
        # Never outside of the declaration, where the buffer doesn't exist.
        path = tuple(self._path)[: max(len(declared), self._outside_reductions(var, writes))]
        if writes:
            self.written.add(var)
        # The first use in program order decides; later ones don't change it.
        self.first_is_read.setdefault(var, not writes)
        old = self.common.get(var)
        self.common[var] = path if old is None else _common(old, path)

    def _is_handed_on_to_be_written(self, var: Var) -> bool:
        """Whether a call gets a pointer in a block that states writes behind it, and no reads."""
        block = next((scope.block for scope in reversed(self._path) if isinstance(scope, BlockRealize)), None)
        if block is None or any(region.buffer.data is var for region in block.reads):
            return False
        return any(region.buffer.data is var for region in block.writes)

    def _outside_reductions(self, var: Var, writes: bool) -> int:
        """How much of the path is around all loops that reduce into the buffer, or whose iterations need those before."""
        reducing: set[Var] = set()
        for scope in self._path:
            if not isinstance(scope, BlockRealize):
                continue
            # An opaque axis says that iterations need those before, not by way of which buffer.
            kinds = [IterVar.DIM_INFO] if _states(scope.block, var) else []
            if writes and _states_write(scope.block, var):
                kinds.append(IterVar.COMM_REDUCE)
            for axis in scope.block.iter_vars:
                if axis.iter_type in kinds:
                    reducing |= variables(self.values[axis.var])
        loops = (n for n, scope in enumerate(self._path) if isinstance(scope, For) and scope.loop_var in reducing)
        return next(loops, len(self._path))


def _states(block: Block, var: Var) -> bool:
    """True if a block says that it accesses a buffer, or says nothing."""
    return _states_write(block, var) or any(region.buffer.data is var for region in block.reads)


def _states_write(block: Block, var: Var) -> bool:
    """True if a block says that it writes a buffer, or says nothing."""
    return not block.writes or any(region.buffer.data is var for region in block.writes)


def _common(a: Sequence[Scope], b: Sequence[Scope]) -> tuple[Scope, ...]:
    length = next((n for n, (left, right) in enumerate(zip(a, b, strict=False)) if left is not right), min(len(a), len(b)))
    return tuple(a[:length])


def _place(found: _Uses, buffer: Buffer) -> Scope | None:
    """The innermost scope around all uses in which everything read was written before; None without a use."""
    path, declared = found.common.get(buffer.data), found.declared[buffer.data]
    if path is None:
        return None
    if buffer.data not in found.written:
        return path[-1]  # nobody knows what it holds, here or further out
    # What is read first was left there by an earlier iteration: in a loop further in it would be lost.
    if found.first_is_read[buffer.data]:
        return declared[-1]
    ranges = {scope.loop_var: Range.from_min_extent(scope.min, scope.extent) for scope in path if isinstance(scope, For)}
    while len(path) > len(declared) and not is_self_contained(_body(path[-1]), buffer, found.values, ranges):
        path = path[:-1]
    return path[-1]


def _body(scope: Scope) -> Stmt:
    return scope.body if isinstance(scope, For) else scope.block


@dataclass(eq=False)
class _Placing:
    """The rewrite, once it is known which scope holds which buffers."""

    places: Mapping[Scope, Sequence[Buffer]]
    buffers: Mapping[Var, Buffer] | None  # by pointer, where new blocks state what they touch
    _placed: set[Buffer] = field(default_factory=set)

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its buffers where they belong."""
        if isinstance(stmt, BlockRealize):
            return self._realization(stmt)
        result = map_stmt(stmt, self.stmt)
        if isinstance(stmt, For) and stmt in self.places:
            loop = cast(For, result)
            self._placed.update(self.places[stmt])
            block = Block((), (), (), "", loop.body, alloc_buffers=tuple(self.places[stmt]))
            if self.buffers is not None:
                block = stated(block, self.buffers)
            return replace(loop, body=BlockRealize((), TRUE, block))
        return result

    def _realization(self, stmt: BlockRealize) -> BlockRealize:
        block = cast(Block, map_stmt(stmt.block, self.stmt))
        own = tuple(self.places.get(stmt, ()))
        viewed = {match.source.buffer for match in block.match_buffers}
        self._placed.update(
            set(own) - viewed
        )  # between its inner blocks, which see it, and its own regions; of a view it states the source
        reads, writes = self._left(block.reads), self._left(block.writes)
        self._placed.update(own)
        if own == block.alloc_buffers and len(reads) == len(block.reads) and len(writes) == len(block.writes):
            return stmt if block is stmt.block else replace(stmt, block=block)
        return replace(stmt, block=replace(block, alloc_buffers=own, reads=reads, writes=writes))

    def _left(self, regions: tuple[BufferRegion, ...]) -> tuple[BufferRegion, ...]:
        """The regions of buffers that still exist outside."""
        return tuple(region for region in regions if region.buffer not in self._placed)
