"""`RewriteLayout`: weights that the caller leaves the layout of are copied into the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence

from ...arith import IndexMap, IterSplitExpr, IterSumExpr, detect_iter_map
from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.scope import read
from ...tir.arithmetic import as_int, floordiv, floormod
from ...tir.buffer import Buffer
from ...tir.expr import PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from .blocks import all_blocks
from .postproc import PyPostproc

LAYOUT_FREE = "layout_free_buffers"
PREPROCESSING = "meta_schedule.layout_rewrite_preproc"


class RewriteLayout(PyPostproc):
    """Puts a copy in another layout before the block that reads a layout-free buffer (function attribute `layout_free_buffers`)."""

    def apply(self, sch: Schedule) -> bool:
        """Rewrite all functions; always True."""
        for var, func in sch.mod.functions_items():
            for number in func.attrs.get(LAYOUT_FREE, ()):
                place = as_int(number) if not isinstance(number, int) else number
                if place is not None and 0 <= place < len(func.params):
                    _rewrite(sch, func.buffer_map[func.params[place]], var.name_hint)
        return True


def _rewrite(sch: Schedule, buffer: Buffer, func_name: str) -> None:
    readers = [block for block in all_blocks(sch) if buffer in read(sch.get(block))]
    if len(readers) != 1:
        return
    mapping = _layout(sch, readers[0], buffer)
    if mapping is None:
        return
    place = read(sch.get(readers[0])).index(buffer)
    trial = sch.copy()
    for target in (trial, sch):
        try:
            copy = target.cache_read(readers[0], place, "global")
            target.transform_layout(readers[0], ("read", place), mapping)
            target.annotate(copy, PREPROCESSING, 1)
        except ScheduleError:
            return


def _layout(sch: Schedule, block: BlockRV, buffer: Buffer) -> IndexMap | None:
    """Indices into the buffer -> the parts that single loops count, outer loops first; None if that is no change, or isn't known."""
    realize = sch.realization(block)
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    region = next(region for region in realize.block.reads if region.buffer is buffer)
    values = {axis.var: value for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)}
    indices = [substitute(side.min, values) for side in region.region]
    if any(as_int(side.extent) != 1 for side in region.region):
        return None
    used = set().union(*map(variables, indices)) if indices else set()
    domain = {loop.loop_var: Range(loop.min, loop.extent) for loop in loops if loop.loop_var in used}
    found = detect_iter_map(indices, domain)
    if not found.indices:
        return None
    parts: list[tuple[int, int, IterSplitExpr]] = []
    for n, total in enumerate(found.indices):
        own = _parts(total, list(domain))
        if own is None:
            return None
        parts += [(order, n, split) for order, split in own]
    in_order = sorted(parts, key=lambda part: part[0])
    if [part[1:] for part in in_order] == [part[1:] for part in parts]:
        return None
    given = [Var(f"i{n}", index.dtype) for n, index in enumerate(indices)]
    shape = [as_int(extent) for extent in buffer.shape]
    return IndexMap(tuple(given), tuple(_piece(given[n], split, shape[n]) for _, n, split in in_order))


def _parts(total: IterSumExpr, order: Sequence[Var]) -> list[tuple[int, IterSplitExpr]] | None:
    """The loops of a dimension, each with its place in the nest; None if parts of loops are added up some other way."""
    found: list[tuple[int, IterSplitExpr]] = []
    for split in total.args:
        inner = split.source.source
        if split.lower_factor != 1 or split.extent != split.source.extent:
            return None
        if isinstance(inner, Var):
            found.append((order.index(inner), split))
            continue
        below = _parts(inner, order) if split.scale == 1 else None
        if below is None:
            return None
        found += below
    return found


def _piece(index: PrimExpr, split: IterSplitExpr, size: int | None) -> PrimExpr:
    """The value of a loop in terms of the index that it is a part of."""
    counted = floordiv(index, split.scale) if split.scale != 1 else index
    return counted if size is not None and split.scale * split.extent >= size else floormod(counted, split.extent)
