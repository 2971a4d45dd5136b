"""Buffers of blocks as large as the box of them that is accessed, which then begins at 0.

B = T.alloc_buffer((16, 16))          B = T.alloc_buffer((1, 16))
for j in range(16):            ->     for j in range(16):
    B[i, j] = ..                          B[i - i, j] = ..
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dataclass import dataclass, replace
from ...tir.arithmetic import const
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Range
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import BufferRealize, BufferStore, Stmt
from ..context import PassContext
from ..passes import Pass
from ..phase1.compact_buffer_allocation import compact_buffer_allocation
from ..rebuild import map_stmt


def CompactBufferAllocation(is_strict: bool = True) -> Pass:
    """Buffers of the accessed boxes, with accesses relative to those.

    Memory that threads share has the box of all of these threads.

    Args:
        is_strict: a buffer is never larger than its shape was.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        boxed = compact_buffer_allocation(func, ctx, joins_all=True, is_strict=is_strict)
        return func if boxed is func else boxed.with_body(_allocated(boxed.body))

    return Pass("tir.CompactBufferAllocation", run)


@dataclass(frozen=True)
class _Moved:
    """A buffer of the box's size, and where the box began."""

    buffer: Buffer
    start: tuple[PrimExpr, ...]


def _allocated(stmt: Stmt) -> Stmt:
    """Boxes around the bodies of blocks as buffers of these blocks."""
    result = map_stmt(stmt, _allocated)
    if not isinstance(result, Block) or not isinstance(result.body, BufferRealize):
        return result
    buffers: list[Buffer] = []
    moved: dict[Buffer, _Moved] = {}
    body: Stmt = result.body
    while isinstance(body, BufferRealize):
        new = _compact(body)
        buffers.append(new)
        if new is not body.buffer:
            moved[body.buffer] = _Moved(new, tuple(r.min for r in body.bounds))
        body = body.body
    init = result.init
    if moved:
        rule = _Rule(moved)
        body = post_order_rewrite(body, rule)
        init = None if init is None else post_order_rewrite(init, rule)
    return replace(result, body=body, init=init, alloc_buffers=tuple(buffers))


def _compact(box: BufferRealize) -> Buffer:
    """The buffer that a box becomes: of its extents, with strides where some are to be aligned."""
    buffer, shape = box.buffer, tuple(r.extent for r in box.bounds)
    aligned = {int(d): (int(factor), int(offset)) for d, factor, offset in box.annotations.get("storage_align", ())}
    if not aligned and all(new is old for new, old in zip(shape, buffer.shape, strict=True)):
        return buffer
    strides: tuple[PrimExpr, ...] = buffer.strides
    if aligned:
        found: list[PrimExpr] = [const(1, shape[-1].dtype)]
        for d in reversed(range(len(shape) - 1)):
            stride = found[0] * shape[d + 1]
            if d in aligned:
                factor, offset = aligned[d]
                stride = stride + (factor + offset - stride % factor) % factor
            found.insert(0, stride)
        strides = tuple(found)
    return replace(buffer, shape=shape, strides=strides)


class _Rule:
    """Accesses and regions relative to their boxes."""

    def __init__(self, moved: Mapping[Buffer, _Moved]) -> None:
        self._moved = moved

    def __call__(self, node: Node) -> Node | None:
        match node:
            case BufferLoad() if node.buffer in self._moved:
                return BufferLoad(self._moved[node.buffer].buffer, self._indices(node.buffer, node.indices), node.predicate)
            case BufferStore() if node.buffer in self._moved:
                indices = self._indices(node.buffer, node.indices)
                return BufferStore(self._moved[node.buffer].buffer, node.value, indices, node.predicate)
            case Block():
                regions: dict[str, Any] = {name: tuple(map(self._region, getattr(node, name))) for name in ("reads", "writes")}
                regions["match_buffers"] = tuple(replace(m, source=self._region(m.source)) for m in node.match_buffers)
                same = all(a is b for name in regions for a, b in zip(regions[name], getattr(node, name), strict=True))
                return None if same else replace(node, **regions)
        return None

    def _indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        return tuple(_less(index, low) for index, low in zip(indices, self._moved[buffer].start, strict=True))

    def _region(self, region: BufferRegion) -> BufferRegion:
        moved = self._moved.get(region.buffer)
        if moved is None:
            return region
        box = (Range.from_min_extent(_less(r.min, low), r.extent) for r, low in zip(region.region, moved.start, strict=True))
        return BufferRegion(moved.buffer, tuple(box))


def _less(index: PrimExpr, low: PrimExpr) -> PrimExpr:
    """The difference as it is, which is how it is read; nothing is simplified but constants."""
    return index if isinstance(low, IntImm) and low.value == 0 else index - low
