"""Upper bounds of affine forms through symbolic reasoning: the engine behind every `known_*` query.

A form is never more than what replaces one of its atoms by something at least as large: a variable by the end of its
symbolic range, a minimum by either side, a quotient by the fraction it is cut from, anything by a constraint that holds
of it. The search follows such replacements within a budget and keeps the least constant bound that it meets.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dataclass import dataclass, field
from ..tir.expr import FloorDiv, FloorMod, IntImm, Max, Min, PrimExpr, Var
from ..tir.rewriting import variables
from .bounds import form_limits, limits_of
from .exact import exact_deep, exact_form
from .facts import Facts
from .linear import Linear, atom_form
from .polynomial import expand_exactly, expand_product, factors, is_product, merge_products, products_hold

_BUDGET = 32  # replaced forms per question; proofs that loops need take under ten
_CONSTRAINT_USES = 2  # in one chain; each further use multiplies the forms to search
_FREEZABLE = 1 << 28  # a larger bound of an atom comes from its dtype and proves nothing


def known_nonnegative(facts: Facts, form: Linear) -> bool:
    """True if a form is proved to be >= 0."""
    if form_limits(facts, form)[0] >= 0:
        return True
    return upper_bound(facts, form.scale(-1), goal=0) <= 0


def upper_bound(facts: Facts, form: Linear, goal: int | None = None) -> int:
    """The least constant found that a form never exceeds; the search ends early at one that is <= `goal`."""
    # Multiplied out, n*(m + 1) - n*m has terms that cancel.
    if any(map(is_product, form.terms)):
        expanded = expand_exactly(facts, form)
        form = merge_products(form) if expanded is None else expanded
    best = form_limits(facts, form)[1]
    if (goal is not None and best <= goal) or not _has_leads(facts, form):
        return best
    return _Search(facts, goal).best(form, _CONSTRAINT_USES)


def _has_leads(facts: Facts, form: Linear) -> bool:
    """True if some atom can be replaced by something other than a constant."""
    if facts.nonnegative and form.terms:
        return True
    alone = len(form.terms) == 1
    for atom in form.terms:
        if atom in facts.ranges:
            if not alone:
                return True
        elif isinstance(atom, (Min, Max)) or (isinstance(atom, (FloorDiv, FloorMod)) and not alone) or is_product(atom):
            return True
    return False


# Forms with divisors, of which the largest bounds what they stand for.
Choices = list[tuple[Linear, int]]
Key = tuple[frozenset[tuple[PrimExpr, int]], int]


@dataclass(slots=True)
class _Search:
    """One question: the budget it has left and the forms it has seen."""

    facts: Facts
    goal: int | None
    budget: int = _BUDGET
    seen: dict[Key, int] = field(default_factory=dict)

    def best(self, form: Linear, uses: int, reserve: int = 0) -> int:
        """The least constant bound reachable from `form`, with so many uses of constraints, leaving a reserve of budget."""
        key = (frozenset(form.terms.items()), form.constant)
        if key in self.seen:
            return self.seen[key]
        found = self.seen[key] = form_limits(self.facts, form)[1]  # before the search, which may come back to this form
        for alternative, cost in self._alternatives(form):
            if self.budget <= reserve or (self.goal is not None and found <= self.goal):
                break
            if cost <= uses:
                self.budget -= 1  # which also bounds the depth of the recursion
                kept = (self.budget + reserve) // 2  # for the alternatives that follow
                found = min(found, max(self.best(choice, uses - cost, kept) // scale for choice, scale in alternative))
        self.seen[key] = found
        return found

    def _alternatives(self, form: Linear) -> Iterator[tuple[Choices, int]]:
        """Ways on, each with the uses of constraints that it takes.

        Replacing one atom and then another commutes, so only one atom is tried at a time: a variable of symbolic
        range unless another atom depends on it, else the first atom that is no variable, which may also be frozen.
        """
        facts = self.facts
        for pair in _quotient_pairs(facts, form):
            yield [(pair, 1)], 0
        inner = _innermost(facts, form)
        if inner is not None:
            yield [(_at_end(facts, form, inner), 1)], 0
        if inner is None or any(not isinstance(atom, Var) and inner in variables(atom) for atom in form.terms):
            for choices in self._opened(form):
                yield choices, 0
        yield from self._constrained(form)

    def _opened(self, form: Linear) -> Iterator[Choices]:
        """The ways to replace the first atom that can be replaced."""
        splits = [(atom, k) for atom, k in form.terms.items() if isinstance(atom, Max if k > 0 else Min)]  # nothing is lost
        for atom, k in splits or form.terms.items():
            rest = form.without(atom)
            found = list(_replacements(self.facts, rest, atom, k))
            if found:
                yield from found
                limit = limits_of(self.facts, atom)[k > 0]  # the upper end for a positive factor
                if abs(limit) < _FREEZABLE:
                    yield [(rest.shift(k * limit), 1)]
                return

    def _constrained(self, form: Linear) -> Iterator[tuple[Choices, int]]:
        """form <= (m*form + n*fact) / m for fact >= 0, with m and n chosen to cancel one atom."""
        for fact in self.facts.nonnegative:
            for atom, k in form.terms.items():
                other = fact.terms.get(atom, 0)
                if k * other < 0:  # of opposite signs, else no multiple cancels it
                    yield [(form.scale(abs(other)).add(fact, abs(k)), abs(other))], 1


def _replacements(facts: Facts, rest: Linear, atom: PrimExpr, k: int) -> Iterator[Choices]:
    """The ways to bound `rest + k * atom` by forms without the atom."""
    if isinstance(atom, (Min, Max)):
        sides = [(rest.add(exact_deep(facts, side), k), 1) for side in (atom.a, atom.b)]
        yield from [sides] if isinstance(atom, Max) == (k > 0) else [[side] for side in sides]
    elif isinstance(atom, FloorDiv):
        yield from _fraction(facts, rest, atom, k)
    elif isinstance(atom, FloorMod):
        yield from _remainder(facts, rest, atom, k)
    elif is_product(atom):
        yield from _product(facts, rest, atom, k)


def _innermost(facts: Facts, form: Linear) -> Var | None:
    """The variable of symbolic range that was bound last: its range may mention the others."""
    found = [atom for atom in form.terms if isinstance(atom, Var) and _is_symbolic(facts, atom)]
    if len(found) < 2:
        return found[0] if found else None
    # `ranges` is in the order of binding, so the last one found is the innermost.
    return next(var for var in reversed(list(facts.ranges)) if var in form.terms and _is_symbolic(facts, var))


def _is_symbolic(facts: Facts, var: Var) -> bool:
    dom = facts.ranges.get(var)
    return dom is not None and not (isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm))


def _at_end(facts: Facts, form: Linear, var: Var) -> Linear:
    """The form with a variable at that end of its range where the form is largest."""
    return form.without(var).add(_end(facts, var, upper=form.terms[var] > 0), form.terms[var])


def _end(facts: Facts, var: Var, upper: bool) -> Linear:
    dom = facts.ranges[var]
    low = exact_deep(facts, dom.min)
    return low.add(exact_deep(facts, dom.extent)).shift(-1) if upper else low


def _fraction(facts: Facts, rest: Linear, atom: FloorDiv, k: int) -> Iterator[Choices]:
    """x - c + 1 <= c * (x // c) <= x."""
    # Without other terms there is nothing that the numerator could cancel.
    if not isinstance(atom.b, IntImm) or atom.b.value <= 0 or rest.is_constant:
        return
    c = atom.b.value
    x = exact_form(facts, atom.a, free=True)
    # rest + k * (x // c) <= (c*rest + k*x) / c, so nothing is rounded before the end.
    yield [(rest.scale(c).add(x if k > 0 else x.shift(1 - c), k), c)]


def _remainder(facts: Facts, rest: Linear, atom: FloorMod, k: int) -> Iterator[Choices]:
    """0 <= x % d <= d - 1 for d > 0, and x % d <= x for x >= 0."""
    divisor = exact_form(facts, atom.b)
    if form_limits(facts, divisor)[0] <= 0:
        return
    if k < 0:
        yield [(rest, 1)]
        return
    if not divisor.is_constant:
        yield [(rest.add(divisor.shift(-1), k), 1)]
    x = exact_form(facts, atom.a, free=True)
    if form_limits(facts, x)[0] >= 0:
        yield [(rest.add(x, k), 1)]


def _product(facts: Facts, rest: Linear, atom: PrimExpr, k: int) -> Iterator[Choices]:
    """v * p <= (end of v) * p for p >= 0 and a variable v of symbolic range."""
    if not products_hold(facts, atom_form(atom)):
        return
    terms = factors(atom)
    for position, var in enumerate(terms):
        if not isinstance(var, Var) or not _is_symbolic(facts, var):
            continue
        others = [exact_form(facts, other) for other in terms[:position] + terms[position + 1 :]]
        if all(form_limits(facts, other)[0] >= 0 for other in others):
            found = expand_product(facts, [_end(facts, var, upper=k > 0), *others])
            if found is not None and products_hold(facts, found):
                yield [(merge_products(rest.add(found, k)), 1)]


def _quotient_pairs(facts: Facts, form: Linear) -> Iterator[Linear]:
    """(x + d) // c - x // c <= ceil(d / c): the form without one such pair of quotients."""
    quotients = [(atom, k) for atom, k in form.terms.items() if isinstance(atom, FloorDiv)]
    for first, k in quotients:
        for second, other in quotients:
            if k > 0 > other and first.b is second.b and isinstance(first.b, IntImm) and first.b.value > 0:
                shift = exact_form(facts, first.a, free=True).sub(exact_form(facts, second.a, free=True))
                most = -(-form_limits(facts, shift)[1] // first.b.value)
                pairs = min(k, -other)
                yield form.add(Linear({first: 1, second: -1}), -pairs).shift(most * pairs)
