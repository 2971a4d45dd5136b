"""The analyzer: one place to bind variables, enter constraints and ask questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..errors import DeclarationError
from ..tir.arithmetic import convert
from ..tir.expr import ExprOp, IntImm, PrimExpr, Range, Var
from .bounds import NEG_INF, POS_INF, ConstIntBound, limits_of
from .constraints import bind_range, bind_value, facts_of, under
from .facts import Facts
from .modular import ModularSet, congruence_of
from .queries import at_least, equal, holds
from .simplify import simplify

Scalar = ExprOp | int


def _integer(value: Scalar) -> PrimExpr:
    """An operand of a query; Python integers are taken as they are, whatever the other side's width."""
    return IntImm("int64", value) if isinstance(value, int) else convert(value)


class Analyzer:
    """Simplifies and proves, given ranges of variables and the conditions in force.

    Queries named `known_*` answer True only if the fact is proved.
    """

    def __init__(self, ranges: Mapping[Var, Range] | None = None) -> None:
        self.facts = facts_of(ranges) if ranges else Facts()

    def bind(self, var: Var, value: Scalar | Range, allow_override: bool = False) -> None:
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
        expr = convert(value, var.dtype)
        if facts.values.get(var, expr) is not expr and not allow_override:
            raise DeclarationError(f"{var} stands for {facts.values[var]} already; pass allow_override=True to replace it")
        self.facts = bind_value(facts, var, simplify(facts, expr))

    @contextmanager
    def scope(self) -> Iterator[Analyzer]:
        """Bindings and constraints made inside the `with` block end with it."""
        outer = self.facts
        try:
            yield self
        finally:
            self.facts = outer

    @contextmanager
    def constraint_scope(self, condition: ExprOp | bool) -> Iterator[Analyzer]:
        """Inside the `with` block `condition` holds."""
        with self.scope():
            self.facts = under(self.facts, convert(condition))
            yield self

    def simplify(self, expr: Scalar, steps: int = 2) -> PrimExpr:
        """The simplest form found of `expr`; `steps` is accepted for compatibility, one call reaches the fixed point."""
        return simplify(self.facts, convert(expr))

    def const_int_bound(self, expr: Scalar) -> ConstIntBound:
        """Inclusive bounds of an integer expression."""
        low, high = limits_of(self.facts, convert(expr))
        return ConstIntBound(max(low, NEG_INF), min(high, POS_INF))

    def modular_set(self, expr: Scalar) -> ModularSet:
        """The congruence of an integer expression."""
        return ModularSet(*congruence_of(self.facts, convert(expr)))

    def known_true(self, condition: ExprOp | bool) -> bool:
        """True if the condition is proved to hold."""
        return holds(self.facts, convert(condition))

    def known_equal(self, a: Scalar, b: Scalar) -> bool:
        """True if a == b is proved."""
        return a is b or equal(self.facts, _integer(a), _integer(b))

    def known_less(self, a: Scalar, b: Scalar) -> bool:
        """True if a < b is proved."""
        return at_least(self.facts, _integer(b), _integer(a), 1)

    def known_less_equal(self, a: Scalar, b: Scalar) -> bool:
        """True if a <= b is proved."""
        return at_least(self.facts, _integer(b), _integer(a))

    def known_nonnegative(self, a: Scalar) -> bool:
        """True if a >= 0 is proved."""
        return self.known_less_equal(0, a)

    def known_divisible(self, a: Scalar, k: int) -> bool:
        """True if a is proved to be a multiple of k."""
        whole = _integer(a)
        for expr in (whole, simplify(self.facts, whole)):
            coeff, base = congruence_of(self.facts, expr)
            if coeff % k == 0 and base % k == 0:
                return True
        return False

    can_prove = known_true
    can_prove_equal = known_equal
    can_prove_less = known_less

    def can_prove_greater_equal(self, a: Scalar, b: Scalar) -> bool:
        """True if a >= b is proved."""
        return self.known_less_equal(b, a)


class ConstraintScope:
    """What a `with` statement enters: `fenter` makes the constraint hold and returns what ends it."""

    def __init__(self, fenter: Callable[[], Callable[[], None]]) -> None:
        self._fenter = fenter
        self._fexit: Callable[[], None] | None = None

    def __enter__(self) -> None:
        self._fexit = self._fenter()

    def __exit__(self, *exc: object) -> None:
        if self._fexit is not None:
            self._fexit()
