"""Minimum and maximum."""

from __future__ import annotations

from ...tir.expr import IntImm, Max, Min, PrimExpr
from ..bounds import exact_form
from ..facts import Facts
from ..linear import is_scalar_int
from ..proofs import known_nonnegative


def minimum(facts: Facts, node: Min) -> PrimExpr | None:
    """Rules of min(a, b)."""
    return _either(facts, node)


def maximum(facts: Facts, node: Max) -> PrimExpr | None:
    """Rules of max(a, b)."""
    return _either(facts, node)


def _either(facts: Facts, node: Min | Max) -> PrimExpr | None:
    """The operand that is proved to be the result."""
    if not is_scalar_int(node.dtype):
        return None
    if node.a is node.b:
        return node.a
    gap = exact_form(facts, node.b).sub(exact_form(facts, node.a))
    lesser, greater = (node.a, node.b) if isinstance(node, Min) else (node.b, node.a)
    if known_nonnegative(facts, gap):
        return lesser
    if known_nonnegative(facts, gap.scale(-1)):
        return greater
    if isinstance(node.b, IntImm) and isinstance(node.a, type(node)) and isinstance(node.a.b, IntImm):
        # min(min(x, c), d) == min(x, min(c, d))
        pick = min if isinstance(node, Min) else max
        return type(node)(node.a.a, IntImm(node.dtype, pick(node.b.value, node.a.b.value)))
    return None
