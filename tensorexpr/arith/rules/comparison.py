"""Comparisons of integers: brought to `linear < const`, divided by what the terms share, decided by bounds."""

from __future__ import annotations

from ...tir.dtype import int_limits
from ...tir.expr import EQ, GE, GT, LE, LT, CmpExpr, FloorDiv, IntImm, PrimExpr
from ..bounds import fits, form_limits
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear
from ..modular import form_congruence
from ..polynomial import merge_products
from ..proofs import known_nonnegative


def equality(facts: Facts, node: CmpExpr) -> PrimExpr | None:
    """Rules of a == b and a != b."""
    gap = merge_products(exact_form(facts, node.a).sub(exact_form(facts, node.b)))
    same = isinstance(node, EQ)
    if gap.is_constant:
        return IntImm("bool", int((gap.constant == 0) is same))
    if known_nonnegative(facts, gap.shift(-1)) or known_nonnegative(facts, gap.scale(-1).shift(-1)):
        return IntImm("bool", int(not same))
    coeff, base = form_congruence(facts, gap)
    if base % coeff if coeff else base:
        return IntImm("bool", int(not same))
    if known_nonnegative(facts, gap) and known_nonnegative(facts, gap.scale(-1)):
        return IntImm("bool", int(same))
    step = gap.content()  # s*x + s*c == 0  <=>  x + c == 0
    gap = Linear({a: k // step for a, k in gap.terms.items()}, gap.constant // step)
    # The first term with a positive factor, so that x - y == 0 and y - x == 0 are written alike.
    plus, minus = _sides(gap if next(iter(gap.terms.values())) > 0 else gap.scale(-1))
    return _written(facts, type(node), plus, minus, node)


def order(facts: Facts, node: CmpExpr) -> PrimExpr | None:
    """Rules of a < b, a <= b, a > b and a >= b."""
    left, right = exact_form(facts, node.a), exact_form(facts, node.b)
    gap = merge_products(left.sub(right) if isinstance(node, (LT, LE)) else right.sub(left))
    gap = gap if isinstance(node, (LT, GT)) else gap.shift(-1)  # the comparison is gap < 0
    if known_nonnegative(facts, gap):
        return IntImm("bool", 0)
    if known_nonnegative(facts, gap.scale(-1).shift(-1)):
        return IntImm("bool", 1)
    gap = _whole_steps(facts, gap)
    unfolded = _without_quotient(facts, gap, node.a.dtype)
    return _ordered(facts, gap if unfolded is None else unfolded, node)


def _whole_steps(facts: Facts, gap: Linear) -> Linear:
    """s*x + r < 0  <=>  x + floor(r / s) < 0, if that floor is the same for all values of r."""
    for step in sorted({gap.content(), *map(abs, gap.terms.values())}, reverse=True):
        rest = Linear({a: k for a, k in gap.terms.items() if k % step}, gap.constant)
        low, high = form_limits(facts, rest)
        if step > 1 and low // step == high // step:
            return Linear({a: k // step for a, k in gap.terms.items() if k % step == 0}, low // step)
    return gap


def _without_quotient(facts: Facts, gap: Linear, dtype: str) -> Linear | None:
    """x // c < d  <=>  x < c*d;  x // c >= d  <=>  x >= c*d."""
    if len(gap.terms) != 1:
        return None
    ((atom, k),) = gap.terms.items()
    if abs(k) != 1 or not isinstance(atom, FloorDiv) or not isinstance(atom.b, IntImm) or atom.b.value <= 0:
        return None
    c = atom.b.value
    x = exact_form(facts, atom.a)
    if k == 1:  # q + r < 0  <=>  q < -r  <=>  x < -r*c
        return x.shift(gap.constant * c)
    return x.scale(-1).shift((gap.constant + 1) * c - 1)  # q > r  <=>  q >= r + 1  <=>  x > (r + 1)*c - 1


def _sides(gap: Linear) -> tuple[Linear, Linear]:
    """gap = left - right with positive terms only, the constant on the right."""
    left = Linear({a: k for a, k in gap.terms.items() if k > 0})
    return left, Linear({a: -k for a, k in gap.terms.items() if k < 0}, -gap.constant)


def _ordered(facts: Facts, gap: Linear, node: CmpExpr) -> PrimExpr | None:
    """gap < 0 as `left < right + const`, `left <= right` or `left >= const`."""
    left, right = _sides(gap)
    if left.is_constant:  # -x + c < 0  <=>  x >= c + 1
        return _written(facts, GE, right.shift(gap.constant), Linear({}, gap.constant + 1), node)
    if right.terms and gap.constant == -1:  # left < right + 1
        return _written(facts, LE, left, right.shift(-1), node)
    return _written(facts, LT, left, right, node)


def _written(facts: Facts, kind: type[CmpExpr], left: Linear, right: Linear, node: CmpExpr) -> PrimExpr | None:
    """The comparison, if neither side can overflow and it isn't what was there."""
    dtype = node.a.dtype
    least, most = int_limits(dtype)
    if right.is_constant and not least <= right.constant <= most:
        return None
    if not (fits(facts, left, dtype) and fits(facts, right, dtype)):
        return None
    written = kind(left.to_expr(dtype), right.to_expr(dtype))
    return None if written is node else written
