"""Buffers of a software pipeline with several versions: how many each needs, and code that uses the version of its iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import cast

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int, const, floormod
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, Call, PrimExpr, Range, Var
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import BufferStore

# Where calls on matrix fragments have a fragment's buffer, and the number of the fragment one place behind the pointer's dimensions.
_FRAGMENTS = {
    "tir.tvm_load_matrix_sync": ((0, 4),),
    "tir.tvm_store_matrix_sync": ((0, 4),),
    "tir.tvm_fill_fragment": ((0, 4),),
    "tir.tvm_mma_sync": ((0, 1), (2, 3), (4, 5), (6, 7)),
    "tir.tvm_bmma_sync": ((0, 1), (2, 3), (4, 5), (6, 7)),
}


@dataclass(frozen=True)
class Access:
    """When a statement touches a buffer, and where."""

    stage: int
    order: int
    region: BufferRegion
    writes: bool


def versions(accesses: Sequence[Access], doubled: bool) -> int:
    """How many versions of a buffer are alive at once.

    An iteration holds its version from the first stage that touches it to the last one. Of two versions one is enough if each turn
    is done with reading when it begins to write, or reads elsewhere.
    """
    if not any(access.writes for access in accesses):
        return 1
    stages = [access.stage for access in accesses]
    count = max(stages) - min(stages) + 1
    if count == 2 and not any(
        a.writes and a.stage < b.stage and a.order < b.order and may_overlap(Analyzer(), a.region, b.region)
        for a in accesses
        for b in accesses
    ):
        count = 1
    return 2 if count == 1 and doubled else count


def may_overlap(analyzer: Analyzer, a: BufferRegion, b: BufferRegion) -> bool:
    """False if two regions of a buffer are proved to be apart."""
    return not any(
        analyzer.known_less_equal(x.min + x.extent, y.min) or analyzer.known_less_equal(y.min + y.extent, x.min)
        for x, y in zip(a.region, b.region, strict=True)
    )


def versioned(buffer: Buffer, count: int) -> Buffer:
    """The buffer with `count` versions of itself as its first dimension."""
    strides = buffer.strides
    if strides:
        # One version is as long as its outermost stride times that extent.
        strides = (strides[0] * buffer.shape[0], *strides)
    separators = tuple(position + 1 for position in buffer.axis_separators)
    return replace(buffer, shape=(const(count, _index_type(buffer)), *buffer.shape), strides=strides, axis_separators=separators)


def _index_type(buffer: Buffer) -> str:
    return buffer.shape[0].dtype if buffer.shape else "int32"


@dataclass(frozen=True)
class VersionUse:
    """Rewrites code so that iteration `iteration` uses its own version of each buffer.

    moved: from buffers to those with versions.
    iteration: counted from 0.
    whole: blocks state that they touch all versions; else the one that they do.
    """

    moved: Mapping[Buffer, Buffer]
    iteration: PrimExpr
    whole: bool

    def block(self, block: Block) -> Block:
        """The block on versions."""
        return cast(Block, post_order_rewrite(block, self._rule))

    def _rule(self, node: Node) -> Node | None:
        match node:
            case BufferLoad() if node.buffer in self.moved:
                new = self.moved[node.buffer]
                return BufferLoad(new, (self._turn(new), *node.indices), node.predicate)
            case BufferStore() if node.buffer in self.moved:
                new = self.moved[node.buffer]
                return BufferStore(new, node.value, (self._turn(new), *node.indices), node.predicate)
            case Block():
                reads, writes = tuple(map(self._region, node.reads)), tuple(map(self._region, node.writes))
                # A view is of what its block works on, whatever the block states.
                views = tuple(replace(match, source=self._region(match.source, whole=False)) for match in node.match_buffers)
                return replace(node, reads=reads, writes=writes, match_buffers=views)
            case Call() if node.op == "tir.tvm_access_ptr":
                return self._pointer(node)
            case Call() if node.op in _FRAGMENTS:
                return self._fragments(node)
        return None

    def _turn(self, buffer: Buffer) -> PrimExpr:
        return floormod(self.iteration, buffer.shape[0])

    def _region(self, region: BufferRegion, whole: bool | None = None) -> BufferRegion:
        new = self.moved.get(region.buffer)
        if new is None:
            return region
        one = const(1, new.shape[0].dtype)
        all_of_them = self.whole if whole is None else whole
        which = Range.from_min_extent(const(0, one.dtype), new.shape[0]) if all_of_them else Range.from_min_extent(self._turn(new), one)
        return BufferRegion(new, (which, *region.region))

    def _old(self, pointer: PrimExpr) -> Buffer | None:
        return next((buffer for buffer in self.moved if buffer.data is pointer), None) if isinstance(pointer, Var) else None

    def _pointer(self, call: Call) -> Call | None:
        old = self._old(call.args[1])
        if old is None:
            return None
        new = self.moved[old]
        # How far two versions are apart: the first stride where there are some, else all elements of one version.
        size: PrimExpr = new.strides[0] if new.strides else const(1, "int32")
        for extent in () if new.strides else old.shape:
            size = size * extent
        args = list(call.args)
        args[2] = args[2] + self._turn(new) * size
        return replace(call, args=tuple(args))

    def _fragments(self, call: Call) -> Call | None:
        args = list(call.args)
        for where, number in _FRAGMENTS[call.op]:
            old = self._old(args[where])
            if old is not None:
                elements = prod(as_int(extent) or 1 for extent in old.shape)
                tile = prod(as_int(extent) or 1 for extent in old.shape[-2:])
                # Counted in fragments, of which one version has as many as tiles of the last two dimensions.
                args[number] = args[number] + self._turn(self.moved[old]) * (elements // tile)
        return replace(call, args=tuple(args)) if args != list(call.args) else None
