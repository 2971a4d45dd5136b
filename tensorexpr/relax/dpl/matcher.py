"""The matcher: which expression each part of a pattern stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..expr import Var


class Matcher:
    """Matches patterns against expressions; what is matched stays so for those that follow.

    Args:
        var2val: what variables are bound to.
        outer: a matcher whose matches count, and to which those of this one are added.
    """

    def __init__(self, var2val: Mapping[Var, Any] | None = None, outer: Matcher | None = None) -> None:
        self._values = {} if var2val is None else var2val
        self.found: dict[Any, Any] = {} if outer is None else outer.found  # patterns -> expressions, in the order of their matches
        self._bound: dict[Any, Any] = {} if outer is None else outer._bound

    def value(self, expr: Any) -> Any:
        """What a variable is bound to, or the expression itself."""
        while isinstance(expr, Var) and expr in self._values:
            expr = self._values[expr]
        return expr

    def match(self, pattern: Any, expr: Any) -> bool:
        """Whether an expression matches. A pattern that has matched stands for what it has matched; one that fails leaves no trace."""
        if pattern in self.found:
            known = self.found[pattern]
            # Two names of one value are the same match.
            return known is expr or self._bound[pattern] is self.value(expr)
        before = len(self.found)
        if pattern.matches(expr, self):
            self.found[pattern], self._bound[pattern] = expr, self.value(expr)
            return True
        self.forget(before)
        return False

    def all(self, pairs: Iterable[tuple[Any, Any]]) -> bool:
        """Whether all of some expressions match; if one fails, none leaves a trace."""
        before = len(self.found)
        if all(self.match(pattern, expr) for pattern, expr in pairs):
            return True
        self.forget(before)
        return False

    def tried(self, pattern: Any, expr: Any) -> bool:
        """Whether an expression would match; no trace is left."""
        before = len(self.found)
        matched = self.match(pattern, expr)
        self.forget(before)
        return matched

    def forget(self, count: int) -> None:
        """Leave only the first `count` matches."""
        # A dictionary keeps the order of insertion, so the latest matches are at its end.
        for pattern in list(self.found)[count:]:
            del self.found[pattern], self._bound[pattern]

    def extract(self, pattern: Any, expr: Any) -> dict[Any, Any] | None:
        """What each part of a pattern stands for, if it matches: values for patterns of values, else the variables that are there."""
        if not self.match(pattern, expr):
            return None
        return {one: self._bound[one] if one.by_value else found for one, found in self.found.items()}
