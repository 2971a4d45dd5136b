"""Minimum and maximum of integers, as the set of their operands."""

from __future__ import annotations

from ...tir.arithmetic import nested_operands
from ...tir.expr import IntImm, Max, Min, PrimExpr
from ..bounds import fits
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear, gcd_of
from ..proofs import known_nonnegative

# Comparing each operand with each other is worth it only for the short lists that loops bring.
_PAIRWISE_LIMIT = 8


def extremum(facts: Facts, node: Min | Max) -> PrimExpr | None:
    """Rules of min(a, b) and max(a, b)."""
    operands = _flat(node)
    kept = _undominated(facts, operands, type(node)) if len(operands) <= _PAIRWISE_LIMIT else _merged_constants(operands, type(node))
    if len(kept) > 1 and (outside := _common(facts, kept, type(node), node.dtype)) is not None:
        return outside
    result = _joined(kept, type(node))
    return None if result is node else result


def _flat(node: Min | Max) -> list[PrimExpr]:
    """min(min(a, b), a) has the operands a, b: repetitions dropped, the other extremum absorbed, constants last."""
    other = Max if isinstance(node, Min) else Min
    found = dict.fromkeys(nested_operands(node, type(node)))
    # min(a, max(a, b)) == a
    kept = [x for x in found if not (isinstance(x, other) and (x.a in found or x.b in found))]
    return [x for x in kept if not isinstance(x, IntImm)] + [x for x in kept if isinstance(x, IntImm)]


def _merged_constants(operands: list[PrimExpr], kind: type[Min] | type[Max]) -> list[PrimExpr]:
    """min(a, 3, 5) == min(a, 3)."""
    constants = [x for x in operands if isinstance(x, IntImm)]
    if len(constants) < 2:
        return operands
    best = (min if kind is Min else max)(constants, key=lambda x: x.value)
    return [x for x in operands if not isinstance(x, IntImm)] + [best]


def _undominated(facts: Facts, operands: list[PrimExpr], kind: type[Min] | type[Max]) -> list[PrimExpr]:
    """The operands without those that another one is proved to beat."""
    kept: list[PrimExpr] = []
    for candidate in operands:
        if any(_beats(facts, other, candidate, kind) for other in kept):
            continue
        kept = [other for other in kept if not _beats(facts, candidate, other, kind)]
        kept.append(candidate)
    return kept


def _beats(facts: Facts, a: PrimExpr, b: PrimExpr, kind: type[Min] | type[Max]) -> bool:
    """True if a <= b (for max: a >= b) is proved."""
    gap = exact_form(facts, b).sub(exact_form(facts, a))
    return known_nonnegative(facts, gap if kind is Min else gap.scale(-1))


def _joined(operands: list[PrimExpr], kind: type[Min] | type[Max]) -> PrimExpr:
    total = operands[0]
    for operand in operands[1:]:
        total = kind(total, operand)
    return total


def _common(facts: Facts, operands: list[PrimExpr], kind: type[Min] | type[Max], dtype: str) -> PrimExpr | None:
    """min(a*c + t, b*c + t) == min(a, b)*c + t for c > 0, where neither side can overflow."""
    forms = [exact_form(facts, operand) for operand in operands]
    shared = Linear({a: k for a, k in forms[0].terms.items() if all(form.terms.get(a) == k for form in forms[1:])})
    # A constant is common only if all have the same one.
    if len({form.constant for form in forms}) == 1:
        shared = shared.shift(forms[0].constant)
    inner = [form.sub(shared) for form in forms]
    scale = gcd_of([k for form in inner for k in (*form.terms.values(), form.constant)])
    # All are equal, or nothing is common: the same node built again would be rewritten for ever.
    if scale == 0 or (scale == 1 and shared.is_constant and shared.constant == 0):
        return None
    inner = [Linear({a: k // scale for a, k in form.terms.items()}, form.constant // scale) for form in inner]
    # The operands held in the dtype; what is left of them without the common part need not.
    if not all(fits(facts, form, dtype) for form in inner):
        return None
    joined = _joined([form.to_expr(dtype) for form in inner], kind)
    return Linear({joined: scale}).add(shared).to_expr(dtype)
