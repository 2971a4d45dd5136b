"""Tiles of two sizes: how a balanced split cuts an extent, and the guard that tells the sizes apart.

An extent E in P tiles gives E % P tiles of E // P + 1 iterations, then P - E % P tiles of E // P. Tile o starts at
o*(E // P) + min(o, E % P). The last iteration of the larger size is missing from the smaller tiles; one comparison that is
affine in both loops says so, hence loop partition cuts the outer loop once and each size has a constant extent.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dataclass import dataclass
from ..errors import ScheduleError
from ..tir.arithmetic import ceildiv, floordiv, floormod, is_const_int, maximum, minimum
from ..tir.expr import IntImm, IterVar, PrimExpr

Simplify = Callable[[PrimExpr], PrimExpr]


@dataclass(frozen=True, eq=False, slots=True)
class BalancedTiles:
    """`count` tiles, the first `longer` of them with `small` + 1 iterations, the others with `small`."""

    count: PrimExpr
    small: PrimExpr
    longer: PrimExpr

    @staticmethod
    def of(extent: PrimExpr, count: PrimExpr, simplify: Simplify) -> BalancedTiles:
        """The tiles of an extent, given how many."""
        return BalancedTiles(count, simplify(floordiv(extent, count)), simplify(floormod(extent, count)))

    def start(self, tile: PrimExpr) -> PrimExpr:
        """The first iteration of a tile."""
        start = tile * self.small
        return start if is_const_int(self.longer, 0) else start + minimum(tile, self.longer)


@dataclass(frozen=True, eq=False, slots=True)
class ShortTile:
    """Iteration `last` of an axis exists in the first `longer` of `count` tiles only; `tile` is the number of the tile."""

    last: PrimExpr
    tile: PrimExpr
    longer: PrimExpr
    count: PrimExpr

    def condition(self, value: PrimExpr) -> PrimExpr:
        """True exactly if the iteration `value`, from 0 to `last`, exists: tile < longer at the last one, tile < count before it."""
        # at value == last - 1 the condition is tile < shorter + longer == count, which holds for every tile
        shorter = self.count - self.longer
        return value * shorter + self.tile < self.last * shorter + self.longer


def balanced_extents(
    stage: str, parent: IterVar, extent: PrimExpr, factors: tuple[PrimExpr | None, ...], simplify: Simplify
) -> tuple[PrimExpr, PrimExpr]:
    """The extents of both parts of a balanced split: how many tiles, and the larger size.

    Args:
        factors: (None, largest size) or (number of tiles, None).

    Raises:
        ScheduleError: if the extent of the parent is no constant.
    """
    if not isinstance(extent, IntImm):
        raise ScheduleError(
            f"In schedule for {stage}: a balanced split of {parent.name!r} needs a constant extent, not {extent}: the sizes of the "
            "tiles follow from it; split it without balanced, whose guard serves every size"
        )
    count, size = factors
    if count is None:
        assert size is not None
        # an extent of 0 has one empty tile, as extents are divided by the count
        count = maximum(ceildiv(extent, size), IntImm(extent.dtype, 1))
    count = simplify(count)
    return count, simplify(ceildiv(extent, count))
