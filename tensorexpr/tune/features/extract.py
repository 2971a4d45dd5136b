"""The feature matrix of a population, and the analytic cost that goes with it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...dataclass import dataclass, replace
from ...schedule.tree import At, LoopKind
from ...spaces.gpu import is_gpu
from ...target import Target
from ...target.machine import Machine
from ...tir.expr import Reduce
from .access import Access, accesses, storage_boxes
from .cycles import Cycles, Steps, cycles_of, together
from .device import extract_on_device
from .guards import run_share
from .instructions import in_vectors
from .nest import Array, Bodies, IntArray, Sampled, StageNest, nests
from .operations import work_of
from .sharing import taken_lines
from .traffic import nest_extent
from .validity import admissible

STAGE_FEATURES = (
    "flops", "parallel", "imbalance", "vector_lanes", "vector_use", "tile_rows", "tile_vectors", "spills",
    "loads_per_step", "gathers", "reduce_run", "inner_extent", "second_extent", "third_extent",
    "unrolled", "l1_bytes", "l2_bytes", "l3_bytes", "tile_lines", "store_stride", "unroll_step",
    "compute_cycles", "load_cycles", "update_cycles", "memory_cycles", "stall_cycles", "cycles",
)  # fmt: skip
GLOBAL_FEATURES = ("stages", "total_cycles", "fork_joins")
STAGES = 2
FEATURE_NAMES = tuple(f"s{n}.{name}" for n in range(STAGES) for name in STAGE_FEATURES) + GLOBAL_FEATURES
TRANSPOSED = 0.2  # of a gather: a vector of a block that is transposed in registers takes log2(lanes) shuffles
FREE_UNROLLING = 4.0  # reduction steps in a row without a loop; more of them let LLVM keep operands alive until registers run out


@dataclass(frozen=True, eq=False)
class Extracted:
    """Features [n, len(FEATURE_NAMES)], of GPUs [n, len(DEVICE_FEATURE_NAMES)], log2-scaled where they are sizes, the analytic cost in
    cycles [n], and what may be built [n]."""

    features: Array
    cycles: Array
    valid: npt.NDArray[np.bool_]


def extract(sketch: Sampled, bodies: Bodies, rows: IntArray, target: Target) -> Extracted:
    """Features and analytic cost of a population.

    Args:
        sketch: the space.
        bodies: its stages' bodies without reads of inlined stages.
        rows: the population [n, d].
        target: the machine that the programs are for.
    """
    if is_gpu(target):
        return Extracted(*extract_on_device(sketch, bodies, rows, target))
    machine = target.machine
    built = [in_vectors(nest) for nest in nests(sketch, bodies, rows, trimmed=True)]
    boxes = storage_boxes(built)
    found = [_stage_columns(nest, accesses(nest, boxes, machine.line_bytes), machine) for nest in built]
    stages = [columns for columns, _ in found]
    valid = admissible(built, boxes, stages, machine)
    homes = [nest.stage.attach.stage if isinstance(nest.stage.attach, At) else nest.stage.id for nest in built]
    parts = [columns["imbalance"] / columns["parallel"] for columns in stages]
    spent = together(zip(homes, [cycles for _, cycles in found], parts, strict=True))
    # s0 and s1 are the stages of most work, wherever they stand; all that pairs stages by place is done by now
    stages.sort(key=lambda columns: -float(columns["flops"].max(initial=0.0)))
    count = len(rows)
    blank = {name: np.zeros(count) for name in STAGE_FEATURES}
    columns = [_scaled(name, stage[name]) for stage in [*stages, *[blank] * STAGES][:STAGES] for name in STAGE_FEATURES]
    forks = np.sum([stage["forks"] for stage in stages], axis=0)
    cycles = spent + forks * machine.fork_join_cycles
    columns += [np.full(count, float(len(stages))), np.log2(1 + cycles), forks]
    return Extracted(np.stack(columns, axis=1), cycles, valid)


_PLAIN = {"imbalance", "vector_use", "gathers", "spills"}


def _scaled(name: str, values: Array) -> Array:
    return values if name in _PLAIN else np.log2(1.0 + np.maximum(values, 0.0))


def _stage_columns(nest: StageNest, touched: list[Access], machine: Machine) -> tuple[dict[str, Array], Cycles]:
    """The features of one stage, unscaled, and its cycles."""
    extents = nest_extent(nest)
    share = run_share(nest)
    iterations = np.prod(extents, axis=1)
    # the store comes first: lanes are of the result's type
    width = machine.vector_bytes // touched[0].item_bytes
    lanes = _vector_lanes(nest, len(share))
    vectors = np.ceil(lanes / width)
    vector_use = lanes / (vectors * width)
    rows, run = _register_tile(nest, len(share))
    threads, imbalance = _parallelism(nest, machine, len(share))
    operations = work_of(nest.body)
    flops = iterations * operations
    count, run = iterations / np.maximum(1.0, rows * lanes) / nest.group * share, run / nest.group
    loads, operands, gathers = _loads_per_step(nest, touched, rows, vectors)
    # As `unroll_register_tile` counts: accumulators, vectors of a step, a broadcast. What only one row reads is read where it is used.
    room = rows * vectors + np.where(rows > 1, operands, np.minimum(operands, 1.0)) + machine.scalar_registers
    spills = np.maximum(0.0, room - machine.vector_registers)
    is_sum = run > 0
    kept = np.where(spills > 0, 1.0, np.maximum(run, 1.0))  # a tile that does not fit stays in memory
    unrolled = _unrolled_steps(nest, extents, rows)
    steps = Steps(
        count=count,
        adds=rows * vectors * max(1.0, operations / 2),  # a multiplication and an addition are one instruction
        loads=loads,
        inserted=gathers * np.minimum(lanes, width),
        stored=count / kept * rows * vectors,
        is_sum=is_sum,
        slowdown=1.0 + 0.25 * np.log2(np.maximum(1.0, unrolled / FREE_UNROLLING)),
    )
    cycles = cycles_of(nest, touched, steps, share, (spills <= 0) & is_sum, machine)
    cycles = replace(
        cycles, stalls=cycles.stalls + share * taken_lines(nest, touched, machine, threads) * machine.caches[1].wait_under_load
    )
    tail = [extents[:, -n] if extents.shape[1] >= n else np.ones(len(share)) for n in (1, 2, 3)]
    columns = {
        "flops": flops, "parallel": threads, "imbalance": imbalance, "vector_lanes": lanes, "vector_use": vector_use,
        "tile_rows": rows, "tile_vectors": vectors, "spills": spills, "loads_per_step": loads, "gathers": gathers,
        "reduce_run": run, "inner_extent": tail[0], "second_extent": tail[1], "third_extent": tail[2],
        "unrolled": unrolled, "l1_bytes": cycles.levels[0], "l2_bytes": cycles.levels[1], "l3_bytes": cycles.levels[2],
        "tile_lines": np.sum([a.lines[:, -1] for a in touched], axis=0),
        "store_stride": touched[0].inner_stride, "unroll_step": nest.unroll_step, "compute_cycles": cycles.compute,
        "load_cycles": cycles.load, "update_cycles": cycles.store, "memory_cycles": cycles.memory, "stall_cycles": cycles.stalls,
        "cycles": cycles.alone / threads * imbalance, "forks": _fork_joins(nest, len(share)),
    }  # fmt: skip
    return columns, cycles


def _vector_lanes(nest: StageNest, count: int) -> Array:
    lanes = np.ones(count)
    for loop in nest.loops:
        if loop.own and loop.kind is LoopKind.VECTORIZE:
            lanes = lanes * loop.extent
    return lanes


def _register_tile(nest: StageNest, count: int) -> tuple[Array, Array]:
    """Rows of the register tile (spatial loops inside the innermost reduction, without the vector), and the reduction's run."""
    if not isinstance(nest.body[0], Reduce):
        return np.ones(count), np.zeros(count)
    rows, run = np.ones(count), np.ones(count)
    tile = nest.in_tile
    around = np.ones(count, bool)  # still among the reduction loops next to the tile
    for place in range(len(nest.loops) - 1, -1, -1):
        loop, inside = nest.loops[place], tile[:, place]
        around = around & (inside | (loop.extent == 1) | (loop.own and loop.reduction))
        if loop.reduction:
            run = np.where(around, run * loop.extent, run)
        elif loop.kind is not LoopKind.VECTORIZE:
            rows = np.where(inside, rows * loop.extent, rows)
    return rows, run


def _unrolled_steps(nest: StageNest, extents: Array, rows: Array) -> Array:
    """How many steps of the register tile are written out one after the other: the inner loops within the unroll limit."""
    scalar = [number for number, loop in enumerate(nest.loops) if loop.kind is not LoopKind.VECTORIZE]
    if not scalar:
        return np.ones_like(rows)
    inner = np.cumprod(extents[:, scalar][:, ::-1], axis=1)
    # the unroller takes the largest nest of inner loops whose iterations together are within the limit
    within = np.where(inner <= nest.unroll_step[:, None], inner, 1.0).max(axis=1)
    return np.asarray(np.maximum(1.0, within / np.maximum(rows, 1.0)), float)


def _loads_per_step(nest: StageNest, touched: list[Access], rows: Array, vectors: Array) -> tuple[Array, Array, Array]:
    """Loads, those of vectors, and gathered vectors per step of the register tile, each distinct element once."""
    loads, operands, gathers = np.zeros_like(rows), np.zeros_like(rows), np.zeros_like(rows)
    unrolled = np.ones_like(rows)
    # LLVM allocates registers for what a schedule unrolls; other tiles are held in them by `unroll_register_tile`, or not at all.
    written = [loop.reduction for loop in nest.loops if loop.own and loop.kind is LoopKind.UNROLL]
    written_out, in_turn = bool(written), written == sorted(written, reverse=True)
    tile = nest.in_tile
    for place, loop in enumerate(nest.loops):
        if loop.reduction:
            unrolled = np.where(tile[:, place], unrolled * loop.extent, unrolled)
    loops = np.stack([loop.extent > 1 for loop in nest.loops], axis=1) & ~tile
    around = len(nest.loops) - 1 - loops[:, ::-1].argmax(axis=1)  # the loop next to the tile

    in_lanes = list[Array]()  # vectors of each operand that is read along the lanes

    def again(access: Access) -> npt.NDArray[np.bool_]:
        return np.asarray(access.invariant[np.arange(len(around)), around] > 0)

    for access in touched[1:]:
        spread = np.where(access.inner_stride == 0, 1.0, vectors)
        moved = access.starts / unrolled if isinstance(nest.body[0], Reduce) else np.ones_like(rows)
        loads = loads + moved * spread
        once = written_out & (2 * moved > rows) & (rows > 1)  # hardly shared by rows: an operand of the instruction that needs it
        # Scalars of an unrolled window that the next tile needs again stay in registers, as weights of depthwise convolutions do, unless
        # all rows are done with one before the next is met.
        fixed = np.where(written_out & (not in_turn) & (unrolled > 1) & again(access), access.starts, 0.0)
        operands = operands + np.where(access.inner_stride == 0, fixed, np.where(once, 1.0, moved * vectors))
        in_lanes.append(np.where(access.inner_stride == 0, 0.0, moved * vectors))
        blocks = np.where(access.next_stride == 1, TRANSPOSED, 1.0)
        gathers = gathers + moved * blocks * np.where(access.inner_stride > 1, vectors, 0.0)
    if written_out and len(in_lanes) == 2:
        # Terms in lanes, 4 rows by 3 columns: of 3 + 4 vectors of a step those of the shorter side are held, the others read where used.
        a, b = in_lanes
        operands = np.where((np.minimum(a, b) > vectors) & (a * b == rows * vectors**2), operands - np.maximum(a, b), operands)
    return loads, operands, gathers


def _parallelism(nest: StageNest, machine: Machine, count: int) -> tuple[Array, Array]:
    trips = np.ones(count)
    found = False
    for loop in nest.loops:
        if loop.kind is LoopKind.PARALLEL:
            trips, found = trips * loop.extent, True
    if not found:
        return np.ones(count), np.ones(count)
    threads = np.minimum(trips, machine.cores)
    # 5 iterations on 4 threads are two rounds: 8/5 of the time that an even share takes
    return threads, np.ceil(trips / threads) * threads / trips


def _fork_joins(nest: StageNest, count: int) -> Array:
    forks = np.ones(count)
    for loop in nest.loops:
        if loop.kind is LoopKind.PARALLEL:
            # a consumer's parallel loop is counted with the consumer
            return forks if loop.own else np.zeros(count)
        forks = forks * loop.extent
    return np.zeros(count)
