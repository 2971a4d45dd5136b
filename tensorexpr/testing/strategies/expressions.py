"""Hypothesis strategies for integer expressions over variables of known ranges, and conditions on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from ...dataclass import dataclass
from ...te.evaluation import compile_program
from ...tir import arithmetic, intrin
from ...tir.dtype import to_numpy
from ...tir.expr import IntImm, PrimExpr, Range, Var

_DIVISIONS: tuple[Callable[[Any, Any], PrimExpr], ...] = (
    arithmetic.floordiv,
    arithmetic.floormod,
    arithmetic.truncdiv,
    arithmetic.truncmod,
)
_BINARY: tuple[Callable[[Any, Any], PrimExpr], ...] = (
    arithmetic.add,
    arithmetic.subtract,
    arithmetic.minimum,
    arithmetic.maximum,
)
_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a.equal(b),
    lambda a, b: arithmetic.logical_not(a.equal(b)),
)


@dataclass(frozen=True)
class Scope:
    """Variables with their inclusive ranges."""

    ranges: tuple[tuple[Var, int, int], ...]

    def domains(self) -> dict[Var, Range]:
        """The ranges as half-open `Range`s."""
        return {var: Range.from_min_extent(IntImm(var.dtype, low), IntImm(var.dtype, high - low + 1)) for var, low, high in self.ranges}

    def points(self) -> st.SearchStrategy[dict[Var, int]]:
        """A value for every variable."""
        return st.fixed_dictionaries({var: st.integers(low, high) for var, low, high in self.ranges})


@st.composite
def scopes(draw: st.DrawFn, max_variables: int = 3, max_extent: int = 64, dtype: str = "int32") -> Scope:
    """One to `max_variables` variables; half of the ranges start at 0, some are one value only."""
    ranges = []
    for number in range(draw(st.integers(1, max_variables))):
        low = draw(st.one_of(st.just(0), st.integers(-max_extent, max_extent)))
        high = low + draw(st.one_of(st.integers(0, 3), st.integers(0, max_extent - 1)))
        ranges.append((Var("xyzuvw"[number % 6], dtype), low, high))
    return Scope(tuple(ranges))


@st.composite
def int_expressions(draw: st.DrawFn, scope: Scope, max_leaves: int = 12, dtype: str = "int32") -> PrimExpr:
    """An expression over the variables of `scope`; divisors are constants but 0, factors are small constants."""
    return _expression(draw, scope, draw(st.integers(1, max_leaves)), dtype)


@st.composite
def conditions(draw: st.DrawFn, scope: Scope, max_leaves: int = 6, dtype: str = "int32") -> PrimExpr:
    """A condition on the variables of `scope`."""
    return _condition(draw, scope, draw(st.integers(2, max_leaves)), dtype)


def _expression(draw: st.DrawFn, scope: Scope, leaves: int, dtype: str) -> PrimExpr:
    if leaves == 1:
        return _leaf(draw, scope, dtype)
    operator: Callable[[Any, Any], PrimExpr]
    match draw(st.integers(0, 5)):
        case 0 | 1:
            operator = draw(st.sampled_from(_BINARY))
            return operator(*_operands(draw, scope, leaves, dtype))
        case 2:
            return arithmetic.multiply(_expression(draw, scope, leaves - 1, dtype), _divisor(draw, dtype))
        case 3 | 4:
            operator = draw(st.sampled_from(_DIVISIONS))
            return operator(_expression(draw, scope, leaves - 1, dtype), _divisor(draw, dtype))
        case _:
            return intrin.select(_condition(draw, scope, 2, dtype), *_operands(draw, scope, leaves, dtype))


def _leaf(draw: st.DrawFn, scope: Scope, dtype: str) -> PrimExpr:
    if draw(st.integers(0, 3)) == 0:
        return arithmetic.const(draw(st.integers(-20, 20)), dtype)
    return draw(st.sampled_from([var for var, _, _ in scope.ranges]))


def _divisor(draw: st.DrawFn, dtype: str) -> PrimExpr:
    return arithmetic.const(draw(st.integers(1, 9)) * draw(st.sampled_from((1, -1))), dtype)


def _operands(draw: st.DrawFn, scope: Scope, leaves: int, dtype: str) -> tuple[PrimExpr, PrimExpr]:
    left = draw(st.integers(1, leaves - 1))
    return _expression(draw, scope, left, dtype), _expression(draw, scope, leaves - left, dtype)


def _condition(draw: st.DrawFn, scope: Scope, leaves: int, dtype: str) -> PrimExpr:
    if leaves >= 4 and draw(st.booleans()):
        join = draw(st.sampled_from((arithmetic.logical_and, arithmetic.logical_or)))
        joined: PrimExpr = join(_condition(draw, scope, leaves // 2, dtype), _condition(draw, scope, leaves - leaves // 2, dtype))
        return joined
    compared = arithmetic.convert(draw(st.sampled_from(_COMPARISONS))(*_operands(draw, scope, max(2, leaves), dtype)))
    return arithmetic.logical_not(compared) if draw(st.integers(0, 3)) == 0 else compared


def value_at(expr: PrimExpr, point: dict[Var, int]) -> Any:
    """The value of an expression at one point, by the reference semantics."""
    return compile_program([expr]).run({var: to_numpy(var.dtype).type(value) for var, value in point.items()})[0]
