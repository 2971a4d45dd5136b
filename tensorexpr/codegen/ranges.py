"""What loops say of their variables, and what follows for the values of integer expressions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arith.analyzer import Analyzer
from ..tir.expr import PrimExpr, Range, Var


class Ranges:
    """The ranges of the variables around the place that is being written."""

    def __init__(self, ranges: dict[Var, Range] | None = None) -> None:
        self.ranges: dict[Var, Range] = dict(ranges or {})
        self._analyzer: Analyzer | None = None

    @contextmanager
    def ranged(self, var: Var, dom: Range) -> Iterator[None]:
        """Let it be known that `var` lies in `dom`."""
        outer = self.ranges
        self.ranges = {**outer, var: dom}
        self._analyzer = None
        try:
            yield
        finally:
            self.ranges = outer
            self._analyzer = None

    def limits(self, expr: PrimExpr) -> tuple[int, int]:
        """Inclusive bounds of an integer expression (of every lane), from its dtype and the loops around."""
        bound = self._known().const_int_bound(expr)
        return bound.min_value, bound.max_value

    def simplified(self, expr: PrimExpr) -> PrimExpr:
        """An integer expression in its simplest form."""
        return self._known().simplify(expr)

    def _known(self) -> Analyzer:
        if self._analyzer is None:
            self._analyzer = Analyzer(self.ranges)
        return self._analyzer
