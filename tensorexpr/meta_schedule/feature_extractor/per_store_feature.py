"""`PerStoreFeature`: 164 numbers for each buffer that a program stores to (Zheng et al., Ansor, appendix B).

They are told of the scheduled program as it is, before it is lowered: loops that blocks leave out by their conditions count in
full. 57 on the computation, 18 for each of five buffers, 10 points of the curve of arithmetic intensity, 4 on the storage of
the result, 3 on the loops. Of a buffer that is stored to several times the last store counts, and the operations of all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import TuningError
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.function import IRModule, PrimFunc
from ...tir.stmt import ForKind
from ...tune.features.operations import OPERATIONS, float_operations, operations_of
from ...tune.features.per_store import PER_TENSOR, POSITIONS, THREADS, slog
from ...tune.features.reuse import REUSE_KINDS
from ..search_strategy.search_strategy import MeasureCandidate
from .feature_extractor import PyFeatureExtractor
from .stores import Store, stores_of
from .touched import Numbers, Touched, extents_of

if TYPE_CHECKING:
    from ..tune_context import TuneContext

_ANNOTATED = (ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.PARALLEL)
_THREADS = len(THREADS) + 1  # and virtual ones
_LOOP, _SERIAL, _NONE = range(len(REUSE_KINDS))
_LINES, _BYTES = PER_TENSOR.index("lines"), PER_TENSOR.index("bytes")
_STORAGE, _LOOPS = 4, 3
# What all runs of a loop touched so far: buffer, elements of one run, bytes of an element.
Entries = dict[Var, list[tuple[Buffer, float, int]]]


class PerStoreFeature(PyFeatureExtractor, kind="per-store-feature"):
    """The features of all stores of a program.

    Args:
        buffers_per_store: of each store so many buffers are described.
        arith_intensity_curve_num_samples: points of the curve.
        cache_line_bytes: bytes that are moved at once.
        extract_workload: add the operations of the unscheduled program to each row.
    """

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        if min(buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes) < 1:
            raise TuningError("PerStoreFeature describes at least one buffer and one sample, with lines of at least one byte")
        self.buffers_per_store = buffers_per_store
        self.samples = arith_intensity_curve_num_samples
        self.line_bytes = float(cache_line_bytes)
        self.extract_workload = extract_workload

    @property
    def feature_vector_length(self) -> int:
        """The number of columns."""
        computation = len(OPERATIONS) + len(_ANNOTATED) * (3 + len(POSITIONS)) + 1 + _THREADS
        own = computation + self.buffers_per_store * len(PER_TENSOR) + self.samples + _STORAGE + _LOOPS
        return own + (len(OPERATIONS) if self.extract_workload else 0)

    def extract_from(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> list[Any]:
        """For each program its features [stores, columns].

        Raises:
            TuningError: for a program that stores nothing.
        """
        workload = _operations(context.mod) if self.extract_workload and context.mod is not None else None
        return [self._extract(candidate.sch.mod, workload) for candidate in candidates]

    def _extract(self, mod: IRModule, workload: Numbers | None) -> Numbers:
        rows: dict[Buffer, tuple[Numbers, Numbers]] = {}
        for func in mod.functions.values():
            entries: Entries = {}
            for store in stores_of(func) if isinstance(func, PrimFunc) else ():
                for level, loop in enumerate(store.loops):
                    touched = ((t.buffer, float(t.elements[level]), t.item_bytes) for t in store.tensors)
                    entries.setdefault(loop.loop_var, []).extend(touched)
                before = rows[store.buffer][0] if store.buffer in rows else 0.0
                counts = np.asarray(before + operations_of(store.value) * math.prod(store.extents))
                rows[store.buffer] = counts, self._columns(store, entries)
        if not rows:
            raise TuningError("a program that stores nothing has no features")
        more = [] if workload is None else [slog(workload)]
        return np.stack([np.concatenate([slog(counts), columns, *more]) for counts, columns in rows.values()])

    def _columns(self, store: Store, entries: Entries) -> Numbers:
        """All but the operations."""
        outer = math.prod(store.extents)
        found = [*_annotations(store), 0.0, *[1.0] * _THREADS]
        described = [self._buffer(store, tensor, entries, outer) for tensor in store.tensors]
        described.sort(key=lambda columns: (-columns[_LINES], -columns[_BYTES]))
        for columns in described[: self.buffers_per_store]:
            found += columns
        found += [0.0] * len(PER_TENSOR) * (self.buffers_per_store - len(described))
        found += self._intensity(store)
        size = math.prod(extents_of(store.buffer)) * store.tensors[0].item_bytes
        found += [_slog(size), _slog(size / store.tensors[0].item_bytes), _slog(1.0), _slog(outer)]
        found += [_slog(outer), _slog(sum(extent > 1 for extent in store.extents)), _slog(store.unroll_step)]
        return np.array(found)

    def _buffer(self, store: Store, tensor: Touched, entries: Entries, outer: float) -> list[float]:
        """What the store does with one buffer."""
        item, access = tensor.item_bytes, 2 if tensor.is_read and tensor.is_written else 1 if tensor.is_written else 0
        unique = float(tensor.elements[0]) * item
        stride, fewer = _innermost_move(store, tensor)
        lines = max(outer / max(fewer, 1.0) * min(stride * item / self.line_bytes, 1.0), 1.0)
        unique_lines = max(unique / min(max(tensor.run, 1.0) * item, self.line_bytes), 1.0)
        kind, iterations, moved, count = _reuse(store, tensor, entries)
        sizes = [outer * item, unique, lines, unique_lines]
        shares = [size / count if count > 0.5 else 2.0 * size for size in sizes]
        found = [float(access == n) for n in range(3)] + [_slog(size) for size in sizes]
        found += [float(kind == n) for n in range(3)] + [_slog(iterations), _slog(moved), _slog(count)]
        return [*found, *map(_slog, shares), _slog(stride if fewer == 1.0 else 0.0)]

    def _intensity(self, store: Store) -> list[float]:
        """Operations on floats for each byte, at equal shares of all operations, along the loops from within."""
        each = float_operations(operations_of(store.value))
        done, ratio, inner = [], [], 1.0
        for level in reversed(range(len(store.loops))):
            if store.extents[level] > 1:
                inner *= store.extents[level]
                moved = sum(float(tensor.elements[level]) * tensor.item_bytes for tensor in store.tensors)
                done.append(inner * each)
                ratio.append(inner * each / max(moved, 1.0))
        if not done or each <= 0:
            return [0.0] * self.samples
        wanted = np.arange(1, self.samples + 1) / self.samples * done[-1]
        return list(slog(np.interp(wanted, done, ratio)))


def _slog(value: float) -> float:
    return math.log2(value + 1.0)


def _operations(mod: IRModule) -> Numbers:
    """The operations of all stores of a module."""
    found: Numbers = np.zeros(len(OPERATIONS))
    for func in mod.functions.values():
        for store in stores_of(func) if isinstance(func, PrimFunc) else ():
            found = found + operations_of(store.value) * math.prod(store.extents)
    return found


def _annotations(store: Store) -> list[float]:
    """Number, product, innermost extent and position of the loops of each kind."""
    found: list[float] = []
    for kind in _ANNOTATED:
        extents = [e for loop, e in zip(store.loops, store.extents, strict=True) if loop.kind is kind and e > 1]
        position = [0.0] * len(POSITIONS)
        position[-1 if extents else 0] = 1.0
        found += [_slog(len(extents)), _slog(math.prod(extents) if extents else 0.0), _slog(extents[-1] if extents else 0.0), *position]
    return found


def _innermost_move(store: Store, tensor: Touched) -> tuple[float, float]:
    """The stride of the innermost loop that moves a buffer, and the iterations of the loops inside of it."""
    fewer = 1.0
    for level in reversed(range(len(store.loops))):
        if store.extents[level] > 1 and tensor.stride[level] > 0:
            return float(tensor.stride[level]), fewer
        fewer *= store.extents[level]
    return 0.0, fewer


def _reuse(store: Store, tensor: Touched, entries: Entries) -> tuple[int, float, float, float]:
    """The nearest reuse of a buffer: its kind, iterations and bytes until then, how often."""
    iterations, passed = 1.0, -1.0
    for level in reversed(range(len(store.loops))):
        extent, there = store.extents[level], entries[store.loops[level].loop_var]
        if extent <= 1:
            continue
        if not tensor.moves[level]:
            return _LOOP, iterations, passed if passed >= 0 else float(sum(item for _, _, item in there)), extent
        iterations, passed = iterations * extent, sum(elements * item for _, elements, item in there)
        same = [elements for buffer, elements, _ in there if buffer is tensor.buffer]
        if len(same) > 1:
            return _SERIAL, min(same) / extent, passed / extent, len(same) - 1.0
    return _NONE, 0.0, 0.0, 0.0
