"""Natural numbers as values of the library's type `nat`, for tests of algebraic types."""

from __future__ import annotations

from typing import Any

from ..values import ConstructorValue


def make_nat_expr(prelude: Any, n: int) -> Any:
    """The expression of a number: S(S(Z)) of 2.

    Args:
        prelude: whose module has imported "nat.rly".
        n: at least 0.
    """
    _, zero, successor = prelude.mod.get_type("nat")
    found = zero()
    for _ in range(n):
        found = successor(found)
    return found


def make_nat_value(prelude: Any, n: int) -> ConstructorValue:
    """The value of a number."""
    _, zero, successor = prelude.mod.get_type("nat")
    found = ConstructorValue(zero.tag, [], zero)
    for _ in range(n):
        found = ConstructorValue(successor.tag, [found], successor)
    return found


def count(prelude: Any, n: Any) -> int:
    """The number that a value is."""
    zero = prelude.mod.get_type("nat")[1]
    found = 0
    while n.tag != zero.tag:
        n, found = n.fields[0], found + 1
    return found


__all__ = ["count", "make_nat_expr", "make_nat_value"]
