"""Iterator maps as programs see them: splits and fusions with symbolic extents, predicates, padding and division.

    mark  ::= (source, extent)                              values 0 .. extent - 1
    split ::= mark // lower_factor % extent * scale
    sum   ::= split + ... + split + base

The vocabulary is TVM's. Scales, factors and extents are expressions; what has to divide or to be equal is proved:
`iter_affine_fusion` makes one split of a sum, `iter_affine_division` takes splits apart, `iter_affine_cover` checks what is used.

`iter_map` is another detector, of constant extents alone: passes and traces ask it for each block of each candidate, where a
proof for each number takes three times as long.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..dataclass import dataclass, field
from ..tir.arithmetic import convert, floordiv, floormod, is_const_int
from ..tir.expr import IntImm, PrimExpr
from .index_analyzer import Analyzer


class IterMapLevel(IntEnum):
    """How much of a map is checked: each point hit once; iterators independent; nothing."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str) -> IterMapLevel:
        """The level by its name, "bijective", "surjective" or "nocheck"."""
        found = {level.name.lower(): level for level in IterMapLevel}.get(name.lower())
        if found is None:
            raise ValueError(f"a check level is 'bijective', 'surjective' or 'nocheck', not {name!r}")
        return found


class IterMapExpr:
    """Base of splits and sums of iterators."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class IterMark:
    """An iterator: a variable or a fused sum, which counts from 0 up to, not including, `extent`."""

    source: Any
    extent: Any

    def __post_init__(self) -> None:
        if not isinstance(self.source, IterMapExpr):
            self.source = convert(self.source)
        self.extent = convert(self.extent)


@dataclass(eq=False, slots=True)
class IterSplitExpr(IterMapExpr):
    """`source // lower_factor % extent * scale`."""

    source: IterMark
    lower_factor: Any = 1
    extent: Any = None
    scale: Any = 1

    def __post_init__(self) -> None:
        dtype = self.source.extent.dtype
        self.extent = self.source.extent if self.extent is None else convert(self.extent)
        self.lower_factor, self.scale = (IntImm(dtype, x) if isinstance(x, int) else convert(x) for x in (self.lower_factor, self.scale))


@dataclass(eq=False, slots=True)
class IterSumExpr(IterMapExpr):
    """The sum of splits and of a base that doesn't depend on the iterators."""

    args: list[IterSplitExpr]
    base: Any

    def __post_init__(self) -> None:
        self.args = list(self.args)
        self.base = convert(self.base)

    @property
    def dtype(self) -> str:
        """The dtype of the sum."""
        return str(self.base.dtype)


@dataclass(eq=False, slots=True)
class IterMapResult:
    """The indices as sums of splits; none with `errors` that say why. `padding_predicate` holds where padding is."""

    indices: list[IterSumExpr] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    padding_predicate: PrimExpr = field(default_factory=lambda: IntImm("bool", 0))


class NoMap(Exception):
    """Why an index isn't a map of the kind."""


def normalize_iter_map_to_expr(expr: Any) -> PrimExpr:
    """The index expression that a mark, a split or a sum stands for."""
    if isinstance(expr, IterMark):
        return normalize_iter_map_to_expr(expr.source) if isinstance(expr.source, IterMapExpr) else convert(expr.source)
    if isinstance(expr, IterSumExpr):
        total: PrimExpr | None = None
        for split in expr.args:
            part = normalize_iter_map_to_expr(split)
            total = part if total is None else total + part
        if total is None:
            return convert(expr.base)
        return total if is_const_int(expr.base, 0) else total + expr.base
    if isinstance(expr, IterSplitExpr):
        value = normalize_iter_map_to_expr(expr.source)
        analyzer = Analyzer()
        if analyzer.can_prove_equal(expr.extent, expr.source.extent) and is_const_int(expr.lower_factor, 1):
            pass
        elif analyzer.can_prove_equal(expr.source.extent, expr.lower_factor * expr.extent):
            value = floordiv(value, expr.lower_factor)
        else:
            value = floordiv(floormod(value, analyzer.simplify(expr.lower_factor * expr.extent)), expr.lower_factor)
        scaled: PrimExpr = value * expr.scale
        return scaled
    return convert(expr)
