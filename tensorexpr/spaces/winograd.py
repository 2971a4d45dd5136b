"""Schedules of Winograd's minimal filtering: all that belongs to some rows of tiles stays in the caches of one core.

    for rows of tiles in parallel:
        D = the pixels that they read, with their border;  V = B^T d B, tile by tile in vectors of channels
        for panels of channels:
            M = 16 products of tiles by channels, in register tiles
            Y = A^T M A, and what follows element by element

Where rows of tiles are too few for all cores, panels are outside, and V is made before. (Weights are read but once then, of all tiles, yet
14 x 14 of 256 channels took 1.2 ms instead of 0.86 on two cores of Zen 4, as V comes from the third level for each panel.)
"""

from __future__ import annotations

from math import prod

from ..dataclass import dataclass, replace
from ..lower.phase0.inline_stages import inlined_bodies
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import FloorDiv, IntImm, ProducerLoad
from ..tir.rewriting import walk
from .contraction_plan import Order, Pack, Plan, contraction_plans
from .contractions import Contraction, contraction_of
from .dot_products import has_whole_groups
from .machine import lanes_of
from .nests import as_tasks, in_vectors
from .stages import is_untouched
from .tiles import Tiles

_RANK = 6  # axes of the products: images, rows of tiles, both of a tile, tiles of a row, channels
_TASKS = 2  # rows of tiles for each core, from which on they keep all busy


@dataclass(frozen=True)
class Filtering:
    """A convolution by minimal filtering.

    Args:
        plan: of the products of tiles by channels.
        pixels: what tiles are made of, with its border; None if it is stored anyway.
        tiles: V.
        result: what is made of the products of a tile.
        size: results of a tile along an axis.
        panels_outside: V is made of all pixels before.
    """

    plan: Plan
    pixels: Tensor | None
    tiles: Tensor
    result: Tensor
    size: int
    panels_outside: bool


def filterings_of(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Filtering]:
    """The way to compute the products of tiles with what they are made of and what is made of them; none for anything else.

    Example:
        M[n, ty, e, f, tx, o] += V[n, ty, e, f, tx, i] * U[e, f, i, o], of which Y[n, 2 * ty + a, 2 * tx + b, o] is made.
    """
    # Every stage of every program is asked, most of which have other axes: who reads them is looked for last.
    is_sum = isinstance(stage.op, ComputeOp) and len(stage.op.axis) == _RANK and len(stage.op.reduce_axis) == 1
    readers = _with_loops(tree, stage) if is_sum else []
    if len(readers) != 1:
        return []
    (reader,) = readers
    size = _size_of_tiles(tree, stage, reader)
    found = contraction_of(tree, stage) if size else None
    if not isinstance(found, Contraction) or not {2, 3} <= {*found.batch} or found.row != 4 or len(found.left) != 1:
        return []
    tiles = tree.producer(found.left[0].load)
    made_here = isinstance(tiles.op, ComputeOp) and is_untouched(tiles) and not tiles.is_output and not tiles.op.reduce_axis
    if not made_here or [one.id for one in tree.consumers(tiles)] != [stage.id]:
        return []
    plan = next(iter(contraction_plans(found, target)), None)
    if plan is None or (plan.dot is not None and not has_whole_groups(found, plan.dot.group)):
        return []
    plan = replace(plan, tile=replace(plan.tile, chunks=1), pack=Pack.ROOT, order=Order.CHUNKS, parallel=False, block=0, parts=0)
    before = {tree.producer(load).id: tree.producer(load) for load in tree.reads(tiles)}
    alone = [one for one in before.values() if is_untouched(one) and not one.is_placeholder and not one.is_output]
    pixels = alone[0].origin.output(0) if len(before) == len(alone) == 1 and len(tree.consumers(alone[0])) == 1 else None
    few = prod(found.sizes[:2]) < _TASKS * target.num_cores
    return [Filtering(plan, pixels, tiles.origin.output(0), reader.origin.output(0), size, few)]


def _with_loops(tree: ScheduleTree, stage: StageNode) -> list[StageNode]:
    """The stages with loops that read a stage, by themselves or through inlined ones."""
    found: dict[int, StageNode] = {}
    for reader in tree.consumers(stage):
        found.update({one.id: one for one in (_with_loops(tree, reader) if isinstance(reader.attach, Inline) else [reader])})
    return list(found.values())


def _size_of_tiles(tree: ScheduleTree, stage: StageNode, reader: StageNode) -> int:
    """Results of a tile along an axis, if a reader's axes are images, rows, columns and channels of such tiles; else 0.

    Example:
        Y[n, y, x, o] of M[n, y // 2, 0, 0, x // 2, o], M[n, y // 2, 0, 1, x // 2, o] and others: 2.
    """
    op = reader.op
    if not isinstance(op, ComputeOp) or len(op.axis) != 4 or op.reduce_axis or op.num_outputs != 1 or not is_untouched(reader):
        return 0
    image, y, x, channel = (axis.var for axis in op.axis)
    sizes = set[int]()
    for load in (node for body in inlined_bodies(tree, reader) for node in walk(body) if isinstance(node, ProducerLoad)):
        if tree.producer(load).id == stage.id:
            n, ty, _, _, tx, o = load.indices
            match ty, tx:
                case FloorDiv(a, IntImm() as down), FloorDiv(b, IntImm() as across) if a is y and b is x:
                    sizes |= {down.value, across.value}
                case _:
                    return 0
            if o is not channel or not (n is image or as_int(n) == 0):
                return 0
    return sizes.pop() if len(sizes) == 1 else 0


def build_filtering(s: Schedule, stage: StageNode, found: Filtering, target: Target) -> None:
    """Schedule a convolution by minimal filtering, with its border and the stage that reads it."""
    plan, products = found.plan, stage.origin.output(0)
    Tiles(s, products, products, plan, target).build()
    result = s[found.result]
    image, y, x, channel = result.op.axis
    (ty, row), (tx, column) = (result.split(axis, factor=found.size) for axis in (y, x))
    panel, within = result.split(channel, factor=plan.width)
    vector, lane = result.split(within, factor=plan.lanes)
    tasks = (panel, image, ty) if found.panels_outside else (image, ty, panel)
    in_vectors(result, [*tasks, tx], [row, column, vector], lane)
    s[products].compute_at(result, tasks[-1])
    place = as_tasks(result, tasks[: 1 if found.panels_outside else 2], target.num_cores > 1)
    for one in (found.pixels, found.tiles):
        if one is not None:
            _in_vectors(s, one, target)
            if found.panels_outside:
                as_tasks(s[one], s[one].leaf_iter_vars[:2], target.num_cores > 1)
            else:
                s[one].compute_at(result, place)


def _in_vectors(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Vectors of channels; of tiles those of all their elements, written out, share what they read."""
    stage = s[tensor]
    *outer, channel = stage.op.axis
    some, lane = stage.split(channel, factor=lanes_of(target, tensor.dtype))
    if len(outer) == _RANK - 1:
        image, ty, e, f, tx = outer
        in_vectors(stage, [image, ty, tx, some], [e, f], lane)
    else:
        in_vectors(stage, [*outer, some], (), lane)
