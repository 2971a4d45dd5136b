"""What a register tile's sketch fixes before any size is sampled: the vector axis, the order of loops, what is packed.

The shape is that of Goto and van de Geijn (2008) without blocks of the reduction: tiles of accumulators stay in registers
over the whole reduction, panels of the operand in the lanes stay in the nearest cache while tiles go by.

    parallel for tiles of the outermost axis
        [pack a panel of the operand in the lanes]
        for tiles of the other axes
            accumulators = 0
            for the reduction: accumulators += one operand's element * a vector of the other
            store the tile
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ..schedule.layout_rewrite import layout_free_inputs
from ..schedule.tree import StageNode
from ..target import Target
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from .operands import Operand, operands_of
from .sizes import tile_vectors
from .stages import extents
from .state import SketchState

# Lanes that have less than half their places filled lose more than packing another axis costs.
FULL_LANES = 4


class Pack(Enum):
    """Where the operand in the lanes is copied into panels."""

    NONE = "none"
    PANEL = "panel"  # its own panel, at the loop over panels
    ROOT = "root"  # all panels, before everything
    GIVEN = "given"  # all panels, by the caller


@dataclass(frozen=True)
class RegisterPlan:
    """The structure of one sketch. Axes are spatial root axes of the tiled stage, which its consumer shares.

    Args:
        vector: the axis in the lanes.
        batch: axes that move every operand: nothing is shared along them, so they aren't tiled.
        outer: the tiled axes, outermost first.
        reduction: the reduction axes, outermost first.
        pack: whether and where the operand in the lanes is packed.
        operand: that operand, by its place among the stage's loads.
        vectors: vector registers of a packed panel, if the panel's width is fixed.
        flattened: the axis before the one in the lanes goes into the lanes too, as one axis of all pixels.
        lanes: of a vector; as many as the consumer's type has if 0.
    """

    vector: int
    batch: tuple[int, ...]
    outer: tuple[int, ...]
    reduction: tuple[int, ...]
    pack: Pack = Pack.NONE
    operand: int = 0
    vectors: int = 0
    flattened: bool = False
    lanes: int = 0


def lanes_of(target: Target, stage: StageNode) -> int:
    """Elements of a stage's result in a vector register."""
    return max(1, target.vector_bits // parse_dtype(stage.origin.output(0).dtype).bits)


def register_plans(state: SketchState, stage: StageNode, target: Target, caller_packs: bool) -> list[RegisterPlan]:
    """All plans for a stage with a reduction; none if no axis can be in the lanes. Inputs of free layout may be packed by the caller."""
    operands = operands_of(state.tree, stage)
    lanes = lanes_of(target, stage)
    given = [n for n, operand in enumerate(operands) if caller_packs and is_given(state, stage, operand)]
    sizes = dict(zip(stage.spatial, extents(stage, list(stage.spatial)), strict=True))
    found: list[RegisterPlan] = []
    for vector in _vector_axes(stage, operands, sizes, lanes):
        found.extend(_plans_with(stage, operands, sizes, vector, given, target))
    return found


def is_given(state: SketchState, stage: StageNode, operand: Operand) -> bool:
    """True if whoever calls may bring an operand into the layout that the program wants."""
    if not operand.producer.is_placeholder:
        return False
    free = operand.producer.origin.output(0) in layout_free_inputs(state.tree)
    return free and [reader.id for reader in state.tree.consumers(operand.producer)] == [stage.id]


def _vector_axes(stage: StageNode, operands: Sequence[Operand], sizes: dict[int, int], lanes: int) -> Iterator[int]:
    """The last axis if it can be, and another one if the last is short, or slides over a window or over gaps."""
    last = stage.spatial[-1]
    usable = sizes[last] > 1 and _hinderers(operands, last) is not None
    if usable:
        yield last
    moved = [operand for operand in operands if operand.moves_with(last)]
    awkward = not usable or sizes[last] < FULL_LANES * lanes or any(operand.has_windows(last) for operand in moved)
    if not awkward:
        return
    others = [axis for axis in stage.spatial if axis != last and sizes[axis] >= lanes and _hinderers(operands, axis) is not None]
    unbatched = [axis for axis in others if not _is_batch(operands, axis)]
    if unbatched:
        yield max(unbatched, key=lambda axis: sizes[axis])


def _hinderers(operands: Sequence[Operand], axis: int) -> list[int] | None:
    """The operands that must be packed so that the axis can be in the lanes; None if more than one, or if packing can't help."""
    found = []
    for number, operand in enumerate(operands):
        if operand.moves_with(axis) and not operand.is_contiguous(axis):
            if operand.index_of(axis) is None:
                return None
            found.append(number)
    return found if len(found) <= 1 else None


def _is_batch(operands: Sequence[Operand], axis: int) -> bool:
    return all(operand.moves_with(axis) for operand in operands)


def _plans_with(
    stage: StageNode, operands: Sequence[Operand], sizes: dict[int, int], vector: int, given: Sequence[int], target: Target
) -> Iterator[RegisterPlan]:
    """The plans with an axis in the lanes; `given` are the operands that whoever calls packs."""
    lanes, full = lanes_of(target, stage), tile_vectors(target)
    others = [axis for axis in stage.spatial if axis != vector]
    batch = tuple(axis for axis in others if _is_batch(operands, axis))
    rows = tuple(axis for axis in others if axis not in batch and sizes[axis] > 1)
    short = tuple(axis for axis in others if axis not in batch and sizes[axis] == 1)
    base = RegisterPlan(vector, (*short, *batch), (vector, *rows), _longest_innermost(stage))
    if _can_flatten(stage, operands, sizes, vector):
        yield from _both_orders(replace(base, flattened=True), tuple(axis for axis in rows if axis != vector - 1))
        return
    hinderers = _hinderers(operands, vector) or []
    wanted = [n for n in hinderers or given if n in given and operands[n].index_of(vector) is not None]
    if wanted and not _moves_with_any(operands[wanted[0]], rows):
        widths = dict.fromkeys(min(count, -(-sizes[vector] // lanes)) for count in (1, *full))
        for order in _both_orders(base, rows):
            yield from (replace(order, pack=Pack.GIVEN, operand=wanted[0], vectors=count) for count in widths)
        return
    if not hinderers:
        yield from _both_orders(base, rows)
    operand = _worth_packing(stage, operands, vector, rows, hinderers)
    if operand is None or _moves_with_any(operands[operand], rows):
        return
    yield replace(base, pack=Pack.PANEL, operand=operand)
    if rows and not _moves_with_any(operands[operand], batch):
        for vectors in _panel_vectors(sizes[vector], lanes, full):
            yield replace(base, outer=(*rows, vector), pack=Pack.ROOT, operand=operand, vectors=vectors)


def _both_orders(plan: RegisterPlan, rows: tuple[int, ...]) -> list[RegisterPlan]:
    """A plan with the axis in the lanes outside of the rows, and inside of them; one if there are no rows."""
    outside = replace(plan, outer=(plan.vector, *rows))
    return [outside, replace(plan, outer=(*rows, plan.vector))] if rows else [outside]


def _moves_with_any(operand: Operand, axes: Sequence[int]) -> bool:
    return any(operand.moves_with(axis) for axis in axes)


def _worth_packing(stage: StageNode, operands: Sequence[Operand], vector: int, rows: Sequence[int], hinderers: Sequence[int]) -> int | None:
    """The operand to pack: one that must be, or one in the lanes that rows read again and the reduction walks through; None if none."""
    if hinderers:
        return hinderers[0]
    movers = [n for n, operand in enumerate(operands) if operand.moves_with(vector) and operand.index_of(vector) is not None]
    return movers[0] if movers and rows and _moves_with_any(operands[movers[0]], stage.reduction) else None


def _can_flatten(stage: StageNode, operands: Sequence[Operand], sizes: dict[int, int], vector: int) -> bool:
    """True if the last two axes are rows of pixels that lie one after the other in every operand that they move."""
    row = vector - 1
    if vector != stage.spatial[-1] or row not in stage.spatial or sizes[row] == 1:
        return False
    for operand in operands:
        if not operand.moves_with(vector) and not operand.moves_with(row):
            continue
        last = len(operand.forms) - 1
        shape = operand.producer.origin.output_shape(0)
        if operand.index_of(vector) != last or operand.index_of(row) != last - 1 or as_int(shape[-1]) != sizes[vector]:
            return False
    return True


def _longest_innermost(stage: StageNode) -> tuple[int, ...]:
    """The reduction axes with the longest last: neighbouring steps then share no load, which would keep registers busy."""
    lengths = dict(zip(stage.reduction, extents(stage, list(stage.reduction)), strict=True))
    longest = max(stage.reduction, key=lambda axis: lengths[axis])
    return (*(axis for axis in stage.reduction if axis != longest), longest)


def _panel_vectors(extent: int, lanes: int, full: Sequence[int]) -> list[int]:
    """Widths of panels, at most two, that leave the least of the last panel empty."""
    waste = {count: -(-extent // (count * lanes)) * count * lanes for count in full}
    return sorted(waste, key=lambda count: (waste[count], count))[:2]
