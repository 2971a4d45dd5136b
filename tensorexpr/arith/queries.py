"""Questions to the engine: whether a comparison or a condition is proved to hold where the facts do."""

from __future__ import annotations

from collections.abc import Callable

from ..tir.expr import EQ, GE, GT, LE, LT, NE, CmpExpr, IntImm, PrimExpr
from .bounds import form_limits
from .constraints import conjuncts
from .exact import difference
from .facts import Facts
from .linear import is_scalar_int
from .modular import form_congruence
from .proofs import known_nonnegative
from .simplify import simplify


def at_least(facts: Facts, b: PrimExpr, a: PrimExpr, margin: int = 0) -> bool:
    """True if b - a >= margin is proved: by bounds of the forms as they are, else of the simplified ones."""
    gap = difference(facts, b, a).shift(-margin)
    if form_limits(facts, gap)[0] >= 0:
        return True
    return known_nonnegative(facts, difference(facts, simplify(facts, b), simplify(facts, a)).shift(-margin))


def equal(facts: Facts, a: PrimExpr, b: PrimExpr) -> bool:
    """True if a == b is proved."""
    return a is b or (at_least(facts, b, a) and at_least(facts, a, b))


def unequal(facts: Facts, a: PrimExpr, b: PrimExpr) -> bool:
    """True if a != b is proved."""
    gap = difference(facts, simplify(facts, b), simplify(facts, a))
    coeff, base = form_congruence(facts, gap)
    if base % coeff if coeff else base:
        return True
    return at_least(facts, b, a, 1) or at_least(facts, a, b, 1)


_QUERIES: dict[type[PrimExpr], Callable[[Facts, PrimExpr, PrimExpr], bool]] = {
    EQ: equal,
    NE: unequal,
    LT: lambda facts, a, b: at_least(facts, b, a, 1),
    LE: lambda facts, a, b: at_least(facts, b, a),
    GT: lambda facts, a, b: at_least(facts, a, b, 1),
    GE: lambda facts, a, b: at_least(facts, a, b),
}
OPPOSITE: dict[type[PrimExpr], type[CmpExpr]] = {EQ: NE, NE: EQ, LT: GE, GE: LT, GT: LE, LE: GT}


def holds(facts: Facts, condition: PrimExpr) -> bool:
    """True if a condition is proved to hold."""
    decided = facts.decided
    if condition not in decided:
        decided[condition] = all(_holds(facts, part, positive) for part, positive in conjuncts(condition))
    return decided[condition]


def _holds(facts: Facts, condition: PrimExpr, positive: bool) -> bool:
    if isinstance(condition, IntImm):
        return bool(condition.value) is positive
    if condition in facts.truths:
        return facts.truths[condition] is positive
    if not isinstance(condition, CmpExpr) or not is_scalar_int(condition.a.dtype):
        found = simplify(facts, condition)
        return isinstance(found, IntImm) and bool(found.value) is positive
    kind = type(condition) if positive else OPPOSITE[type(condition)]
    return _QUERIES[kind](facts, condition.a, condition.b)
