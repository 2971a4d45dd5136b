"""Schedules of matrix products: register tiles over panels of columns, packed by the thread that uses them.

parallel over batch, chunks of rows, panels of columns:
    pack the panel: summed axes x vectors x lanes, the last vector padded with zeros
    for tiles of rows:
        accumulators in registers = sum over the summed axes of broadcasts times vectors
        result = what follows the product, element by element, on the tile
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline
from ..target import Target
from ..target.machine import Machine
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from .dot_products import DotProduct, dot_product_of, has_whole_groups
from .machine import lanes_of
from .products import Operand, Product, Refused, extent_of, inline_moves, product_of, size_of
from .register_tile import RegisterTile, Shape, packing_cycles, ranked_tiles
from .sizes import Factor, balanced_rows, decided, parts, several
from .stages import is_untouched, result_of

# Vectors of multiply-adds below which one core is done before another one has begun: about 2 microseconds.
_PARALLEL_STEPS = 1 << 13
# Rows that make up for packing: a vector of the panel costs 2 cycles to copy and half a cycle for each row.
_WORTH_A_COPY = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """What is decided before the first step.

    Args:
        tile: rows and vectors of the accumulators.
        lanes: of a vector of results.
        packed: panels of the right operand are copied.
        transposed: the columns of the right operand are no neighbours in memory.
        parallel: on all cores.
        dot: the instruction that sums groups of small numbers.
        block: how many terms of the sum a panel holds.
    """

    tile: RegisterTile
    lanes: int
    packed: bool
    transposed: bool
    parallel: bool
    dot: DotProduct | None
    block: int


def schedule_products(s: Schedule, target: Target, alternative: int = 0) -> None:
    """Schedule all matrix products, each with the stage that makes the result of it element by element."""
    for stage in list(s.tree.in_order()):
        if not is_untouched(s.tree[stage.id]) or isinstance(product_of(s, stage), Refused):
            continue
        inline_moves(s, stage)
        found = product_of(s, stage)
        plans = [] if isinstance(found, Refused) else product_plans(found, stage.origin.output(0).dtype, target)
        if isinstance(found, Product) and plans:
            plan = plans[min(alternative, len(plans) - 1)]
            own, result = stage.origin.output(0), result_of(s, stage)
            schedule_product(s, result if is_untouched(s.tree[s[result].id]) else own, own, found, plan, target)


def plan_product(product: Product, dtype: str, target: Target) -> Plan | None:
    """How a product is computed; None if it is better seen as many sums than as tiles."""
    plans = product_plans(product, dtype, target)
    return plans[0] if plans else None


def product_plans(product: Product, dtype: str, target: Target) -> list[Plan]:
    """The ways to compute a product, the one of the fewest cycles first; none if it is better seen as many sums than as tiles.

    The others pack where that one doesn't, or the other way round, and have tiles of another number of vectors or chunks. How
    many rows a tile has is left to the search.
    """
    most = lanes_of(target, dtype)
    if not size_of((*product.batch, *product.rows, product.column, *product.summed)):
        return []
    dot = dot_product_of(product, dtype, target)
    # A result narrower than a vector has vectors of the power of two that holds a row of it.
    lanes = most if dot is not None else min(most, 1 << (extent_of(product.column) - 1).bit_length())
    transposed = not product.right.is_contiguous(product.column)
    shape = _shape_of(product, lanes, transposed, dot, target.machine)
    # Fewer rows don't pay for a transposed panel: a vector of it costs as much as the products of 4 rows.
    if lanes < most // 4 or lanes == 1 or shape.rows * shape.repeats < (4 if transposed else 2):
        return []
    steps = shape.batch * shape.repeats * shape.rows * shape.depth * -(-shape.columns // lanes)
    parallel = target.num_cores > 1 and steps >= _PARALLEL_STEPS
    shapes = [shape]
    if not transposed and dot is None:
        shapes.append(replace(shape, packing=0.0 if shape.packing else packing_cycles(transposed)))
    ranked = [ranked_tiles(one, target, target.num_cores if parallel else 1) for one in shapes]
    chosen = [(one, tiles[0]) for one, tiles in zip(shapes, ranked, strict=True)] + [(shape, tile) for tile in ranked[0][1:]]
    plans = []
    for one, tile in chosen:
        block = _block_of(product, tile.vectors * lanes, target, dot)
        plans.append(Plan(tile, lanes, one.packing > 0 or block < size_of(product.summed), transposed, parallel, dot, block))
    return plans


def _block_of(product: Product, width: int, target: Target, dot: DotProduct | None) -> int:
    """How many terms a panel of so many columns may have: it fills half of the second cache at most, if it is used often."""
    depth, rows = size_of(product.summed), size_of(product.rows)
    panel = depth * width * product.right.bytes
    blocks = -(-2 * panel // target.l2_cache_size_bytes)
    if blocks < 2 or rows < _WORTH_A_COPY or len(product.summed) > 1:
        return depth
    if dot is None:
        return -(-depth // blocks)
    whole = (count for count in range(blocks, depth // dot.group + 1) if depth % (count * dot.group) == 0)
    return depth // next(whole, 1)


def _shape_of(product: Product, lanes: int, transposed: bool, dot: DotProduct | None, machine: Machine) -> Shape:
    """What the choice of a tile depends on."""
    right, rows, columns, repeats = product.right, extent_of(product.row), extent_of(product.column), size_of(product.rows[:-1])
    stride = right.stride(product.summed[-1])
    # A copy of a panel that lies on more pages than are translated at once is worth its time if many rows use it; three times
    # as many where a page serves several steps.
    pages = size_of(product.summed) * min(stride, machine.page_bytes) // machine.page_bytes
    users = _WORTH_A_COPY if stride >= machine.page_bytes else 3 * _WORTH_A_COPY
    packed = transposed or dot is not None or (pages > machine.translations and rows * repeats >= users)
    return Shape(
        batch=size_of(product.batch),
        rows=rows,
        columns=columns,
        depth=-(-size_of(product.summed) // (1 if dot is None else dot.group)),
        repeats=repeats,
        lanes=lanes,
        row_bytes=product.left.stride(product.row),
        packing=packing_cycles(transposed, dot is not None) if packed else 0.0,
        aligned=packed or stride % (lanes * right.bytes) == 0,
        # An instruction computes whole vectors: what is left of the last one has to be inside a panel, not the end of the only one.
        widest=4 if dot is None or columns % lanes == 0 else min(4, columns // lanes),
    )


def schedule_product(s: Schedule, result: Tensor, tensor: Tensor, product: Product, plan: Plan, target: Target) -> None:
    """Schedule a product and the stage that holds its result, which may be itself."""
    whole = plan.block == size_of(product.summed)
    scope = "local" if whole else "global"
    tile = s.cache_write(tensor, scope) if tensor.op is result.op else tensor
    if tile is tensor:
        s[tile].set_scope(scope)
    panel = _copied(s, product.right, tile) if plan.packed else None
    if plan.dot is not None and not has_whole_groups(product, plan.dot.group):
        _group_left(s, product, tile, plan)
    place, tiles, rows = _loops_of_result(s, result, tensor, product, plan, target)
    if panel is not None:
        _pack(s, panel, product, plan)
    s[tile].compute_at(s[result], tiles if whole else place)
    blocks = _accumulate(s, tile, tensor, product, plan, rows)
    if panel is not None:
        s[panel].compute_at(*((s[result], place) if blocks is None else (s[tile], blocks)))


def _copied(s: Schedule, operand: Operand, tile: Tensor) -> Tensor:
    """The stage that copies an operand: what was to be inlined does it itself, of anything else a copy is made."""
    node = s.tree[s[operand.tensor].id]
    if isinstance(node.attach, Inline) and len(s.tree.consumers(node)) == 1:
        s[operand.tensor].compute_root()
        return operand.tensor
    return s.cache_read(operand.tensor, "global", [tile])


def _group_left(s: Schedule, product: Product, tile: Tensor, plan: Plan) -> None:
    """Copy the left operand with the last group of each row padded with zeros, so that every group is a whole one."""
    assert plan.dot is not None
    left, group = product.left, plan.dot.group
    copy = _copied(s, left, tile)
    last = left.position(product.summed[-1])
    *others, _, _ = axes = s[copy].transform_layout(
        lambda *i: [*i[:last], *i[last + 1 :], i[last] // group, i[last] % group], pad_value=zero_of(copy)
    )
    _, lane = s[copy].split(s[copy].fuse(*axes[-2:]), factor=plan.lanes * group)
    s[copy].vectorize(lane)
    if plan.parallel:
        s[copy].parallel(s[copy].fuse(*others))


def zero_of(tensor: Tensor) -> int | float:
    """What a tensor is padded with: zero, as a number of its kind."""
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0


def _loops_of_result(
    s: Schedule, result: Tensor, tensor: Tensor, product: Product, plan: Plan, target: Target
) -> tuple[IterVar, IterVar, Factor]:
    """The loops of the result; returns those at which a panel and a tile are computed, and the rows of a tile."""
    stage, mine, theirs = s[result], s[result].op, tensor.op
    assert isinstance(mine, ComputeOp) and isinstance(theirs, ComputeOp)

    def own(axis: IterVar) -> IterVar:
        return next(ours for ours, other in zip(mine.axis, theirs.axis, strict=True) if other is axis)

    outer, repeated = [own(axis) for axis in product.batch], [own(axis) for axis in product.rows[:-1]]
    row, column = own(product.row), own(product.column)
    if plan.tile.chunks > 1:
        chunk, row = stage.split(row, nparts=plan.tile.chunks, balanced=True)
        outer.append(chunk)
    vectors, lane = stage.split(column, factor=plan.lanes)
    # The panel's layout is made of the tile's vectors; without one any number will do.
    width = plan.tile.vectors if plan.packed else decided(stage, vectors, plan.tile.vectors, several)
    panel, vector = stage.split(vectors, factor=width)
    rows = decided(stage, row, plan.tile.rows, balanced_rows(target))
    tiles, each = stage.split(row, factor=rows, balanced=True)
    stage.reorder(*outer, panel, *repeated, tiles, each, vector, lane)
    stage.vectorize(lane)
    place = stage.fuse(*outer, panel)
    if plan.parallel:
        stage.parallel(place)
    return place, tiles, rows


def _pack(s: Schedule, panel: Tensor, product: Product, plan: Plan) -> None:
    """Panel by panel: summed axes outside, then its vectors, then the lanes of one, whatever the order in memory was."""
    right, lanes, width = product.right, plan.lanes, plan.tile.vectors * plan.lanes
    summed = [right.position(axis) for axis in product.summed]
    column = right.position(product.column)
    others = [number for number in range(len(right.axes)) if number != column and number not in summed]
    group = 1 if plan.dot is None else plan.dot.group

    def layout(*i: Var) -> list[PrimExpr]:
        *outer, last = (i[n] for n in summed)
        vectors = [i[column] // lanes % plan.tile.vectors, i[column] % lanes]
        inner = [*outer, last, *vectors] if group == 1 else [*outer, last // group, *vectors, last % group]
        return [*(i[n] for n in others), i[column] // width, *inner]

    axes = s[panel].transform_layout(layout, pad_value=zero_of(panel))
    if plan.dot is not None:  # neighbours along the summed axis: the loads of 16 groups are rows that are zipped together
        *_, lane, within = axes
        s[panel].unroll(lane)
        s[panel].vectorize(within)
        return
    *outer, step, vector, lane = axes
    if plan.transposed:  # as many steps as lanes make a block that is transposed in registers
        blocks, step = s[panel].split(step, factor=lanes)
        s[panel].reorder(*outer, vector, blocks, step, lane)
        s[panel].unroll(step)
    s[panel].vectorize(lane)


def _accumulate(s: Schedule, tile: Tensor, tensor: Tensor, product: Product, plan: Plan, rows: Factor) -> IterVar | None:
    """Each step of the sum updates a whole tile of so many rows; returns the loop over blocks of the sum if it is cut in some."""
    stage, op, own = s[tile], s[tile].op, tensor.op
    assert isinstance(op, ComputeOp) and isinstance(own, ComputeOp)
    *others, column = op.axis
    *steps, step = op.reduce_axis
    blocks: IterVar | None = None
    stage.storage_align(others[-1], plan.lanes)  # each row starts a vector, so that vectors are registers
    vector, lane = stage.split(column, factor=plan.lanes)
    if plan.block < size_of(product.summed):
        blocks, step = stage.split(step, factor=plan.block if plan.dot is not None else decided(stage, step, plan.block, parts))
        place = next(number for number, axis in enumerate(own.axis) if axis is product.row)
        tiles, row = stage.split(others.pop(place), factor=rows, balanced=True)
        steps, others = [blocks, *others, tiles], [row]
    if plan.dot is None:
        stage.reorder(*steps, step, *others, vector, lane)
        stage.vectorize(lane)
    else:
        groups, within = stage.split(step, factor=plan.dot.group)
        stage.reorder(*steps, groups, *others, vector, lane, within)
        stage.tensorize(lane, TensorIntrin.get(plan.dot.intrinsic))
    for axis in (*others, vector):
        stage.unroll(axis)
    return blocks
