"""The kernels of a program for GPUs: which blocks of how many threads they start, what these hold, and how many share a multiprocessor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...dataclass import dataclass
from ...schedule.tree import At, LoopKind, ScheduleTree
from ...spaces.gpu.block import Limits
from ...tir.dtype import parse_dtype
from ...tir.expr import Var
from ...tir.thread import VIRTUAL_TAGS
from .nest import Array, Loop, StageNest, scope_of
from .warps import WARP

# What every thread holds beside its own arrays: addresses, loop variables, what is on the way. Products by rules that hold 104 values
# take 128 registers, by ptxas.
_OTHER_REGISTERS = 24
# Registers are given to warps in units of so many for each thread, and no thread gets fewer than the least.
_UNIT, _LEAST = 8, 16
_MOST_BLOCKS = 32  # of a multiprocessor
MIN_BLOCKS = "min_blocks"


@dataclass(frozen=True, eq=False)
class Kernel:
    """A stage at the root and all that is computed inside of it, arrays [n].

    Args:
        stages: their nests.
        blocks: of the grid.
        threads: of a block.
        virtual: virtual threads along the axis that has most.
        shared, dynamic: bytes of shared memory of a block, of a size that is declared and of one that the launch says.
        own: bytes that a thread has for itself.
        registers: that a thread wants.
        spilled: of these, those that it doesn't get.
        resident: blocks that share a multiprocessor.
        wanted: blocks that the schedule asks to share one.
    """

    stages: Sequence[StageNest]
    blocks: Array
    threads: Array
    virtual: Array
    shared: Array
    dynamic: Array
    own: Array
    registers: Array
    spilled: Array
    resident: Array
    wanted: Array

    @property
    def on_units(self) -> bool:
        """Whether matrix units compute some of it. Their layouts fill memory in ways that forms of indices don't tell."""
        return any(loop.own and loop.kind is LoopKind.TENSORIZE for nest in self.stages for loop in nest.loops)

    @property
    def warps(self) -> Array:
        """Warps of a block."""
        return np.ceil(self.threads / WARP)


def kernels_of(built: Sequence[StageNest], tree: ScheduleTree, values: Mapping[Var, Array], limits: Limits) -> list[Kernel]:
    """The kernels of a population, in the order in which their stages at the root stand.

    Args:
        built: the nests of all stages.
        tree: the program, with variables where decisions are open.
        values: of these variables.
        limits: of the chip.
    """
    members: dict[int, list[StageNest]] = {}
    for nest in built:
        root = nest.stage
        while isinstance(root.attach, At):
            root = tree[root.attach.stage]
        members.setdefault(root.id, []).append(nest)
    return [_kernel(stages, values, limits) for stages in members.values()]


def _kernel(stages: Sequence[StageNest], values: Mapping[Var, Array], limits: Limits) -> Kernel:
    count = len(stages[0].unroll_step)
    one = np.ones(count)
    threads, blocks, virtual, wanted = one, one, one, one
    shared, dynamic, own = np.zeros(count), np.zeros(count), np.zeros(count)
    for nest in stages:
        threads = np.maximum(threads, product((loop for loop in nest.loops if loop.thread.startswith("threadIdx.")), count))
        blocks = np.maximum(blocks, product((loop for loop in nest.loops if loop.thread.startswith("blockIdx.")), count))
        groups = [loop for loop in nest.loops if loop.thread in VIRTUAL_TAGS]
        virtual = np.maximum.reduce([virtual, *(loop.extent for loop in groups)])
        wanted = np.maximum(wanted, _asked(nest, values, count))
        if not isinstance(nest.stage.attach, At):
            continue
        scope = scope_of(nest.stage, (loop for loop in nest.loops if not loop.own))
        if scope == "shared.dyn":
            dynamic = dynamic + _stored(nest)
        elif scope == "shared":
            shared = shared + _stored(nest)
        elif scope == "local":  # each virtual thread has its part
            own = own + _stored(nest) * product((loop for loop in groups if any(np.any(step > 0) for step in loop.strides.values())), count)
        elif scope == "warp":
            own = own + _stored(nest) / WARP
    registers = _OTHER_REGISTERS + own / 4
    room = np.floor(limits.registers / np.maximum(threads, limits.warp) / wanted / _UNIT) * _UNIT
    given = np.minimum(np.minimum(registers, room), limits.of_thread)
    resident = _resident(threads, shared + dynamic, given, limits)
    return Kernel(stages, blocks, threads, virtual, shared, dynamic, own, registers, np.maximum(0.0, registers - given), resident, wanted)


def product(loops: Iterable[Loop], count: int) -> Array:
    """[n]: the iterations of some loops."""
    found = np.ones(count)
    for loop in loops:
        found = found * loop.extent
    return found


def pitches_of(nest: StageNest, sizes: Sequence[Array]) -> list[Array]:
    """Elements from one index to the next of each dimension of a stage's storage, rows apart as the schedule aligns them."""
    aligned = {axis: (factor, offset) for axis, factor, offset in nest.stage.aligns}
    found: list[Array] = []
    step = np.ones(len(nest.unroll_step))
    for axis in reversed(range(len(sizes))):
        if axis in aligned:
            factor, offset = aligned[axis]
            step = step + (offset - step) % factor
        found.insert(0, step)
        step = step * sizes[axis]
    return found


def _stored(nest: StageNest) -> Array:
    """Bytes of what a stage keeps at a time."""
    sizes = [nest.region[axis] for axis in nest.stage.spatial]
    kind = parse_dtype(nest.stage.origin.output_dtype(0))
    if not sizes:
        return np.full(len(nest.unroll_step), float(kind.itemsize))
    # of a double buffer two
    copies = 2 if nest.stage.double_buffer is True else max(1, int(nest.stage.double_buffer))
    return np.asarray(pitches_of(nest, sizes)[0] * sizes[0] * kind.itemsize * kind.lanes * copies, float)


def _asked(nest: StageNest, values: Mapping[Var, Array], count: int) -> Array:
    """How many blocks the schedule wants on a multiprocessor."""
    for mark in nest.stage.marks.values():
        for key, value in mark.pragmas:
            if key == MIN_BLOCKS:
                return np.asarray(values[value][:, 0], float) if isinstance(value, Var) else np.full(count, float(value))
    return np.ones(count)


def _resident(threads: Array, shared: Array, registers: Array, limits: Limits) -> Array:
    """Blocks that share a multiprocessor: as many as have threads, registers and shared memory there; one that has none counts as one."""
    warps = np.ceil(threads / limits.warp)
    held = np.maximum(_LEAST, np.ceil(registers / _UNIT) * _UNIT) * warps * limits.warp
    by_warps = np.floor(limits.warps_sm / warps)
    by_registers = np.floor(limits.registers / held)
    by_memory = np.floor(limits.shared_sm / np.maximum(shared, 1.0))
    return np.asarray(
        np.maximum(1.0, np.minimum.reduce([by_warps, by_registers, by_memory, np.full_like(warps, float(_MOST_BLOCKS))])), float
    )


def within(kernels: Sequence[Kernel], limits: Limits) -> npt.NDArray[np.bool_]:
    """[n]: which programs a chip has room for. Every stage at the root starts threads, and no thread's own arrays leave its registers."""
    allowed = np.ones(len(kernels[0].threads) if kernels else 0, bool)
    for kernel in kernels:
        bound = any(loop.thread for nest in kernel.stages for loop in nest.loops)
        allowed &= bound & (kernel.threads <= limits.threads) & (kernel.virtual <= limits.virtual)
        if kernel.on_units:  # the rules that made the layouts have seen to their room
            continue
        allowed &= (kernel.shared <= limits.shared) & (kernel.shared + kernel.dynamic <= limits.dynamic)
        # What is on the way beside them may wait in memory for a moment; arrays that don't fit are moved with each use.
        allowed &= kernel.spilled <= _OTHER_REGISTERS / 2
        allowed &= kernel.threads * kernel.wanted <= limits.warps_sm * limits.warp
        if limits.local is not None:
            allowed &= kernel.own <= limits.local
    return allowed
