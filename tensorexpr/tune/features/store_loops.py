"""The loops around a store as arrays: how far they move its axes, and what it touches while the inner ones of them run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...dataclass import dataclass
from ...schedule.tree import LoopKind
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr, Var
from ...tir.rewriting import walk
from .axis_values import root_values, splits_fused_loops
from .indices import Interval, interval_of
from .nest import Array, Loop, StageNest

Bools = npt.NDArray[np.bool_]
# Of the parts of a loop and an axis: a number for each program.
Column = Callable[[Sequence[Loop], int], Array]


@dataclass(frozen=True, eq=False)
class StoreLoops:
    """m loops, outermost first, as they are written: a fused loop is one. Loops of one iteration are there, and count for nothing.

    Args:
        nest: of the stage.
        places: a number for each loop; stores that share a loop have its number in common.
        sampled: [n, 1] the values of the variables that stand for open decisions.
    """

    nest: StageNest
    places: tuple[int, ...]
    sampled: Mapping[Var, Array]

    @cached_property
    def parts(self) -> list[tuple[Loop, ...]]:
        """Per loop the loops that were fused into it, or itself."""
        starts = (0, *self.nest.ends)
        return [self.nest.loops[start:end] for start, end in zip(starts, self.nest.ends, strict=False)]

    @cached_property
    def kinds(self) -> tuple[LoopKind, ...]:
        """What each loop is."""
        return tuple(parts[-1].kind for parts in self.parts)

    @property
    def count(self) -> int:
        """How many programs there are."""
        return len(self.nest.unroll_step)

    @cached_property
    def extents(self) -> Array:
        """[n, m]: iterations."""
        columns = [np.prod([part.extent for part in parts], axis=0) for parts in self.parts]
        return np.stack(columns, axis=1) if columns else np.ones((self.count, 0))

    @cached_property
    def axes(self) -> dict[int, Var]:
        """The root axes of the stage."""
        return {axis: self.nest.stage.axes[axis].var for axis in (*self.nest.stage.spatial, *self.nest.stage.reduction)}

    @cached_property
    def reach(self) -> dict[Var, Array]:
        """Per axis [n, m]: how far one run of each loop moves it."""
        found = {var: self._columns(axis, self._reach) for axis, var in self.axes.items()}
        if self._cuts_fused:
            # column l: loop l alone runs to its end, the others stand at 0
            one = np.eye(len(self.places))[None, :, :]
            for var, (low, high) in self._own_values((self.extents - 1)[:, :, None] * one).items():
                found[var] = self._outside(found[var]) + high - low
        return found

    @cached_property
    def steps(self) -> dict[Var, Array]:
        """Per axis [n, m]: how far the first two iterations of each loop are apart."""
        found = {var: self._columns(axis, self._step) for axis, var in self.axes.items()}
        if self._cuts_fused:
            at = np.broadcast_to(np.eye(len(self.places))[None, :, :], (self.count, len(self.places), len(self.places)))
            for var, (low, _) in self._own_values(at, points=True).items():
                found[var] = self._outside(found[var]) + low
        return found

    @cached_property
    def running(self) -> dict[Var, Interval]:
        """Per axis its interval [n, m + 1] while loops d, d + 1, ... run and the others stand at their start."""
        made = {}
        for var, reach in self.reach.items():
            reach = self._outside(reach) if self._cuts_fused else reach
            high = np.concatenate([np.cumsum(reach[:, ::-1], axis=1)[:, ::-1], np.zeros((self.count, 1))], axis=1)
            made[var] = (np.zeros_like(high), high)
        if self._cuts_fused:
            inner = np.tril(np.ones((len(self.places), len(self.places) + 1)))  # loop l runs in the columns up to l
            for var, (low, high) in self._own_values((self.extents - 1)[:, :, None] * inner[None, :, :]).items():
                made[var] = (low, made[var][1] + high)
        return {**made, **self._constants}

    @cached_property
    def _cuts_fused(self) -> bool:
        return splits_fused_loops(self.nest.stage)

    def _outside(self, columns: Array) -> Array:
        """The columns of the loops around the stage, and zeros for its own."""
        around = len(self.places) - len(self.nest.stage.leaf)
        return np.concatenate([columns[:, :around], np.zeros_like(columns[:, around:])], axis=1)

    def _own_values(self, loops: Array, points: bool = False) -> dict[Var, Interval]:
        """The intervals of axes while the loops l go from 0 to loops[:, l], or stand there."""
        leaf = self.nest.stage.leaf
        around = len(self.places) - len(leaf)
        ends = {axis: np.maximum(loops[:, around + place], 0.0) for place, axis in enumerate(leaf)}
        values = root_values(self.nest, {axis: (end if points else np.zeros_like(end), end) for axis, end in ends.items()})
        return {var: values[axis] for axis, var in self.axes.items()}

    @cached_property
    def _constants(self) -> dict[Var, Interval]:
        return {var: (values, values) for var, values in self.sampled.items()}

    def sizes(self, tensor: Tensor) -> list[Array]:
        """[n, 1] per dimension: the extents of a tensor."""
        known = [interval_of(extent, self._constants, (self.count, 1)) for extent in tensor.shape]
        return [np.ones((self.count, 1)) if size is None else size[0] for size in known]

    def points(self, at: Mapping[Var, Array]) -> dict[Var, Interval]:
        """The values of axes as intervals, beside those of the decisions."""
        return {**{var: (values, values) for var, values in at.items()}, **self._constants}

    def _columns(self, axis: int, column: Column) -> Array:
        columns = [column(parts, axis) for parts in self.parts]
        return np.stack(columns, axis=1) if columns else np.zeros((self.count, 0))

    def _reach(self, parts: Sequence[Loop], axis: int) -> Array:
        moved = np.zeros(self.count)
        for part in parts:
            if axis in part.strides:
                moved = moved + part.strides[axis] * (part.extent - 1)
        return moved

    def _step(self, parts: Sequence[Loop], axis: int) -> Array:
        step = np.zeros(self.count)
        for part in parts:  # the last one with more than one iteration counts
            step = np.where(part.extent > 1, part.strides.get(axis, 0.0), step)
        return step


@dataclass(frozen=True, eq=False)
class Touched:
    """What one store does with one tensor.

    Args:
        is_read, is_written: both for the result of a reduction.
        extents: per dimension [n, m + 1] the extent of the box that is touched while loops d, d + 1, ... run.
        stride: [n, m] elements between what the first two iterations of each loop touch, the least of all accesses; 0: the same.
        moves: [n, m]: whether a loop moves it.
        sizes: per dimension [n, 1] its extent.
    """

    tensor: Tensor
    is_read: bool
    is_written: bool
    extents: tuple[Array, ...]
    stride: Array
    moves: Bools
    sizes: tuple[Array, ...]

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return parse_dtype(self.tensor.dtype).itemsize

    @cached_property
    def elements(self) -> Array:
        """[n, m + 1]: of the box."""
        whole = np.ones((self.moves.shape[0], self.moves.shape[1] + 1))
        for extent in self.extents:
            whole = whole * extent
        return whole

    @cached_property
    def run(self) -> Array:
        """[n]: elements in a row that lie side by side, of what all loops touch."""
        run, whole = np.ones(len(self.moves)), np.ones(len(self.moves), bool)
        for extent, size in zip(reversed(self.extents), reversed(self.sizes), strict=True):
            run = np.where(whole, run * extent[:, 0], run)
            whole = whole & (extent[:, 0] >= size[:, 0])
        return run


def touched(loops: StoreLoops, tensor: Tensor, accesses: Sequence[Sequence[PrimExpr]], is_read: bool, is_written: bool) -> Touched:
    """What a store does with one tensor, which it accesses at one or more places."""
    sizes = loops.sizes(tensor)
    shape = (loops.count, len(loops.places) + 1)
    boxes = [[interval_of(index, loops.running, shape) for index in indices] for indices in accesses]
    extents = tuple(_extent([box[dim] for box in boxes], size, shape) for dim, size in enumerate(sizes))
    moves = np.zeros((loops.count, len(loops.places)), bool)
    for var in {node for indices in accesses for index in indices for node in walk(index) if isinstance(node, Var)}:
        if var in loops.reach:
            moves = moves | (loops.reach[var] > 0)
    strides = np.stack([_stride(loops, indices, sizes) for indices in accesses])
    # an access that a loop doesn't move says nothing about the stride of one that it does
    least = np.where(strides > 0, strides, np.inf).min(axis=0)
    return Touched(tensor, is_read, is_written, extents, np.where(np.isfinite(least), least, 0.0), moves, tuple(sizes))


def _extent(intervals: Sequence[Interval | None], size: Array, shape: tuple[int, ...]) -> Array:
    known = [interval for interval in intervals if interval is not None]
    # one access whose place is unknown may touch all of the dimension
    if len(known) < len(intervals):
        return np.asarray(np.broadcast_to(size, shape))
    low = np.minimum.reduce([a for a, _ in known])
    high = np.maximum.reduce([b for _, b in known])
    return np.asarray(np.minimum(high - low + 1, size), float)


def _stride(loops: StoreLoops, indices: Sequence[PrimExpr], sizes: Sequence[Array]) -> Array:
    """[n, m]: how far apart the elements are that the first two iterations access."""
    shape = (loops.count, len(loops.places))
    origin = np.zeros((1, 1))
    at, start = loops.points(loops.steps), loops.points(dict.fromkeys(loops.steps, origin))
    apart, row = np.zeros(shape), np.ones((loops.count, 1))
    for index, size in zip(reversed(indices), reversed(sizes), strict=True):
        second, first = interval_of(index, at, (1, 1)), interval_of(index, start, (1, 1))
        if second is not None and first is not None:
            apart = apart + row * (second[0] - first[0])
        row = row * size
    return np.abs(apart)
