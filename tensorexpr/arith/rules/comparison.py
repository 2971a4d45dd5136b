"""Comparisons of integers, brought to `linear < const` and decided by bounds."""

from __future__ import annotations

from ...tir.expr import EQ, GE, GT, LE, LT, NE, CmpExpr, IntImm, PrimExpr
from ..bounds import exact_form, fits
from ..facts import Facts
from ..linear import Linear, is_scalar_int
from ..proofs import known_nonnegative


def equality(facts: Facts, node: EQ | NE) -> PrimExpr | None:
    """Rules of a == b and a != b."""
    if not is_scalar_int(node.a.dtype):
        return None
    gap = exact_form(facts, node.a).sub(exact_form(facts, node.b))
    same = isinstance(node, EQ)
    if gap.is_constant:
        return IntImm("bool", int((gap.constant == 0) is same))
    if known_nonnegative(facts, gap.shift(-1)) or known_nonnegative(facts, gap.scale(-1).shift(-1)):
        return IntImm("bool", int(not same))
    step = gap.content()
    if gap.constant % step:
        return IntImm("bool", int(not same))
    return None


def order(facts: Facts, node: CmpExpr) -> PrimExpr | None:
    """Rules of a < b, a <= b, a > b and a >= b."""
    dtype = node.a.dtype
    if not is_scalar_int(dtype):
        return None
    left, right = exact_form(facts, node.a), exact_form(facts, node.b)
    gap = left.sub(right) if isinstance(node, (LT, LE)) else right.sub(left)
    gap = gap if isinstance(node, (LT, GT)) else gap.shift(-1)  # the comparison is gap < 0
    if known_nonnegative(facts, gap):
        return IntImm("bool", 0)
    if known_nonnegative(facts, gap.scale(-1).shift(-1)):
        return IntImm("bool", 1)
    step = gap.content()
    if step > 1:
        # step*x + c < 0  <=>  x < -c/step  <=>  x + floor((c - 1)/step) + 1 <= 0
        gap = Linear({a: k // step for a, k in gap.terms.items()}, -(-gap.constant // step))
    return _written(facts, gap, node, dtype)


def _written(facts: Facts, gap: Linear, node: CmpExpr, dtype: str) -> PrimExpr | None:
    """gap < 0 with positive terms on the left and the constant on the right, if neither side can overflow."""
    plus = Linear({a: k for a, k in gap.terms.items() if k > 0})
    minus = Linear({a: -k for a, k in gap.terms.items() if k < 0})
    kind: type[CmpExpr] = LT
    if not plus.terms:
        kind, plus, minus = GE, minus, Linear({}, gap.constant + 1)
    elif gap.constant == 1 - 0 and minus.terms:
        kind, minus = LT, minus.shift(-1)
    elif gap.constant == -1 and minus.terms:
        kind = LE
    else:
        minus = minus.shift(-gap.constant)
    if not (fits(facts, plus, dtype) and fits(facts, minus, dtype)):
        return None
    written = kind(plus.to_expr(dtype), minus.to_expr(dtype))
    return None if written is node else written
