"""Which iterations read a given element: equations `index == target` solved for the axes of the reader.

Where an index is an axis, a sum of axes or a mixed radix number, the axes are expressions of the target and the
reader needn't be searched. What can't be solved stays a condition, over axes that remain to be run through; that is
correct for any index, gathers through data included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise

from ..arith.analyzer import Analyzer
from ..arith.iter_map import detect_iter_map, inverse_affine_iter_map
from ..arith.linear import Linear, linear_form
from ..dataclass import dataclass, field
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import cast, floordiv, floormod
from ..tir.dtype import parse_dtype
from ..tir.expr import Cast, IntImm, IterVar, PrimExpr, Range, Var
from ..tir.rewriting import substitute, variables

Equation = tuple[PrimExpr, PrimExpr]  # index, target
_ENDLESS = 1 << 62  # stands for a symbolic extent: longer than any constant one


@dataclass(frozen=True, slots=True)
class Solution:
    """The iterations: `values` for the solved axes, the others are free; only where `conditions` hold, in this order."""

    values: Mapping[Var, PrimExpr]
    free: tuple[IterVar, ...]
    conditions: tuple[PrimExpr, ...]

    def apply(self, expr: PrimExpr) -> PrimExpr:
        """`expr` with the solved axes replaced."""
        return substitute(expr, self.values)

    def guard(self, analyzer: Analyzer) -> PrimExpr:
        """The conditions that `analyzer`, which knows the ranges of targets and free axes, can't prove."""
        needed: list[PrimExpr] = []
        with ExitStack() as scopes:
            for condition in self.conditions:
                if analyzer.known_true(condition):
                    continue
                # later conditions are simplified where the earlier ones hold: `and` evaluates them only there
                needed.append(analyzer.simplify(condition))
                scopes.enter_context(analyzer.constraint_scope(needed[-1]))
        return all_of(*needed)


def solve(equations: Sequence[Equation], axes: Sequence[IterVar]) -> Solution:
    """The iterations of `axes` in which every index equals its target; targets don't depend on the axes."""
    solver = _Solver({axis.var: domain(axis) for axis in axes}, list(equations))
    solver.run()
    free = tuple(axis for axis in axes if axis.var not in solver.values)
    return Solution(solver.values, free, tuple(solver.conditions()))


def domain(axis: IterVar) -> Range:
    """The range of an axis of a definition."""
    assert axis.dom is not None
    return axis.dom


@dataclass(slots=True)
class _Solver:
    domains: Mapping[Var, Range]
    equations: list[Equation]
    values: dict[Var, PrimExpr] = field(default_factory=dict)
    bounded: set[Var] = field(default_factory=set)  # solved, and in its domain by construction

    def run(self) -> None:
        """Solve for as many axes as there are ways to: easy equations first, then those that they made easy."""
        for var, dom in self.domains.items():
            # y + ky of a kernel of one row has one unknown, so it is plain
            if isinstance(dom.extent, IntImm) and dom.extent.value == 1:
                self.assign({var: dom.min}, exact=True)
        # from the exact to the last resort: `affine` leaves all axes of a sum but one free, so it would spoil what `split` can solve
        for solve_some in (self.plain, self.mixed_radix, self.split, self.affine):
            while solve_some():
                while self.plain():
                    pass

    def assign(self, found: Mapping[Var, PrimExpr], exact: bool = False) -> None:
        """Take over values, into the earlier ones too."""
        # an axis of int64 may be indexed in int32: what takes the place of a variable has the variable's dtype
        found = {var: cast(value, var.dtype) for var, value in found.items()}
        # no value mentions a solved axis: i = t - j, and then j = s, leave i = t - s
        self.values = {var: substitute(value, found) for var, value in self.values.items()} | found
        if exact:
            self.bounded.update(found)

    def open_forms(self) -> Iterator[tuple[Linear, PrimExpr]]:
        """index - target of every equation that has an axis left, with its index."""
        for index, target in self.equations:
            current = substitute(index, self.values)
            if self.unknown(current):
                yield linear_form(current, _widens).sub(linear_form(target, _widens)), current

    def unknown(self, expr: PrimExpr) -> set[Var]:
        """The axes without a value in an expression."""
        return {var for var in variables(expr) if var in self.domains and var not in self.values}

    def terms(self, form: Linear) -> dict[Var, int] | None:
        """The axes to be solved for with their coefficients; None if they occur in other ways too."""
        found = {a: k for a, k in form.terms.items() if isinstance(a, Var) and a in self.domains}
        others = (atom for atom in form.terms if atom not in found)
        # i // 4 + i: solving for the second i would leave the first one in the result
        return None if any(self.unknown(atom) for atom in others) else found

    def plain(self) -> bool:
        """One axis alone, with factor 1 or -1."""
        for form, index in self.open_forms():
            terms = self.terms(form)
            # i + 3 == t gives i = t - 3
            if terms is not None and len(terms) == 1 and abs(next(iter(terms.values()))) == 1:
                self.eliminate(form, next(iter(terms)), index.dtype)
                return True
        return False

    def affine(self) -> bool:
        """The longest axis of a sum: the rest is then run through, which is short in a convolution."""
        for form, index in self.open_forms():
            terms = self.terms(form)
            if terms:
                # of equal lengths the smaller factor: more targets have a quotient then
                longest = max(terms, key=lambda var: (self.extent(var), -abs(terms[var])))
                self.eliminate(form, longest, index.dtype)
                return True
        return False

    def eliminate(self, form: Linear, var: Var, dtype: str) -> None:
        """k * var + rest == 0."""
        k = form.coefficient_of(var)
        rest = _expression(form.without(var).scale(-1 if k > 0 else 1), dtype)
        if abs(k) > 1:
            # 2 * i == t has no solution for an odd t: `conditions` states the equation once more
            rest = floordiv(rest, abs(k))
        self.assign({var: rest})

    def mixed_radix(self) -> bool:
        """A sum in which each axis counts below the next one, as the digits of a number do."""
        for form, index in self.open_forms():
            terms = self.terms(form)
            if terms is not None and len(terms) > 1 and self._digits(form, terms, index.dtype):
                return True
        return False

    def _digits(self, form: Linear, terms: Mapping[Var, int], dtype: str) -> bool:
        # 12 * a + 4 * b + c == n with b < 3 and c < 4: a = n // 12, b = n % 12 // 4, c = n % 4
        digits = sorted(terms, key=lambda var: (terms[var], self.extent(var)))
        for low, high in pairwise(digits):
            # 3 * a + b with b < 4: (0, 3) and (1, 0) are the same number, so it has no digits
            if terms[low] <= 0 or terms[high] % terms[low] or terms[low] * self.extent(low) > terms[high]:
                return False
        rest = form
        for var in digits:
            rest = rest.without(var)
        minima = {var: self.domains[var].min for var in digits}
        rest = rest.scale(-1)
        for var, minimum in minima.items():
            rest = rest.add(linear_form(minimum, _widens), -terms[var])
        number = _expression(rest, dtype)
        # the highest digit takes all that is left; if that is too much, `conditions` find it outside of its domain
        found: dict[Var, PrimExpr] = {digits[-1]: floordiv(number, terms[digits[-1]]) + minima[digits[-1]]}
        for low, high in pairwise(digits):
            found[low] = floordiv(floormod(number, terms[high]), terms[low]) + minima[low]
        self.assign(found)
        return True

    def split(self) -> bool:
        """Quotients and remainders of axes that together say what the axes are, as in a reshape."""
        opened = [(substitute(index, self.values), target) for index, target in self.equations]
        opened = [(index, target) for index, target in opened if self.unknown(index)]
        return any(self._split(group) for group in self._groups(opened))

    def _groups(self, opened: list[Equation]) -> list[list[Equation]]:
        """The equations, together if they share axes."""
        groups: list[tuple[set[Var], list[Equation]]] = []
        for equation in opened:
            used, members = self.unknown(equation[0]), [equation]
            # an equation may join groups that had nothing in common: i // 4, then j // 4, then i % 4 + j
            for known in [group for group in groups if group[0] & used]:
                groups.remove(known)
                used, members = used | known[0], known[1] + members
            groups.append((used, members))
        return [members for _, members in groups]

    def _split(self, group: list[Equation]) -> bool:
        used = {var for index, _ in group for var in self.unknown(index)}
        involved = {var: dom for var, dom in self.domains.items() if var in used}
        # other variables came in with the values of solved axes, or are sizes: the map is one of axes alone
        if any(var not in involved for index, _ in group for var in variables(index)):
            return False
        found = detect_iter_map([index for index, _ in group], involved)
        if not found.indices:
            return False
        self.assign(inverse_affine_iter_map(found, [target for _, target in group]))
        return True

    def extent(self, var: Var) -> int:
        """The length of an axis, for comparison."""
        extent = self.domains[var].extent
        return extent.value if isinstance(extent, IntImm) else _ENDLESS

    def conditions(self) -> Iterator[PrimExpr]:
        """What makes the values right: they are in the domains, and the equations hold, which quotients may break."""
        for var, value in self.values.items():
            dom = self.domains[var]
            if var not in self.bounded:
                yield value >= dom.min
                yield value < dom.min + dom.extent
        for index, target in self.equations:
            yield substitute(index, self.values).equal(target)


def _widens(node: Cast) -> bool:
    """True for a cast between signed integers that keeps every value."""
    source, result = parse_dtype(node.value.dtype), parse_dtype(node.dtype)
    # unsigned numbers wrap, so equations in them aren't those of the integers
    return source.is_int and source.is_signed and result.is_signed and result.bits >= source.bits


def _expression(form: Linear, dtype: str) -> PrimExpr:
    """The form in `dtype`, or in int64 if some atom is."""
    # the casts that the linear form looked through are gone, so atoms of both widths may stand side by side
    wide = "int64" if any(atom.dtype == "int64" for atom in form.terms) else dtype
    return Linear({cast(atom, wide): k for atom, k in form.terms.items()}, form.constant).to_expr(wide)
