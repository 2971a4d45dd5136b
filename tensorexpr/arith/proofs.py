"""Upper bounds of affine forms through symbolic reasoning: the engine behind every `known_*` query."""

from __future__ import annotations

from ..tir.expr import FloorDiv, IntImm, Max, Min, PrimExpr, Var
from .bounds import exact_deep, form_limits
from .facts import Facts
from .linear import Linear

_DEPTH = 4


def known_nonnegative(facts: Facts, form: Linear) -> bool:
    """True if a form is proved to be >= 0."""
    if form_limits(facts, form)[0] >= 0:
        return True
    return _needs_search(facts, form) and upper_bound(facts, form.scale(-1)) <= 0


def upper_bound(facts: Facts, form: Linear, depth: int = _DEPTH) -> int:
    """The least constant found that a form never exceeds."""
    best = form_limits(facts, form)[1]
    if depth == 0 or not _needs_search(facts, form):
        return best
    for choice in _quotient_pairs(facts, form):
        best = min(best, upper_bound(facts, choice, depth - 1))
    for atom, k in form.terms.items():
        for relaxed in _relaxations(facts, form, atom, k):
            best = min(best, max(upper_bound(facts, choice, depth - 1) for choice in relaxed))
    return best


def _needs_search(facts: Facts, form: Linear) -> bool:
    if len(form.terms) < 2 and not any(isinstance(atom, (Min, Max)) for atom in form.terms):
        return False
    return bool(facts.nonnegative) or any(isinstance(a, (Min, Max, FloorDiv)) or a in facts.ranges for a in form.terms)


def _relaxations(facts: Facts, form: Linear, atom: PrimExpr, k: int) -> list[list[Linear]]:
    """Ways to bound a form through one atom: each is a list of forms of which the largest bounds it."""
    rest = form.without(atom)
    if isinstance(atom, Var) and atom in facts.ranges:
        dom = facts.ranges[atom]
        if isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm):
            return []
        low = exact_deep(facts, dom.min)
        return [[rest.add(low.add(exact_deep(facts, dom.extent)).shift(-1) if k > 0 else low, k)]]
    if isinstance(atom, (Min, Max)):
        sides = [rest.add(exact_deep(facts, side), k) for side in (atom.a, atom.b)]
        return [sides] if isinstance(atom, Max) == (k > 0) else [[side] for side in sides]
    return []


def _quotient_pairs(facts: Facts, form: Linear) -> list[Linear]:
    """(x + d) // c - x // c <= ceil(d / c): forms without one such pair of quotients."""
    found = []
    for first, k in form.terms.items():
        if k <= 0 or not _is_quotient(first):
            continue
        for second, other in form.terms.items():
            if other < 0 and _is_quotient(second) and second.b is first.b:  # type: ignore[attr-defined]
                shift = difference(facts, first.a, second.a)  # type: ignore[attr-defined]
                step = first.b.value  # type: ignore[attr-defined]
                pairs = min(k, -other)
                most = -(-form_limits(facts, shift)[1] // step)
                rest = form.add(Linear({first: 1, second: -1}), -pairs)
                found.append(rest.shift(most * pairs))
    return found


def _is_quotient(atom: PrimExpr) -> bool:
    return isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) and atom.b.value > 0


def difference(facts: Facts, a: PrimExpr, b: PrimExpr) -> Linear:
    """a - b over the integers."""
    return exact_deep(facts, a).sub(exact_deep(facts, b))


