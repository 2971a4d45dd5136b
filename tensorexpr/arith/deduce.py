"""Solving one comparison for one variable, and reading linear equations, clips and common subexpressions off expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.arithmetic import convert, floordiv, floormod, maximum, minimum
from ..tir.expr import EQ, GE, GT, LE, LT, Add, CmpExpr, FloorDiv, IntImm, Mul, PrimExpr, Sub, Var
from ..tir.rewriting import children, variables
from .constraints import conjuncts
from .index_analyzer import Analyzer
from .int_set import IntervalSet, as_interval, int_set_of, neg_inf, nothing, pos_inf

_SWAPPED: dict[type[CmpExpr], type[CmpExpr]] = {LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ}
_OPPOSITE: dict[type[CmpExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT}


def deduce_bound(var: Var, cond: Any, hint_map: Mapping[Var, Any], relax_map: Mapping[Var, Any]) -> IntervalSet:
    """The values of `var` for which `cond` holds, whatever the variables of `relax_map` are.

    Args:
        var: the variable to solve for; it occurs once.
        cond: a comparison.
        hint_map: the sets of variables that stay in the answer, for their signs.
        relax_map: the sets of variables that the answer must hold for all values of.

    Returns:
        An interval with symbolic ends; the empty set where no bound is found.
    """
    analyzer = Analyzer()
    for other, dom in {**hint_map, **relax_map}.items():
        _hint(analyzer, other, as_interval(dom))
    condition = convert(cond)
    if not isinstance(condition, CmpExpr) or type(condition) not in _SWAPPED:
        return nothing()
    kind, target, rest = type(condition), condition.a, condition.b
    if var in variables(rest):
        kind, target, rest = _SWAPPED[kind], rest, target
    if var not in variables(target) or var in variables(rest):
        return nothing()
    if kind in (LT, GT):  # integers: e < r is e <= r - 1
        kind, rest = (LE, rest - 1) if kind is LT else (GE, rest + 1)
    solved = _Solver(analyzer, var, relax_map).solve(kind, target, rest)
    if solved is None:
        return nothing()
    return _relaxed(analyzer, *solved, relax_map)


def _hint(analyzer: Analyzer, var: Var, dom: IntervalSet) -> None:
    """Tells the analyzer the set of a variable where it is constant."""
    from .bounds import NEG_INF, POS_INF, ConstIntBound

    low = dom.min_value.value if isinstance(dom.min_value, IntImm) else NEG_INF
    high = dom.max_value.value if isinstance(dom.max_value, IntImm) else POS_INF
    if (low, high) != (NEG_INF, POS_INF):
        analyzer.update(var, ConstIntBound(low, high), override=True)


def _relaxed(analyzer: Analyzer, kind: type[CmpExpr], bound: PrimExpr, relax_map: Mapping[Var, Any]) -> IntervalSet:
    """The interval that `var kind bound` leaves for every value of what is relaxed."""
    plain = Analyzer()  # the answer is written without the hints
    values = int_set_of(analyzer, bound, relax_map, plain) if relax_map else IntervalSet.single_point(bound)
    low, high = (plain.simplify(end) if end not in (neg_inf(), pos_inf()) else end for end in (values.min_value, values.max_value))
    # One value has to suit all values of what is relaxed, so the bound mustn't vary.
    if kind is EQ:
        return IntervalSet(low, high) if low is high or analyzer.can_prove_equal(low, high) else nothing()
    if kind is GE:
        return nothing() if high is pos_inf() else IntervalSet(high, pos_inf())
    return nothing() if low is neg_inf() else IntervalSet(neg_inf(), low)


class _Solver:
    """Moves what stands around the variable to the other side, one operation at a time."""

    def __init__(self, analyzer: Analyzer, var: Var, relax_map: Mapping[Var, Any]) -> None:
        self.analyzer = analyzer
        self.var = var
        self.relax_map = relax_map

    def solve(self, kind: type[CmpExpr], target: PrimExpr, rest: PrimExpr) -> tuple[type[CmpExpr], PrimExpr] | None:
        """`var kind bound` for `target kind rest`; None if that can't be said."""
        while target is not self.var:
            step = self._step(kind, target, rest)
            if step is None:
                return None
            kind, target, rest = step
        return kind, Analyzer().simplify(rest)

    def _step(self, kind: type[CmpExpr], target: PrimExpr, rest: PrimExpr) -> tuple[type[CmpExpr], PrimExpr, PrimExpr] | None:
        if not isinstance(target, (Add, Sub, Mul, FloorDiv)):
            return None
        left = self.var in variables(target.a)
        inner, other = (target.a, target.b) if left else (target.b, target.a)
        if self.var in variables(other):
            return None
        if isinstance(target, Add):
            return kind, inner, rest - other
        if isinstance(target, Sub):
            return (kind, inner, rest + other) if left else (_SWAPPED[kind], inner, other - rest)  # e - x <= r is x >= e - r
        sign = self._sign(other)
        if sign == 0 or (isinstance(target, FloorDiv) and not left):
            return None
        rest = self._settled(kind, rest)  # before rounding
        if isinstance(target, Mul):
            return self._factor(kind, inner, other, rest, sign)
        return self._divisor(kind, inner, other, rest, sign)

    def _settled(self, kind: type[CmpExpr], rest: PrimExpr) -> PrimExpr:
        """The right side at the values of what is relaxed where the comparison is hardest to hold."""
        if kind is EQ or variables(rest).isdisjoint(self.relax_map):
            return rest
        values = int_set_of(self.analyzer, rest, self.relax_map, Analyzer())
        end = values.max_value if kind is GE else values.min_value
        return rest if end in (neg_inf(), pos_inf()) else end

    def _sign(self, expr: PrimExpr) -> int:
        return 1 if self.analyzer.can_prove(expr > 0) else -1 if self.analyzer.can_prove(expr < 0) else 0

    def _factor(
        self, kind: type[CmpExpr], inner: PrimExpr, factor: PrimExpr, rest: PrimExpr, sign: int
    ) -> tuple[type[CmpExpr], PrimExpr, PrimExpr] | None:
        """x * f >= r  <=>  x >= ceil(r / f) for f > 0, x <= floor(r / f) for f < 0."""
        whole = self.analyzer.can_prove_equal(floormod(rest, factor), 0)
        if kind is EQ:
            return (kind, inner, floordiv(rest, factor)) if whole else None
        kind = kind if sign > 0 else _SWAPPED[kind]
        # Where the factor divides the right side, floor and ceiling are the same, and no 1 is added.
        quotient = floordiv(rest, factor)
        # Where divisibility isn't proved, the 1 may skip r / f itself: a smaller set satisfies the comparison as well.
        return kind, inner, quotient if kind is LE or whole else quotient + 1

    def _divisor(
        self, kind: type[CmpExpr], inner: PrimExpr, divisor: PrimExpr, rest: PrimExpr, sign: int
    ) -> tuple[type[CmpExpr], PrimExpr, PrimExpr] | None:
        """x // d >= r  <=>  x >= r*d;  x // d <= r  <=>  x <= (r + 1)*d - 1, for d > 0; mirrored for d < 0."""
        if kind is EQ:
            return None
        if kind is GE:
            return (kind if sign > 0 else LE), inner, rest * divisor
        return (kind if sign > 0 else GE), inner, (rest + 1) * divisor - sign


def detect_linear_equation(expr: Any, var_list: Sequence[Var]) -> list[PrimExpr]:
    """The coefficients of the variables in `expr`, then what is left; empty if it isn't linear in them.

    Coefficients may be expressions of other variables.
    """
    whole = convert(expr)
    analyzer = Analyzer()
    found = _linear(whole, tuple(var_list))
    if found is None:
        return []
    coefficients, base = found
    zero = IntImm(whole.dtype, 0)
    return [analyzer.simplify(coefficients[var]) if var in coefficients else zero for var in var_list] + [analyzer.simplify(base)]


def _linear(expr: PrimExpr, wanted: tuple[Var, ...]) -> tuple[dict[Var, PrimExpr], PrimExpr] | None:
    """Coefficients and rest; None if a wanted variable occurs other than linearly."""
    if variables(expr).isdisjoint(wanted):
        return {}, expr
    if isinstance(expr, Var):
        return {expr: IntImm(expr.dtype, 1)}, IntImm(expr.dtype, 0)
    if not isinstance(expr, (Add, Sub, Mul)):
        return None
    left, right = _linear(expr.a, wanted), _linear(expr.b, wanted)
    if left is None or right is None:
        return None
    if isinstance(expr, Mul):
        if left[0] and right[0]:
            return None
        (coefficients, base), factor = (left, right[1]) if left[0] else (right, left[1])
        return {var: _times(k, factor) for var, k in coefficients.items()}, base * factor
    total = dict(left[0])
    for var, k in right[0].items():
        signed = k if isinstance(expr, Add) else _times(k, IntImm("int32", -1))
        total[var] = total[var] + signed if var in total else signed
    return total, left[1] + right[1] if isinstance(expr, Add) else left[1] - right[1]


def _times(k: PrimExpr, factor: PrimExpr) -> PrimExpr:
    """A product of coefficients, signed whatever the dtype: in 128 - c the coefficient of an unsigned c is -1."""
    if isinstance(k, IntImm) and isinstance(factor, IntImm):
        value = k.value * factor.value
        return IntImm("int32" if value < 0 and k.dtype.startswith("uint") else k.dtype, value)
    return k * factor


def detect_clip_bound(expr: Any, var_list: Sequence[Var]) -> list[PrimExpr | None]:
    """The least and the greatest value of each variable for which a conjunction of comparisons holds.

    Returns:
        Two entries a variable, None where it is unbounded; empty if a condition isn't of the kind.
    """
    analyzer = Analyzer()
    ends: dict[Var, list[PrimExpr | None]] = {var: [None, None] for var in var_list}
    for condition, holds in conjuncts(convert(expr)):
        if isinstance(condition, IntImm):
            continue
        if not isinstance(condition, CmpExpr) or type(condition) not in _SWAPPED or (isinstance(condition, EQ) and not holds):
            return []
        kind = type(condition) if holds else _OPPOSITE[type(condition)]
        used = [var for var in var_list if var in variables(condition)]
        found = detect_linear_equation(condition.a - condition.b, used) if len(used) == 1 else []
        # Of 2*x < n the end would have to be rounded.
        if not found or not isinstance(found[0], IntImm) or abs(found[0].value) != 1:
            return []
        bound = -found[1] if found[0].value == 1 else found[1]
        kind = kind if found[0].value == 1 else _SWAPPED[kind]
        ends[used[0]] = _narrowed(analyzer, ends[used[0]], kind, bound)
    return [None if end is None else analyzer.simplify(end) for pair in ends.values() for end in pair]


def _narrowed(analyzer: Analyzer, pair: list[PrimExpr | None], kind: type[CmpExpr], bound: PrimExpr) -> list[PrimExpr | None]:
    """The ends of a variable after `var kind bound`."""
    low, high = pair
    if kind in (GT, GE, EQ):
        least = bound + 1 if kind is GT else bound
        low = least if low is None else maximum(low, least)
    if kind in (LT, LE, EQ):
        most = bound - 1 if kind is LT else bound
        high = most if high is None else minimum(high, most)
    return [None if end is None else analyzer.simplify(end) for end in (low, high)]


def detect_common_subexpr(expr: Any, threshold: int) -> dict[PrimExpr, int]:
    """The largest subexpressions that occur at least `threshold` times, with how often.

    Equal means equal when simplified. What occurs inside a reported subexpression doesn't count again.
    """
    analyzer = Analyzer()
    counts: dict[PrimExpr, int] = {}
    shown: dict[PrimExpr, PrimExpr] = {}
    stack: list[PrimExpr] = [convert(expr)]
    # No memo: each occurrence counts, and so does each occurrence inside of it.
    while stack:
        node = stack.pop()
        if not children(node):
            continue
        key = analyzer.simplify(node)
        counts[key] = counts.get(key, 0) + 1
        shown.setdefault(key, node)
        stack += [x for x in children(node) if isinstance(x, PrimExpr)]
    found: dict[PrimExpr, int] = {}
    # Largest first: what lies inside of it is off the counts before its turn comes.
    for key in sorted(counts, key=lambda k: -_size(shown[k])):
        times = counts[key]
        if times < threshold:
            continue
        found[shown[key]] = times
        inside = [shown[key]]
        while inside:
            for child in children(inside.pop()):
                if children(child):
                    counts[analyzer.simplify(child)] -= times  # type: ignore[arg-type]
                    inside.append(child)  # type: ignore[arg-type]
    return found


def _size(expr: PrimExpr) -> int:
    return 1 + sum(_size(child) for child in children(expr) if isinstance(child, PrimExpr))
