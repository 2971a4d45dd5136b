"""Quotients and remainders that truncate, as floor forms where signs are known."""

from __future__ import annotations

from ...tir.dtype import int_limits
from ...tir.expr import Div, FloorDiv, FloorMod, IntImm, Mod, PrimExpr
from ..bounds import form_limits, limits_of
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear
from ..proofs import known_nonnegative
from .numerators import constant_of, negated, written


def truncdiv(facts: Facts, node: Div) -> PrimExpr | None:
    """Rules of the truncated x / y."""
    if _both_count_up(facts, node):
        return FloorDiv(node.a, node.b)
    divisor = constant_of(node.b)
    if not divisor:
        return None
    form = exact_form(facts, node.a, free=True)
    if _is_multiple(form, divisor):  # c*x / c == x
        return written(facts, Linear({a: k // divisor for a, k in form.terms.items()}, form.constant // divisor), node.dtype)
    if divisor > 0 and form_limits(facts, form)[1] <= 0:  # -x / c == -(x // c) for x >= 0
        return negated(facts, FloorDiv, form.scale(-1), divisor, node.dtype)
    return None


def truncmod(facts: Facts, node: Mod) -> PrimExpr | None:
    """Rules of its remainder, which has the sign of x and doesn't know that of y."""
    if _both_count_up(facts, node):
        return FloorMod(node.a, node.b)
    divisor = constant_of(node.b)
    if not divisor:
        return None
    if divisor < 0 and -divisor <= int_limits(node.dtype)[1]:  # the least integer has no opposite
        return Mod(node.a, IntImm(node.dtype, -divisor))  # x rem -c == x rem c
    form = exact_form(facts, node.a, free=True)
    if _is_multiple(form, divisor):  # c*x rem c == 0
        return IntImm(node.dtype, 0)
    if divisor > 0 and form_limits(facts, form)[1] <= 0:  # -x rem c == -(x % c) for x >= 0
        return negated(facts, FloorMod, form.scale(-1), divisor, node.dtype)
    return None


def _is_multiple(form: Linear, divisor: int) -> bool:
    return all(k % divisor == 0 for k in (*form.terms.values(), form.constant))


def _both_count_up(facts: Facts, node: Div | Mod) -> bool:
    """True if x >= 0 and y > 0 are proved."""
    below = limits_of(facts, node.b)[0] > 0 or known_nonnegative(facts, exact_form(facts, node.b).shift(-1))
    return below and (limits_of(facts, node.a)[0] >= 0 or known_nonnegative(facts, exact_form(facts, node.a)))
