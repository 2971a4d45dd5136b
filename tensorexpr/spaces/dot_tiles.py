"""Register tiles of instructions that sum groups of small numbers: plans, and the steps of a plan.

    parallel for panels of the columns
        [pack a panel: groups of neighbours along the sum innermost]
        for tiles of rows
            accumulators = 0
            for the reduction, in groups: accumulators += a broadcast group of one operand . a vector of groups of the other

As for other register tiles the sizes of tiles stay open. Groups of the broadcast operand are read where it lies, if they
are whole and lie side by side; else from a copy that has them so, padded with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..schedule.steps import Annotate, CacheRead, ComputeAt, ComputeInline, PreTransformed, Tensorize, TransformLayout
from ..schedule.tree import AxisExpression, Root, StageNode
from ..target import Target
from ..te.contraction import recognise
from ..te.operation import ComputeOp
from ..te.tensor_intrin import TensorIntrin
from ..tir.dtype import parse_dtype
from ..tir.expr import Reduce
from .dot_products import DotProduct, instruction_for
from .operands import Operand, operands_of
from .packing import depth_of
from .register_plan import Pack, RegisterPlan, is_given, lanes_of
from .register_tiling import in_words, lanes_last, tile_consumer
from .sizes import tile_vectors
from .stages import extents
from .state import SketchState


@dataclass(frozen=True)
class DotPlan:
    """The structure of one sketch.

    Args:
        tile: the loops, as of any register tile; `operand` is what is packed, and the last reduction axis is summed in groups.
        left: the operand that is broadcast, by its place among the stage's loads.
        dot: the instruction.
        grouped: the broadcast operand is read where it lies.
    """

    tile: RegisterPlan
    left: int
    dot: DotProduct
    grouped: bool


def dot_plans(state: SketchState, stage: StageNode, target: Target, caller_packs: bool) -> list[DotPlan]:
    """All plans for a stage; none if it is no sum of products of types that the target has an instruction for.

    Of the two operands that is broadcast with which an instruction sums more, the first if both do as well.
    """
    operands = operands_of(state.tree, stage)
    if len(operands) != 2:
        return []
    sides = [(_instruction(stage, operands[left], operands[1 - left], target), left) for left in (0, 1)]
    found = sorted(((dot, left) for dot, left in sides if dot is not None), key=lambda side: -side[0].group)
    plans = (list(_plans(state, stage, operands, left, 1 - left, dot, target, caller_packs)) for dot, left in found)
    return next((some for some in plans if some), [])


def _instruction(stage: StageNode, left: Operand, right: Operand, target: Target) -> DotProduct | None:
    """The instruction for the products of two operands, each converted to the type of the sum."""
    op = stage.op
    body = op.body[0] if isinstance(op, ComputeOp) else None
    product = recognise(body) if isinstance(body, Reduce) and not body.init else None
    if product is None or product.scale != 1 or len(product.factors) != 2:
        return None
    if any(factor.casts != (product.dtype,) for factor in product.factors):
        return None
    return instruction_for(left.load.dtype, right.load.dtype, product.dtype, target)


@dataclass(frozen=True)
class _Roles:
    """What the axes of a sum of products are for.

    Args:
        sizes: of all axes.
        vector: the axis in the lanes: of the packed operand alone.
        last: the reduction axis that is summed in groups.
        rows: axes of the broadcast operand alone, of more than one element.
        batch: the other spatial axes.
    """

    sizes: Mapping[int, int]
    vector: int
    last: int
    rows: tuple[int, ...]
    batch: tuple[int, ...]


def _roles(stage: StageNode, broadcast: Operand, packed: Operand, lanes: int, group: int) -> _Roles | None:
    """The roles of a stage's axes: the longest columns are the lanes, and groups lie side by side if they can; None without either."""
    axes = (*stage.spatial, *stage.reduction)
    sizes = dict(zip(axes, extents(stage, list(axes)), strict=True))

    def is_column(axis: int) -> bool:
        return sizes[axis] >= lanes and not broadcast.moves_with(axis) and packed.index_of(axis) is not None

    def is_summed(axis: int) -> bool:
        return sizes[axis] >= group and broadcast.index_of(axis) is not None and packed.index_of(axis) is not None

    columns, summed = [axis for axis in stage.spatial if is_column(axis)], [axis for axis in stage.reduction if is_summed(axis)]
    shared = all(broadcast.moves_with(axis) and packed.moves_with(axis) for axis in stage.reduction if sizes[axis] > 1)
    if not columns or not summed or not shared:
        return None
    vector = max(columns, key=lambda axis: (sizes[axis], axis))
    last = max(summed, key=lambda axis: (broadcast.is_contiguous(axis), sizes[axis]))
    others = [axis for axis in stage.spatial if axis != vector]
    rows = tuple(axis for axis in others if broadcast.moves_with(axis) and not packed.moves_with(axis) and sizes[axis] > 1)
    return _Roles(sizes, vector, last, rows, tuple(axis for axis in others if axis not in rows))


def _plans(
    state: SketchState,
    stage: StageNode,
    operands: Sequence[Operand],
    left: int,
    right: int,
    dot: DotProduct,
    target: Target,
    caller_packs: bool,
) -> Iterator[DotPlan]:
    broadcast, packed = operands[left], operands[right]
    lanes = lanes_of(target, stage)
    roles = _roles(stage, broadcast, packed, lanes, dot.group)
    if roles is None:
        return
    grouped = roles.sizes[roles.last] % dot.group == 0 and broadcast.is_contiguous(roles.last)
    if _lies_in_panels(roles, packed, lanes, dot.group):
        tiles = [_tile_of_panels(stage, roles, broadcast, right, lanes)]
    else:
        given = caller_packs and is_given(state, stage, packed)
        widths = [count for count in (1, *tile_vectors(target)) if count * lanes <= roles.sizes[roles.vector]]
        tiles = [*_packed_tiles(stage, roles, packed, right, lanes, widths, given)]
    for tile in tiles:
        yield DotPlan(tile, left, dot, grouped)


def _lies_in_panels(roles: _Roles, packed: Operand, lanes: int, group: int) -> bool:
    """Whether the packed operand lies as the instruction reads it: the lanes and one group innermost."""
    whole = roles.sizes[roles.vector] == lanes and roles.sizes[roles.last] == group
    return whole and packed.forms[-2:] == ({roles.vector: 1}, {roles.last: 1})


def _tile_of_panels(stage: StageNode, roles: _Roles, broadcast: Operand, operand: int, lanes: int) -> RegisterPlan:
    """The tile where columns lie in panels already: their blocks are tiled too."""
    blocks = tuple(axis for axis in roles.batch if not broadcast.moves_with(axis) and roles.sizes[axis] > 1)
    others, steps = tuple(a for a in roles.batch if a not in blocks), tuple(a for a in stage.reduction if a != roles.last)
    outer = (*blocks, *roles.rows, roles.vector)
    return RegisterPlan(roles.vector, others, outer, (*steps, roles.last), vectors=1, operand=operand, lanes=lanes)


def _packed_tiles(
    stage: StageNode, roles: _Roles, packed: Operand, operand: int, lanes: int, widths: Sequence[int], given: bool
) -> Iterator[RegisterPlan]:
    """Tiles for panels of each width, packed where they are used, or all before everything if no batch needs its own, or by the caller."""
    steps = (*(axis for axis in stage.reduction if axis != roles.last), roles.last)
    base = RegisterPlan(roles.vector, roles.batch, (roles.vector, *roles.rows), steps, operand=operand, lanes=lanes)
    at_once = roles.rows and (given or not any(packed.moves_with(axis) for axis in roles.batch))
    for vectors in widths:
        yield replace(base, vectors=vectors, pack=Pack.GIVEN if given else Pack.PANEL)
        if at_once:
            yield replace(base, outer=(*roles.rows, roles.vector), vectors=vectors, pack=Pack.GIVEN if given else Pack.ROOT)


def tile_dot_products(state: SketchState, stage: int, consumer: int, plan: DotPlan, target: Target) -> SketchState:
    """The program of a plan: the consumer in tiles, the stage computed at the innermost loop over tiles."""
    tile, group = plan.tile, plan.dot.group
    operands = operands_of(state.tree, state.stage(stage))
    lanes = lanes_of(target, state.stage(stage))
    if not plan.grouped:
        state = _group(state, stage, operands[plan.left], plan, lanes)
    state, moved = lanes_last(state, stage, tile)
    state, loops = tile_consumer(state, consumer, tile, target)
    if tile.pack is not Pack.NONE:
        state, copy = _pack(state, stage, operands[tile.operand], plan, lanes)
        if tile.pack is Pack.PANEL:
            state = state.add(ComputeAt(copy, consumer, loops.panel))
    state = state.add(ComputeAt(stage, consumer, loops.innermost))
    node = state.stage(stage)
    first = tuple(moved[axis] for axis in tile.batch)
    rows = tuple(axis for axis in node.spatial if axis not in first and axis != moved[tile.vector])
    state, (vectors, lane) = state.split(stage, moved[tile.vector], (None, lanes))
    state, (groups, within) = state.split(stage, tile.reduction[-1], (None, group))
    state = state.reorder(stage, (*first, *tile.reduction[:-1], groups, *rows, vectors, lane, within))
    for axis in (*rows, vectors):
        state = state.add(Annotate(stage, axis, "unroll"))
    intrinsic = TensorIntrin.get(plan.dot.intrinsic)
    state = state.add(Tensorize(stage, lane, intrinsic.name, intrinsic.digest))
    return replace(state, finished=state.finished | {stage, consumer}).note(f"DotTile({in_words(state, consumer, tile)})")


def _group(state: SketchState, stage: int, operand: Operand, plan: DotPlan, lanes: int) -> SketchState:
    """Let the stage read a copy of the broadcast operand in which each group is whole. What only the copy reads is inlined into it."""
    place, group = operand.index_of(plan.tile.reduction[-1]), plan.dot.group
    assert place is not None
    producer, copy = operand.producer, len(state.tree.stages)
    state = state.add(CacheRead(producer.id, "global", (stage,)))
    alone = [reader.id for reader in state.tree.consumers(producer)] == [copy]
    if alone and _can_be_inlined(producer):
        state = state.add(ComputeInline(producer.id))
        state = replace(state, finished=state.finished | {producer.id})
    summed: AxisExpression = ("axis", place)
    others: list[AxisExpression] = [("axis", n) for n in range(len(state.stage(copy).spatial)) if n != place]
    mapping = (*others[:place], ("//", summed, group), *others[place:], ("%", summed, group))
    state = state.add(TransformLayout(copy, mapping, _zero(state.stage(copy))))
    *outer, within = state.stage(copy).spatial
    return _serve_groups(state, copy, tuple(outer), within, lanes)


def _serve_groups(state: SketchState, copy: int, outer: tuple[int, ...], within: int, lanes: int) -> SketchState:
    """Loops of a copy in groups: vectors of several groups, parts in parallel."""
    *tasks, last = outer
    state, (blocks, inner) = state.split(copy, last, (None, lanes))
    state = state.reorder(copy, (*tasks, blocks, inner, within))
    state, vector = state.fuse(copy, (inner, within))
    state = state.add(Annotate(copy, vector, "vectorize"))
    if not tasks:
        return replace(state, finished=state.finished | {copy})
    state, parallel = state.fuse(copy, tuple(tasks))
    return replace(state.add(Annotate(copy, parallel, "parallel")), finished=state.finished | {copy})


def _can_be_inlined(producer: StageNode) -> bool:
    """True for a stage of one result, without a sum, that nobody has scheduled."""
    plain = isinstance(producer.op, ComputeOp) and not producer.is_output and not len(producer.reduction)
    return plain and producer.origin.num_outputs == 1 and isinstance(producer.attach, Root) and not (producer.relations or producer.marks)


def _pack(state: SketchState, stage: int, operand: Operand, plan: DotPlan, lanes: int) -> tuple[SketchState, int]:
    """The stage reading panels of the other operand; returns also the stage of the copy."""
    tile, group = plan.tile, plan.dot.group
    column, summed = operand.index_of(tile.vector), operand.index_of(tile.reduction[-1])
    assert column is not None and summed is not None
    copy, width = len(state.tree.stages), tile.vectors * lanes
    state = state.add(CacheRead(operand.producer.id, "global", (stage,)))
    rank = len(state.stage(copy).spatial)
    others = sorted((n for n in range(rank) if n not in (column, summed)), key=lambda n: depth_of(operand, n, tile))
    lane: AxisExpression = ("axis", column)
    step: AxisExpression = ("axis", summed)
    vectors = (("//", ("%", lane, width), lanes), ("%", lane, lanes))
    mapping = (("//", lane, width), *(("axis", n) for n in others), ("//", step, group), *vectors, ("%", step, group))
    state = state.add(TransformLayout(copy, mapping, _zero(state.stage(copy))))
    *_, each, within = state.stage(copy).spatial
    if tile.pack is not Pack.PANEL:
        state = state.add(Annotate(copy, 0, "parallel"))
    # Neighbours along the sum: the loads of 16 groups are rows that are zipped together.
    state = state.add(Annotate(copy, each, "unroll")).add(Annotate(copy, within, "vectorize"))
    if tile.pack is Pack.GIVEN:
        state = state.add(PreTransformed(copy))
    return replace(state, finished=state.finished | {copy}), copy


def _zero(copy: StageNode) -> int | float:
    """What padding holds: it is multiplied with what it meets, and added."""
    return 0.0 if parse_dtype(copy.origin.output_dtype(0)).is_float else 0
