"""What each operator computes: on Python integers and NumPy float scalars, and on NumPy arrays of lanes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ..arithmetic import truncated
from ..dtype import int_limits, narrowed, parse_dtype, to_numpy, wrap_int
from ..expr import EQ, GE, GT, LE, LT, NE, Add, Div, FloorDiv, FloorMod, Max, Min, Mod, Mul, PrimExpr, Sub

Thunk = Callable[[], Any]


def _lanestruncated(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    # Rounding down and towards zero differ by one where signs differ and something remains: -7 / 2 is -3, not -4.
    return quotient + ((np.fmod(a, b) != 0) & ((a < 0) != (b < 0)))


SCALAR_OPS: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Min: lambda a, b: a if a < b else b,
    Max: lambda a, b: a if a > b else b,
    EQ: operator.eq,
    NE: operator.ne,
    LT: operator.lt,
    LE: operator.le,
    GT: operator.gt,
    GE: operator.ge,
}
LANE_OPS: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    **SCALAR_OPS,
    Min: lambda a, b: np.where(a < b, a, b),
    Max: lambda a, b: np.where(a > b, a, b),
}
SCALAR_INT_DIVISIONS: dict[type[PrimExpr], Callable[[int, int], int]] = {
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Div: truncated,
    Mod: lambda a, b: a - b * truncated(a, b),
}
LANE_INT_DIVISIONS: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
    Div: _lanestruncated,
    Mod: np.fmod,
}
FLOAT_DIVISIONS: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    Div: operator.truediv,
    Mod: np.fmod,
    FloorDiv: np.floor_divide,
    FloorMod: np.mod,
}


def wrapped(op: Callable[[Any, Any], int], a: Thunk, b: Thunk, dtype: str) -> Thunk:
    """`op` of two integers, reduced to `dtype` as the machine does."""
    low, high = int_limits(dtype)

    def run() -> int:
        value = op(a(), b())
        return value if low <= value <= high else wrap_int(value, dtype)

    return run


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient * value, the values in cells or computed by closures: an index, as nearly all of them are.

    Sums and multiples wrap once, at the end: modulo a power of two that gives what wrapping at each step does.
    """

    constant: int
    cells: tuple[tuple[int, int], ...] = ()  # of a slot, its coefficient
    thunks: tuple[tuple[Thunk, int], ...] = ()

    def scaled(self, by: int) -> Linear:
        """The form times a number."""
        return Linear(self.constant * by, tuple((s, c * by) for s, c in self.cells), tuple((t, c * by) for t, c in self.thunks))

    def plus(self, other: Linear) -> Linear:
        """The sum of two forms; terms of the same cell or closure are one."""
        cells, thunks = dict(self.cells), dict(self.thunks)
        for slot, coefficient in other.cells:
            cells[slot] = cells.get(slot, 0) + coefficient
        for thunk, coefficient in other.thunks:
            thunks[thunk] = thunks.get(thunk, 0) + coefficient
        return Linear(self.constant + other.constant, tuple(cells.items()), tuple(thunks.items()))


def linear(form: Linear, cells: list[Any], dtype: str) -> Thunk:
    """The closure of a linear form, with code of its own for few terms, which is what most have."""
    low, high = int_limits(dtype)
    constant, terms, thunks = form.constant, form.cells, form.thunks
    if len(terms) == 1 and not thunks:
        ((slot, scale),) = terms

        def one() -> int:
            value: int = constant + scale * cells[slot]
            return value if low <= value <= high else wrap_int(value, dtype)

        return one
    if len(terms) == 2 and not thunks:
        (slot, scale), (slot_b, scale_b) = terms

        def two() -> int:
            value: int = constant + scale * cells[slot] + scale_b * cells[slot_b]
            return value if low <= value <= high else wrap_int(value, dtype)

        return two
    if len(terms) == 3 and not thunks:
        (slot, scale), (slot_b, scale_b), (slot_c, scale_c) = terms

        def three() -> int:
            value: int = constant + scale * cells[slot] + scale_b * cells[slot_b] + scale_c * cells[slot_c]
            return value if low <= value <= high else wrap_int(value, dtype)

        return three

    def run() -> int:
        value = constant
        for slot, scale in terms:
            value += scale * cells[slot]
        for thunk, scale in thunks:
            value += scale * thunk()
        return value if low <= value <= high else wrap_int(value, dtype)

    return run


def converted(value: Thunk, source: str, target: str) -> Thunk:
    """`value` of dtype `source` as `target`: integers wrap, floats truncate when made integers."""
    old, new = parse_dtype(source), parse_dtype(target)
    if new.lanes > 1:
        if new.is_float and old.bits == 64:
            return lambda: narrowed(value(), target)
        return lambda: (value() != 0) if new.code == "bool" else value().astype(to_numpy(target))
    if new.code == "bool":
        return lambda: value() != 0
    if new.is_float:
        return _to_float(value, target, exact=old.is_float and old.bits < 64)
    return _float_to_int(value, target) if old.is_float else lambda: wrap_int(int(value()), target)


def _to_float(value: Thunk, target: str, exact: bool) -> Thunk:
    """`exact`: a float32 holds every value, by way of which NumPy may go."""
    make = to_numpy(target).type
    if exact:
        return lambda: make(value())

    def run() -> Any:
        number = value()
        if isinstance(number, float):  # as float64 is
            return narrowed(np.float64(number), target)
        number = int(number)
        if abs(number) <= 1 << 24:  # exact in float32, by way of which NumPy may go to narrower floats
            return make(number)
        # uint64 for what is above int64, int64 for what is below 0.
        return narrowed(np.uint64(number) if number > 0 else np.int64(number), target)

    return run


def _float_to_int(value: Thunk, target: str) -> Thunk:
    low, high = int_limits(target)

    def run() -> int:
        number = value()
        if low <= float(number) <= high:  # exact: NumPy would round the limit to the float's dtype
            return int(number)
        return int(np.asarray(number).astype(to_numpy(target)))  # undefined in C; what this machine does

    return run
