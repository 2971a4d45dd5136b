"""Symbolic bounds of an expression when some of its variables vary over their ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..dataclass import dataclass
from ..tir.arithmetic import cast, const, floordiv, maximum, minimum, truncdiv
from ..tir.expr import Call, Cast, Div, FloorDiv, FloorMod, Let, Max, Min, Mul, PrimExpr, Range, Select, Var
from ..tir.rewriting import substitute, variables
from .analyzer import Analyzer
from .bounds import dtype_limits, limits_of, plain_form
from .constraints import bind_range, comparison_forms, conjuncts, under, with_symbols
from .exact import exact_deep, exact_form, keeps_value
from .facts import Facts
from .linear import Linear, is_scalar_int
from .proofs import known_nonnegative, upper_bound
from .simplify import simplify


@dataclass(frozen=True, slots=True)
class Interval:
    """Inclusive symbolic bounds."""

    min: PrimExpr
    max: PrimExpr


def hull(intervals: Sequence[Interval], analyzer: Analyzer) -> Interval:
    """The bounds around several: ends that are known to be outermost, else minima and maxima."""
    low, high = intervals[0].min, intervals[0].max
    for other in intervals[1:]:
        low = low if analyzer.known_less_equal(low, other.min) else analyzer.simplify(minimum(low, other.min))
        high = high if analyzer.known_less_equal(other.max, high) else analyzer.simplify(maximum(high, other.max))
    return Interval(low, high)


def relax(expr: PrimExpr, domain: Mapping[Var, Range], analyzer: Analyzer) -> Interval | None:
    """Bounds of `expr` while the variables of `domain` vary over their ranges and all others stay fixed symbols.

    Exact for affine expressions over ranges that are independent of one another; None if no bound is known. Ranges are
    taken to be non-empty.
    """
    facts = with_symbols(analyzer.facts, variables(expr))
    for var, dom in domain.items():
        facts = bind_range(facts, var, dom)
    return _Relaxer(facts, domain).interval(simplify(facts, expr))


def extent_bound(interval: Interval, analyzer: Analyzer) -> int | None:
    """A constant that max - min + 1 never exceeds, whatever the fixed variables are; None if there is none."""
    facts = with_symbols(analyzer.facts, variables(interval.min) | variables(interval.max))
    ends = [exact_form(facts, simplify(facts, end), free=True) for end in (interval.max, interval.min)]
    # The bound of the difference, not of each end: in (n + 3) - n what they share cancels.
    gap = ends[0].sub(ends[1])
    bound = upper_bound(facts, gap) + 1
    # What comes from the width of the dtype alone is no bound that anyone could allocate; sizes are taken to fit int32, whatever theirs is.
    most = min(dtype_limits(dtype)[1] for dtype in (interval.min.dtype, "int32")) // 64
    return bound if gap.is_constant or bound <= most else None


class _Relaxer:
    """The recursion over one expression: what varies, and the facts that hold."""

    def __init__(self, facts: Facts, domain: Mapping[Var, Range]) -> None:
        self.facts = facts
        self.domain = domain
        self._varying: dict[PrimExpr, bool] = {}

    def varies(self, node: PrimExpr) -> bool:
        """True if a variable of the domain occurs in `node`."""
        found = self._varying.get(node)
        if found is None:
            found = self._varying[node] = any(var in self.domain for var in variables(node))
        return found

    def interval(self, node: PrimExpr) -> Interval | None:
        """The bounds of a simplified expression."""
        if not self.varies(node):
            return Interval(node, node)
        if is_scalar_int(node.dtype):
            form = plain_form(self.facts, node)
            # A form whose only term is the node itself would ask for the node again.
            if isinstance(node, Var) or node not in form.terms:
                low, high = self._end(form, upper=False), self._end(form, upper=True)
                return None if low is None or high is None else self._simple(low.to_expr(node.dtype), high.to_expr(node.dtype))
        found = self._of_node(node)
        return found if found is not None else self._constant(node)

    def _simple(self, low: PrimExpr, high: PrimExpr) -> Interval:
        return Interval(simplify(self.facts, low), simplify(self.facts, high))

    def _end(self, form: Linear, upper: bool) -> Linear | None:
        """The least or greatest value of an affine form, one varying atom at a time."""
        while (atom := self._next_varying(form)) is not None:
            k = form.terms[atom]
            end = self._atom_end(atom, upper == (k > 0))  # a negative scale turns the ends round
            if end is None:
                return None
            form = form.without(atom).add(end, k)
        return form

    def _next_varying(self, form: Linear) -> PrimExpr | None:
        """A varying atom; variables whose range depends on other varying ones go first, so that the others may cancel."""
        varying = [atom for atom in form.terms if self.varies(atom)]
        nested = [atom for atom in varying if isinstance(atom, Var) and self._nested(self.domain[atom])]
        return next(iter(nested or varying), None)

    def _nested(self, dom: Range) -> bool:
        return self.varies(dom.min) or self.varies(dom.extent)

    def _atom_end(self, atom: PrimExpr, upper: bool) -> Linear | None:
        if isinstance(atom, Var):
            dom = self.domain[atom]
            low = plain_form(self.facts, simplify(self.facts, dom.min))
            return low.add(plain_form(self.facts, simplify(self.facts, dom.extent))).shift(-1) if upper else low
        found = self.interval(atom)
        return None if found is None else plain_form(self.facts, found.max if upper else found.min)

    def _constant(self, node: PrimExpr) -> Interval | None:
        """Constant bounds, where they say more than the dtype of an index does."""
        low, high = limits_of(self.facts, node)
        # An int8 or int16 is bounded by its dtype well enough; of an int32 or int64 that says nothing.
        usable = dtype_limits(node.dtype)[1] // 4
        if not is_scalar_int(node.dtype) or (usable > 1 << 16 and (low < -usable or high > usable)):
            return None
        return Interval(const(low, node.dtype), const(high, node.dtype))

    def _of_node(self, node: PrimExpr) -> Interval | None:
        match node:
            case FloorDiv(a, b) | Div(a, b):
                return self._quotient(node, a, b)
            case FloorMod(a, b):
                return self._remainder(node, a, b)
            case Min(a, b):
                return self._both(minimum, a, b)
            case Max(a, b):
                return self._both(maximum, a, b)
            case Mul(a, b):
                return self._product(a, b)
            case Select(condition, a, b) | Call(_, "tir.if_then_else", (condition, a, b)):
                return self._choice(condition, a, b)
            case Cast(dtype, value) if keeps_value(self.facts, node):
                inner = self.interval(value)
                return None if inner is None else self._simple(cast(inner.min, dtype), cast(inner.max, dtype))
            case Let(var, value, body):
                return self.interval(simplify(self.facts, substitute(body, {var: value})))
        return None

    def _nonnegative(self, expr: PrimExpr) -> bool:
        return known_nonnegative(self.facts, exact_deep(self.facts, expr))

    def _quotient(self, node: PrimExpr, a: PrimExpr, b: PrimExpr) -> Interval | None:
        """Dividing by a fixed positive number is monotone; by 0 it has no value to bound."""
        inner = self.interval(a)
        if inner is None or self.varies(b) or not self._nonnegative(b):
            return None
        divide = floordiv if isinstance(node, FloorDiv) else truncdiv
        return self._simple(divide(inner.min, b), divide(inner.max, b))

    def _remainder(self, node: PrimExpr, a: PrimExpr, b: PrimExpr) -> Interval | None:
        """x % b is x - q*b while x stays within one multiple q of b; else anything from 0 up to b - 1."""
        if self.varies(b) or not self._nonnegative(b):
            return None
        inner = self.interval(a)
        if inner is not None:
            first, last = (simplify(self.facts, floordiv(end, b)) for end in (inner.min, inner.max))
            if first is last:
                return self._simple(inner.min - first * b, inner.max - first * b)
        return self._simple(const(0, node.dtype), b - 1)

    def _both(self, op: Callable[[PrimExpr, PrimExpr], PrimExpr], a: PrimExpr, b: PrimExpr) -> Interval | None:
        left, right = self.interval(a), self.interval(b)
        if left is None or right is None:
            return None
        return self._simple(op(left.min, right.min), op(left.max, right.max))

    def _product(self, a: PrimExpr, b: PrimExpr) -> Interval | None:
        left, right = self.interval(a), self.interval(b)
        if left is None or right is None:
            return None
        if self._nonnegative(left.min) and self._nonnegative(right.min):
            return self._simple(left.min * right.min, left.max * right.max)
        for fixed, other in ((left, right), (right, left)):
            if fixed.min is fixed.max and self._nonnegative(fixed.min):
                return self._simple(other.min * fixed.min, other.max * fixed.min)
            if fixed.min is fixed.max and self._nonnegative(0 - fixed.min):
                return self._simple(other.max * fixed.min, other.min * fixed.min)
        return None

    def _choice(self, condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> Interval | None:
        """The union of both arms, each over the part of the domain where it is taken."""
        arms = [_narrowed(self, condition, holds).interval(arm) for arm, holds in ((a, True), (b, False))]
        left, right = arms
        if left is None or right is None:
            return None
        return self._simple(minimum(left.min, right.min), maximum(left.max, right.max))


def _narrowed(relaxer: _Relaxer, condition: PrimExpr, holds: bool) -> _Relaxer:
    """The relaxer where `condition` holds (or not): ranges of varying variables shrink to what it leaves of them."""
    facts = under(relaxer.facts, condition, holds)
    domain = dict(relaxer.domain)
    # `under` appends the forms of several terms; those of one it turns into limits, so they are asked for again.
    for form in facts.nonnegative[len(relaxer.facts.nonnegative) :] + _single_forms(relaxer.facts, condition, holds):
        varying = [atom for atom in form.terms if relaxer.varies(atom)]
        if len(varying) == 1 and isinstance(varying[0], Var):
            var = varying[0]
            domain[var] = _clipped(facts, var, domain[var], form)
    return _Relaxer(facts, domain)


def _single_forms(facts: Facts, condition: PrimExpr, holds: bool) -> tuple[Linear, ...]:
    return tuple(
        form for part, positive in conjuncts(condition, holds) for form in comparison_forms(facts, part, positive) if len(form.terms) == 1
    )


def _clipped(facts: Facts, var: Var, dom: Range, form: Linear) -> Range:
    """The part of `dom` in which `form` >= 0, a form whose other atoms are fixed."""
    k = form.terms[var]
    rest = form.without(var).to_expr(var.dtype)
    last = dom.min + dom.extent - 1
    low, high = dom.min, last
    if k > 0:  # var >= ceil(-rest / k)
        low = maximum(low, 0 - floordiv(rest, k))
    else:
        high = minimum(high, floordiv(rest, -k))
    low, high = simplify(facts, low), simplify(facts, high)
    return Range.from_min_extent(low, simplify(facts, high - low + 1))
