"""What is decided of a product that matrix units compute: which unit, the tiles of a block and of a warp, and how the sum is cut.

C[i, j] = sum over k of A[i, k] * B[j, k]           however the operands lie, and whatever axes i, j and k are made of
    block   128 x 128 results, four warps of 64 x 64, each 4 x 4 tiles of 16 x 16
    sum     64 bytes of each row and column are in shared memory at a time, and the next three such parts are on their way

Where larger tiles leave multiprocessors without blocks, smaller ones are taken, or blocks share the sums of larger ones (`split_sum`).
A search varies all of this (`Tiling`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as product_of
from math import prod

from ...dataclass import dataclass, replace
from ...schedule.tree import ScheduleTree, StageNode
from ...target import Target
from ...target.chips import CHIPS, capability
from ...te.contraction import recognise
from ...te.intrinsics.tensor_cores import GROUP_WIDTHS, SIDE, UNITS, MatrixUnit
from ...te.operation import ComputeOp, PlaceholderOp
from ...tir.arithmetic import as_int
from ...tir.expr import Reduce, Var
from ..access import element_bytes
from ..contractions import Operand, operands_of
from ..stages import constant_extents
from .block import LOADED_BYTES, Limits, limits_of
from .split_sum import adding_cycles, is_worth_it, pipeline_cycles, possible_parts

# Rows and columns of a block, and of one of its warps. 64 x 64 results of a warp are 128 registers of a thread, and take 8 fetches of
# fragments for 32 instructions, fewer than shared memory gives meanwhile. The others are for fewer results than fill a chip.
_SHAPES = ((128, 128, 64, 64), (128, 64, 64, 32), (64, 128, 32, 64), (64, 64, 32, 32), (32, 64, 16, 32), (32, 32, 16, 16), (16, 16, 16, 16))
# The same for four warps that work together, each on 16 rows: they read both operands from shared memory.
_GROUP_SHAPES = ((128, 256, 16, 256), (128, 128, 16, 128), (64, 128, 16, 128), (64, 64, 16, 64))
_GROUP_CHUNKS = 8  # a part is one group of instructions, whose end all wait for
# Chunks of 16 bytes of a row that are in shared memory at a time: with four, each group of copies is 16 KiB for 128 x 128 results.
_CHUNKS = 4
SIDES, CHUNKS, COPIES = (16, 32, 64, 128, 256), (2, 4, 8), (2, 3, 4, 5, 6)
"""Rows or columns of a block, chunks of a part, and parts in shared memory that a search may choose."""
# Parts of the sum in shared memory, of which one is multiplied: three on their way hide what memory takes to answer.
_COPIES = 4
# The part of what is computed that is wanted; with less the units do more for the border than threads would for all.
_LEAST_USED = 0.4
_BESIDE = (8, 4)  # rows of blocks that share columns of the other operand while they run, those that divide all rows
EIGHT = 8
"""Rows of a matrix that the units work on, and threads whose accesses of 16 bytes are served together."""
SWIZZLED = 128
"""Bytes of a row of an operand that the copy engine swizzles."""
_MAP_DIMENSIONS, _MAP_BYTES = 5, 16  # of a tensor that the engine copies: at most, and what its rows are multiples of
_WARP, _BANKS = 32, 128  # threads, and bytes that shared memory serves in a cycle
# Multiply-adds of elements of 16 bits for one of threads in float32 (A100, H100), and instructions of four warps in a cycle.
_UNITS, _ISSUED = 16, 4
# Registers of a thread for addresses and what is on the way, and instructions of a turn for its barrier and addresses: those that ptxas
# and the text give the product of 128 x 128 (204 registers, 109 instructions).
_OTHER_REGISTERS, _OTHER_INSTRUCTIONS = 40, 21
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
class Tiling:
    """What may be chosen of a plan.

    Args:
        shape: rows and columns of a block, and of one of its warps.
        is_group: four warps work together, on operands in shared memory.
        chunks: of 16 bytes of a row that are in shared memory at a time.
        copies: parts of the sum that have room there.
        parts: of the sum, which blocks of their own compute.
        beside: rows of blocks that share columns while they run; None for what the rule says.
    """

    shape: tuple[int, ...]
    is_group: bool = False
    chunks: int = _CHUNKS
    copies: int = _COPIES
    parts: int = 1
    beside: int | None = None


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
        tiling: what was chosen.
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
    tiling: Tiling

    @property
    def is_group(self) -> bool:
        """Whether four warps work together."""
        return self.tiling.is_group

    @property
    def is_bulk(self) -> bool:
        """Whether the copy engine brings the operands, as boxes of what lies in memory as the product's axes say: rows of 128 bytes, which
        are swizzled, and at least three parts of the sum, of which one is multiplied and one is still read."""
        fitting = self.is_group and self.part * self.unit.bytes == SWIZZLED and self.copies > 2
        return fitting and all(map(_is_boxes, self.sides))

    @property
    def beside(self) -> int:
        """Rows of blocks that share columns while they run."""
        wanted = _BESIDE if self.tiling.beside is None else (self.tiling.beside,)
        return next((count for count in wanted if self.rows.tiles % count == 0), 1)

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
        """Blocks of all results, and of all parts of their sums."""
        return prod(side.tiles for side in self.sides) * prod(self.sizes[axis] for axis in self.batch) * self.tiling.parts

    @property
    def turns(self) -> int:
        """Parts of the sum that a block multiplies one after the other."""
        return -(-self.sizes[self.summed] // self.tiling.parts // self.part) * prod(self.sizes[axis] for axis in self.outer)

    @property
    def used(self) -> float:
        """The part of what is computed that is wanted."""
        whole = -(-self.sizes[self.summed] // self.part) * self.part
        return self.sizes[self.summed] / whole * prod(side.size / (side.tiles * side.tile) for side in self.sides)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        found = 0
        for side in self.sides:
            pieces = (self.part if side.along_sum else side.tile) // self.unit.chunk
            rows = side.tile if side.along_sum else self.part
            found += pieces * (rows + apart(pieces)) * self.unit.chunk * self.unit.bytes
        return self.copies * found

    @property
    def registers(self) -> int:
        """Registers of a thread: sums, a step's fragments, and the rest."""
        rows, columns = (side.warp for side in self.sides)
        fragments = 0 if self.is_group else (rows + columns) // SIDE * self.unit.chunk * self.unit.bytes // 4
        return rows * columns // _WARP * element_bytes(self.unit.out) // 4 + fragments + _OTHER_REGISTERS

    @property
    def units(self) -> int:
        """Instructions that multiply, of a warp in a turn."""
        steps = self.part // self.unit.depth
        return steps * (1 if self.is_group else 2 * prod(side.warp // SIDE for side in self.sides))

    @property
    def fetches(self) -> int:
        """Instructions that bring fragments from shared memory, of a warp in a turn."""
        return 0 if self.is_group else self.part // self.unit.depth * sum(side.warp // SIDE for side in self.sides)

    @property
    def asked(self) -> int:
        """Instructions that copy from memory, of a warp in a turn: at least one for each operand."""
        return 0 if self.is_bulk else sum(-(-side.tile * self.part // (self.unit.chunk * _WARP * self.warps)) for side in self.sides)

    def fits(self, limits: Limits) -> bool:
        """Whether a block has room on a chip, and no thread wants more registers than there are."""
        threads = self.warps * _WARP
        room = min(limits.of_thread, limits.registers // threads // EIGHT * EIGHT)
        return threads <= limits.threads and self.shared_bytes <= limits.dynamic and self.registers <= room

    def turn_cycles(self, limits: Limits) -> dict[str, float]:
        """What a block needs of its multiprocessor for a turn: cycles of the units, of shared memory, of what brings operands, of issue."""
        bytes_ = sum(side.tile for side in self.sides) * self.part * self.unit.bytes
        rows, columns = (side.tile for side in self.sides)
        # four warps together read 64 rows, and all columns for each 64
        warps = self.warps * self.resident(limits)
        read = -(-rows // 64) * (64 + columns) * self.part * self.unit.bytes if self.is_group else self.warps * self.fetches * 512
        return {
            # each of the schedulers has units of its own, which only its warps use
            "arithmetic": rows * columns * self.part * self.unit.bytes / 2 / (_UNITS * limits.rates.fma) / min(1.0, warps / _ISSUED),
            "shared": (read + bytes_) / _BANKS,
            "loaded": bytes_ / LOADED_BYTES,
            "issued": self.warps * (self.units + self.fetches + self.asked + _OTHER_INSTRUCTIONS) / _ISSUED,
        }

    def resident(self, limits: Limits) -> int:
        """Blocks that share a multiprocessor."""
        return limits.resident(self.warps * _WARP, self.registers, self.shared_bytes)

    @property
    def results(self) -> int:
        """Results of all blocks, without the borders of tiles."""
        return prod(self.sizes[: len(self.op.axis)])

    def cycles(self, limits: Limits) -> float:
        """Cycles of all blocks, and of adding up the parts of their sums."""
        busy = max(self.turn_cycles(limits).values())
        adding = adding_cycles(self.tiling.parts, self.results, element_bytes(self.unit.out), limits)
        return pipeline_cycles(busy, self.turns, self.copies, self.blocks, self.resident(limits), limits) + adding


def _is_boxes(side: Side) -> bool:
    """Whether an operand is an input whose indices are axes of the product, each another one, with rows of whole 16 bytes."""
    memory = side.operand.memory
    if memory is None or len(side.axes) != 1 or side.operand.tensor is not memory.load.producer:
        return False
    tensor, own = side.operand.tensor, list[int]()
    for index, form in zip(memory.load.indices, memory.forms, strict=True):
        if isinstance(index, Var) and form is not None and len(form) == 1:
            own.extend(form)
        elif as_int(index) != 0:
            return False
    sizes = [as_int(extent) for extent in tensor.shape]
    whole = len(sizes) <= _MAP_DIMENSIONS and None not in sizes and (sizes[-1] or 0) * element_bytes(tensor.dtype) % _MAP_BYTES == 0
    return isinstance(tensor.op, PlaceholderOp) and len(set(own)) == len(own) and whole


def apart(pieces: int) -> int:
    """Chunks between those of neighbouring pieces that keep what eight threads store together in different banks."""
    return EIGHT // min(EIGHT, pieces) % EIGHT


def matrix_plan(tree: ScheduleTree, stage: StageNode, target: Target, tiling: Tiling | None = None) -> MatrixPlan | None:
    """The plan of a stage, if it is a sum of products of two tensors that a unit of the target multiplies, and of some size.

    Args:
        tree: the program.
        stage: the sum.
        target: what it is for.
        tiling: what is wanted, which fits the chip; by default the rule chooses.
    """
    product = _product(tree, stage, target)
    if product is None:
        return None
    if tiling is not None:
        return _with_tiling(*product, tiling)
    limits = limits_of(target)
    fitting = [plan for one in _by_rule(product[1], target) if (plan := _with_tiling(*product, one)) is not None and plan.fits(limits)]
    fitting = [plan for plan in fitting if plan.used >= _LEAST_USED]
    if not fitting:
        return None
    whole = next((plan for plan in fitting if plan.blocks >= limits.rates.multiprocessors), fitting[-1])
    # Larger tiles read less for each result, if only there were blocks of them for all multiprocessors.
    cut = [replace(plan, tiling=replace(plan.tiling, parts=parts)) for plan in fitting for parts in sums_in_parts(plan, limits)]
    best = whole if whole is fitting[0] else min(cut, key=lambda plan: plan.cycles(limits), default=whole)
    return best if is_worth_it(best.cycles(limits), whole.cycles(limits)) else whole


def tilings(tree: ScheduleTree, stage: StageNode, target: Target) -> list[MatrixPlan]:
    """The plans of a stage for all tilings that fit the chip, by whole tiles of the unit, each with its sum in one part; none if no unit
    computes it."""
    product = _product(tree, stage, target)
    if product is None:
        return []
    limits, found = limits_of(target), list[MatrixPlan]()
    for is_group, shape in _all_shapes(bool(_groups(product[1], target))):
        for chunks, copies in product_of(CHUNKS, COPIES):
            plan = _with_tiling(*product, Tiling(shape, is_group, chunks, copies))
            # fewer turns have fewer copies, and a part that is longer than the sum is cut: that tiling is there already
            whole = plan is not None and plan.copies == copies and plan.part == chunks * plan.unit.chunk
            if plan is not None and whole and plan.fits(limits) and plan.used >= _LEAST_USED:
                found.append(plan)
    return found


def _all_shapes(with_groups: bool) -> Iterator[tuple[bool, tuple[int, int, int, int]]]:
    """Blocks of up to 16 warps, whose tiles are at most four times as long as wide; groups of four warps have all columns of a block."""
    for rows, columns, row, column in product_of(SIDES, SIDES, SIDES[:4], SIDES[:4]):
        if row <= rows and column <= columns and (rows // row) * (columns // column) <= 16 and max(row, column) <= 4 * min(row, column):
            yield False, (rows, columns, row, column)
    for rows, columns in product_of((64, 128, 256), GROUP_WIDTHS) if with_groups else ():
        yield True, (rows, columns, SIDE, columns)


def sums_in_parts(plan: MatrixPlan, limits: Limits) -> list[int]:
    """Into how many parts the sums of a plan may be cut, each of whole parts in shared memory where that divides the sum."""
    terms = plan.sizes[plan.summed]
    granule = plan.part if terms % plan.part == 0 else plan.unit.depth
    return possible_parts(terms, granule, plan.blocks // plan.tiling.parts, limits)


def _groups(unit: MatrixUnit, target: Target) -> Sequence[tuple[int, ...]]:
    """Blocks of groups of four warps, if the target has such units."""
    return _GROUP_SHAPES if target.arch == "sm_90a" and unit.bytes == 2 and unit.out == "float32" else ()


def _by_rule(unit: MatrixUnit, target: Target) -> list[Tiling]:
    groups = _groups(unit, target)
    return [*(Tiling(shape, True, _GROUP_CHUNKS) for shape in groups), *(Tiling(shape) for shape in _SHAPES)]


def _product(tree: ScheduleTree, stage: StageNode, target: Target) -> tuple[ComputeOp, MatrixUnit, tuple[int, ...], _Roles] | None:
    """What a unit computes: the definition, the unit, all extents, and what each axis is for."""
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
    return None if unit is None or roles is None else (op, unit, tuple(sizes), roles)


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


def _with_tiling(op: ComputeOp, unit: MatrixUnit, sizes: tuple[int, ...], roles: _Roles, tiling: Tiling) -> MatrixPlan | None:
    # Along the axis that both operands lie along, or one of them, whole chunks are fetched; of a few products most would be zeros.
    def worth(axis: int) -> tuple[bool, int, int]:
        return sizes[axis] >= unit.depth, sum(operand.lies_along(axis) for operand, _ in roles.sides), sizes[axis]

    last = max(roles.summed, key=worth)
    part = tiling.chunks * unit.chunk
    while part > max(unit.depth, sizes[last]):
        part //= 2
    outer = tuple(axis for axis in roles.summed if axis != last)
    turns = -(-sizes[last] // part) * prod(sizes[axis] for axis in outer)
    sides = []
    for (operand, axes), role, tile, warp in zip(roles.sides, "ab", tiling.shape, tiling.shape[2:], strict=False):
        size = prod(sizes[axis] for axis in axes)
        # Layouts have whole tiles, of which the last one may be padded, not a single one that is never whole.
        if size < tile or sizes[last] < unit.depth:
            return None
        # Only elements of 16 bits can be turned when they are fetched from shared memory.
        turned = unit.bytes == 2 and not operand.lies_along(last) and operand.lies_along(axes[-1])
        sides.append(Side(role, operand, axes, size, tile, warp, not turned))
    return MatrixPlan(op, unit, sizes, roles.batch, sides[0], sides[1], outer, last, part, min(tiling.copies, max(1, turns)), tiling)
