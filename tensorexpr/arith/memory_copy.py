"""Loops that only copy one stretch of memory to another."""

from __future__ import annotations

from collections.abc import Iterator

from ..tir.arithmetic import as_int
from ..tir.buffer import Buffer, BufferRegion
from ..tir.expr import BufferLoad, IntImm, PrimExpr, Range, StringImm, Var
from ..tir.rewriting import substitute, walk
from ..tir.stmt import BufferStore, For, Stmt
from .index_analyzer import Analyzer
from .int_set import IntervalSet

Copy = tuple[BufferRegion, BufferRegion]


def identify_memcpy(stmt: Stmt) -> list[Copy | StringImm]:
    """For each loop in a statement, outer ones first: what it copies, or why it is no copy of a stretch of memory.

    A loop nest is one if it stores, once each, as many consecutive elements as it loads, in the same order.

    Returns:
        a pair (source, destination) of regions, or the reason as a text.
    """
    loops = [node for node in reversed(list(walk(stmt))) if isinstance(node, For)]
    return [_copy_of(loop) for loop in loops]


class _Reason(Exception):
    """Why a loop is no copy."""


def _copy_of(loop: For) -> Copy | StringImm:
    try:
        return _Nest(loop).copy()
    except _Reason as reason:
        return StringImm(str(reason))


class _Nest:
    """A loop nest around one store."""

    def __init__(self, outermost: For) -> None:
        self.analyzer = Analyzer()
        self.ranges: dict[Var, Range] = {}
        inner: Stmt = outermost
        while isinstance(inner, For):
            self.ranges[inner.loop_var] = Range.from_min_extent(inner.min, inner.extent)
            self.analyzer.bind(inner.loop_var, self.ranges[inner.loop_var])
            inner = inner.body
        if not isinstance(inner, BufferStore):
            raise _Reason(f"Expected innermost loop to have BufferStore body, not a {type(inner).__name__}")
        if not isinstance(inner.value, BufferLoad):
            raise _Reason(f"Expected BufferStore's value to be BufferLoad, not {inner.value}")
        if inner.predicate is not None or inner.value.predicate is not None:
            raise _Reason("a mask leaves elements out")
        self.store, self.load = inner, inner.value

    def copy(self) -> Copy:
        """The two regions."""
        iterations = 1
        for side in self.ranges.values():
            extent = as_int(side.extent)
            if extent is None:
                raise _Reason(f"the loop runs {side.extent} times, which is no constant")
            iterations *= extent
        places, starts = {}, {}
        for name, access in (("src", self.load), ("dst", self.store)):
            place = self._flat(access.buffer, access.indices)
            steps = self._steps(place)
            if any(step == 0 and as_int(self.ranges[var].extent) != 1 for var, step in steps.items()):
                raise _Reason(f"the {name} index {place} does not form a bijective transform of the loops")
            touched = 1 + sum(abs(step) * ((as_int(self.ranges[var].extent) or 1) - 1) for var, step in steps.items())
            if touched != iterations:
                raise _Reason(f"Mismatch between loop iterations ({iterations}) and number of {name} indices touched ({touched})")
            # None twice: each step is what the smaller ones fill. i + 3 * j + 3 * k of 2 each spans 8 elements and leaves 2 out.
            filled = 1
            for var, step in sorted(steps.items(), key=lambda item: (abs(item[1]), as_int(self.ranges[item[0]].extent) or 1)):
                extent = as_int(self.ranges[var].extent) or 1
                if extent > 1 and abs(step) != filled:
                    raise _Reason(f"the {name} index {place} does not form a bijective transform of the loops")
                filled *= extent
            places[name], starts[name] = steps, place
        # Either side alone may be consecutive; in another order than the other it is a transposition.
        if places["src"] != places["dst"]:
            raise _Reason(f"the loops reach different source and destination elements: {self.load} and {self.store.buffer.name} differ")
        if self.load.buffer.data is self.store.buffer.data:
            # A[i + 1] = A[i] hands A[0] on to all; memory that is moved as a whole doesn't.
            apart = as_int(self.analyzer.simplify(starts["dst"] - starts["src"]))
            if apart is None or 0 < abs(apart) < iterations:
                raise _Reason(f"the loops store to elements of {self.store.buffer.name} that they load later, or may do so")
        return self._region(self.load.buffer, self.load.indices), self._region(self.store.buffer, self.store.indices)

    def _flat(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
        places = buffer.offset_of(indices)
        if len(places) != 1:
            raise _Reason(f"{buffer.name} has several axes of storage")
        return self.analyzer.simplify(places[0])

    def _steps(self, place: PrimExpr) -> dict[Var, int]:
        """How far each loop moves an index; it must be the same everywhere."""
        steps = {}
        for var in self.ranges:
            step = as_int(self.analyzer.simplify(substitute(place, {var: var + 1}) - place))
            if step is None:
                raise _Reason(f"the index {place} does not form a bijective transform of the loops")
            steps[var] = step
        return steps

    def _region(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> BufferRegion:
        return BufferRegion(buffer, tuple(self._sides(indices)))

    def _sides(self, indices: tuple[PrimExpr, ...]) -> Iterator[Range]:
        domain = {var: IntervalSet(r.min, r.min + r.extent - 1) for var, r in self.ranges.items()}
        for index in indices:
            found = self.analyzer.int_set(index, domain)
            extent = self.analyzer.simplify(found.max_value - found.min_value + 1)
            yield Range.from_min_extent(self.analyzer.simplify(found.min_value), IntImm(extent.dtype, as_int(extent) or 1))
