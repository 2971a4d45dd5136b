"""The 164 features of every store of a program (Ansor, appendix B), for whole populations at once, by the names TVM has for them.

57 on the computation: operations by kind, loops that are vectors, unrolled or parallel; 18 for each of the five tensors that it
moves most of; 10 points of the curve of arithmetic intensity; 4 on the storage of its result; 3 on the loops around it.
Sizes are scaled by `slog`. All is told of the program as lowering makes it in phase 0, before loops are cut: guards are left
out, a loop of one iteration is none, a loop made by fusing is one. Of a result that is stored twice, such as a reduction's,
the last store counts, and the operations of all of them.

- bytes, lines: what all executions of the statement move; unique: what they touch. A line has 64 bytes.
- stride: elements between the first two iterations of the innermost loop, in the tensor's own layout.
- reuse: the innermost loop that doesn't move a tensor reads it again (LoopMultipleRead, as often as it runs); or a loop under
  which it was touched before (SerialMultipleReadWrite). The distance is what is executed and touched until then.
- arith_intensity_curve: operations on floats per byte at a tenth, two tenths, ... of all operations, along the loops from within.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dataclass import dataclass
from ...schedule.tree import At, LoopKind
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.expr import Reduce
from .nest import Array, Bodies, IntArray, Sampled, nests, sampled_values
from .operations import OPERATIONS, float_operations, operations_of, starting_operations
from .reuse import REUSE_KINDS, reuse_of
from .store_loops import StoreLoops, Touched
from .stores import Store, stores_of

TENSORS = 5
LINE_BYTES = 64.0
SAMPLES = 10
ANNOTATIONS = (("vec", LoopKind.VECTORIZE), ("unroll", LoopKind.UNROLL), ("parallel", LoopKind.PARALLEL))
POSITIONS = ("None", "InnerSpatial", "MiddleSpatial", "OuterSpatial", "InnerReduce", "MiddleReduce", "OuterReduce", "Mixed")
THREADS = ("blockIdx_x", "blockIdx_y", "blockIdx_z", "threadIdx_x", "threadIdx_y", "threadIdx_z")
ACCESSES = ("Read", "Write", "ReadWrite")
PER_TENSOR = (
    *(f"acc_type.k{kind}" for kind in ACCESSES), "bytes", "unique_bytes", "lines", "unique_lines",
    *(f"reuse_type.k{kind}" for kind in REUSE_KINDS), "reuse_dis_iter", "reuse_dis_bytes", "reuse_ct",
    "bytes_d_reuse_ct", "unique_bytes_d_reuse_ct", "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride",
)  # fmt: skip


def per_store_names(tensors: int = TENSORS) -> tuple[str, ...]:
    """The names of the features, in order."""
    annotated = (
        name
        for word, _ in ANNOTATIONS
        for name in (f"{word}_num", f"{word}_prod", f"{word}_len", *(f"{word}_type.kPos{position}" for position in POSITIONS))
    )
    threads = (f"{name}_len" for name in (*THREADS, "vthread"))
    return (
        *OPERATIONS, *annotated, "is_gpu", *threads,
        *(f"B{number}.{name}" for number in range(tensors) for name in PER_TENSOR),
        *(f"arith_intensity_curve_{sample}" for sample in range(SAMPLES)),
        "alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod", "outer_prod", "num_loops", "auto_unroll_max_step",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PerStore:
    """Features [n, stores, f] of a population; `stores` are the tensors that are stored, in the order of the program."""

    stores: tuple[Tensor, ...]
    features: Array


def per_store(sketch: Sampled, bodies: Bodies, rows: IntArray, tensors: int = TENSORS) -> PerStore:
    """The features of a population.

    Args:
        sketch: the space.
        bodies: its stages' bodies without reads of inlined stages.
        rows: the population [n, d].
        tensors: of each store so many are described.
    """
    walk = stores_of(sketch.tree, nests(sketch, bodies, rows), sampled_values(sketch, rows))
    made = [_features(store, entries, tensors) for store, entries in walk.stores]
    count = len(rows)
    shape = (count, 0, len(per_store_names(tensors)))
    return PerStore(tuple(store.result for store, _ in walk.stores), np.stack(made, axis=1) if made else np.zeros(shape))


def slog(values: Array) -> Array:
    """log2(x + 1), mirrored for negative numbers."""
    return np.asarray(np.sign(values) * np.log2(np.abs(values) + 1.0))


def _features(store: Store, entries: dict[int, list[tuple[Tensor, Array, int]]], tensors: int) -> Array:
    loops = store.loops
    outer = np.prod(loops.extents, axis=1)
    columns = [*_computation(store, outer), *_annotations(loops)]
    # is_gpu, and the lengths of thread loops, 1 on a CPU
    columns += [np.zeros(loops.count), *[np.ones(loops.count)] * (len(THREADS) + 1)]
    described = [_tensor(loops, tensor, entries, outer) for tensor in store.tensors]
    columns += _largest(store.tensors, np.stack(described, axis=1), tensors)
    columns += _intensity(store)
    columns += _storage(store, outer)
    columns += [slog(outer), slog(np.sum(loops.extents > 1, axis=1).astype(float)), slog(store.unroll_step)]
    return np.stack(columns, axis=1)


def _computation(store: Store, outer: Array) -> list[Array]:
    """Operations of all executions; of a reduction those of its starting value too."""
    counts = outer[:, None] * operations_of(store.value)[None, :]
    if isinstance(store.value, Reduce):
        stage = store.loops.nest.stage
        starts = np.ones(len(outer))
        for place, extent in enumerate(store.loops.extents.T):
            if place < store.around or not stage.is_reduction(stage.leaf[place - store.around]):
                starts = starts * extent
        counts = counts + starts[:, None] * starting_operations(store.value)[None, :]
    return list(slog(counts).T)


def _annotations(loops: StoreLoops) -> list[Array]:
    """Number, product, innermost extent and position of the loops of each kind."""
    columns = []
    for _, kind in ANNOTATIONS:
        number, product, length = np.zeros(loops.count), np.ones(loops.count), np.zeros(loops.count)
        for extent, its in zip(loops.extents.T, loops.kinds, strict=True):
            if its is kind:
                number = number + (extent > 1)
                product = product * extent
                length = np.where(extent > 1, extent, length)
        some = (number > 0).astype(float)
        position = [np.zeros(loops.count) for _ in POSITIONS]
        position[0], position[-1] = 1.0 - some, some
        columns += [slog(number), slog(product * some), slog(length), *position]
    return columns


def _tensor(loops: StoreLoops, tensor: Touched, entries: dict[int, list[tuple[Tensor, Array, int]]], outer: Array) -> Array:
    """[n, 18]: what the store does with one tensor."""
    item = tensor.item_bytes
    kind = ACCESSES.index("ReadWrite" if tensor.is_read and tensor.is_written else "Write" if tensor.is_written else "Read")
    unique = tensor.elements[:, 0] * item
    stride, fewer = _innermost_move(loops, tensor)
    lines = np.maximum(outer / np.maximum(fewer, 1.0) * np.minimum(stride * item / LINE_BYTES, 1.0), 1.0)
    unique_lines = np.maximum(unique / np.minimum(np.maximum(tensor.run, 1.0) * item, LINE_BYTES), 1.0)
    reuse = reuse_of(loops, tensor, entries)
    sizes = [outer * item, unique, lines, unique_lines]
    # without reuse twice the size, as TVM has it
    shares = [np.where(reuse.count > 0.5, size / np.maximum(reuse.count, 1.0), 2.0 * size) for size in sizes]
    columns = [np.full(loops.count, float(kind == n)) for n in range(len(ACCESSES))]
    columns += [slog(size) for size in sizes]
    columns += [(reuse.kind == n).astype(float) for n in range(len(REUSE_KINDS))]
    columns += [slog(reuse.iterations), slog(reuse.bytes), slog(reuse.count), *map(slog, shares)]
    columns.append(slog(np.where(fewer == 1.0, stride, 0.0)))
    return np.stack(columns, axis=1)


def _innermost_move(loops: StoreLoops, tensor: Touched) -> tuple[Array, Array]:
    """[n]: the stride of the innermost loop that moves a tensor, and the iterations of the loops inside of it."""
    stride, fewer, settled = np.zeros(loops.count), np.ones(loops.count), np.zeros(loops.count, bool)
    for level in reversed(range(len(loops.places))):
        extent = loops.extents[:, level]
        moving = np.where(extent > 1, tensor.stride[:, level], 0.0)
        found = ~settled & (moving > 0)
        stride = np.where(found, moving, stride)
        settled = settled | found
        fewer = np.where(settled, fewer, fewer * extent)
    return stride, fewer


def _largest(tensors: Sequence[Touched], described: Array, most: int) -> list[Array]:
    """[n] each: the features of the tensors with most lines, then bytes, then by name; zeros where there are fewer."""
    names = sorted(range(len(tensors)), key=lambda n: tensors[n].tensor.name)
    described = described[:, names]
    lines, size = (described[:, :, PER_TENSOR.index(name)] for name in ("lines", "bytes"))
    # lexsort is stable: tensors with as many lines and bytes stay in the order of their names
    order = np.lexsort((-size, -lines), axis=1)[:, :most]
    chosen = np.take_along_axis(described, order[:, :, None], axis=1)
    count, found, width = chosen.shape
    filled = np.concatenate([chosen, np.zeros((count, most - found, width))], axis=1)
    return list(filled.reshape(count, -1).T)


def _intensity(store: Store) -> list[Array]:
    """[n] each: operations per byte along the loops."""
    loops, each = store.loops, float_operations(operations_of(store.value))
    real = loops.extents > 1
    if each <= 0 or not real.shape[1]:
        return [np.zeros(loops.count)] * SAMPLES
    levels = slice(real.shape[1] - 1, None, -1)  # from within
    inner = np.cumprod(loops.extents[:, levels], axis=1)
    moved = np.sum([tensor.elements[:, :-1] * tensor.item_bytes for tensor in store.tensors], axis=0)[:, levels]
    # Loops of one iteration inside of all others are none: their points are moved to the first real one.
    first = real[:, levels].argmax(axis=1)[:, None]
    places = np.maximum(np.arange(real.shape[1])[None, :], first)
    done = np.asarray(np.take_along_axis(inner, places, axis=1) * each, float)
    ratio = np.asarray(done / np.maximum(np.take_along_axis(moved, places, axis=1), 1.0), float)
    some = real.any(axis=1)
    return [slog(np.where(some, _interpolated(done, ratio, (n + 1) / SAMPLES), 0.0)) for n in range(SAMPLES)]


def _interpolated(done: Array, ratio: Array, share: float) -> Array:
    wanted = done[:, -1] * share
    # 1e-12: a share of the product that rounds up must not pass the point it is equal to
    above = np.minimum((done < wanted[:, None] * (1 - 1e-12)).sum(axis=1), done.shape[1] - 1)
    below = np.maximum(above - 1, 0)
    rows = np.arange(len(done))
    span = done[rows, above] - done[rows, below]
    part = np.where(span > 0, (wanted - done[rows, below]) / np.where(span > 0, span, 1.0), 1.0)
    between = ratio[rows, below] + part * (ratio[rows, above] - ratio[rows, below])
    return np.asarray(np.where(above > 0, between, ratio[rows, 0]))


def _storage(store: Store, outer: Array) -> list[Array]:
    """The storage of the result: its bytes, elements times allocations, allocations, and executions for each of them."""
    stage = store.loops.nest.stage
    attached = isinstance(stage.attach, At)
    around = np.prod(store.loops.extents[:, : store.around], axis=1) if attached else np.ones(store.loops.count)
    if attached:
        box = np.prod([store.loops.nest.region[axis] for axis in stage.spatial] or [np.ones(store.loops.count)], axis=0)
    else:
        box = np.prod([size[:, 0] for size in store.tensors[0].sizes] or [np.ones(store.loops.count)], axis=0)
    item = parse_dtype(store.result.dtype).itemsize
    return [slog(box * item), slog(box * around), slog(around), slog(outer / around)]
