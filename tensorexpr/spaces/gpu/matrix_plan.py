"""What is decided of a product that matrix units compute: which unit, the tiles of a block and of a warp, and how the sum is cut.

C[i, j] = sum over k of A[i, k] * B[j, k]           however the operands lie, and whatever axes i, j and k are made of
    block   128 x 128 results, four warps of 64 x 64, each 4 x 4 tiles of 16 x 16
    sum     64 bytes of each row and column are in shared memory at a time, and the next three such parts are on their way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...schedule.tree import ScheduleTree, StageNode
from ...target import Target
from ...target.chips import CHIPS, capability
from ...te.contraction import recognise
from ...te.intrinsics.tensor_cores import UNITS, MatrixUnit
from ...te.operation import ComputeOp
from ...tir.expr import Reduce
from ..contractions import Operand, operands_of
from ..stages import constant_extents

# Rows and columns of a block, and of one of its warps. 64 x 64 results of a warp are 128 registers of a thread, and take 8 fetches of
# fragments for 32 instructions, fewer than shared memory gives meanwhile. The others are for fewer results than fill a chip.
_SHAPES = ((128, 128, 64, 64), (128, 64, 64, 32), (64, 128, 32, 64), (64, 64, 32, 32), (32, 64, 16, 32), (32, 32, 16, 16), (16, 16, 16, 16))
# The same for four warps that work together, each on 16 rows: they read both operands from shared memory.
_GROUP_SHAPES = ((128, 256, 16, 256), (128, 128, 16, 128), (64, 128, 16, 128), (64, 64, 16, 64))
_GROUP_CHUNKS = 8  # a part is one group of instructions, whose end all wait for
# Blocks from which on no multiprocessor is idle.
_BLOCKS = 108
# Chunks of 16 bytes of a row that are in shared memory at a time: with four, each group of copies is 16 KiB for 128 x 128 results.
_CHUNKS = 4
# Parts of the sum in shared memory, of which one is multiplied: three on their way hide what memory takes to answer.
_COPIES = 4
# The part of what is computed that is wanted; with less the units do more for the border than threads would for all.
_LEAST_USED = 0.4
ALLOWS_TF32 = "allow_tf32"
"""The attribute of a computation in float32 whose products may leave out the last 13 bits of each factor."""


@dataclass(frozen=True)
class Side:
    """The operand that rows (role "a") or columns ("b") move, and those axes, by number.

    Args:
        size: of all of its axes together.
        tile: of a block.
        warp: of a warp.
        along_sum: chunks of 16 bytes lie along the sum, else along the side's last axis.
    """

    role: str
    operand: Operand
    axes: tuple[int, ...]
    size: int
    tile: int
    warp: int
    along_sum: bool

    @property
    def tiles(self) -> int:
        """Blocks along it."""
        return -(-self.size // self.tile)


@dataclass(frozen=True)
class MatrixPlan:
    """A product on matrix units. Axes are numbers, the reduction's after the others.

    Args:
        op: the definition.
        unit: what multiplies.
        sizes: the extents of all axes.
        batch: axes that move both operands.
        rows, columns: the two sides.
        outer: axes of the reduction that are summed one by one.
        summed: the axis of the reduction that is cut in parts.
        part: products of a part.
        copies: parts of the sum in shared memory.
        is_group: four warps work together, on operands in shared memory.
    """

    op: ComputeOp
    unit: MatrixUnit
    sizes: tuple[int, ...]
    batch: tuple[int, ...]
    rows: Side
    columns: Side
    outer: tuple[int, ...]
    summed: int
    part: int
    copies: int
    is_group: bool = False

    @property
    def sides(self) -> tuple[Side, Side]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return prod(side.tile // side.warp for side in self.sides)

    @property
    def blocks(self) -> int:
        """Blocks of all results."""
        return prod(side.tiles for side in self.sides) * prod(self.sizes[axis] for axis in self.batch)

    @property
    def used(self) -> float:
        """The part of what is computed that is wanted."""
        whole = -(-self.sizes[self.summed] // self.part) * self.part
        return self.sizes[self.summed] / whole * prod(side.size / (side.tiles * side.tile) for side in self.sides)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block, without what keeps its chunks in different banks."""
        return self.copies * sum(side.tile for side in self.sides) * self.part * self.unit.bytes


def matrix_plan(tree: ScheduleTree, stage: StageNode, target: Target) -> MatrixPlan | None:
    """The plan of a stage, if it is a sum of products of two tensors that a unit of the target multiplies, and of some size."""
    op = stage.op
    chip = CHIPS.get(target.arch) if target.kind.name == "cuda" else None
    if chip is None or not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init:
        return None
    sizes = constant_extents((*op.axis, *op.reduce_axis))
    operands = operands_of(tree, stage)
    product = recognise(op.body[0])
    if sizes is None or product is None or product.scale != 1 or len(operands) != 2 or operands[0].tensor is operands[1].tensor:
        return None
    unit = _unit_of(op, operands, target)
    roles = None if unit is None else _roles(op, operands)
    if unit is None or roles is None:
        return None
    groups = _GROUP_SHAPES if target.arch == "sm_90a" and unit.bytes == 2 and unit.out == "float32" else ()
    plans = (_with_shape(op, unit, tuple(sizes), roles, shape, shape in groups) for shape in (*groups, *_SHAPES))
    fitting = [plan for plan in plans if plan is not None and plan.shared_bytes <= chip.shared_bytes and plan.used >= _LEAST_USED]
    return next((plan for plan in fitting if plan.blocks >= _BLOCKS), fitting[-1] if fitting else None)


def _unit_of(op: ComputeOp, operands: Sequence[Operand], target: Target) -> MatrixUnit | None:
    out = op.output_dtype(0)
    for unit in UNITS:
        allowed = unit.ptx != "tf32" or bool(op.attrs.get(ALLOWS_TF32))
        casts = (out,) if unit.dtype != out else ()
        fits = all(operand.load.dtype == unit.dtype and operand.casts == casts for operand in operands)
        if unit.out == out and fits and allowed and capability(target.arch) >= unit.least:
            return unit
    return None


@dataclass(frozen=True)
class _Roles:
    batch: tuple[int, ...]
    sides: tuple[tuple[Operand, tuple[int, ...]], ...]
    summed: tuple[int, ...]


def _roles(op: ComputeOp, operands: Sequence[Operand]) -> _Roles | None:
    """What each axis is for; None if one indexes no operand, or a sum but one of them."""
    results = range(len(op.axis))
    summed = range(len(op.axis), len(op.axis) + len(op.reduce_axis))
    batch = tuple(axis for axis in results if all(operand.moves_with(axis) for operand in operands))
    own = [tuple(axis for axis in results if axis not in batch and operand.moves_with(axis)) for operand in operands]
    shared = all(operand.moves_with(axis) for operand in operands for axis in summed)
    if not shared or not summed or not all(own) or len(batch) + sum(map(len, own)) < len(op.axis):
        return None
    # The threads of the last axis are neighbours, as its results are in memory.
    sides = sorted(zip(operands, own, strict=True), key=lambda side: max(side[1]))
    return _Roles(batch, tuple(sides), tuple(summed))


def _with_shape(
    op: ComputeOp, unit: MatrixUnit, sizes: tuple[int, ...], roles: _Roles, shape: Sequence[int], is_group: bool
) -> MatrixPlan | None:
    # Along the axis that both operands lie along, or one of them, whole chunks are fetched; of a few products most would be zeros.
    def worth(axis: int) -> tuple[bool, int, int]:
        return sizes[axis] >= unit.depth, sum(operand.lies_along(axis) for operand, _ in roles.sides), sizes[axis]

    last = max(roles.summed, key=worth)
    part = (_GROUP_CHUNKS if is_group else _CHUNKS) * unit.chunk
    while part > max(unit.depth, sizes[last]):
        part //= 2
    outer = tuple(axis for axis in roles.summed if axis != last)
    turns = -(-sizes[last] // part) * prod(sizes[axis] for axis in outer)
    sides = []
    for (operand, axes), role, tile, warp in zip(roles.sides, "ab", shape, shape[2:], strict=False):
        size = prod(sizes[axis] for axis in axes)
        # Layouts have whole tiles, of which the last one may be padded, not a single one that is never whole.
        if size < tile or sizes[last] < unit.depth:
            return None
        # Only elements of 16 bits can be turned when they are fetched from shared memory.
        turned = unit.bytes == 2 and not operand.lies_along(last) and operand.lies_along(axes[-1])
        sides.append(Side(role, operand, axes, size, tile, warp, not turned))
    return MatrixPlan(op, unit, sizes, roles.batch, sides[0], sides[1], outer, last, part, min(_COPIES, max(1, turns)), is_group)
