"""Extents: integer expressions of symbols, equal where that can be proved."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..arith.analyzer import Analyzer
from ..tir.expr import IntImm, PrimExpr, Var
from ..tir.structured import Proven


def readable(text: str) -> str:
    """A message with constants of the index algebra as numbers: "T.int64(3)" as "3"."""
    return re.sub(r"T\.int(?:32|64)\((-?\d+)\)", r"\1", text)


def simplified(extent: PrimExpr) -> PrimExpr:
    """An extent in its simplest form, which a number or a symbol has; most are numbers."""
    return extent if isinstance(extent, (IntImm, Var)) else Analyzer().simplify(extent)


def same_extents(a: PrimExpr, b: PrimExpr) -> bool | None:
    """Whether two extents are equal; None if that depends on symbols."""
    if a is b:
        return True
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    difference = simplified(a - b)
    return difference.value == 0 if isinstance(difference, IntImm) else None


def same_shapes(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    """Whether two shapes are proved to be one."""
    return len(a) == len(b) and all(same_extents(x, y) for x, y in zip(a, b, strict=True))


class Extent(Proven):
    """An extent, as a part of what is compared."""

    __slots__ = ()

    def equals(self, mine: PrimExpr, other: PrimExpr) -> bool:
        """Whether the difference is 0."""
        return same_extents(mine, other) is True

    def simplest(self) -> PrimExpr:
        """The expression simplified."""
        return simplified(self.value)
