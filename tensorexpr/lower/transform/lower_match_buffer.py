"""Views of blocks as what they are views of: `b[i]` for b = A[4:8, 2] is `A[4 + i, 2]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ...errors import LoweringError
from ...tir.arithmetic import const
from ...tir.block import Block, MatchBufferRegion
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import BufferStore, Stmt
from ..context import PassContext
from ..passes import Pass
from ..phase1.blocks import has_blocks
from ..rebuild import map_stmt


def LowerMatchBuffer() -> Pass:
    """No views (`T.match_buffer` in blocks): their accesses, pointers, offsets and strides in terms of what they are views of.

    Raises:
        LoweringError: when it runs, for a view that has more dimensions than its source.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_lowered(func.body)) if has_blocks(func) else func

    return Pass("tir.LowerMatchBuffer", run)


def _lowered(stmt: Stmt) -> Stmt:
    """Outer views first, so that inner ones are views of memory."""
    if isinstance(stmt, Block):
        while stmt.match_buffers:  # the next one is looked up again: it may be a view of the last
            stmt = _without(stmt, stmt.match_buffers[0])
    return map_stmt(stmt, _lowered)


def _without(block: Block, match: MatchBufferRegion) -> Block:
    view, source = match.buffer, match.source
    if len(view.shape) > len(source.region):
        raise LoweringError(f"the view {view.name} has {len(view.shape)} dimensions, what it is a view of {len(source.region)}")
    values: dict[Var, PrimExpr] = {view.data: source.buffer.data}
    start = tuple(r.min for r in source.region)
    if isinstance(view.elem_offset, Var):
        values[view.elem_offset] = source.buffer.offset_of(start)[0]
    for mine, its in zip(reversed(view.strides), reversed(_strides(source.buffer)), strict=False):
        if isinstance(mine, Var):
            values[mine] = its
    bare = replace(block, match_buffers=tuple(m for m in block.match_buffers if m is not match))
    return cast(Block, post_order_rewrite(bare, _Rule(view, source, values)))


def _strides(buffer: Buffer) -> tuple[PrimExpr, ...]:
    if buffer.strides:
        return buffer.strides
    found: list[PrimExpr] = [const(1, buffer.shape[-1].dtype)] if buffer.shape else []
    for extent in reversed(buffer.shape[1:]):
        found.insert(0, found[0] * extent)
    return tuple(found)


class _Rule:
    """What replaces accesses to a view, and the variables that it defines."""

    def __init__(self, view: Buffer, source: BufferRegion, values: Mapping[Var, PrimExpr]) -> None:
        self._view, self._source, self._values = view, source, values

    def __call__(self, node: Node) -> Node | None:
        match node:
            case Var():
                return self._values.get(node)
            case BufferLoad() if node.buffer is self._view:
                return BufferLoad(self._source.buffer, self._indices(node.indices), node.predicate)
            case BufferStore() if node.buffer is self._view:
                return BufferStore(self._source.buffer, node.value, self._indices(node.indices), node.predicate)
            case Block():
                regions: dict[str, Any] = {
                    name: tuple(map(self._region, getattr(node, name)))
                    for name in ("reads", "writes")
                    if any(region.buffer is self._view for region in getattr(node, name))
                }
                views = tuple(replace(m, source=self._region(m.source)) for m in node.match_buffers)
                return replace(node, match_buffers=views, **regions)
        return None

    def _indices(self, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        region = self._source.region
        front = len(region) - len(indices)
        return (*(r.min for r in region[:front]), *(r.min + index for r, index in zip(region[front:], indices, strict=True)))

    def _region(self, region: BufferRegion) -> BufferRegion:
        if region.buffer is not self._view:
            return region
        outer = self._source.region
        front = len(outer) - len(region.region)
        one = [Range.from_min_extent(r.min, const(1, r.min.dtype)) for r in outer[:front]]
        rest = [Range.from_min_extent(r.min + own.min, own.extent) for r, own in zip(outer[front:], region.region, strict=True)]
        return BufferRegion(self._source.buffer, (*one, *rest))
