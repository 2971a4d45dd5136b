"""What rules ask about blocks: their loops, what reuses data, what may be inlined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from ...dataclass import dataclass
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.scope import read, written
from ...schedule.blocks.thread_binding import TILED
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize
from ...tir.expr import BufferLoad, Call, IterVar, PrimExpr, Var
from ...tir.rewriting import Node, variables, walk
from ...tir.stmt import BufferStore, For, IfThenElse

SPATIAL, REDUCE = "S", "R"
_KINDS = {IterVar.DATA_PAR: SPATIAL, IterVar.COMM_REDUCE: REDUCE}


@dataclass(frozen=True)
class BoundLoop:
    """A loop of a block, which of the block's kinds of axes it runs over ("S", "R", or "" for both or none), and its extent."""

    loop: LoopRV
    kind: str
    extent: int


def bound_loops(sch: Schedule, block: BlockRV) -> list[BoundLoop] | None:
    """The loops around a block, if each is one of its axes and has a constant extent; None otherwise."""
    realize = sch.realization(block)
    kinds: dict[Var, str] = {}
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if isinstance(value, Var):
            kinds[value] = _KINDS.get(axis.iter_type, "")
        # an axis of i * 4 + j: the loops are parts of it, so they were split already
        elif variables(value):
            return None
    found = []
    for rv in sch.get_loops(block):
        loop: For = sch.get(rv)
        extent = as_int(loop.extent)
        if extent is None:
            return None
        found.append(BoundLoop(rv, kinds.get(loop.loop_var, ""), extent))
    return found


def blocks_below(block: Block) -> list[Block]:
    """The blocks inside of a block."""
    return [node for node in walk(block.body) if isinstance(node, Block)]


def is_spatial(block: Block) -> bool:
    """True if all axes are of data."""
    return all(axis.iter_type == IterVar.DATA_PAR for axis in block.iter_vars)


def needs_tiling(sch: Schedule, block: BlockRV) -> bool:
    """Whether data is reused over several spatial axes: some read leaves one of them out (a product, a convolution)."""
    stmt: Block = sch.get(block)
    if TILED in stmt.annotations or len(written(stmt)) != 1 or not stmt.reads or is_spatial(stmt) or bound_loops(sch, block) is None:
        return False
    spatial = {axis.var for axis in stmt.iter_vars if axis.iter_type == IterVar.DATA_PAR and not _is_one(axis)}
    unused = 0
    for region in stmt.reads:
        # a reduction reads its own result so far
        if region.buffer in written(stmt):
            continue
        # an axis that moves a region occurs where the region begins
        used = set().union(*(variables(side.min) for side in region.region)) if region.region else set()
        unused += len(spatial - used)
    return unused >= 1


def extents_by_kind(loops: Iterable[BoundLoop]) -> tuple[int, int]:
    """The products of the extents of spatial and of reduction loops."""
    listed = list(loops)
    return tuple(prod(loop.extent for loop in listed if loop.kind == kind) for kind in (SPATIAL, REDUCE))  # type: ignore[return-value]


def needs_rfactor(sch: Schedule, block: BlockRV, max_parallel: int) -> bool:
    """Whether a block reduces, and, if it is one to tile, makes too little to keep all cores busy without partial results."""
    stmt: Block = sch.get(block)
    loops = bound_loops(sch, block)
    if stmt.init is None or loops is None or not loops or any(not loop.kind for loop in loops):
        return False
    spatial, reduced = extents_by_kind(loops)
    if needs_tiling(sch, block):
        return not (spatial >= reduced or spatial > max_parallel)
    return reduced > 1


def loop_kind(loop: For) -> str:
    """Which kind of axes of the blocks inside a loop runs over: SPATIAL, also if none does, REDUCE, or "" for several or others."""
    kinds = {
        _KINDS.get(axis.iter_type, "")
        for node in walk(loop.body)
        if isinstance(node, BlockRealize)
        for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True)
        if loop.loop_var in variables(value)
    }
    return kinds.pop() if len(kinds) == 1 else "" if kinds else SPATIAL


def has_call(block: Block, chosen: Callable[[Call], bool]) -> bool:
    """Whether a call of a kind stands in a block."""
    return any(isinstance(node, Call) and chosen(node) for node in walk(block.body))


def has_branch(block: Block) -> bool:
    """Whether a block has a condition inside."""
    return has_call(block, lambda call: call.op == "tir.if_then_else") or any(_is_branch(node) for node in walk(block.body))


def _is_branch(node: Node) -> bool:
    return isinstance(node, IfThenElse) or type(node).__name__ == "Select"


def is_constant(block: Block) -> bool:
    """Whether a block fills a buffer with values that depend on nothing it reads."""
    return not read(block) and isinstance(block.body, BufferStore) and block.init is None


def is_elementwise(block: Block) -> bool:
    """Whether a block writes at its axes in order, and reads each buffer at axes only, in the same order, each at most once."""
    if len(written(block)) != 1 or not isinstance(block.body, BufferStore) or block.init is not None or not is_spatial(block):
        return False
    order = {axis.var: place for place, axis in enumerate(block.iter_vars)}
    if [index for index in block.body.indices if not _is_unit(index)] != [a.var for a in block.iter_vars if a.var in block.body.indices]:
        return False
    return all(is_ordered(load.indices, order) for load in walk(block.body) if isinstance(load, BufferLoad))


def is_ordered(indices: Iterable[PrimExpr], order: dict[Var, int]) -> bool:
    """Whether indices are different axes in order, or constants."""
    places = []
    for index in indices:
        if isinstance(index, Var) and index in order:
            places.append(order[index])
        elif variables(index):
            return False
    return places == sorted(set(places))


def is_injective(indices: Iterable[PrimExpr]) -> bool:
    """Whether indices are different variables or constants, in any order."""
    found = [index for index in indices if variables(index)]
    return all(isinstance(index, Var) for index in found) and len(set(found)) == len(found)


def _is_one(axis: IterVar) -> bool:
    return axis.dom is not None and as_int(axis.dom.extent) == 1


def _is_unit(index: PrimExpr) -> bool:
    return as_int(index) == 0
