"""Affine forms that hold over the integers, not only modulo 2**bits: what comparisons and divisions may reason about."""

from __future__ import annotations

from ..tir.expr import Cast, PrimExpr
from .bounds import dtype_limits, fits, limits_of, plain_form
from .facts import Facts
from .linear import Linear, atom_form, is_scalar_int, linear_form


def exact_form(facts: Facts, expr: PrimExpr, free: bool = False) -> Linear:
    """An affine form that equals `expr` over the integers: the expression itself as an atom if it might wrap.

    With `free` arithmetic on unknown variables is taken not to overflow, as it is on indices.
    """
    form = plain_form(facts, expr)
    return form if fits(facts, form, expr.dtype, free) else atom_form(expr)


def exact_deep(facts: Facts, expr: PrimExpr) -> Linear:
    """As `exact_form`, looking through conversions between integer types that keep the value; memoised."""
    found = facts.deep.get(expr)
    if found is None:
        form = linear_form(expr, lambda cast: keeps_value(facts, cast))
        found = facts.deep[expr] = form if fits(facts, form, expr.dtype) else atom_form(expr)
    return found


def keeps_value(facts: Facts, cast: Cast) -> bool:
    """True if an integer conversion keeps every value that its operand, taken as an affine form, can have."""
    inner = cast.value
    if not (is_scalar_int(cast.dtype) and is_scalar_int(inner.dtype)):
        return False
    low, high = limits_of(facts, inner)
    least, most = dtype_limits(cast.dtype)
    return least <= low and high <= most and fits(facts, plain_form(facts, inner), inner.dtype)


def difference(facts: Facts, a: PrimExpr, b: PrimExpr) -> Linear:
    """a - b over the integers."""
    return exact_deep(facts, a).sub(exact_deep(facts, b))
