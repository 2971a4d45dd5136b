"""A buffer as rows along one of its axes, for operators that run over one axis in order and over all others in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..target import Target
from ..te.extern import extern
from ..te.tensor import Tensor
from ..tir import arithmetic, ir_builder
from ..tir.arithmetic import as_int, const
from ..tir.buffer import Buffer
from ..tir.expr import PrimExpr
from ..tir.ir_builder import IRBuilder
from .launches import runs_on_gpu

Body = Callable[[IRBuilder, list[Buffer], list[Buffer]], None]


class Rows:
    """Element i of row r, where the rows of a buffer run along its axis `place`."""

    def __init__(self, ib: IRBuilder, buffer: Buffer, place: int) -> None:
        self.buffer = ib.buffer_ptr(buffer)
        self.length = buffer.shape[place]
        self._builder = ib
        self.inner, outer = product(buffer.shape[place + 1 :]), product(buffer.shape[:place])
        self.count = outer * self.inner

    @contextmanager
    def parallel(self, kind: str = "parallel") -> Iterator[PrimExpr]:
        """A loop over the rows, parallel unless it is told otherwise."""
        with self._builder.for_range(0, self.count, "row", kind=kind) as row:
            yield row

    def kind_of_loop(self, operations: int) -> str:
        """Whether a loop over the rows is worth threads, which do so many operations for each element: "parallel", or "serial"."""
        count, length = as_int(self.count), as_int(self.length)
        if count is None or length is None or runs_on_gpu():
            return "parallel"
        from ..spaces.machine import is_parallel  # rules of schedules, which programs of kernels that are built already don't load

        return "parallel" if is_parallel(Target.target_or_current(None), count * length * operations) else "serial"

    def _at(self, row: Any, i: Any) -> PrimExpr:
        # Neighbouring rows are neighbours in memory: row r of axis 1 of [2, 3, 4] begins at (r // 4) * 12 + r % 4.
        width = self.inner if as_int(self.inner) != 0 else 1  # there are no rows then
        outer, inner = arithmetic.floordiv(row, width), arithmetic.floormod(row, width)
        return (outer * self.length + arithmetic.convert(i)) * self.inner + inner

    def load(self, row: Any, i: Any) -> PrimExpr:
        """Element i of a row."""
        return self.buffer[self._at(row, i)]

    def store(self, row: Any, i: Any, value: Any) -> None:
        """Set element i of a row."""
        self.buffer[self._at(row, i)] = value


def product(extents: Sequence[Any]) -> PrimExpr:
    """The number of elements of a shape."""
    total: PrimExpr = const(1, "int32")
    for extent in extents:
        total = total * extent
    return total


def in_loops(shapes: Sequence[Any], inputs: Sequence[Tensor], body: Body, name: str, dtypes: Sequence[str]) -> list[Tensor]:
    """Tensors that loops compute; `body` gets a builder and the buffers of inputs and outputs."""

    def statement(ins: list[Buffer], outs: list[Buffer]) -> Any:
        ib = ir_builder.create()
        body(ib, ins, outs)
        return ib.get()

    made = extern([tuple(shape) for shape in shapes], list(inputs), statement, name=name, dtype=list(dtypes), tag=name)
    return [made] if isinstance(made, Tensor) else list(made)
