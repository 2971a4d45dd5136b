"""Layouts of blocks as a shape and an order of axes, which NumPy copies by, in place of an index for each element.

(o, i) -> (i, o // 64, o // 16 % 4, o % 16)        o is [o // 64, o // 16 % 4, o % 16]; axes (3, 0, 1, 2) of these and i
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dataclass import dataclass
from ..tir.arithmetic import as_int
from ..tir.expr import FloorDiv, FloorMod, PrimExpr, Var


@dataclass(frozen=True)
class DigitLayout:
    """An index map whose new indices are digits of the old ones.

    Args:
        digits: for each old axis the extents of its digits, the highest first; without digits, an axis has one element.
        places: for each old axis the new axes that its digits are.
    """

    digits: tuple[tuple[int, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def fill(self, made: Any, source: Any) -> None:
        """Copy an array into one of zeros in the new layout, whose digits may have more values than these."""
        blocks = made.transpose([place for places in self.places for place in places])
        # The ellipsis keeps an array of no axes one: by () alone it is a number, which is no place to copy to.
        whole = (*(slice(extent) for digits in self.digits for extent in digits), ...)
        _fill(blocks[whole], source, self.digits)

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether the new layout has room for all digits in a shape."""
        pairs = zip(self.digits, self.places, strict=True)
        return all(extent <= shape[place] for digits, places in pairs for extent, place in zip(digits, places, strict=True))


def _fill(blocks: Any, source: Any, digits: Sequence[tuple[int, ...]]) -> None:
    """Copy by whole blocks, and what is left of an axis behind them: 20 rows by 16 are one block and 4 rows of the next."""
    first = 0
    for axis, extents in enumerate(digits):
        if not extents:  # one element
            continue
        inner = math.prod(extents[1:])
        count, left = divmod(source.shape[axis], inner)
        whole, behind = _at(axis, slice(count * inner)), _at(axis, slice(count * inner, None))
        if left and count:
            _fill(blocks, source[whole], digits)
        if left:
            # The rest has one value of the highest digit, and digits of its own below.
            rest = tuple(one[1:] if n == axis else one for n, one in enumerate(digits))
            _fill(blocks[_at(first, count)], source[behind], rest)
            return
        blocks = blocks[_at(first, slice(count))]
        first += len(extents)
    blocks[...] = source.reshape(blocks.shape)


def _at(axis: int, index: slice | int) -> tuple[slice | int, ...]:
    """An index of one axis."""
    return (*(slice(None),) * axis, index)


def digit_layout(old: Sequence[Var], new: Sequence[PrimExpr], shape: Sequence[int]) -> DigitLayout | None:
    """An index map as digits of constant extents; None if it isn't that.

    Args:
        old: the variables of the old indices.
        new: the new indices.
        shape: the extents of the old axes, without zeros.
    """
    found: dict[Var, dict[int, tuple[int | None, int]]] = {var: {} for var in old}
    for place, index in enumerate(new):
        digit = _digit(index)
        # Two digits of one axis at one step overlap.
        if digit is None or digit[0] not in found or digit[1] in found[digit[0]]:
            return None
        var, step, size = digit
        found[var][step] = size, place
    digits, places = [], []
    for var, extent in zip(old, shape, strict=True):
        extents: list[int] = []
        reached = 1
        for step, (size, _) in sorted(found[var].items()):
            # Digits follow each other without gap, and one without end is the last.
            if step != reached:
                return None
            covered = -(-extent // step) if size is None else min(size, -(-extent // step))
            reached = step * (covered if size is None else size)
            extents.insert(0, covered)
        if reached < extent:
            return None
        digits.append(tuple(extents))
        places.append(tuple(place for _, (_, place) in sorted(found[var].items(), reverse=True)))
    return DigitLayout(tuple(digits), tuple(places))


def block_extents(old: Sequence[Var], new: Sequence[PrimExpr], shape: Sequence[Any]) -> list[int] | None:
    """The extents of new indices `v`, `v // a` and `v // a % b` of known shapes, without an analysis; None for other maps or shapes."""
    if len(shape) != len(old) or not all(type(extent) is int and extent > 0 for extent in shape):
        return None
    known, found = dict(zip(old, shape, strict=True)), []
    for index in new:
        digit = _digit(index)
        if digit is None or digit[0] not in known:
            return None
        var, step, size = digit
        # All values of a remainder, also where the index stays below the divisor.
        found.append(-(-known[var] // step) if size is None else size)
    return found


def _digit(index: PrimExpr) -> tuple[Var, int, int | None] | None:
    """`v // step % size` as its parts; the size is None without `%`."""
    size: int | None = None
    step: int | None = 1
    if isinstance(index, FloorMod):
        size, index = as_int(index.b), index.a
        if size is None or size < 1:
            return None
    if isinstance(index, FloorDiv):
        step, index = as_int(index.b), index.a
    return (index, step, size) if isinstance(index, Var) and step is not None and step > 0 else None
