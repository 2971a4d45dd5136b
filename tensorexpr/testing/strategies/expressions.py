"""Hypothesis strategies for integer expressions over variables of known ranges, and conditions on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

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
        return {var: Range(IntImm(var.dtype, low), IntImm(var.dtype, high - low + 1)) for var, low, high in self.ranges}

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


def int_expressions(scope: Scope, max_leaves: int = 12, dtype: str = "int32") -> st.SearchStrategy[PrimExpr]:
    """An expression over the variables of `scope`; divisors are constants but 0, factors are small constants."""
    constants = st.integers(-20, 20).map(lambda value: arithmetic.const(value, dtype))
    divisors = st.integers(-9, 9).filter(bool).map(lambda value: arithmetic.const(value, dtype))
    leaves = st.one_of(st.sampled_from([var for var, _, _ in scope.ranges]), constants)

    def extend(inner: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
        return st.one_of(
            st.builds(lambda op, a, b: op(a, b), st.sampled_from(_BINARY), inner, inner),
            st.builds(arithmetic.multiply, inner, divisors),
            st.builds(lambda op, a, b: op(a, b), st.sampled_from(_DIVISIONS), inner, divisors),
            st.builds(intrin.select, _conditions(inner), inner, inner),
        )

    return st.recursive(leaves, extend, max_leaves=max_leaves)


def _conditions(operands: st.SearchStrategy[PrimExpr]) -> st.SearchStrategy[PrimExpr]:
    compared = st.builds(lambda op, a, b: arithmetic.convert(op(a, b)), st.sampled_from(_COMPARISONS), operands, operands)
    joined = st.sampled_from((arithmetic.logical_and, arithmetic.logical_or))
    return st.one_of(compared, st.builds(lambda op, a, b: op(a, b), joined, compared, compared), compared.map(arithmetic.logical_not))


def conditions(scope: Scope, max_leaves: int = 6) -> st.SearchStrategy[PrimExpr]:
    """A condition on the variables of `scope`."""
    return _conditions(int_expressions(scope, max_leaves))


def value_at(expr: PrimExpr, point: dict[Var, int]) -> Any:
    """The value of an expression at one point, by the reference semantics."""
    return compile_program([expr]).run({var: to_numpy(var.dtype).type(value) for var, value in point.items()})[0]
