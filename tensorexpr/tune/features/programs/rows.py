"""The features of a program of loops or blocks: 164 numbers for each buffer that it stores to (Zheng et al., Ansor, appendix B).

They are told of the scheduled program as it is, before it is lowered: loops that blocks leave out by their conditions count in
full. 57 on the computation, 18 for each of five buffers, 10 points of the curve of arithmetic intensity, 4 on the storage of
the result, 3 on the loops. Of a buffer that is stored to several times the last store counts, and the operations of all.
"""

from __future__ import annotations

import math

import numpy as np

from ....dataclass import dataclass
from ....tir.buffer import Buffer
from ....tir.expr import Var
from ....tir.function import IRModule, PrimFunc
from ....tir.stmt import ForKind
from ..operations import OPERATIONS, float_operations, operations_of
from ..per_store import PER_TENSOR, POSITIONS, THREADS, slog
from ..reuse import REUSE_KINDS
from .stores import Store, stores_of
from .touched import Numbers, Touched, extents_of

_ANNOTATED = (ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.PARALLEL)
_THREADS = len(THREADS) + 1  # and virtual ones
_LOOP, _SERIAL, _NONE = range(len(REUSE_KINDS))
_LINES, _BYTES = PER_TENSOR.index("lines"), PER_TENSOR.index("bytes")
_STORAGE, _LOOPS = 4, 3
# What all runs of a loop touched so far: buffer, elements of one run, bytes of an element.
Entries = dict[Var, list[tuple[Buffer, float, int]]]


@dataclass(frozen=True)
class ProgramFeatures:
    """How programs are told of: so many buffers of each store and points of the curve, lines of memory of so many bytes.

    `scaled`: numbers are given as log2(x + 1).
    """

    buffers: int = 5
    samples: int = 10
    line_bytes: float = 64.0
    scaled: bool = True

    @property
    def columns(self) -> int:
        """How many numbers there are for each store."""
        computation = len(OPERATIONS) + len(_ANNOTATED) * (3 + len(POSITIONS)) + 1 + _THREADS
        return computation + self.buffers * len(PER_TENSOR) + self.samples + _STORAGE + _LOOPS

    def rows(self, mod: IRModule) -> Numbers:
        """The features [stores, columns] of a module; no rows if it stores nothing."""
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
        found = [np.concatenate([slog(counts) if self.scaled else counts, columns]) for counts, columns in rows.values()]
        return np.stack(found) if found else np.zeros((0, self.columns))

    def scale(self, value: float) -> float:
        """A number as it stands in a row."""
        return math.log2(value + 1.0) if self.scaled else value

    def _columns(self, store: Store, entries: Entries) -> Numbers:
        """All but the operations."""
        outer = math.prod(store.extents)
        found = [*self._annotations(store), 0.0, *[1.0] * _THREADS]
        described = [self._buffer(store, tensor, entries, outer) for tensor in store.tensors]
        # stable, and without names to go by: buffers that are alike stay in the order of the statement
        described.sort(key=lambda columns: (-columns[_LINES], -columns[_BYTES]))
        for columns in described[: self.buffers]:
            found += columns
        found += [0.0] * len(PER_TENSOR) * (self.buffers - len(described))
        found += self._intensity(store)
        size = math.prod(extents_of(store.buffer)) * store.tensors[0].item_bytes
        found += [self.scale(size), self.scale(size / store.tensors[0].item_bytes), self.scale(1.0), self.scale(outer)]
        found += [self.scale(outer), self.scale(sum(extent > 1 for extent in store.extents)), self.scale(store.unroll_step)]
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
        found = [float(access == n) for n in range(3)] + [self.scale(size) for size in sizes]
        found += [float(kind == n) for n in range(3)] + [self.scale(iterations), self.scale(moved), self.scale(count)]
        return [*found, *map(self.scale, shares), self.scale(stride if fewer == 1.0 else 0.0)]

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
        return [self.scale(float(value)) for value in np.interp(wanted, done, ratio)]

    def _annotations(self, store: Store) -> list[float]:
        """Number, product, innermost extent and position of the loops of each kind."""
        found: list[float] = []
        for kind in _ANNOTATED:
            extents = [e for loop, e in zip(store.loops, store.extents, strict=True) if loop.kind is kind and e > 1]
            position = [0.0] * len(POSITIONS)
            position[-1 if extents else 0] = 1.0
            product, innermost = (float(math.prod(extents)), extents[-1]) if extents else (0.0, 0.0)
            found += [*map(self.scale, (len(extents), product, innermost)), *position]
        return found


def workload_operations(mod: IRModule) -> Numbers:
    """The operations of all stores of a module."""
    found: Numbers = np.zeros(len(OPERATIONS))
    for func in mod.functions.values():
        for store in stores_of(func) if isinstance(func, PrimFunc) else ():
            found = found + operations_of(store.value) * math.prod(store.extents)
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
    # the rule of `reuse.reuse_of`, for one program
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
