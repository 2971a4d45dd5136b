"""Over which part of its axes a block must run so that what others need of it is made, or what others made is used up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...arith import Interval, linear_form, relax
from ...arith.analyzer import Analyzer
from ...arith.interval import hull
from ...arith.iter_map import detect_iter_map, inverse_affine_iter_map
from ...dataclass import dataclass
from ...tir.arithmetic import as_int, floordiv, is_const_int
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import FloorDiv, IntImm, PrimExpr, Range, Var
from ...tir.rewriting import variables

Box = Sequence[Interval | None]


@dataclass(frozen=True, slots=True)
class AxisDomain:
    """The values that an axis is to take: `span`, and of these only what lies in the axis's own range if `cut`."""

    span: Interval
    cut: bool


def axis_domains(block: Block, touched: Sequence[BufferRegion], boxes: Mapping[Buffer, Box], analyzer: Analyzer) -> list[AxisDomain]:
    """For each axis the values at which the block touches the boxes, or more.

    Args:
        touched: what the block writes, or reads, at one point of its axes.
        boxes: what must be touched of each buffer; other buffers don't count.
    """
    found: dict[Var, Interval | None] = {}
    for buffer in dict.fromkeys(region.buffer for region in touched if region.buffer in boxes):
        regions = [region for region in touched if region.buffer is buffer]
        spans = _spans(block, regions[0], boxes[buffer], analyzer) if len(regions) == 1 else {}
        for axis in block.iter_vars:
            span = spans.get(axis.var)
            old = found.get(axis.var, span)
            # what one buffer leaves open may have any value
            found[axis.var] = None if old is None or span is None else hull((old, span), analyzer)
    return [_within(axis.dom, found.get(axis.var), analyzer) for axis in block.iter_vars if axis.dom is not None]


def union_of(boxes: Sequence[Box], analyzer: Analyzer) -> list[Interval | None]:
    """The hull of boxes."""
    whole = list(boxes[0])
    for box in boxes[1:]:
        whole = [None if a is None or b is None else hull((a, b), analyzer) for a, b in zip(whole, box, strict=True)]
    return whole


def _within(dom: Range, span: Interval | None, analyzer: Analyzer) -> AxisDomain:
    """A span against the range of its axis: the smaller one if that is known, else the span, to be cut."""
    whole = Interval(dom.min, analyzer.simplify(dom.min + dom.extent - 1))
    if span is None:
        return AxisDomain(whole, False)
    starts, ends = analyzer.known_less_equal(whole.min, span.min), analyzer.known_less_equal(span.max, whole.max)
    if starts and ends:
        return AxisDomain(span, False)
    early, late = analyzer.known_less_equal(span.min, whole.min), analyzer.known_less_equal(whole.max, span.max)
    both = Interval(whole.min if early else span.min, whole.max if late else span.max)
    # An end that lies outside in some iterations alone stays, so that the number of points doesn't change from one to the next.
    if (starts or early) and (ends or late) and as_int(analyzer.simplify(both.max - both.min)) is not None:
        return AxisDomain(both, False)
    # With an end that can't be told from the axis' own, the span stays, and conditions cut off its points outside of the axis.
    return AxisDomain(whole, False) if early and late else AxisDomain(span, True)


def _spans(block: Block, region: BufferRegion, box: Box, analyzer: Analyzer) -> dict[Var, Interval]:
    """The values of axes at which a region meets a box; of axes that are missing, any."""
    axes = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    if all(is_const_int(side.extent, 1) for side in region.region):
        found = _inverted([side.min for side in region.region], axes, box, analyzer)
        if found is not None:
            return found
    spans: dict[Var, Interval] = {}
    for side, needed in zip(region.region, box, strict=True):
        found_here = None if needed is None else _one_axis(side, axes, needed, analyzer)
        if found_here is not None and found_here[0] not in spans:
            spans[found_here[0]] = found_here[1]
    return spans


def _inverted(indices: Sequence[PrimExpr], axes: Mapping[Var, Range], box: Box, analyzer: Analyzer) -> dict[Var, Interval] | None:
    """The axes from indices that are splits and fusions of them; None if they are something else."""
    own = [index for index in indices if isinstance(index, Var) and index in axes]
    if len(set(own)) == len(indices):  # each index is an axis, whose values the box tells
        return {index: side for index, side in zip(own, box, strict=True) if side is not None}
    used = set().union(*map(variables, indices)) & set(axes)
    needed = [side for side in box if side is not None]
    if len(needed) < len(box) or not used:
        return None
    found = detect_iter_map(indices, {var: dom for var, dom in axes.items() if var in used})
    if found.errors:
        return None
    # Not the box itself: the inverse is asked at one place, and then widened over all places of the box.
    places = [Var(f"place_{n}", index.dtype) for n, index in enumerate(indices)]
    inverse = inverse_affine_iter_map(found, places)
    ranges = {
        place: Range.from_min_extent(side.min, analyzer.simplify(side.max - side.min + 1))
        for place, side in zip(places, needed, strict=True)
    }
    spans = {var: relax(value, ranges, analyzer) for var, value in inverse.items() if var in axes}
    return {var: span for var, span in spans.items() if span is not None}


def _one_axis(side: Range, axes: Mapping[Var, Range], needed: Interval, analyzer: Analyzer) -> tuple[Var, Interval] | None:
    """The axis v of a range that begins at k*v + c, or at v // k, and the values of v at which it meets `needed`."""
    width = as_int(side.extent)
    form = linear_form(side.min)
    inside = [atom for atom in form.terms if variables(atom) & set(axes)]
    # a factor above 0, so that lower indices mean lower values of the axis
    if width is None or len(inside) != 1 or form.terms[inside[0]] < 1:
        return None
    atom, scale = inside[0], form.terms[inside[0]]
    rest = form.without(atom).to_expr(side.min.dtype)
    # k*v + c <= last, and k*v + c + width - 1 >= first
    # low rounds up, ceil(x / k) = (x + k - 1) // k, with x = first - c - width + 1
    low = floordiv(needed.min - rest + (scale - width), scale)
    high = floordiv(needed.max - rest, scale)
    if isinstance(atom, Var):
        return atom, Interval(analyzer.simplify(low), analyzer.simplify(high))
    if isinstance(atom, FloorDiv) and isinstance(atom.a, Var) and isinstance(atom.b, IntImm) and atom.b.value > 0:
        divisor = atom.b.value
        return atom.a, Interval(analyzer.simplify(low * divisor), analyzer.simplify(high * divisor + (divisor - 1)))
    return None
