"""`RewriteLayout`: weights that the caller leaves the layout of are copied into the order in which they are read."""

from __future__ import annotations

from collections.abc import Mapping

from ...arith import IndexMap, linear_form
from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.bindings import bound_values
from ...schedule.blocks.scope import read
from ...tir.arithmetic import as_int, floordiv, floormod
from ...tir.buffer import Buffer
from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr, Var
from ...tir.rewriting import substitute
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
    # another reader would have to read the new layout too
    if len(readers) != 1:
        return
    mapping = _layout(sch, readers[0], buffer)
    if mapping is None:
        return
    place = read(sch.get(readers[0])).index(buffer)
    try:
        copy = sch.cache_read(readers[0], place, "global")
        sch.annotate(copy, PREPROCESSING, 1)
        sch.transform_layout(readers[0], ("read", place), mapping)
    except ScheduleError:  # what was done so far computes the same
        return


def _layout(sch: Schedule, block: BlockRV, buffer: Buffer) -> IndexMap | None:
    """Indices into the buffer -> the parts that single loops count, outer loops first; None if that is no change, or isn't known."""
    realize = sch.realization(block)
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    region = next(region for region in realize.block.reads if region.buffer is buffer)
    values = bound_values(realize)
    indices = [substitute(side.min, values) for side in region.region]
    if any(as_int(side.extent) != 1 for side in region.region):
        return None
    order = {loop.loop_var: (place, as_int(loop.extent)) for place, loop in enumerate(loops)}
    shape = [as_int(extent) for extent in buffer.shape]
    parts: list[_Part] = []
    for n, index in enumerate(indices):
        own = _parts(n, index, order, shape[n])
        if own is None:
            return None
        parts += own
    # outer loops first; of one loop the high digits first
    in_order = sorted(parts, key=lambda part: (part.place, -part.lower))
    if in_order == parts:
        return None
    given = [Var(f"i{n}", index.dtype) for n, index in enumerate(indices)]
    return IndexMap(tuple(given), tuple(_piece(given[part.dimension], part, shape[part.dimension]) for part in in_order))


@dataclass(frozen=True)
class _Part:
    """A digit of an index: the part of a loop's count from `lower` up, with `extent` values, which counts `scale` in the index."""

    dimension: int
    place: int
    lower: int
    scale: int
    extent: int


def _parts(dimension: int, index: PrimExpr, order: Mapping[Var, tuple[int, int | None]], size: int | None) -> list[_Part] | None:
    """The digits of an index, the highest first; None if they aren't all the digits of numbers below `size`."""
    form = linear_form(index)
    found: list[_Part] = []
    for term, scale in form.terms.items():
        digit = _digit(term, order)
        if digit is None:
            return None
        place, lower, extent = digit
        if extent != 1:
            found.append(_Part(dimension, place, lower, scale, extent))
    found.sort(key=lambda part: part.scale)
    expected = 1
    for part in found:
        # scales 1, 4, 12 of extents 4, 3, n: digits without gaps or overlaps
        if part.scale != expected:
            return None
        expected *= part.extent
    return found[::-1] if expected == size and not form.constant else None


def _digit(term: PrimExpr, order: Mapping[Var, tuple[int, int | None]]) -> tuple[int, int, int] | None:
    """The place of the loop that a term is a part of, how much of the loop's count the part leaves out below, and its extent."""
    match term:
        case Var():
            place, extent = order.get(term, (0, None))
            return None if extent is None else (place, 1, extent)
        case FloorDiv(inner, IntImm(value=divisor)) if (digit := _digit(inner, order)) is not None:
            place, lower, extent = digit
            # i // 4 of an extent 6: two blocks, the second half full
            return place, lower * divisor, -(-extent // divisor)
        case FloorMod(inner, IntImm(value=divisor)) if (digit := _digit(inner, order)) is not None:
            place, lower, extent = digit
            # i % 4 of an extent 6 counts 0 1 2 3 0 1, which is no digit
            return (place, lower, min(extent, divisor)) if extent <= divisor or extent % divisor == 0 else None
    return None


def _piece(index: PrimExpr, part: _Part, size: int | None) -> PrimExpr:
    """The digit in terms of the index that it is a part of."""
    counted = floordiv(index, part.scale) if part.scale != 1 else index
    return counted if size is not None and part.scale * part.extent >= size else floormod(counted, part.extent)
