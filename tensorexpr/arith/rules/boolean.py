"""Connectives of conditions, as the list of what they connect."""

from __future__ import annotations

from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import nested_operands
from ...tir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CmpExpr, IntImm, Not, Or, PrimExpr
from ..bounds import plain_form
from ..constraints import under
from ..facts import Facts
from ..linear import is_scalar_int
from .comparison import equality, order

_OPPOSITE: dict[type[PrimExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT, EQ: NE, NE: EQ}
# Each condition is tried against the others, so long lists are only rid of repetitions.
_CONTEXT_LIMIT = 12


def connective(facts: Facts, node: And | Or) -> PrimExpr | None:
    """a and a -> a; what the others imply is dropped; what they exclude decides the whole. `or` mirrors it."""
    neutral = isinstance(node, And)
    join = all_of if neutral else any_of
    operands = list(dict.fromkeys(nested_operands(node, type(node))))
    if any(Not(x) in operands for x in operands):
        return IntImm("bool", int(not neutral))
    if len(operands) <= _CONTEXT_LIMIT:
        kept = _independent(facts, operands, neutral)
        if kept is None:
            return IntImm("bool", int(not neutral))
        operands = kept
    result = join(*operands)
    return None if result is node else result


def _independent(facts: Facts, operands: list[PrimExpr], neutral: bool) -> list[PrimExpr] | None:
    """The operands that the others don't imply; None if some can't hold (for `or`: fail) together."""
    kept = list(operands)
    # The last first: of two that imply each other the earlier stays.
    for operand in reversed(operands):
        # Conditions on other atoms decide nothing, and each costs a scope.
        others = [x for x in kept if x is not operand and _atoms(facts, x) & _atoms(facts, operand)]
        comparison = _unwrapped(operand)
        if not others or not isinstance(comparison, CmpExpr) or not is_scalar_int(comparison.a.dtype):
            continue
        inner = facts
        for other in others:
            inner = under(inner, other, holds=neutral)
        decided = (equality if isinstance(comparison, (EQ, NE)) else order)(inner, comparison)
        if isinstance(decided, IntImm):
            if bool(decided.value) is not neutral:
                return None
            kept.remove(operand)
    return kept


def _unwrapped(condition: PrimExpr) -> PrimExpr:
    return condition.args[0] if isinstance(condition, Call) and condition.op == "tir.likely" else condition


def _atoms(facts: Facts, condition: PrimExpr) -> set[PrimExpr]:
    """The atoms that an integer comparison is about."""
    comparison = _unwrapped(condition)
    if not isinstance(comparison, CmpExpr) or not is_scalar_int(comparison.a.dtype):
        return set()
    return {*plain_form(facts, comparison.a).terms, *plain_form(facts, comparison.b).terms}


def negation(facts: Facts, node: Not) -> PrimExpr | None:
    """not (a < b) -> a >= b on integers (NaN forbids it on floats); not (a and b) -> not a or not b."""
    inner = node.a
    if isinstance(inner, CmpExpr) and is_scalar_int(inner.a.dtype):
        return _OPPOSITE[type(inner)](inner.a, inner.b)
    if isinstance(inner, (And, Or)):
        return (Or if isinstance(inner, And) else And)(Not(inner.a), Not(inner.b))
    return inner.a if isinstance(inner, Not) else None
