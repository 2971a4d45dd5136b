"""Linear systems over the integers: equations by the Smith normal form, inequalities by Fourier and Motzkin.

Sources: Cohen, A Course in Computational Algebraic Number Theory, section 2.4; Schrijver, Theory of Linear and Integer
Programming, section 12.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, lcm
from typing import Any

from ..dataclass import dataclass
from ..tir.expr import EQ, GE, GT, LE, LT, CmpExpr, IntImm, PrimExpr, Range, Var
from ..tir.rewriting import substitute, variables
from .deduce import detect_linear_equation
from .index_analyzer import Analyzer
from .int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from .int_set import int_set_of, neg_inf, pos_inf
from .smith import smith_normal_form

_STEPS = 4  # rounds of simplification: sides of comparisons meet in the second


def _system(equations: Sequence[Any] | IntConstraints, wanted: Sequence[Var] | None, ranges: Mapping[Var, Range] | None) -> IntConstraints:
    if isinstance(equations, IntConstraints):
        return equations
    return IntConstraints(wanted, ranges, equations)


def _false() -> PrimExpr:
    return IntImm("bool", 0)


def _row(relation: PrimExpr, wanted: Sequence[Var]) -> tuple[list[int], PrimExpr] | None:
    """Integer coefficients and right-hand side of an equation; None if it isn't one."""
    if not isinstance(relation, EQ):
        return None
    found = detect_linear_equation(relation.a - relation.b, wanted)
    if not found or not all(isinstance(k, IntImm) for k in found[:-1]):
        return None
    return [k.value for k in found[:-1] if isinstance(k, IntImm)], Analyzer().simplify(0 - found[-1])


def solve_linear_equations(
    equations: Sequence[Any] | IntConstraints, variables: Sequence[Var] | None = None, ranges: Mapping[Var, Range] | None = None
) -> IntConstraintsTransform:
    """The integer solutions of linear equations, in terms of as few new variables as there are degrees of freedom.

    Args:
        equations: relations, or an `IntConstraints`; those that are no linear equations are carried over.
        variables: what to solve for; the others are parameters.
        ranges: the ranges of variables.

    Returns:
        The system, the one of the new variables, and each side's variables in terms of the other's. A system without a
        solution becomes one without variables whose relation is false.
    """
    source = _system(equations, variables, ranges)
    if not source.variables:
        return IntConstraintsTransform(source, source, {}, {})
    rows, kept = [], []
    for relation in source.relations:
        row = _row(relation, source.variables)
        if row is None:
            kept.append(relation)
        else:
            rows.append(row)
    # L A R = D with unimodular L and R: with x = R y the system is d_i * y_i = (L b)_i, one unknown an equation, and integer
    # solutions stay integer both ways.
    normal = smith_normal_form([row for row, _ in rows], len(source.variables))
    dtype = source.variables[0].dtype
    sides = [_combined(weights, [side for _, side in rows], dtype) for weights in normal.left]
    analyzer = Analyzer()
    known: list[PrimExpr] = []
    for place, side in enumerate(sides):
        d = normal.diagonal[place] if place < len(normal.diagonal) else 0
        # An equation has integer solutions if d divides its right side; one with d = 0 says that the side is 0.
        rest = analyzer.simplify(side % abs(d)) if d else analyzer.simplify(side)
        if isinstance(rest, IntImm) and rest.value:
            return IntConstraintsTransform(source, IntConstraints([], {}, [_false()]), {}, {})
        # Whether it holds depends on parameters: a condition of the new system.
        if not isinstance(rest, IntImm):
            kept.append(EQ(rest, IntImm(rest.dtype, 0)))
        if d:
            known.append(analyzer.simplify(side // d))
    # The unknowns that no equation fixes: as many as there are degrees of freedom.
    fresh = [Var(f"n{place}", dtype) for place in range(len(source.variables) - len(known))]
    values: list[PrimExpr] = [*known, *fresh]
    combined = [analyzer.simplify(_combined(row, values, dtype), _STEPS) for row in normal.right]
    src_to_dst = dict(zip(source.variables, combined, strict=True))
    dst_to_src = {
        new: analyzer.simplify(_combined(row, list(source.variables), dtype), _STEPS)
        for new, row in zip(fresh, normal.right_inverse[len(known) :], strict=True)
    }
    return _with_ranges(source, fresh, src_to_dst, dst_to_src, kept)


def _combined(weights: Sequence[int], terms: Sequence[PrimExpr], dtype: str) -> PrimExpr:
    """The sum of multiples."""
    total: PrimExpr = IntImm(dtype, 0)
    for k, term in zip(weights, terms, strict=True):
        if k:
            total = total - term if k == -1 else total + term * k
    return total


def _with_ranges(
    source: IntConstraints, fresh: list[Var], src_to_dst: dict[Var, PrimExpr], dst_to_src: dict[Var, PrimExpr], kept: list[PrimExpr]
) -> IntConstraintsTransform:
    """The new system: ranges of new variables from those of the old, what these leave open as relations."""
    analyzer = Analyzer()
    old = {var: dom for var, dom in source.ranges.items() if var in source.variables}
    for var, dom in source.ranges.items():
        if var not in source.variables:
            analyzer.bind(var, dom)
    new_ranges: dict[Var, Range] = {}
    for new, expr in dst_to_src.items():
        found = int_set_of(analyzer, expr, old)
        # Without a range for every old variable in it, the set would be that of the variables that happen to have one.
        bounded = neg_inf() is not found.min_value and found.max_value is not pos_inf()
        if bounded and variables(expr) & set(source.variables) <= old.keys():
            extent = analyzer.simplify(found.max_value - found.min_value + 1)
            new_ranges[new] = Range.from_min_extent(found.min_value, extent)
    for new, dom in new_ranges.items():
        analyzer.bind(new, dom)
    relations = [analyzer.simplify(substitute(relation, src_to_dst), _STEPS) for relation in kept]
    for var, dom in old.items():
        value = src_to_dst[var]
        # The new ranges are the box around the image of the old ones; what that box has too much, these conditions cut off.
        for condition in (LE(dom.min, value), LT(value, analyzer.simplify(dom.min + dom.extent))):
            if not analyzer.can_prove(condition):
                relations.append(analyzer.simplify(condition))
    relations = [relation for relation in relations if not (isinstance(relation, IntImm) and relation.value)]
    others = {var: dom for var, dom in source.ranges.items() if var not in source.variables}
    return IntConstraintsTransform(source, IntConstraints(fresh, {**others, **new_ranges}, relations), src_to_dst, dst_to_src)


@dataclass(slots=True)
class _Bounds:
    """The elimination of one variable: what it is solved to."""

    var: Var
    group: IntGroupBounds


class _Infeasible(Exception):
    """The conditions contradict one another."""


class _Elimination:
    """Fourier and Motzkin's method: each variable leaves bounds of it and conditions without it."""

    def __init__(self, source: IntConstraints) -> None:
        self.source = source
        self.analyzer = Analyzer()
        for var, dom in source.ranges.items():
            self.analyzer.bind(var, dom)
        self.rest: list[PrimExpr] = []
        self.bounds: list[_Bounds] = []
        forms: list[PrimExpr] = []  # each is <= 0
        for relation in source.relations:
            found = _at_most_zero(relation)
            if found is None:
                self.rest.append(relation)
            else:
                forms += found
        for var in source.variables:
            if var in source.ranges:
                dom = source.ranges[var]
                forms += [dom.min - var, var - (dom.min + dom.extent - 1)]
        self.run([Analyzer().simplify(form, _STEPS) for form in forms])

    def run(self, forms: list[PrimExpr]) -> None:
        """Eliminates the variables in order."""
        for var in self.source.variables:
            lower: list[tuple[int, PrimExpr]] = []
            upper: list[tuple[int, PrimExpr]] = []
            after: list[PrimExpr] = []
            for form in forms:
                found = detect_linear_equation(form, [var])
                # Not linear, or a coefficient of unknown sign as in n*x <= 4: that is neither a lower nor an upper bound.
                if not found or not isinstance(found[0], IntImm):
                    self.rest.append(LE(form, IntImm(form.dtype, 0)))
                elif found[0].value == 0:  # it says nothing of this variable, and waits for the next
                    after.append(form)
                else:
                    # k*x + r <= 0 is x <= -r / k for k > 0, and r / |k| <= x for k < 0.
                    k = found[0].value
                    (upper if k > 0 else lower).append((abs(k), self.simple(-found[1] if k > 0 else found[1])))
            # Each lower bound is paired with each upper one: what is redundant would multiply with every variable.
            lower, upper = self.tightest(lower, at_least=True), self.tightest(upper, at_least=False)
            # The shadow over the rationals: 1 <= 2*x <= 1 passes, though no integer x is there.
            for below, least in lower:
                for above, most in upper:
                    g = gcd(below, above)  # without it coefficients grow with each variable that is eliminated
                    self.note(self.simple(least * (above // g) - most * (below // g)), after)
            self.bounds.append(_Bounds(var, _group(var, lower, upper)))
            forms = after
        # Free of all variables by now: conditions on parameters, as n - 4 <= 0.
        self.rest += [LE(form, IntImm(form.dtype, 0)) for form in forms]

    def simple(self, expr: PrimExpr) -> PrimExpr:
        """The expression without the help of ranges, which are conditions here."""
        return Analyzer().simplify(expr, _STEPS)

    def note(self, form: PrimExpr, forms: list[PrimExpr]) -> None:
        """Adds the condition form <= 0, divided by what its coefficients share."""
        # 3 <= 0 contradicts at once; -3 <= 0 says nothing.
        if isinstance(form, IntImm):
            if form.value > 0:
                raise _Infeasible
            return
        form = _divided(form, self.source.variables)
        if form not in forms:
            forms.append(form)

    def tightest(self, bounds: list[tuple[int, PrimExpr]], at_least: bool) -> list[tuple[int, PrimExpr]]:
        """The bounds without those that another implies."""
        kept: list[tuple[int, PrimExpr]] = []
        for k, bound in bounds:
            if any(self.implies((other, b), (k, bound), at_least) for other, b in kept):
                continue
            kept = [item for item in kept if not self.implies((k, bound), item, at_least)]
            kept.append((k, bound))
        return kept

    def implies(self, a: tuple[int, PrimExpr], b: tuple[int, PrimExpr], at_least: bool) -> bool:
        """True if the bound a is proved to be at least as tight as b."""
        # Cross-multiplied, so that nothing is rounded; both coefficients are positive.
        left, right = a[1] * b[0], b[1] * a[0]
        return self.analyzer.can_prove(left >= right if at_least else left <= right)


def _at_most_zero(relation: PrimExpr) -> list[PrimExpr] | None:
    """The forms that are <= 0 when a comparison holds."""
    match relation:
        case LE(a, b):
            return [a - b]
        case LT(a, b):
            return [a - b + 1]
        case GE(a, b):
            return [b - a]
        case GT(a, b):
            return [b - a + 1]
        case EQ(a, b):
            return [a - b, b - a]
    return None


def _divided(form: PrimExpr, wanted: Sequence[Var]) -> PrimExpr:
    """s*x + r <= 0  <=>  x + ceil(r / s) <= 0, where the rest is constant."""
    found = detect_linear_equation(form, wanted)
    if not found or not all(isinstance(k, IntImm) for k in found):
        return form
    *ks, base = (k.value for k in found if isinstance(k, IntImm))
    step = gcd(*ks)
    # 0 where no wanted variable occurs: the gcd of zeros.
    if step <= 1:
        return form
    total = _combined([k // step for k in ks], list(wanted), form.dtype)
    return Analyzer().simplify(total - (-base // step), _STEPS)


def _group(var: Var, lower: list[tuple[int, PrimExpr]], upper: list[tuple[int, PrimExpr]]) -> IntGroupBounds:
    """The bounds of a multiple of the variable; a bound on both sides is an equality."""
    # One multiple for all: 2*x <= a and 3*x <= b become 6*x <= 3*a and 6*x <= 2*b, where nothing is rounded.
    coef = lcm(1, *(k for k, _ in lower + upper))
    analyzer = Analyzer()
    below, above = ([analyzer.simplify(bound * (coef // k)) for k, bound in bounds] for bounds in (lower, upper))
    equal = [bound for bound in below if bound in above]
    return IntGroupBounds(IntImm(var.dtype, coef), [b for b in below if b not in equal], equal, [b for b in above if b not in equal])


def solve_inequalities_as_condition(variables: Sequence[Var], ranges: Mapping[Var, Range], relations: Sequence[Any]) -> list[PrimExpr]:
    """The solutions of linear inequalities as conditions, of each variable in terms of the later ones."""
    try:
        found = _Elimination(IntConstraints(variables, ranges, relations))
    except _Infeasible:
        return [_false()]
    return [condition for bounds in found.bounds for condition in bounds.group.conditions(bounds.var)] + found.rest


def solve_linear_inequalities(
    equations: Sequence[Any] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Mapping[Var, Range] | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """The ranges that linear inequalities leave of variables, each in terms of those after it.

    Args:
        equations: relations, or an `IntConstraints`.
        variables: what to solve for.
        ranges: the ranges of variables.
        deskew_range: give new variables whose ranges start at 0, too.

    Returns:
        The system with ranges, and the relations that the ranges don't imply; with `deskew_range` the transform to the
        new variables. A system without a solution becomes one without variables whose relation is false.
    """
    source = _system(equations, variables, ranges)
    try:
        solved = _to_ranges(source)
    except _Infeasible:
        solved = IntConstraints([], {}, [_false()])
        return IntConstraintsTransform(source, solved, {}, {}) if deskew_range else solved
    return _deskewed(source, solved) if deskew_range else solved


def _to_ranges(source: IntConstraints) -> IntConstraints:
    found = _Elimination(source)
    parameters = {var: dom for var, dom in source.ranges.items() if var not in source.variables}
    solved: dict[Var, Range] = {}
    points: dict[Var, PrimExpr] = {}
    # Backwards: a variable's bounds are in those eliminated after it, whose ranges are known by then.
    for bounds in reversed(found.bounds):
        dom = bounds.group.best_range({**parameters, **solved}, points)
        if dom is None:
            continue
        # A symbolic extent may be empty for some parameters only; that isn't a contradiction.
        if isinstance(dom.extent, IntImm) and dom.extent.value <= 0:
            raise _Infeasible
        solved[bounds.var] = dom
        if isinstance(dom.extent, IntImm) and dom.extent.value == 1:
            points[bounds.var] = dom.min
    return IntConstraints(source.variables, {**parameters, **solved}, _left_open(found, {**parameters, **solved}))


def _left_open(found: _Elimination, solved: Mapping[Var, Range]) -> list[PrimExpr]:
    """The conditions that the ranges don't imply."""
    analyzer = Analyzer()
    for var, dom in solved.items():
        analyzer.bind(var, dom)
    relations: list[PrimExpr] = []
    for bounds in found.bounds:
        relations += [condition for condition in bounds.group.conditions(bounds.var) if not analyzer.can_prove(condition)]
    for relation in found.rest:
        simple = analyzer.simplify(relation, _STEPS)
        if isinstance(simple, IntImm) and not simple.value:
            raise _Infeasible
        if not isinstance(simple, IntImm):
            relations.append(relation)
    return relations


def _deskewed(source: IntConstraints, solved: IntConstraints) -> IntConstraintsTransform:
    """New variables that count from 0; those with one value are gone."""
    analyzer = Analyzer()
    src_to_dst: dict[Var, PrimExpr] = {}
    dst_to_src: dict[Var, PrimExpr] = {}
    fresh: list[Var] = []
    ranges: dict[Var, Range] = {}
    for var in reversed(source.variables):
        dom = solved.ranges.get(var)
        if dom is None:
            src_to_dst[var] = dst_to_src[var] = var
            fresh.append(var)
            continue
        # From the last variable on, as ranges may begin at the later ones: those are in terms of new variables already.
        least = analyzer.simplify(substitute(dom.min, src_to_dst))
        if isinstance(dom.extent, IntImm) and dom.extent.value == 1:
            src_to_dst[var] = least
            continue
        new = Var(f"{var.name}.shifted", var.dtype)
        src_to_dst[var] = new if isinstance(least, IntImm) and least.value == 0 else new + least
        dst_to_src[new] = analyzer.simplify(var - dom.min, _STEPS)
        ranges[new] = Range.from_min_extent(IntImm(var.dtype, 0), dom.extent)
        fresh.append(new)
    bound = Analyzer()
    for new, dom in ranges.items():
        bound.bind(new, dom)
    relations = [bound.simplify(substitute(relation, src_to_dst), _STEPS) for relation in solved.relations]
    relations = [relation for relation in relations if not (isinstance(relation, IntImm) and relation.value)]
    others = {var: dom for var, dom in solved.ranges.items() if var not in source.variables}
    return IntConstraintsTransform(source, IntConstraints(fresh[::-1], {**others, **ranges}, relations), src_to_dst, dst_to_src)


__all__ = [
    "CmpExpr",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "solve_inequalities_as_condition",
    "solve_linear_equations",
    "solve_linear_inequalities",
]
