"""Register tiles: how a plan becomes steps. Sizes of tiles stay open, and need not divide anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from ..schedule.steps import Annotate, BalancedSplit, ComputeAt, SampleCategorical, SampleTile, TransformLayout
from ..schedule.tree import AxisExpression
from ..target import Target
from .operands import operands_of
from .packing import pack_operand
from .register_plan import Pack, RegisterPlan, lanes_of
from .sizes import balanced_rows, registers, tile_vectors
from .stages import extents
from .state import SketchState


@dataclass(frozen=True)
class TileLoops:
    """The consumer's loops over tiles, outermost first, and which of them belongs to the axis in the lanes."""

    order: tuple[int, ...]
    panel: int

    @property
    def innermost(self) -> int:
        """Where the tile is computed."""
        return self.order[-1]


def tile_in_registers(state: SketchState, stage: int, consumer: int, plan: RegisterPlan, target: Target) -> SketchState:
    """The program of a plan: the consumer in tiles, the stage computed at the innermost loop over tiles."""
    operand = operands_of(state.tree, state.stage(stage))[plan.operand]
    state, moved = lanes_last(state, stage, plan)
    state, loops = tile_consumer(state, consumer, plan, target)
    if plan.pack is not Pack.NONE:
        state, copy = pack_operand(state, stage, operand, plan, target)
        if plan.pack is Pack.PANEL:
            state = state.add(ComputeAt(copy, consumer, loops.panel))
    state = state.add(ComputeAt(stage, consumer, loops.innermost))
    node = state.stage(stage)
    first = tuple(moved[axis] for axis in plan.batch)
    rows = tuple(axis for axis in node.spatial if axis not in first and axis != moved[plan.vector])
    reduction = tuple(axis - plan.flattened for axis in plan.reduction)  # of one spatial axis less
    state = state.reorder(stage, (*first, *reduction, *rows, moved[plan.vector]))
    state = state.add(Annotate(stage, moved[plan.vector], "vectorize"))
    return replace(state, finished=state.finished | {stage, consumer}).note(f"RegisterTile({in_words(state, consumer, plan)})")


def lanes_last(state: SketchState, stage: int, plan: RegisterPlan) -> tuple[SketchState, dict[int, int]]:
    """The stage with what is in the lanes as its last axis in memory; returns also where each axis went."""
    node = state.stage(stage)
    row = plan.vector - 1 if plan.flattened else None
    others = [axis for axis in node.spatial if axis not in (plan.vector, row)]
    lanes: AxisExpression = ("axis", plan.vector)
    if row is not None:
        (width,) = extents(node, [plan.vector])
        lanes = ("+", ("*", ("axis", row), width), lanes)
    if row is not None or [*others, plan.vector] != list(node.spatial):
        state = state.add(TransformLayout(stage, (*(("axis", axis) for axis in others), lanes)))
    return state, {axis: place for place, axis in enumerate([*others, plan.vector])}


def tile_consumer(state: SketchState, consumer: int, plan: RegisterPlan, target: Target) -> tuple[SketchState, TileLoops]:
    """The consumer in tiles of open sizes; returns also its loops over them."""
    node = state.stage(consumer)
    last = node.spatial[-1]
    outer: dict[int, int] = {}
    inner: dict[int, int] = {}
    for axis in plan.outer:
        state, (outer[axis], inner[axis]) = _tiled(state, consumer, axis, plan, target)
    state, tiles, parallel = _tile_loops(state, consumer, plan, outer, target)
    rows = [inner[axis] for axis in sorted(plan.outer) if axis not in (plan.vector, last)]
    lanes = [inner[plan.vector]] + ([inner[last]] if last in inner and last != plan.vector else [])
    state = state.reorder(consumer, (*tiles, *rows, *lanes))
    state = state.add(Annotate(consumer, parallel, "parallel")).add(Annotate(consumer, lanes[-1], "vectorize"))
    around = {outer[plan.vector], *(axis for axis in tiles if axis not in outer.values())}
    return state, TileLoops(tiles, next(axis for axis in reversed(tiles) if axis in around))


def _tiled(state: SketchState, stage: int, axis: int, plan: RegisterPlan, target: Target) -> tuple[SketchState, tuple[int, ...]]:
    """Cut an axis into tiles: rows of nearly equal number, vectors with a masked rest."""
    node = state.stage(stage)
    extent = prod(extents(node, _in_lanes(plan) if axis == plan.vector else [axis]))
    sample = len(state.tree.samples)
    if axis != plan.vector:
        state = state.add(SampleTile(stage, axis, tuple(sorted(balanced_rows(target)(extent)))))
        first = len(state.stage(stage).axes)
        return state.add(BalancedSplit(stage, axis, (None, (sample, 0)))), (first, first + 1)
    lanes = plan.lanes or lanes_of(target, node)
    if plan.vectors:
        sizes: Iterable[int] = (plan.vectors * lanes,)
    else:  # without rows, several vectors hide the latency of their multiply-adds
        sizes = [count * lanes for count in (1, *tile_vectors(target))] if len(plan.outer) > 1 else registers(lanes, target)(extent)
    candidates = tuple(sorted({min(size, extent) for size in sizes}))
    if plan.flattened:
        state, axis = state.fuse(stage, _in_lanes(plan))
        state = state.add(SampleCategorical(candidates))
    else:
        state = state.add(SampleTile(stage, axis, candidates))
    return state.split(stage, axis, (None, (sample, 0)))


def _in_lanes(plan: RegisterPlan) -> tuple[int, ...]:
    return (plan.vector - 1, plan.vector) if plan.flattened else (plan.vector,)


def _tile_loops(
    state: SketchState, stage: int, plan: RegisterPlan, outer: dict[int, int], target: Target
) -> tuple[SketchState, tuple[int, ...], int]:
    """The loops over tiles, outermost first, and which of them is parallel.

    Whole batches go to threads if there are enough to keep them equally busy; otherwise it is the outermost tiles. A loop
    over uneven tiles is not fused with others, so that loop partition can still cut it.
    """
    tiles = tuple(outer[axis] for axis in plan.outer)
    batches = prod(extents(state.stage(stage), plan.batch))
    cores = target.num_cores
    if batches > 1 and (batches % cores == 0 or batches >= 4 * cores):
        others = tuple(axis for axis in state.stage(stage).leaf if axis not in plan.batch)
        state = state.reorder(stage, (*plan.batch, *others))
        state, fused = state.fuse(stage, plan.batch)
        return state, (fused, *tiles), fused
    return state, (tiles[0], *plan.batch, *tiles[1:]), tiles[0]


def in_words(state: SketchState, consumer: int, plan: RegisterPlan) -> str:
    """A plan, for the names of its sketches."""
    names = [state.stage(consumer).axes[axis].name for axis in (plan.vector, *plan.outer)]
    flat = f"{state.stage(consumer).axes[plan.vector - 1].name}." if plan.flattened else ""
    packed = {Pack.NONE: "", Pack.PANEL: ",panel", Pack.ROOT: ",packed", Pack.GIVEN: ",given"}[plan.pack]
    width = f" x{plan.vectors}" if packed and plan.vectors else ""
    return f"{flat}{names[0]} in lanes,{'>'.join(names[1:])}{packed}{width}"
