"""Comparisons of a number with a constant, digit by digit: `i*4 + j < 1`, j below 4, is `i == 0 and j < 1`."""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import const
from ..tir.expr import GE, GT, LE, LT, PrimExpr, Var
from ..tir.rewriting import Node, post_order_rewrite
from .linear import Linear, linear_form


def by_digits(condition: PrimExpr, digits: Mapping[Var, int]) -> PrimExpr:
    """`condition` with comparisons that one value of the first digit decides taken apart.

    Args:
        condition: of comparisons, and, or, not.
        digits: how many values the variables have, from 0.
    """

    def rule(node: Node) -> Node | None:
        if not isinstance(node, (LT, LE, GT, GE)):
            return None
        low, high = (node.a, node.b) if isinstance(node, (LT, LE)) else (node.b, node.a)
        strict = isinstance(node, (LT, GT))
        form = linear_form(low).sub(linear_form(high))  # below 0, or at most 0
        if all(k > 0 for k in form.terms.values()):
            return _below(form, -form.constant + (0 if strict else 1), digits, False)
        if all(k < 0 for k in form.terms.values()):
            return _below(form.scale(-1), form.constant + (1 if strict else 0), digits, True)
        return None

    return post_order_rewrite(condition, rule)


def _below(form: Linear, bound: int, digits: Mapping[Var, int], negated: bool) -> PrimExpr | None:
    """The terms of `form` below `bound`, or not; None where that is no statement about one value of the first digit."""
    terms = sorted(form.terms.items(), key=lambda term: -term[1])
    if not terms or not all(isinstance(atom, Var) and atom in digits for atom, _ in terms):
        return None
    (first, step), *rest = terms
    assert isinstance(first, Var)
    if not rest:  # the last value is named, as it is the only one
        return first.equal(const(bound, first.dtype)) if negated and step == 1 and bound == digits[first] - 1 else None
    if sum(k * (digits[atom] - 1) for atom, k in rest if isinstance(atom, Var)) >= step:
        return None  # they carry into the first digit
    wanted, below = divmod(bound, step)
    # The number is below the bound: where the first digit is below `wanted`, or is it and the rest is below `below`.
    if not below > 0 or wanted != (digits[first] - 1 if negated else 0):
        return None
    tail = Linear(dict(rest)).to_expr(first.dtype)
    last = const(below, first.dtype)
    rest_holds = last <= tail if negated else tail < last
    inner = by_digits(rest_holds, digits)
    return inner if digits[first] == 1 else all_of(first.equal(const(wanted, first.dtype)), inner)
