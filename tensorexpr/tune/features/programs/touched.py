"""What the loops around a store make it touch: numbers for each loop, outermost first.

A variable is known by how far the first two iterations of each loop move it (its steps) and how far one run of each loop does
(its reach). Expressions of variables are evaluated on all loops at once; for those of splits and fusions that is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....dataclass import dataclass
from ....tir.buffer import Buffer
from ....tir.dtype import parse_dtype
from ....tir.expr import Add, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Sub, Var

Numbers = npt.NDArray[np.float64]
_OPERATIONS: dict[type[PrimExpr], Callable[[Numbers, Numbers], Numbers]] = {
    Add: np.add,
    Sub: np.subtract,
    Mul: np.multiply,
    # variables that aren't known count as 0, and may be divisors
    FloorDiv: lambda a, b: np.asarray(a // np.where(b == 0, 1, b)),
    FloorMod: lambda a, b: np.asarray(a % np.where(b == 0, 1, b)),
    Min: np.minimum,
    Max: np.maximum,
}


def evaluated(expr: PrimExpr, values: Mapping[Var, Numbers], loops: int) -> Numbers | None:
    """An integer expression on all loops at once, where variables that aren't known are 0; None for other than integer arithmetic."""
    match expr:
        case Var():
            return values.get(expr, np.zeros(loops))
        case IntImm():
            return np.full(loops, float(expr.value))
        case Cast():
            return evaluated(expr.value, values, loops)
    operation = _OPERATIONS.get(type(expr))
    if operation is None:
        return None
    left, right = evaluated(expr.a, values, loops), evaluated(expr.b, values, loops)  # type: ignore[attr-defined]
    return None if left is None or right is None else operation(left, right)


@dataclass(frozen=True, eq=False)
class Motion:
    """How the loops around a place move the variables there."""

    steps: Mapping[Var, Numbers]
    reach: Mapping[Var, Numbers]
    loops: int

    @staticmethod
    def of_loops(variables: Sequence[Var], extents: Sequence[float]) -> Motion:
        """Of the loops' own variables."""
        unit = np.eye(len(variables))
        steps = {var: unit[place] for place, var in enumerate(variables)}
        reach = {var: unit[place] * (extent - 1) for place, (var, extent) in enumerate(zip(variables, extents, strict=True))}
        return Motion(steps, reach, len(variables))

    def moved(self, expr: PrimExpr) -> tuple[Numbers, Numbers] | None:
        """How far an expression is moved: by a step, and by a run, of each loop; None where that isn't known."""
        start = evaluated(expr, {}, self.loops)
        first, last = evaluated(expr, self.steps, self.loops), evaluated(expr, self.reach, self.loops)
        if start is None or first is None or last is None:
            return None
        return np.abs(first - start), np.abs(last - start)

    def within(self, axes: Mapping[Var, PrimExpr]) -> Motion:
        """With the axes of a block, which stand for expressions."""
        known = {var: self.moved(value) for var, value in axes.items()}
        steps = {var: found[0] for var, found in known.items() if found is not None}
        reach = {var: found[1] for var, found in known.items() if found is not None}
        return Motion({**self.steps, **steps}, {**self.reach, **reach}, self.loops)


@dataclass(frozen=True, eq=False)
class Touched:
    """What a store does with one buffer.

    Args:
        elements: [m + 1] of the box that is touched while loops d, d + 1, ... run.
        stride: [m] elements between what the first two iterations of each loop touch.
        moves: [m] whether a loop moves it.
        rows: [m + 1] extents of the last dimension of the box.
        run: elements in a row that lie side by side, of what all loops touch.
    """

    buffer: Buffer
    is_read: bool
    is_written: bool
    elements: Numbers
    stride: Numbers
    moves: npt.NDArray[np.bool_]
    rows: Numbers
    run: float

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return parse_dtype(self.buffer.dtype).itemsize


def extents_of(buffer: Buffer) -> list[float]:
    """The extents of a buffer; 1 where they are symbolic."""
    return [float(extent.value) if isinstance(extent, IntImm) else 1.0 for extent in buffer.shape]


def touched(motion: Motion, buffer: Buffer, accesses: Sequence[Sequence[PrimExpr]], is_read: bool, is_written: bool) -> Touched:
    """What a store does with a buffer that it accesses at one or more places."""
    sizes = extents_of(buffer)
    boxes, stride, moves = np.ones((len(sizes), motion.loops + 1)), np.full(motion.loops, np.inf), np.zeros(motion.loops, bool)
    for indices in accesses:
        apart, row = np.zeros(motion.loops), 1.0
        for dim in reversed(range(len(sizes))):
            found = motion.moved(indices[dim])
            if found is None:
                boxes[dim], moves = sizes[dim], np.ones(motion.loops, bool)
            else:
                inner = np.append(np.cumsum(found[1][::-1])[::-1], 0.0) + 1.0
                boxes[dim] = np.maximum(boxes[dim], np.minimum(inner, sizes[dim]))
                # row-major: a step of this dimension passes all elements of those further in
                apart += row * found[0]
                moves |= found[1] > 0
            row *= sizes[dim]
        stride = np.minimum(stride, np.where(apart > 0, apart, np.inf))
    run = 1.0
    for box, size in zip(reversed(boxes), reversed(sizes), strict=True):
        run *= box[0]
        # a dimension touched in part ends the run: the next row lies elsewhere
        if box[0] < size:
            break
    elements = np.asarray(np.prod(boxes, axis=0))
    rows = boxes[-1] if sizes else np.ones(motion.loops + 1)
    return Touched(buffer, is_read, is_written, elements, np.where(np.isfinite(stride), stride, 0.0), moves, rows, float(run))
