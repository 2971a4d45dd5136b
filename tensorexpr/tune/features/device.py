"""Features and analytic cost of programs for GPUs: what `extract` gives for blocks of threads.

Counted for a block on its multiprocessor, whose warps go on while others wait:

- issued: instructions of all warps, four a cycle; arithmetic: multiply-adds over those of a cycle;
- shared: cycles in which shared memory serves requests, bank conflicts among them; loaded: sectors of global memory;
- waits: what no warp of the block can hide, as all of them wait for a part of the sum that they fetch together. Other blocks hide it.

A kernel takes what its fullest multiprocessor does, or as long as memory moves its bytes. Nothing was fitted: no GPU was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...dataclass import dataclass
from ...schedule.tree import At, LoopKind
from ...spaces.gpu.block import LATENCY, LAUNCH, LOADED_BYTES, limits_of
from ...target import Target
from ...target.chips import Rates, rates_of
from ...te.operation import Operation
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import ProducerLoad, Reduce
from ...tir.thread import VIRTUAL_TAGS
from .access import Boxes, storage_boxes
from .cycles import partly_hidden
from .kernels import Kernel, kernels_of, pitches_of, product, within
from .nest import Array, Bodies, Form, IntArray, Loop, Sampled, StageNest, access_forms, nests, sampled_values, scope_of
from .operations import work_of
from .warps import SECTOR, WARP, lane_offsets, sectors, wavefronts

KERNEL_FEATURES = (
    "blocks", "threads", "virtual", "shared_bytes", "registers", "spilled", "resident", "warps_resident", "waves", "arithmetic",
    "instructions", "shared_requests", "bank_conflicts", "global_requests", "sectors", "coalesced", "moved_bytes", "unique_bytes",
    "fetches", "intensity", "issued_cycles", "arithmetic_cycles", "shared_cycles", "loaded_cycles", "waiting_cycles", "memory_cycles",
    "cycles",
)  # fmt: skip
KERNELS = 2
DEVICE_FEATURE_NAMES = (*(f"k{n}.{name}" for n in range(KERNELS) for name in KERNEL_FEATURES), "kernels", "total_cycles")

_ISSUED = 4.0  # instructions of a multiprocessor in a cycle, one for each of its schedulers
_BARRIER = 40.0  # cycles until all warps have met
_MATRIX_UNITS = 16.0  # multiply-adds in float16 for one in float32 (A100, H100)
_LOOP = 3.0  # instructions of an iteration besides its body: count, compare, branch
_WIDEST, _LANES = 16, (2, 4, 8, 16)  # bytes of an access, and its elements
# Loads of a thread that are under way at once where nothing else depends on them.
_UNDER_WAY = 4.0


@dataclass(frozen=True, eq=False)
class _Work:
    """What one thread does of a stage, arrays [n]: executions are of a warp, so that a warp counts as one."""

    arithmetic: Array
    requests: Mapping[str, Array]  # "shared", "global"
    conflicts: Array  # cycles of shared memory beyond one a request and a vector
    served: Array  # cycles of shared memory
    sectors: Array
    loops: Array
    unique: Array  # bytes of global memory that all blocks touch
    waits: Array  # times that the whole block waits


Columns = Mapping[str, Array]
"""The features of a kernel by name, unscaled, arrays [n]."""


def extract_on_device(sketch: Sampled, bodies: Bodies, rows: IntArray, target: Target) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Features [n, len(DEVICE_FEATURE_NAMES)], cycles [n], and which programs may be built [n]; arguments as of `extract`."""
    columns, valid = kernel_columns(sketch, bodies, rows, target)
    return (*of_kernels(columns, len(rows)), valid)


def kernel_columns(sketch: Sampled, bodies: Bodies, rows: IntArray, target: Target) -> tuple[list[Columns], npt.NDArray[np.bool_]]:
    """The features of each kernel, and which programs may be built [n]; arguments as of `extract`."""
    limits, rates = limits_of(target), rates_of(str(target.attrs.get("arch", "")))
    built = nests(sketch, bodies, rows)
    found = kernels_of(built, sketch.tree, sampled_values(sketch, rows), limits)
    boxes = storage_boxes(built)
    stages = {nest.stage.origin: nest for nest in built}
    columns = [_kernel_columns(kernel, [_work(nest, boxes, stages) for nest in kernel.stages], rates, target) for kernel in found]
    return [*columns], within(found, limits)


def of_kernels(columns: Sequence[Columns], count: int) -> tuple[Array, Array]:
    """Features [count, len(DEVICE_FEATURE_NAMES)] and cycles [count] of programs of some kernels; of no blocks are those that they lack."""
    columns = sorted(columns, key=lambda one: -float(one["cycles"].max(initial=0.0)))
    launched = np.sum([one["blocks"] > 0 for one in columns], axis=0).astype(float)
    total = np.sum([one["cycles"] for one in columns], axis=0) + LAUNCH * launched
    blank = {name: np.zeros(count) for name in KERNEL_FEATURES}
    listed = [*columns, *[blank] * KERNELS][:KERNELS]
    parts = [np.log2(1.0 + np.maximum(one[name], 0.0)) for one in listed for name in KERNEL_FEATURES]
    features = np.stack([*parts, launched, np.log2(1.0 + total)], axis=1)
    return features, np.asarray(total, float)


def _kernel_columns(kernel: Kernel, work: Sequence[_Work], rates: Rates, target: Target) -> Columns:
    """The features of a kernel, unscaled."""
    warps = kernel.warps
    arithmetic = _sum(work, "arithmetic")
    # of what a thread holds, the part that it has no register for is loaded and stored with the multiply-adds on it
    spills = kernel.spilled / np.maximum(kernel.registers, 1.0) * arithmetic
    shared, loaded = (np.sum([one.requests[kind] for one in work], axis=0) for kind in ("shared", "global"))
    moved, served = _sum(work, "sectors") * SECTOR, _sum(work, "served")
    instructions = arithmetic + shared + loaded + _LOOP * _sum(work, "loops") + 2 * spills
    issued, multiplied = warps * instructions / _ISSUED, warps * arithmetic * WARP / rates.fma
    through = warps * (moved + spills * WARP * 4) / LOADED_BYTES
    busy = partly_hidden((issued, multiplied, warps * served, through))
    waits = _sum(work, "waits") * (LATENCY + _BARRIER)
    most = np.ceil(kernel.blocks / rates.multiprocessors)
    rounds = np.ceil(most / kernel.resident)
    # A multiprocessor works for its blocks in turn, and each of them takes at least what it waits.
    alone = np.maximum(most * busy, rounds * (busy + waits))
    traffic, unique = kernel.blocks * warps * moved, _sum(work, "unique")
    cache = float(target.attrs.get("l2_cache_size_bytes", rates.l2 << 20))
    again = np.clip((unique - cache) / np.maximum(unique, 1.0), 0.0, 1.0) * np.maximum(0.0, traffic - unique)
    memory = (unique + again) / rates.memory_bytes
    # few warps leave memory idle: so many bytes are asked for at once (Little's law)
    asked = np.minimum(kernel.resident, most) * warps * np.minimum(_UNDER_WAY, np.maximum(loaded, 1.0)) * moved / np.maximum(loaded, 1.0)
    hidden = np.minimum(1.0, asked / (LATENCY * rates.memory_bytes / rates.multiprocessors))
    active = np.minimum(1.0, kernel.blocks / rates.multiprocessors)
    memory = memory / np.maximum(hidden * active, 1e-3)
    if kernel.on_units:  # what of their layouts is counted says nothing: they are bound by the units, or by memory
        alone, memory = most * multiplied, unique / rates.memory_bytes
    return {
        "blocks": kernel.blocks, "threads": kernel.threads, "virtual": kernel.virtual, "shared_bytes": kernel.shared + kernel.dynamic,
        "registers": kernel.registers, "spilled": kernel.spilled, "resident": kernel.resident, "warps_resident": kernel.resident * warps,
        "waves": rounds, "arithmetic": arithmetic, "instructions": instructions, "shared_requests": shared,
        "bank_conflicts": _sum(work, "conflicts"), "global_requests": loaded, "sectors": moved / SECTOR,
        "coalesced": moved / np.maximum(loaded, 1.0), "moved_bytes": traffic, "unique_bytes": unique, "fetches": _sum(work, "waits"),
        "intensity": arithmetic * warps * WARP * kernel.blocks / np.maximum(traffic, 1.0), "issued_cycles": issued,
        "arithmetic_cycles": multiplied, "shared_cycles": warps * served, "loaded_cycles": through, "waiting_cycles": waits,
        "memory_cycles": memory, "cycles": partly_hidden((alone, memory)), "on_units": np.full_like(memory, float(kernel.on_units)),
    }  # fmt: skip


def _sum(work: Sequence[_Work], name: str) -> Array:
    return np.asarray(np.sum([getattr(one, name) for one in work], axis=0), float)


def _work(nest: StageNest, boxes: Boxes, stages: Mapping[Operation, StageNest]) -> _Work:
    """What one thread does of a stage."""
    count = len(nest.unroll_step)
    own = [loop for loop in nest.loops if not loop.thread.startswith(("threadIdx.", "blockIdx.")) and not _is_shared(loop)]
    times = product(own, count)
    is_sum = isinstance(nest.body[0], Reduce)
    operations = work_of(nest.body)
    # a multiplication and an addition are one instruction, and a copy is none
    is_copy = isinstance(nest.body[0], ProducerLoad)
    arithmetic = times * (max(1.0, operations / 2) if is_sum else 0.0 if is_copy else operations)
    by_warp = any(loop.own and loop.kind is LoopKind.TENSORIZE for loop in nest.loops)
    if by_warp:  # all threads together, and matrix units so many times as fast
        arithmetic = arithmetic / (WARP * _MATRIX_UNITS)
    requests = {"shared": np.zeros(count), "global": np.zeros(count)}
    conflicts, served, moved, unique = (np.zeros(count) for _ in range(4))
    for forms, tensor, dtype, is_store in _accesses(nest):
        scope, holder = _scope(tensor, stages, nest if is_store else None)
        if scope == "local":
            continue
        item = parse_dtype(dtype).itemsize
        width, executed = _executed(nest, own, forms, item, is_store and is_sum)
        executed = executed / WARP if by_warp else executed
        pitches = pitches_of(holder, _sizes(tensor, boxes, count)) if holder is not None else _dense(_sizes(tensor, boxes, count))
        offsets = lane_offsets(nest, forms, pitches)
        requests[scope] = requests[scope] + executed
        if scope == "shared":
            cycles = wavefronts(offsets, item, width)
            served = served + executed * cycles
            conflicts = conflicts + executed * np.maximum(0.0, cycles - np.maximum(1.0, width * item / 4))
        else:
            moved = moved + executed * sectors(offsets, item, width)
            unique = unique + _touched(nest, forms, _sizes(tensor, boxes, count)) * item
    loops = np.zeros(count)
    inner = np.ones(count)
    for loop in own:  # of nested loops each runs as often as all around it say
        inner = inner * loop.extent
        loops = loops + (inner if loop.own and loop.kind is LoopKind.SERIAL else 0.0)
    some = _share(nest)
    done = {kind: some * count for kind, count in requests.items()}
    return _Work(
        some * arithmetic, done, some * conflicts, some * served, some * moved, some * loops, unique, _waits(nest, own, done["global"])
    )


def _share(nest: StageNest) -> Array:
    """[n]: which part of the warps' executions has anything to do, where tiles and threads are more than there is."""
    made = product((loop for loop in nest.loops if loop.own), len(nest.unroll_step))
    wanted = np.prod([nest.region[axis] for axis in (*nest.stage.spatial, *nest.stage.reduction)], axis=0)
    if isinstance(nest.stage.attach, At):
        return np.asarray(np.minimum(1.0, np.ceil(wanted / WARP) * WARP / np.maximum(made, 1.0)), float)
    return np.asarray(np.minimum(1.0, wanted / np.maximum(made, 1.0)), float)


def _is_shared(loop: Loop) -> bool:
    """True for virtual threads that do the same: what doesn't depend on them is done once."""
    return loop.thread in VIRTUAL_TAGS and not loop.own and not any(np.any(stride > 0) for stride in loop.strides.values())


def _waits(nest: StageNest, own: Sequence[Loop], loads: Array) -> Array:
    """[n]: how often all threads of a block wait for memory: for each part that they fetch together, else for some loads at a time."""
    count = len(loads)
    around = product((loop for loop in own if not loop.own), count)
    # partial results of all threads become one behind a barrier
    met = around if any(loop.reduction and loop.thread.startswith("threadIdx.") for loop in nest.loops) else np.zeros(count)
    scope = scope_of(nest.stage, (loop for loop in nest.loops if not loop.own)) if isinstance(nest.stage.attach, At) else "global"
    return met + (around if scope.startswith("shared") else np.ceil(loads / _UNDER_WAY))


def _accesses(nest: StageNest) -> list[tuple[list[Form | None], Tensor, str, bool]]:
    """The store of a stage and its loads: their indices, the tensor, its dtype, and whether it is stored to."""
    result = nest.stage.origin.output(0)
    identity: list[Form | None] = [Form({axis: 1}) for axis in nest.stage.spatial]
    found: list[tuple[list[Form | None], Tensor, str, bool]] = [(identity, result, result.dtype, True)]
    for load in nest.loads:
        if isinstance(load.producer, Tensor):
            found.append((access_forms(load, nest.stage), load.producer, load.dtype, False))
    return found


def _scope(tensor: Tensor, stages: Mapping[Operation, StageNest], own: StageNest | None) -> tuple[str, StageNest | None]:
    """Where a tensor lives, "local", "shared" or "global", and the stage that computes it at a loop."""
    nest = own or stages.get(tensor.op)
    if nest is None or not isinstance(nest.stage.attach, At):
        return "global", None
    scope = scope_of(nest.stage, (loop for loop in nest.loops if not loop.own)).split(".")[0]
    return "shared" if scope == "shared" else "local" if scope in ("local", "warp") else "global", nest


def _executed(nest: StageNest, own: Sequence[Loop], forms: Sequence[Form | None], item: int, after_sum: bool) -> tuple[Array, Array]:
    """[n] each: elements of one access, and how often a thread makes it: not again in loops within which it stays where it is.

    Lanes that are neighbours are one access, and so are iterations that are written out side by side, up to 16 bytes.
    """
    count = len(nest.unroll_step)
    times, along = np.ones(count), np.ones(count)
    moved_inside = np.zeros(count, bool)
    for loop in reversed(own):
        if after_sum and loop.reduction:
            continue
        moves = np.zeros(count)
        for form in forms:
            for root, stride in loop.strides.items():
                if form is None or root in form:
                    moves = moves + (stride if form is None else np.abs(form[root]) * stride)
        moving = (moves > 0) & (loop.extent > 1)
        last = forms[-1] if forms and forms[-1] is not None else Form({})
        step = np.sum([last.step(root, stride) for root, stride in loop.strides.items() if root in last], axis=0)
        fits = np.isin(loop.extent, _LANES) & (loop.extent * item <= _WIDEST)
        vector = moving & ~moved_inside & (step == 1) & (moves == 1) & fits
        if loop.kind in (LoopKind.VECTORIZE, LoopKind.UNROLL):
            along = np.where(vector, along * loop.extent, along)
        else:
            vector = np.zeros(count, bool)
        times = np.where((moving | moved_inside) & ~vector, times * loop.extent, times)
        moved_inside |= moving
    return along, times


def _sizes(tensor: Tensor, boxes: Boxes, count: int) -> list[Array]:
    known = boxes.get(tensor.op)
    return list(known) if known is not None else [np.full(count, float(as_int(extent) or 1)) for extent in tensor.shape]


def _dense(sizes: Sequence[Array]) -> list[Array]:
    """Elements from one index to the next of each dimension, without gaps."""
    found: list[Array] = []
    step = np.ones(1)
    for size in reversed(sizes):
        found.insert(0, step * np.ones_like(size))
        step = step * size
    return found


def _touched(nest: StageNest, forms: Sequence[Form | None], sizes: Sequence[Array]) -> Array:
    """[n]: elements that all blocks touch together."""
    elements = np.ones(len(nest.unroll_step))
    for form, size in zip(forms, sizes, strict=True):
        reach = np.ones_like(elements)
        for loop in nest.loops:
            for root, stride in loop.strides.items():
                if form is not None and root in form:
                    reach = reach + np.abs(form[root]) * stride * (loop.extent - 1)
        elements = elements * (size if form is None else np.minimum(np.floor(reach + 1e-6), size))
    return elements
