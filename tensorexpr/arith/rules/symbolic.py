"""Quotients and remainders by a divisor that is no constant, as loops fused over symbolic extents have them."""

from __future__ import annotations

from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr
from ..bounds import fits, plain_form
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear, constant_form
from ..polynomial import divide, expand_exactly, factors, is_product, products_hold
from ..proofs import known_nonnegative
from ..sympy_bridge import divide_polynomials
from .numerators import written


def symbolic_quotient(facts: Facts, form: Linear, node: FloorDiv) -> PrimExpr | None:
    """(d*q + r) // d == q + r // d; the second quotient is 0 for 0 <= r < d. No sign of d is needed for r == 0."""
    if form.is_constant and form.constant == 0:
        return IntImm(node.dtype, 0)
    quotient, rest = _divided(facts, form, node.b)
    if (rest.is_constant and rest.constant == 0) or _within(facts, rest, node.b):
        return written(facts, quotient, node.dtype)
    if not _divides(quotient) or not fits(facts, rest, node.dtype, free=True):
        return None
    return quotient.add(Linear({FloorDiv(rest.to_expr(node.dtype), node.b): 1})).to_expr(node.dtype)


def symbolic_remainder(facts: Facts, form: Linear, node: FloorMod) -> PrimExpr | None:
    """(d*q + r) % d == r % d, which is r for 0 <= r < d."""
    quotient, rest = _divided(facts, form, node.b)
    if (rest.is_constant and rest.constant == 0) or _within(facts, rest, node.b):
        return written(facts, rest, node.dtype)
    if not _divides(quotient) or not fits(facts, rest, node.dtype, free=True):
        return None
    return FloorMod(rest.to_expr(node.dtype), node.b)


def _within(facts: Facts, rest: Linear, divisor: PrimExpr) -> bool:
    """True if 0 <= rest < divisor is proved."""
    return known_nonnegative(facts, rest) and known_nonnegative(facts, exact_form(facts, divisor).sub(rest).shift(-1))


def _divides(quotient: Linear) -> bool:
    return not quotient.is_constant or quotient.constant != 0


def _divided(facts: Facts, form: Linear, divisor: PrimExpr) -> tuple[Linear, Linear]:
    """Quotient and rest by the terms that hold the divisor as a factor; products are distributed if that finds more."""
    below = plain_form(facts, divisor)
    if not (products_hold(facts, form, free=True) and products_hold(facts, below, free=True)):
        return constant_form(0), form
    plain = divide(facts, form, divisor)
    if _divides(plain[0]):
        return plain
    expanded = expand_exactly(facts, form, free=True)
    if expanded is not None and _divides((found := divide(facts, expanded, divisor))[0]):
        return found
    by_polynomial = _by_polynomial(facts, form, below, divisor)
    return plain if by_polynomial is None else by_polynomial


def _by_polynomial(facts: Facts, form: Linear, below: Linear, divisor: PrimExpr) -> tuple[Linear, Linear] | None:
    """(n*i + i + j) // (n + 1): sums of products by a sum."""
    is_sum = len(below.terms) + bool(below.constant) > 1
    shared = any(factor in below.terms for atom in form.terms if is_product(atom) for factor in factors(atom))
    if not is_sum or not shared or not fits(facts, below, divisor.dtype, free=True):
        return None
    polynomials = divide_polynomials(form.to_expr(divisor.dtype), divisor)
    if polynomials is None:
        return None
    quotient, rest = (plain_form(facts, polynomial) for polynomial in polynomials)
    # A rest of as many terms could be divided again and again.
    return (quotient, rest) if len(rest.terms) < len(form.terms) and products_hold(facts, rest, free=True) else None
