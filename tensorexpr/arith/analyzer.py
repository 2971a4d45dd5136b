"""The analyzer: one place to bind variables, enter constraints and ask questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..errors import DeclarationError
from ..tir.expr import EQ, GE, GT, LE, LT, NE, CmpExpr, IntImm, PrimExpr, Range, Var
from .bounds import NEG_INF, POS_INF, ConstIntBound, limits_of
from .constraints import bind_range, bind_value, conjuncts, under
from .facts import Facts
from .linear import Linear, is_scalar_int
from .modular import ModularSet, congruence_of, form_congruence
from .proofs import difference, known_nonnegative
from .simplify import simplify


class Analyzer:
    """Simplifies and proves, given ranges of variables and the conditions in force.

    Queries named `known_*` answer True only if the fact is proved.
    """

    def __init__(self, ranges: Mapping[Var, Range] | None = None) -> None:
        self.facts = Facts()
        for var, dom in (ranges or {}).items():
            self.bind(var, dom)

    def bind(self, var: Var, value: PrimExpr | Range | int, allow_override: bool = False) -> None:
        """Let `var` lie in a range, or stand for a value.

        Raises:
            DeclarationError: if the variable is bound to something else already and `allow_override` is False.
        """
        facts = self.facts
        if isinstance(value, Range):
            known = facts.ranges.get(var)
            if known is not None and (known.min is not value.min or known.extent is not value.extent) and not allow_override:
                raise DeclarationError(f"{var} is bound to another range already; pass allow_override=True to replace it")
            self.facts = bind_range(facts, var, value)
            return
        expr = IntImm(var.dtype, value) if isinstance(value, int) else value
        if facts.values.get(var, expr) is not expr and not allow_override:
            raise DeclarationError(f"{var} stands for {facts.values[var]} already; pass allow_override=True to replace it")
        self.facts = bind_value(facts, var, simplify(facts, expr))

    @contextmanager
    def constraint_scope(self, condition: PrimExpr) -> Iterator[Analyzer]:
        """Inside the `with` block `condition` holds."""
        outer = self.facts
        self.facts = under(outer, condition)
        try:
            yield self
        finally:
            self.facts = outer

    def simplify(self, expr: PrimExpr, steps: int = 2) -> PrimExpr:
        """The simplest form found of `expr`; `steps` is accepted for compatibility, one call reaches the fixed point."""
        return simplify(self.facts, expr)

    def rewrite_simplify(self, expr: PrimExpr) -> PrimExpr:
        """As `simplify`."""
        return simplify(self.facts, expr)

    def canonical_simplify(self, expr: PrimExpr) -> PrimExpr:
        """As `simplify`."""
        return simplify(self.facts, expr)

    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound:
        """Inclusive bounds of an integer expression."""
        low, high = limits_of(self.facts, expr)
        return ConstIntBound(max(low, NEG_INF), min(high, POS_INF))

    def modular_set(self, expr: PrimExpr) -> ModularSet:
        """The congruence of an integer expression."""
        return ModularSet(*congruence_of(self.facts, expr))

    def known_true(self, condition: PrimExpr) -> bool:
        """True if the condition is proved to hold."""
        if all(self._holds(part, positive) for part, positive in conjuncts(condition)):
            return True
        found = simplify(self.facts, condition)
        return isinstance(found, IntImm) and bool(found.value)

    def _holds(self, condition: PrimExpr, positive: bool) -> bool:
        if isinstance(condition, IntImm):
            return bool(condition.value) is positive
        if condition in self.facts.truths:
            return self.facts.truths[condition] is positive
        if not isinstance(condition, CmpExpr) or not is_scalar_int(condition.a.dtype):
            return False
        queries = _QUERIES if positive else _NEGATED_QUERIES
        name, swapped = queries[type(condition)]
        a, b = (condition.b, condition.a) if swapped else (condition.a, condition.b)
        return bool(getattr(self, name)(a, b)) if name else False

    def _gap(self, a: PrimExpr | int, b: PrimExpr | int) -> Linear:
        """b - a as a form."""
        facts = self.facts
        if isinstance(a, int):
            a = IntImm("int64", a)
        if isinstance(b, int):
            b = IntImm("int64", b)
        plain = difference(facts, b, a)
        if plain.is_constant:
            return plain
        return difference(facts, simplify(facts, b), simplify(facts, a))

    def known_equal(self, a: PrimExpr | int, b: PrimExpr | int) -> bool:
        """True if a == b is proved."""
        if a is b:
            return True
        gap = self._gap(a, b)
        if gap.is_constant:
            return gap.constant == 0
        return known_nonnegative(self.facts, gap) and known_nonnegative(self.facts, gap.scale(-1))

    def known_unequal(self, a: PrimExpr | int, b: PrimExpr | int) -> bool:
        """True if a != b is proved."""
        gap = self._gap(a, b)
        coeff, base = form_congruence(self.facts, gap)
        if base % coeff if coeff else base:
            return True
        return known_nonnegative(self.facts, gap.shift(-1)) or known_nonnegative(self.facts, gap.scale(-1).shift(-1))

    def known_less(self, a: PrimExpr | int, b: PrimExpr | int) -> bool:
        """True if a < b is proved."""
        return known_nonnegative(self.facts, self._gap(a, b).shift(-1))

    def known_less_equal(self, a: PrimExpr | int, b: PrimExpr | int) -> bool:
        """True if a <= b is proved."""
        return known_nonnegative(self.facts, self._gap(a, b))

    def known_nonnegative(self, a: PrimExpr | int) -> bool:
        """True if a >= 0 is proved."""
        return self.known_less_equal(0, a)

    def known_divisible(self, a: PrimExpr | int, k: int) -> bool:
        """True if a is proved to be a multiple of k."""
        if isinstance(a, int):
            return a % k == 0
        for expr in (a, simplify(self.facts, a)):
            coeff, base = congruence_of(self.facts, expr)
            if coeff % k == 0 and base % k == 0:
                return True
        return False

    can_prove = known_true
    can_prove_equal = known_equal
    can_prove_less = known_less

    def can_prove_greater_equal(self, a: PrimExpr | int, b: PrimExpr | int) -> bool:
        """True if a >= b is proved."""
        return self.known_less_equal(b, a)


_QUERIES: dict[type[PrimExpr], tuple[str, bool]] = {
    EQ: ("known_equal", False),
    NE: ("known_unequal", False),
    LT: ("known_less", False),
    LE: ("known_less_equal", False),
    GT: ("known_less", True),
    GE: ("known_less_equal", True),
}
_NEGATED_QUERIES: dict[type[PrimExpr], tuple[str, bool]] = {
    EQ: ("known_unequal", False),
    NE: ("known_equal", False),
    LT: ("known_less_equal", True),
    LE: ("known_less", True),
    GT: ("known_less_equal", False),
    GE: ("known_less", False),
}
