"""What a design space's decisions must keep to so that its kernels fit a device, known before any program is made.

A trace says which sampled factors are the threads of a block, and which of them stand inside the loop at which a copy in shared
memory is computed: the numbers of threads and bytes are products of factors. Tiles are drawn until these keep within the limits,
which takes microseconds where making a program to see it refused takes a second. What the trace doesn't say isn't limited here:
the postprocessors look at the whole program.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import prod

from ...arith import detect_linear_equation
from ...dataclass import dataclass, field
from ...errors import TensorExprError
from ...schedule.blocks import BlockRV, Instruction, LoopRV, Schedule, Trace
from ...schedule.blocks.primitives.sampling import draw_tile
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.block import Block
from ...tir.dtype import parse_dtype
from ..postproc.verify import MOST_VTHREADS, limits_of
from ..schedule_rule.cooperative import WARP_EXECUTION
from ..schedule_rule.multi_level_tiling import FEWEST_THREADS, MOST_THREADS

_ATTEMPTS = 3000  # of a draw; spaces where fewer than one of so many tilings fits are drawn as they come
_SHARED, _THREADS, _VIRTUAL = "shared", "threadIdx", "vthread"
_FRAGMENT_LOOPS, _GRID_LOOPS = 6, 4  # of what stores fragments of matrix units; of blocks of a grid along two axes, two of each
Tiling = Sequence[int]
Factor = tuple[int, int]
"""A sampled factor: the sampling instruction's number among those of its trace, and its place in the decision."""


@dataclass(frozen=True)
class _Side:
    """The extent of a copy along one dimension: width + sum of |coefficient| (product of factors - 1), at most what there is."""

    terms: tuple[tuple[int, tuple[Factor, ...]], ...]
    width: int
    most: int

    def extent(self, tilings: Mapping[int, Tiling]) -> int:
        return min(self.most, self.width + sum(scale * (_product(factors, tilings) - 1) for scale, factors in self.terms))


@dataclass(frozen=True)
class _Copy:
    """A copy in shared memory, each of whose rows may be padded to `offset` more than a multiple of `factor`."""

    sides: tuple[_Side, ...]
    itemsize: int
    factor: int = 1
    offset: int = 0

    def bytes(self, tilings: Mapping[int, Tiling]) -> int:
        *outer, row = (side.extent(tilings) for side in self.sides)
        return prod(outer) * (row + (self.offset - row) % self.factor) * self.itemsize


@dataclass
class _Kernel:
    """The factors that are threads of a kernel, along each axis, and its copies in shared memory."""

    threads: dict[str, list[Factor]] = field(default_factory=dict)
    warp: int = 1
    fewest: int = 1
    most: int | None = None
    copies: dict[BlockRV, _Copy] = field(default_factory=dict)

    def fits(self, tilings: Mapping[int, Tiling], shared: int | None) -> bool:
        """Whether its threads and copies keep within the limits."""
        counts = {axis: _product(factors, tilings) for axis, factors in self.threads.items()}
        if any(count > MOST_VTHREADS for axis, count in counts.items() if axis.startswith(_VIRTUAL)):
            return False
        threads = self.warp * prod(count for axis, count in counts.items() if axis.startswith(_THREADS))
        if self.most is not None and not self.fewest <= threads <= self.most:
            return False
        return shared is None or sum(copy.bytes(tilings) for copy in self.copies.values()) <= shared


@dataclass(frozen=True)
class GridLimits:
    """The limits of one design space.

    Args:
        tiles: of the sampling instructions that make perfect tiles, by number: an extent, how many factors, the largest innermost one.
        kernels: what they make.
        shared: bytes of shared memory of a block; None for no limit.
    """

    tiles: Mapping[int, tuple[int, int, int]]
    kernels: Sequence[_Kernel]
    shared: int | None

    def drawn(self, rng: random.Random) -> dict[int, Tiling]:
        """Tilings that fit, each such choice as likely as another; none where there is nothing to keep to, or nothing was found."""
        for _ in range(_ATTEMPTS if self.tiles else 0):
            tilings = {number: draw_tile(rng, *shape) for number, shape in self.tiles.items()}
            if self.allow(tilings):
                return dict(tilings)
        return {}

    def allow(self, tilings: Mapping[int, Tiling]) -> bool:
        """Whether all kernels fit with these tilings."""
        return all(kernel.fits(tilings, self.shared) for kernel in self.kernels)

    def allow_trace(self, trace: Trace) -> bool:
        """Whether all kernels fit with the decisions of a trace of this space."""
        return not self.kernels or self.allow({n: trace.decisions[inst] for n, inst in sampling(trace).items() if n in self.tiles})


def sampling(trace: Trace) -> dict[int, Instruction]:
    """The sampling instructions of a trace by number, postprocessing aside."""
    return dict(enumerate(inst for inst in trace.kept(True) if inst.primitive.is_sampling))


def grid_limits(space: Schedule, target: Target) -> GridLimits:
    """The limits that a design space's trace and a target state; none for programs without threads.

    Args:
        space: a schedule with its trace, all decisions made, not yet postprocessed.
    """
    reader = _Reader(space)
    try:
        for inst in space.trace.kept(True) if space.trace is not None else ():
            reader.read(inst)
    except (TensorExprError, KeyError):  # a trace of another kind: programs are looked at when they are made
        reader.kernels.clear()
    kernels = [kernel for kernel in reader.kernels.values() if kernel.threads]
    limits = limits_of(target)
    for kernel in kernels:
        kernel.most = min(filter(None, (kernel.most, limits.get("max_threads_per_block"))), default=None)
    return GridLimits(reader.tiles if kernels else {}, kernels, limits.get("max_shared_memory_per_block"))


class _Reader:
    """Follows factors through a trace: from what is sampled, through loops that are split and fused, to what they are bound to."""

    def __init__(self, space: Schedule) -> None:
        self._space = space
        self.tiles: dict[int, tuple[int, int, int]] = {}
        self.kernels: dict[BlockRV, _Kernel] = {}
        self._number = -1
        self._factors: dict[object, Factor] = {}  # of sampled values
        self._loops: dict[object, list[Factor]] = {}  # what the extent of a loop is the product of
        self._axes: dict[int, tuple[BlockRV, int]] = {}  # the block and axis that a sampling instruction tiles
        self._nests: dict[BlockRV, Sequence[LoopRV]] = {}
        self._order: list[list[Factor]] = []
        self._bound: dict[str, list[Factor]] = {}
        self._copies: dict[BlockRV, tuple[BlockRV, int]] = {}
        self._staged: dict[BlockRV, BlockRV] = {}  # what stores results from shared memory, and the block that computes them

    def read(self, inst: Instruction) -> None:
        """Follow one instruction."""
        self._number += inst.primitive.is_sampling
        if (step := getattr(self, f"_{inst.kind}", None)) is not None:
            step(inst)

    def _GetLoops(self, inst: Instruction) -> None:
        self._nests[inst.inputs[0]] = inst.outputs  # type: ignore[assignment]

    def _SamplePerfectTile(self, inst: Instruction) -> None:
        assert self._space.trace is not None
        decision = self._space.trace.decisions[inst]
        self.tiles[self._number] = prod(decision), *inst.attrs
        self._factors.update((value, (self._number, place)) for place, value in enumerate(inst.outputs))
        for block, nest in self._nests.items():
            if inst.inputs[0] in nest:
                self._axes[self._number] = block, list(nest).index(inst.inputs[0])

    def _Split(self, inst: Instruction) -> None:
        if all(factor in self._factors for factor in inst.inputs[1:]):
            self._loops.update((loop, [self._factors[factor]]) for loop, factor in zip(inst.outputs, inst.inputs[1:], strict=True))

    def _Reorder(self, inst: Instruction) -> None:
        if all(loop in self._loops for loop in inst.inputs):
            self._order = [self._loops[loop] for loop in inst.inputs]
        for store, block in self._staged.items():
            nest = list(self._nests.get(store, ()))
            if inst.inputs[0] in nest:
                self._stage(store, block, nest.index(inst.inputs[0]) - len(nest) + _FRAGMENT_LOOPS)

    def _stage(self, store: BlockRV, block: BlockRV, first: int) -> None:
        """Results wait in shared memory for one row of the fragments of all warps: its loops are the warps along both axes, fragments
        of one along both, and the elements of a fragment, of which the loop `first` goes around all."""
        write, kernel = self._space.get(block).writes[0], self._kernel(block)
        threads = {f for axis in kernel.threads.values() for f in axis}
        tiles = [(number, axis) for number, (owner, axis) in self._axes.items() if owner is block]
        blocks = {f for factors in self._order[:_GRID_LOOPS] for f in factors}
        sides: list[_Side] = []
        for number, axis in sorted(tiles, key=lambda tile: tile[1])[:2]:
            own = [(number, n) for n in range(self.tiles[number][1]) if (number, n) not in blocks]
            kept = tuple(f for f in own if f in threads or first != 2 + axis)
            sides.append(_Side(((1, kept),), 1, 1 << 62))
        size = prod(as_int(dimension.extent) or 1 for dimension in write.region)
        kernel.copies[store] = _Copy((*sides, _Side((), size, size)), parse_dtype(write.buffer.dtype).itemsize)

    def _CacheWrite(self, inst: Instruction) -> None:
        if str(inst.attrs[1]).split(".")[0] == _SHARED and inst.inputs[0] in self.kernels:
            self._staged[inst.outputs[0]] = inst.inputs[0]  # type: ignore[index]

    def _Fuse(self, inst: Instruction) -> None:
        if all(loop in self._loops for loop in inst.inputs):
            self._loops[inst.outputs[0]] = [factor for loop in inst.inputs for factor in self._loops[loop]]

    def _Bind(self, inst: Instruction) -> None:
        axis = str(inst.attrs[0])
        # copies that are bound to the same threads later have as many
        if axis.startswith((_THREADS, _VIRTUAL)) and inst.inputs[0] in self._loops:
            self._bound.setdefault(axis, self._loops[inst.inputs[0]])

    def _Annotate(self, inst: Instruction) -> None:
        block, key = inst.inputs[0], inst.attrs[0]
        if key in (FEWEST_THREADS, MOST_THREADS):
            kernel = self._kernel(block)
            if self._bound:
                kernel.threads, self._bound = self._bound, {}
            if key == FEWEST_THREADS:
                kernel.fewest = as_int(inst.inputs[1]) or 1
            else:
                kernel.most = as_int(inst.inputs[1])
        elif key == WARP_EXECUTION:
            self._kernel(block).warp = 32

    def _kernel(self, block: BlockRV) -> _Kernel:
        return self.kernels.setdefault(block, _Kernel())

    def _CacheRead(self, inst: Instruction) -> None:
        if str(inst.attrs[1]).split(".")[0] == _SHARED and inst.inputs[0] in self.kernels:
            self._copies[inst.outputs[0]] = inst.inputs[0], int(inst.attrs[0])  # type: ignore[index]

    def _ComputeAt(self, inst: Instruction) -> None:
        if inst.inputs[0] in self._copies and inst.inputs[1] in self._loops:
            block, number = self._copies[inst.inputs[0]]
            copy = self._copy(self._space.get(block), block, number, self._loops[inst.inputs[1]])
            if copy is not None:
                self.kernels[block].copies[inst.inputs[0]] = copy

    def _StorageAlign(self, inst: Instruction) -> None:
        _, axis, factor, offset = inst.attrs
        for kernel in self.kernels.values():
            copy = kernel.copies.get(inst.inputs[0])
            if copy is not None and axis in (-2, len(copy.sides) - 2):
                kernel.copies[inst.inputs[0]] = _Copy(copy.sides, copy.itemsize, int(factor), int(offset))

    def _copy(self, block: Block, handle: BlockRV, number: int, at: list[Factor]) -> _Copy | None:
        """What is read inside of the loop at which the copy stands, by all threads; None if the trace doesn't say."""
        place = max((n for n, factors in enumerate(self._order) if set(factors) & set(at)), default=None)
        if place is None or number >= len(block.reads):
            return None
        shared_out = {f for axis in self.kernels[handle].threads.values() for f in axis}
        outside = {f for factors in self._order[: place + 1] for f in factors} - shared_out
        axes: dict[int, tuple[Factor, ...]] = {}
        for sampled, (owner, axis) in self._axes.items():
            if owner is handle:
                axes[axis] = tuple((sampled, n) for n in range(self.tiles[sampled][1]) if (sampled, n) not in outside)
        read, variables = block.reads[number], [axis.var for axis in block.iter_vars]
        sides = []
        for dimension, whole in zip(read.region, read.buffer.shape, strict=True):
            scales = [as_int(scale) for scale in detect_linear_equation(dimension.min, variables)[:-1]]
            width, most = as_int(dimension.extent), as_int(whole)
            if width is None or most is None or len(scales) != len(variables) or None in scales:
                return None
            terms = [(abs(scale), axes.get(axis)) for axis, scale in enumerate(scales) if scale]
            if any(factors is None for _, factors in terms):
                return None
            sides.append(_Side(tuple((scale, factors) for scale, factors in terms if factors is not None), width, most))
        return _Copy(tuple(sides), parse_dtype(read.buffer.dtype).itemsize)


def _product(factors: Sequence[Factor], tilings: Mapping[int, Tiling]) -> int:
    return prod(tilings[number][place] for number, place in factors)
