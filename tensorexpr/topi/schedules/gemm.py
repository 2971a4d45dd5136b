"""Schedules of matrix products: register tiles over panels of columns, packed by the thread that uses them.

    parallel over batch, chunks of rows, panels of columns:
        pack the panel: summed axes x vectors x lanes, the last vector padded with zeros
        for tiles of rows:
            accumulators in registers = sum over the summed axes of broadcasts times vectors
            result = what follows the product, element by element, on the tile
"""

from __future__ import annotations

from dataclasses import dataclass

from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.expr import IterVar
from .machine import lanes_of
from .products import Operand, Product, extent_of, size_of
from .register_tile import RegisterTile, Shape, choose_tile, packing_cycles

# Steps of full vectors below which one core is done before another one has woken up: about 8 microseconds.
_PARALLEL_STEPS = 1 << 15
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before the first step: the tile, the lanes, whether panels are packed, by transposes or not, and the cores."""

    tile: RegisterTile
    lanes: int
    packed: bool
    transposed: bool
    parallel: bool


def plan_product(product: Product, dtype: str, target: Target) -> Plan | None:
    """How a product is computed; None if it is better seen as many sums than as tiles."""
    lanes = lanes_of(target, dtype)
    shape = shape_of(product, lanes)
    transposed = product.right.axes[-1] is not product.column
    # Fewer rows don't pay for a transposed panel: a vector of it costs as much as the products of 4 rows.
    if shape.columns < lanes // 2 or shape.rows * shape.repeats < (4 if transposed else 2):
        return None
    steps = shape.batch * shape.repeats * shape.rows * shape.depth * -(-shape.columns // lanes)
    parallel = target.num_cores > 1 and steps >= _PARALLEL_STEPS
    cores = target.num_cores if parallel else 1
    tile = choose_tile(shape, target, cores)
    return Plan(tile, lanes, shape.packing > 0, transposed, parallel)


def shape_of(product: Product, lanes: int) -> Shape:
    """What the choice of a tile depends on."""
    right = product.right
    transposed = right.axes[-1] is not product.column
    stride = right.stride(product.summed[-1]) * right.bytes
    rows, repeats = extent_of(product.row), size_of(product.rows[:-1])
    # A panel that is read where it lies has a page for each step: more than the first level of translation holds. A
    # copy of it is worth its time when it is read by many tiles.
    packed = transposed or (stride >= _PAGE and rows * repeats >= _PAGE // lanes)
    return Shape(
        batch=size_of(product.batch),
        rows=rows,
        columns=extent_of(product.column),
        depth=size_of(product.summed),
        repeats=repeats,
        lanes=lanes,
        row_bytes=product.left.stride(product.row) * product.left.bytes,
        packing=packing_cycles(transposed) if packed else 0.0,
        aligned=packed or stride % (lanes * right.bytes) == 0,
    )


def schedule_product(s: Schedule, output: Tensor, tensor: Tensor, product: Product, plan: Plan) -> None:
    """Schedule a product, and the stage that makes the result of it element by element, if that is another one."""
    tile = s.cache_write(tensor, "local") if tensor.op is output.op else tensor
    packed = s.cache_read(product.right.tensor, "global", [tile]) if plan.packed else None
    place, tiles = _loops_of_result(s, output, tensor, product, plan)
    if packed is not None:
        _pack(s, packed, product, plan)
        s[packed].compute_at(s[output], place)
    if tile is tensor:
        s[tile].set_scope("local")
    s[tile].compute_at(s[output], tiles)
    _accumulate(s, tile, plan)


def _loops_of_result(s: Schedule, output: Tensor, tensor: Tensor, product: Product, plan: Plan) -> tuple[IterVar, IterVar]:
    """The loops of the result; returns those at which a panel and a tile are computed."""
    stage, result, op = s[output], output.op, tensor.op
    assert isinstance(result, ComputeOp) and isinstance(op, ComputeOp)

    def own(axis: IterVar) -> IterVar:
        return next(mine for mine, theirs in zip(result.axis, op.axis, strict=True) if theirs is axis)

    batch, outer, row, column = [own(a) for a in product.batch], [own(a) for a in product.rows[:-1]], own(product.row), own(product.column)
    if plan.tile.chunks > 1:
        chunk, row = stage.split(row, nparts=plan.tile.chunks, balanced=True)
        batch.append(chunk)
    vectors, lane = stage.split(column, factor=plan.lanes)
    panel, vector = stage.split(vectors, factor=plan.tile.vectors)
    tiles, each = stage.split(row, factor=plan.tile.rows, balanced=True)
    stage.reorder(*batch, panel, *outer, tiles, each, vector, lane)
    stage.vectorize(lane)
    place = stage.fuse(*batch, panel)
    if plan.parallel:
        stage.parallel(place)
    return place, tiles


def _pack(s: Schedule, packed: Tensor, product: Product, plan: Plan) -> None:
    """Summed axes outside, then the vectors of the panel, then the lanes, whatever the order in memory was."""
    right, lanes = product.right, plan.lanes
    summed = [right.position(axis) for axis in product.summed]
    column = right.position(product.column)
    others = [number for number in range(len(right.axes)) if number != column and number not in summed]
    axes = s[packed].transform_layout(
        lambda *i: [*(i[n] for n in (*others, *summed)), i[column] // lanes, i[column] % lanes], pad_value=zero_of(packed)
    )
    *_, step, vector, lane = axes
    if plan.transposed:  # as many steps as lanes make a block that is transposed in registers
        blocks, step = s[packed].split(step, factor=lanes)
        s[packed].reorder(*axes[len(others) : -3], vector, blocks, step, lane)
        s[packed].unroll(step)
    s[packed].vectorize(lane)


def zero_of(tensor: Tensor) -> int | float:
    """Zero, as a number of the tensor's kind."""
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0


def _accumulate(s: Schedule, tile: Tensor, plan: Plan) -> None:
    op = s[tile].op
    assert isinstance(op, ComputeOp)
    *others, column = op.axis
    vector, lane = s[tile].split(column, factor=plan.lanes)
    s[tile].reorder(*op.reduce_axis, *others, vector, lane)
    s[tile].vectorize(lane)
    for axis in (*others, vector):
        s[tile].unroll(axis)
