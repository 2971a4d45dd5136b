"""Comparisons of a number with a bound, digit by digit: `i*4 + j < 1`, j below 4, is `i == 0 and j < 1`."""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import as_int, compare, const, floordiv, floormod
from ..tir.buffer import simplified
from ..tir.expr import GE, GT, LE, LT, NE, PrimExpr, Var
from ..tir.rewriting import Node, post_order_rewrite, variables
from .linear import Linear, linear_form


def by_digits(condition: PrimExpr, digits: Mapping[Var, PrimExpr]) -> PrimExpr:
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
        number = Linear({atom: k for atom, k in form.terms.items() if atom in digits})
        bound = form.sub(number)
        if not number.terms or any(variables(atom) & digits.keys() for atom in bound.terms):
            return None
        if all(k > 0 for k in number.terms.values()):
            return _below(number, bound.scale(-1).shift(0 if strict else 1), digits, False)
        if all(k < 0 for k in number.terms.values()):
            return _below(number.scale(-1), bound.shift(1 if strict else 0), digits, True)
        return None

    return post_order_rewrite(condition, rule)


def _below(number: Linear, bound: Linear, digits: Mapping[Var, PrimExpr], negated: bool) -> PrimExpr | None:
    """The number below its bound, or not; None where that is no statement about one value of the first digit."""
    (first, step), *rest = sorted(number.terms.items(), key=lambda term: -term[1])
    assert isinstance(first, Var)
    size, rest_sizes = as_int(digits[first]), [as_int(digits[atom]) for atom, _ in rest if isinstance(atom, Var)]
    if not rest and step == 1 and bound.is_constant:
        limit = const(bound.constant, first.dtype)
        if not negated:
            return first < limit
        return first.equal(limit) if bound.constant + 1 == size else limit <= first  # the last value is named, as it is the only one
    if not rest or None in rest_sizes or sum(k * (n - 1) for (_, k), n in zip(rest, rest_sizes, strict=True) if n is not None) >= step:
        return None  # they carry into the first digit
    tail = Linear(dict(rest)).to_expr(first.dtype)
    if not bound.is_constant:
        return _above_symbol(first, step, tail, bound.to_expr(first.dtype), digits[first]) if negated else None
    wanted, below = divmod(bound.constant, step)
    # The number is below the bound: where the first digit is below `wanted`, or is it and the rest is below `below`.
    # One value of the first digit: below the bound that is 0, from the bound on the last one.
    if not below > 0 or (wanted + 1 != size if negated else wanted != 0):
        return None
    last = const(below, first.dtype)
    inner = by_digits(last <= tail if negated else tail < last, digits)
    return inner if size == 1 else all_of(first.equal(const(wanted, first.dtype)), inner)


def _above_symbol(first: Var, step: int, tail: PrimExpr, bound: PrimExpr, size: PrimExpr) -> PrimExpr | None:
    """first*step + tail >= bound, where the first digit ends with the bound: it is the last one, which the bound doesn't fill."""
    room = floormod(0 - bound, step)
    if simplified(floordiv(bound + room, step)) is not size:
        return None
    last, filled = simplified(floordiv(bound, step)), simplified(floormod(bound, step))
    return all_of(simplified(compare(NE, room, const(0, room.dtype))), first.equal(last), filled <= tail)
