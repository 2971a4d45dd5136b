"""The analyzer that programs use: arithmetic on indices is taken not to overflow, as in TVM, and answers have TVM's forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, IntFlag
from typing import Any

from ..dataclass import dataclass, replace
from ..tir.arithmetic import compare, convert
from ..tir.expr import EQ, CmpExpr, IntImm, PrimExpr, Range
from ..tir.rewriting import without_lets
from . import analyzer
from .analyzer import ConstraintScope, Scalar
from .bounds import NEG_INF, POS_INF, ConstIntBound, limits_of
from .canonical import canonical
from .constraints import told, under
from .facts import Facts, fresh_memos
from .linear import is_scalar_int
from .modular import ModularSet
from .queries import holds
from .rewrite import rewrite
from .scalable import holds_for_vector_lengths


class ProofStrength(IntEnum):
    """How hard `can_prove` tries; ours always uses symbolic bounds too."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(IntFlag):
    """Rewrites that are off until they are asked for."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


@dataclass(slots=True)
class _Stats:
    """What `rewrite_simplify` did since the last reset."""

    nodes_visited: int = 0
    constraints_entered: int = 0
    rewrites_attempted: int = 0
    rewrites_performed: int = 0
    max_recursive_depth: int = 0
    num_recursive_rewrites: int = 0


class Analyzer(analyzer.Analyzer):
    """Simplifies and proves, given what variables are bound to and the conditions in force."""

    def __init__(self) -> None:
        self.facts = Facts(index=True)
        self._extensions = Extension.NoExtensions
        self._stats = _Stats()

    @property
    def enabled_extensions(self) -> Extension:
        """The rewrites that are on beyond the usual ones."""
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: int | Extension) -> None:
        self._extensions = Extension(flags)
        self.facts = replace(self.facts, extensions=int(flags), **fresh_memos())

    @property
    def rewrite_simplify_stats(self) -> _Stats:
        """Counts of what `rewrite_simplify` did since the last reset."""
        return self._stats

    def reset_rewrite_simplify_stats(self) -> None:
        """Counts from zero again."""
        self._stats = _Stats()

    def bind(self, var: Any, expr: Scalar | Range, allow_override: bool = False) -> None:
        """Let a variable (or axis) lie in a range, or stand for a value."""
        super().bind(convert(var), expr, allow_override)  # type: ignore[arg-type]

    def update(self, var: Any, info: ConstIntBound | ModularSet | Any, override: bool = False) -> None:
        """Tell what is known of a variable: a `ConstIntBound`, a `ModularSet` or an `IntervalSet` of constants.

        Raises:
            DeclarationError: if the information contradicts what was told before and `override` is False.
            TypeMismatchError: if it is of another kind.
        """
        self.facts = told(self.facts, convert(var), info, override)

    def constraint_scope(self, constraint: Any) -> ConstraintScope:  # type: ignore[override]
        """A scope for a `with` statement in which `constraint` holds."""

        def enter() -> Callable[[], None]:
            outer = self.facts
            condition = convert(constraint)
            # Facts are looked up as they are written, so both as it was given and as expressions come to look.
            self.facts = under(under(outer, condition), rewrite(outer, condition))
            self._stats.constraints_entered += 1

            def leave() -> None:
                self.facts = outer

            return leave

        return ConstraintScope(enter)

    def rewrite_simplify(self, expr: Scalar) -> PrimExpr:
        """The form of `expr` that local rewriting by laws gives; operands keep their order."""
        before = len(self.facts.rewritten)
        found = rewrite(self.facts, convert(expr))
        visited = len(self.facts.rewritten) - before
        self._stats.nodes_visited += visited
        self._stats.rewrites_attempted += visited
        self._stats.rewrites_performed += found is not convert(expr)
        return found

    def canonical_simplify(self, expr: Scalar) -> PrimExpr:
        """The form of `expr` as a sum: equal terms joined, quotients and remainders of one division put together."""
        return canonical(self.facts, convert(expr))

    def simplify(self, expr: Scalar, steps: int = 2) -> PrimExpr:
        """The simplest form found of `expr`: canonical first, then `steps` times rewritten and canonical in turn."""
        found = canonical(self.facts, convert(expr))
        for step in range(steps):
            before, found = found, (canonical if step % 2 else rewrite)(self.facts, found)
            if found is before and step:
                break
        return found

    def const_int_bound(self, expr: Scalar) -> ConstIntBound:
        """Inclusive bounds of an integer expression over the integers; `POS_INF` and `NEG_INF` where there is none."""
        low, high = limits_of(self.facts, without_lets(convert(expr)))
        return ConstIntBound(max(low, NEG_INF), min(high, POS_INF))

    def const_int_bound_is_bound(self, var: Any) -> bool:
        """True if a constant bound of the variable was told."""
        return convert(var) in self.facts.limits

    def int_set(self, expr: Scalar, dom_map: Mapping[Any, Any] | None = None) -> Any:
        """The set of values of `expr` while variables vary over the sets of `dom_map`."""
        from .int_set import int_set_of

        return int_set_of(self, convert(expr), dom_map)

    def can_prove(self, expr: Any, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """True if the condition is proved to hold."""
        condition = convert(expr)
        if not isinstance(condition, IntImm) and _is_scalar_comparison(condition) and holds(self.facts, condition):
            return strength > ProofStrength.DEFAULT or True
        if isinstance(condition, EQ) and condition.a is condition.b:  # of floats too: NaN isn't thought of
            return True
        found = self.simplify(condition)
        return (isinstance(found, IntImm) and found.value != 0) or holds_for_vector_lengths(self.facts, condition)

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """True if lhs == rhs is proved."""
        left, right = convert(lhs), convert(rhs)
        if left is right:
            return True
        return self.can_prove(compare(EQ, left, right))


__all__ = ["Analyzer", "ConstraintScope", "Extension", "ProofStrength"]


def _is_scalar_comparison(condition: PrimExpr) -> bool:
    return isinstance(condition, CmpExpr) and is_scalar_int(condition.a.dtype)
