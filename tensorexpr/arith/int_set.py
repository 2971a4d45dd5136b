"""Sets of integers with symbolic ends, and the set of values of an expression while variables vary over sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import DeclarationError
from ..tir.arithmetic import convert, floordiv, floormod, maximum, minimum
from ..tir.dtype import parse_dtype
from ..tir.expr import (
    Add,
    Broadcast,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    PrimExpr,
    Ramp,
    Range,
    Select,
    Sub,
    Var,
)  # fmt: skip
from ..tir.rewriting import substitute, variables

if TYPE_CHECKING:
    from .index_analyzer import Analyzer

# Compared by identity, and never operands: a handle has no arithmetic that laws could fold.
_POS_INF = Var("pos_inf", "handle")
_NEG_INF = Var("neg_inf", "handle")
_NESTING = 16  # variables whose sets speak of variables whose sets ...


def pos_inf() -> Var:
    """The symbol that stands for "no upper end"."""
    return _POS_INF


def neg_inf() -> Var:
    """The symbol that stands for "no lower end"."""
    return _NEG_INF


class IntSet:
    """A set of integers."""

    def is_nothing(self) -> bool:
        """True if the set is known to be empty."""
        return False

    def is_everything(self) -> bool:
        """True if the set is known to hold all integers."""
        return False

    @staticmethod
    def vector(vec: PrimExpr) -> IntervalSet:
        """The least interval that holds every lane of a vector."""
        from .index_analyzer import Analyzer

        return int_set_of(Analyzer(), convert(vec), {})

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """The set of one integer."""
        return IntervalSet(point, point)


class IntervalSet(IntSet):
    """The integers from `min_value` to `max_value`, both included; `neg_inf()` and `pos_inf()` leave an end open."""

    __slots__ = ("max_value", "min_value")

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self.min_value: PrimExpr = convert(min_value)
        self.max_value: PrimExpr = convert(max_value)

    def is_nothing(self) -> bool:
        """True if the set is known to be empty."""
        if self.min_value is _POS_INF or self.max_value is _NEG_INF:
            return True
        # Symbolic ends aren't compared: 0..n - 1 counts as inhabited, though n may be 0.
        return isinstance(self.min_value, IntImm) and isinstance(self.max_value, IntImm) and self.min_value.value > self.max_value.value

    def is_everything(self) -> bool:
        """True if neither end is bounded."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    @property
    def is_point(self) -> bool:
        """True if both ends are the same expression."""
        # Identity is equality here: expressions are hash-consed.
        return self.min_value is self.max_value and self.min_value not in (_NEG_INF, _POS_INF)

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def nothing() -> IntervalSet:
    """The empty set."""
    return IntervalSet(_POS_INF, _NEG_INF)


def everything() -> IntervalSet:
    """All integers."""
    return IntervalSet(_NEG_INF, _POS_INF)


class PresburgerSet(IntSet):
    """A set of integer points described by a conjunction of affine conditions on `variables`; without any, all integers."""

    def __init__(self, constraint: Any = True, variables: Iterable[Var] = ()) -> None:
        self.constraint = convert(constraint)
        self.variables = tuple(variables)

    def is_nothing(self) -> bool:
        """True if the conditions are known to contradict one another."""
        from .index_analyzer import Analyzer

        found = Analyzer().simplify(self.constraint)
        return isinstance(found, IntImm) and not found.value

    def is_everything(self) -> bool:
        """True if there are no conditions."""
        return isinstance(self.constraint, IntImm) and bool(self.constraint.value)

    def __repr__(self) -> str:
        return f"PresburgerSet({', '.join(v.name for v in self.variables)}: {self.constraint})"


def as_interval(found: Any) -> IntervalSet:
    """The interval that a set, a range or a single value is.

    Raises:
        DeclarationError: for anything else.
    """
    if isinstance(found, IntervalSet):
        return found
    if isinstance(found, Range):
        return IntervalSet(found.min, found.min + found.extent - 1)
    if isinstance(found, (PrimExpr, int)):
        return IntervalSet(found, found)
    raise DeclarationError(f"a variable varies over an IntervalSet or a Range, not over {found!r}")


def int_set_of(analyzer: Analyzer, expr: PrimExpr, dom_map: Mapping[Any, Any] | None, writer: Analyzer | None = None) -> IntervalSet:
    """The least interval found that holds the values of `expr` while the variables of `dom_map` vary over their sets.

    Ends are simplified by `writer`, where what `analyzer` knows shall not show in them.
    """
    domain = {var if isinstance(var, Var) else var.var: as_interval(dom) for var, dom in (dom_map or {}).items()}
    return _Evaluator(analyzer, domain, writer or analyzer).set_of(expr)


def union(analyzer: Analyzer, sets: Iterable[IntervalSet]) -> IntervalSet:
    """The least interval that holds all sets; empty ones don't count."""
    # The ends of `nothing()` are handles, of which no minimum could be built.
    kept = [found for found in sets if not found.is_nothing()]
    if not kept:
        return nothing()
    low, high = kept[0].min_value, kept[0].max_value
    for other in kept[1:]:
        low = _NEG_INF if _NEG_INF in (low, other.min_value) else analyzer.simplify(minimum(low, other.min_value))
        high = _POS_INF if _POS_INF in (high, other.max_value) else analyzer.simplify(maximum(high, other.max_value))
    return IntervalSet(low, high)


def union_lower_bound(sets: Iterable[IntSet]) -> IntervalSet:
    """An interval that the union of intervals covers without a gap: the first, and what adjoins it."""
    from .index_analyzer import Analyzer

    analyzer = Analyzer()
    left = [found for found in map(as_interval, sets) if not found.is_nothing()]
    if not left:
        return nothing()
    whole = left.pop(0)
    while left:
        # From the first again each time: of 0..3, 8..9, 4..7 the second adjoins only after the third.
        following = next((found for found in left if _adjoins(analyzer, whole, found)), None)
        if following is None:
            return whole
        left.remove(following)
        whole = union(analyzer, [whole, following])
    return whole


def _adjoins(analyzer: Analyzer, a: IntervalSet, b: IntervalSet) -> bool:
    """True if there is no integer between two intervals."""
    # Both ways: neither may start more than 1 behind the other's end.
    ends = [(a.min_value, b.max_value), (b.min_value, a.max_value)]
    return all(low is _NEG_INF or high is _POS_INF or analyzer.can_prove(low <= high + 1) for low, high in ends)


End = PrimExpr
_INFINITIES = (_NEG_INF, _POS_INF)


def _opposite(end: End) -> End:
    return _POS_INF if end is _NEG_INF else _NEG_INF


class _Evaluator:
    """The recursion over one expression."""

    def __init__(self, analyzer: Analyzer, domain: Mapping[Var, IntervalSet], writer: Analyzer) -> None:
        self.analyzer = analyzer
        self.writer = writer
        self.domain = domain
        self.depth = 0

    def varies(self, expr: PrimExpr) -> bool:
        """True if a variable of the domain occurs in an expression."""
        return any(var in self.domain for var in variables(expr))

    def set_of(self, expr: PrimExpr) -> IntervalSet:
        """The set of a node from those of its operands."""
        # A vector has several values even where no variable varies.
        if expr in _INFINITIES or (parse_dtype(expr.dtype).lanes == 1 and not self.varies(expr)):
            return IntervalSet(expr, expr)
        match expr:
            case Var():
                return self._of_var(expr)
            case Add(a, b):
                return self._sum(self.set_of(a), self.set_of(b))
            case Sub(a, b):
                return self._sum(self.set_of(a), self._scaled(self.set_of(b), IntImm(b.dtype, -1)))
            case Mul(a, b):
                return self._product(self.set_of(a), self.set_of(b))
            case FloorDiv(a, b) | Div(a, b):
                return self._quotient(type(expr), self.set_of(a), self.set_of(b))
            case FloorMod(a, b) | Mod(a, b):
                return self._remainder(expr, self.set_of(a), self.set_of(b))
            case Min(a, b) | Max(a, b):
                return self._extremum(isinstance(expr, Min), self.set_of(a), self.set_of(b))
            case Select(_, a, b) | Call(_, "tir.if_then_else", (_, a, b)):
                # The condition narrows nothing: `x if x < 4 else 0` over 0..9 gives 0..9.
                return union(self.analyzer, [self.set_of(a), self.set_of(b)])
            case Let(var, value, body):
                return self.set_of(substitute(body, {var: value}))
            case Cast(dtype, value):
                # Taken to keep values and their order, as conversions of indices do: int8 of 0..300 would wrap.
                inner = self.set_of(value)
                return self._each(inner, lambda end: convert(end).astype(dtype))
            case Broadcast(value, _):
                return self.set_of(value)
            case Ramp(base, stride, lanes):
                steps = IntervalSet(IntImm(base.dtype, 0), IntImm(base.dtype, lanes - 1))
                return self._sum(self.set_of(base), self._product(steps, self.set_of(stride)))
            case CmpExpr() | LogicalExpr() | Not():
                return self._condition(expr)
        return everything()

    def _of_var(self, var: Var) -> IntervalSet:
        found = self.domain[var]
        # Bounded, as i in 0..j and j in 0..i speak of each other.
        if self.depth < _NESTING and any(self.varies(end) for end in (found.min_value, found.max_value) if end not in _INFINITIES):
            self.depth += 1
            # The least that the lower end takes, the greatest that the upper one does.
            inner = IntervalSet(self.set_of(found.min_value).min_value, self.set_of(found.max_value).max_value)
            self.depth -= 1
            return inner
        return found

    def _condition(self, expr: PrimExpr) -> IntervalSet:
        found = self.analyzer.simplify(expr)
        return IntervalSet(found, found) if isinstance(found, IntImm) else IntervalSet(IntImm("bool", 0), IntImm("bool", 1))

    def _each(self, found: IntervalSet, change: Callable[[PrimExpr], PrimExpr]) -> IntervalSet:
        return IntervalSet(*(end if end in _INFINITIES else self._simple(change(end)) for end in (found.min_value, found.max_value)))

    def _simple(self, expr: PrimExpr) -> PrimExpr:
        return self.writer.simplify(expr)

    def _sum(self, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        if a.is_nothing() or b.is_nothing():
            return nothing()
        low = _NEG_INF if _NEG_INF in (a.min_value, b.min_value) else self._simple(a.min_value + b.min_value)
        high = _POS_INF if _POS_INF in (a.max_value, b.max_value) else self._simple(a.max_value + b.max_value)
        return IntervalSet(low, high)

    def _sign(self, expr: PrimExpr) -> int:
        """1 for >= 0, -1 for <= 0, 0 for unknown."""
        if self.analyzer.can_prove(expr >= 0):
            return 1
        return -1 if self.analyzer.can_prove(expr <= 0) else 0

    def _scaled(self, a: IntervalSet, factor: PrimExpr) -> IntervalSet:
        """The set times a factor that doesn't vary."""
        if isinstance(factor, IntImm) and factor.value == 0:  # also where an end is open
            return IntervalSet(factor, factor)
        if a.is_point:
            return IntervalSet.single_point(self._simple(a.min_value * factor))
        sign = self._sign(factor)
        if sign == 0:
            return self._either(a, factor, lambda end: end * factor)
        ends = [self._turned(end, sign) if end in _INFINITIES else self._simple(end * factor) for end in (a.min_value, a.max_value)]
        return IntervalSet(*(ends if sign > 0 else ends[::-1]))

    @staticmethod
    def _turned(end: End, sign: int) -> End:
        return end if sign > 0 else _opposite(end)

    def _either(self, a: IntervalSet, sign: PrimExpr, at: Callable[[PrimExpr], PrimExpr]) -> IntervalSet:
        """The set whose ends change places where `sign` is negative."""
        if any(end in _INFINITIES for end in (a.min_value, a.max_value)):
            return everything()
        low, high = self._simple(at(a.min_value)), self._simple(at(a.max_value))
        grows = sign >= 0
        return IntervalSet(Select(grows, low, high), Select(grows, high, low))

    def _product(self, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        if b.is_point:
            return self._scaled(a, b.min_value)
        if a.is_point:
            return self._scaled(b, a.min_value)
        ends = [a.min_value, a.max_value, b.min_value, b.max_value]
        if any(end in _INFINITIES for end in ends):
            # A divisor that may be 0 has no quotient to bound.
            return everything()
        if self._sign(a.min_value) > 0 and self._sign(b.min_value) > 0:
            return IntervalSet(self._simple(a.min_value * b.min_value), self._simple(a.max_value * b.max_value))
        # Linear in either factor, so the extremes are at the corners.
        return union(self.analyzer, [IntervalSet.single_point(self._simple(x * y)) for x in ends[:2] for y in ends[2:]])

    def _quotient(self, kind: type[PrimExpr], a: IntervalSet, b: IntervalSet) -> IntervalSet:
        """Quotients grow with what is divided by a divisor that is positive; by one that is negative they fall."""
        if not b.is_point:
            low, high = b.min_value, b.max_value
            if low in _INFINITIES or high in _INFINITIES or not self.analyzer.can_prove(low > 0):
                return everything()
            # Whatever is divided, quotients are monotone in a divisor that keeps its sign: its ends bound them.
            return union(self.analyzer, [self._quotient(kind, a, IntervalSet.single_point(end)) for end in (low, high)])
        divisor = b.min_value
        sign = 1 if self.analyzer.can_prove(divisor > 0) else -1 if self.analyzer.can_prove(divisor < 0) else 0
        if sign == 0:
            return self._either(a, divisor, lambda end: floordiv(end, divisor) if kind is FloorDiv else Div(end, divisor))

        def at(end: End) -> End:
            if end in _INFINITIES:
                return self._turned(end, sign)
            return self._simple(floordiv(end, divisor) if kind is FloorDiv else Div(end, divisor))

        ends = [at(a.min_value), at(a.max_value)]
        return IntervalSet(*(ends if sign > 0 else ends[::-1]))

    def _remainder(self, node: FloorMod | Mod, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        if not b.is_point or not self.analyzer.can_prove(b.min_value > 0):
            return everything()
        divisor, floors = b.min_value, isinstance(node, FloorMod)
        low, high = a.min_value, a.max_value
        if low not in _INFINITIES and high not in _INFINITIES:
            # Within one period the remainder grows with what is divided; across two it starts again at 0.
            quotients = [self._simple(floordiv(end, divisor)) for end in (low, high)]
            if self.analyzer.can_prove_equal(*quotients) and (floors or self._sign(low) > 0):
                return IntervalSet(*(self._simple(floormod(end, divisor)) for end in (low, high)))
        # A truncated remainder has the sign of what is divided.
        least = 0 if floors or (low not in _INFINITIES and self._sign(low) > 0) else None
        top = self._simple(divisor - 1)
        return IntervalSet(IntImm(divisor.dtype, 0) if least == 0 else self._simple(1 - divisor), top)

    def _extremum(self, least: bool, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        pick = minimum if least else maximum
        weak = _POS_INF if least else _NEG_INF  # what the other side beats
        ends = []
        for x, y in ((a.min_value, b.min_value), (a.max_value, b.max_value)):
            # min(x, +inf) is x, min(x, -inf) is -inf; mirrored for max.
            if x in _INFINITIES or y in _INFINITIES:
                other = y if x in _INFINITIES else x
                infinite = x if x in _INFINITIES else y
                ends.append(other if infinite is weak else infinite)
            else:
                ends.append(self._simple(pick(x, y)))
        return IntervalSet(*ends)
