"""Inverting index maps whose result has padding.

The map is inverted on a larger box, on which it is a bijection: the extents of the old indices are rounded up until every
division by a constant comes out even and every fused sum is without gaps. Of the inverse on that box, the points of the new
layout that lead outside the true extents are padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import gcd, lcm

from ..errors import DeclarationError
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import as_int, const
from ..tir.expr import Add, FloorDiv, FloorMod, IntImm, PrimExpr, Range, Sub, Var
from ..tir.rewriting import post_order_rewrite, substitute, variables, walk
from .analyzer import Analyzer
from .interval import relax
from .iter_map import IterMapResult, detect_iter_map, inverse_affine_iter_map
from .linear import Linear, linear_form
from .symbolic_inverse import symbolic_inverse

# Stands for an extent that is no constant: larger than any tensor's but small enough for sums of products.
_LARGE = 1 << 20


def padded_inverse(
    old: Sequence[Var],
    mapped: Sequence[PrimExpr],
    extents: Sequence[PrimExpr],
    new: Sequence[Var],
    new_extents: Sequence[PrimExpr],
    shown: str,
) -> tuple[tuple[PrimExpr, ...], PrimExpr]:
    """The old indices in terms of the new ones, and the condition under which there is such an element.

    Raises:
        DeclarationError: if it isn't certain that different old indices have different new ones.
    """
    inverse = _inverse(old, mapped, extents, new)
    if isinstance(inverse, str):
        symbolic = symbolic_inverse(old, mapped, extents, new, new_extents)
        if symbolic is not None:
            return tuple(symbolic[0][var] for var in old), all_of(*symbolic[1])
        raise DeclarationError(
            f"the index map {shown} can't be inverted: {inverse}; each element needs a place of its own, found from "
            "quotients and remainders by constants, sums and orders of the indices"
        )
    inner = Analyzer({var: Range.from_min_extent(const(0, var.dtype), extent) for var, extent in zip(new, new_extents, strict=True)})
    back = {var: Analyzer().simplify(inverse[var]) for var in old}  # on the whole layout: indices that are 0 for this shape stay
    places = [inner.simplify(back[var]) for var in old]
    conditions = [
        *(condition for place, extent in zip(places, extents, strict=True) for condition in (place >= 0, place < extent)),
        *(inner.simplify(substitute(index, back)).equal(var) for index, var in zip(mapped, new, strict=True)),
    ]
    return tuple(back[var] for var in old), all_of(*(c for c in conditions if not inner.known_true(c)))


def _inverse(
    old: Sequence[Var], mapped: Sequence[PrimExpr], extents: Sequence[PrimExpr], new: Sequence[PrimExpr]
) -> dict[Var, PrimExpr] | str:
    """The old indices in terms of the new ones where there are such, or why that can't be said.

    A sum that is divided becomes an index of its own first: simplified, its divisions look unlike.
    """
    sums = dict.fromkeys(node.a for index in mapped for node in walk(index) if isinstance(node, (FloorDiv, FloorMod)) and _fuses(node.a))
    used = [var for total in sums for var in variables(total)]
    # Two sums that share a variable aren't independent indices, so they can't stand for themselves.
    if not sums or len(used) != len(set(used)):
        return _inverse_of_splits(old, mapped, extents, new)
    ranges = {var: Range.from_min_extent(const(0, var.dtype), extent) for var, extent in zip(old, extents, strict=True)}
    fused = {total: Var(f"fused_{n}", total.dtype) for n, total in enumerate(sums)}
    found = [relax(total, ranges, Analyzer(ranges)) for total in sums]
    # Quotients and remainders of negative numbers aren't the digits that splits are made of.
    if any(interval is None or not Analyzer(ranges).known_nonnegative(interval.min) for interval in found):
        return "a sum that is divided may be negative"
    # First from the new indices to the sums, then from the sums to the old indices.
    lasts = [interval.max for interval in found if interval is not None]
    kept = [var for var in old if var not in used]
    middle = [*fused.values(), *kept]
    outer_extents = [*(last + 1 for last in lasts), *(ranges[var].extent for var in kept)]
    outer = _inverse_of_splits(middle, [_replaced(index, fused) for index in mapped], outer_extents, new)
    if isinstance(outer, str):
        return outer
    return _inverse_of_splits(old, [*sums, *kept], extents, [outer[var] for var in middle])


def _fuses(numerator: PrimExpr) -> bool:
    return isinstance(numerator, (Add, Sub)) and bool(variables(numerator))


def _replaced(index: PrimExpr, fused: Mapping[PrimExpr, Var]) -> PrimExpr:
    return post_order_rewrite(index, lambda node: fused.get(node) if isinstance(node, PrimExpr) else None)


def _inverse_of_splits(
    old: Sequence[Var], mapped: Sequence[PrimExpr], extents: Sequence[PrimExpr], new: Sequence[PrimExpr]
) -> dict[Var, PrimExpr] | str:
    analyzer = Analyzer()
    for var in old:
        analyzer.bind(var, Range.from_min_extent(const(0, var.dtype), const((1 << 31) - 1, var.dtype)))
    indices = [analyzer.simplify(index) for index in mapped]
    found = _bijection(old, indices, extents)
    return found.errors[0] if found.errors else inverse_affine_iter_map(found, new)


def _bijection(old: Sequence[Var], indices: Sequence[PrimExpr], extents: Sequence[PrimExpr]) -> IterMapResult:
    """The map on the largest box on which it is a bijection: without the true extents, on these, or on the rounded ones."""
    known = [as_int(extent) for extent in extents]
    true = dict(zip(old, (_LARGE if value is None else max(value, 1) for value in known), strict=True))
    rounding = _Rounding(dict(true))
    for index in indices:
        rounding.visit(linear_form(index), 1)
    for var, value in zip(old, known, strict=True):
        if value is None and rounding.inner[var]:
            return IterMapResult((), (f"the extent of {var} is no constant, but another index is multiplied by it",))
    grown = rounding.unbounded()
    rounded = {var: grown[var] if value is None else rounding.extents[var] for var, value in zip(old, known, strict=True)}
    boxes = [grown, *([] if None in known else [true]), rounded]
    # Lazily: a box is tried only where those before it have failed.
    results = (
        detect_iter_map(indices, {v: Range.from_min_extent(const(0, v.dtype), const(n, v.dtype)) for v, n in box.items()}) for box in boxes
    )
    last = IterMapResult((), ("it has no indices",))
    for last in results:
        if not last.errors:
            break
    return last


class _Rounding:
    """The extents of the old indices, grown so that sums have no gaps and divisions no rest.

    `inner` says which indices are not the slowest of a sum, so that the others' factors fix their extents.
    """

    def __init__(self, extents: dict[Var, int]) -> None:
        self.extents = extents
        self.inner = dict.fromkeys(extents, False)
        self._steps = dict.fromkeys(extents, 1)

    def visit(self, form: Linear, divisor: int) -> None:
        """Round for the sum `form` that is divided by `divisor`."""
        # Smallest factor first: each term has to reach the factor of the next.
        terms = sorted(form.terms.items(), key=lambda item: abs(item[1]))
        for (atom, k), (_, above) in pairwise(terms):
            # j*4 + i: i needs 4 values at least, or the sum has gaps.
            if isinstance(atom, Var) and atom in self.extents and above % k == 0:
                self.inner[atom] = True
                self.extents[atom] = max(self.extents[atom], abs(above // k))
        for place, (atom, k) in enumerate(terms):
            needed = divisor // gcd(divisor, k) if place == len(terms) - 1 else 1
            self._divisible(atom, needed)

    def unbounded(self) -> dict[Var, int]:
        """The extents where nothing is concluded from an index being small: it exceeds each divisor, so no quotient is always 0."""
        return {var: extent if self.inner[var] else max(extent, 2 * self._steps[var]) for var, extent in self.extents.items()}

    def _divisible(self, atom: PrimExpr, multiple: int) -> None:
        """Round so that the number of values of `atom` is a multiple."""
        if isinstance(atom, Var) and atom in self.extents:
            # Two divisions of one index, by 4 and by 6: 12 suits both.
            step = self._steps[atom] = lcm(self._steps[atom], multiple)
            if not self.inner[atom]:
                self.extents[atom] = -(-self.extents[atom] // step) * step
        elif isinstance(atom, (FloorDiv, FloorMod)) and isinstance(atom.b, IntImm) and atom.b.value > 0:
            # x // b has a multiple of m values if x has one of b*m; x % b if x has one of b.
            below = atom.b.value * multiple if isinstance(atom, FloorDiv) else atom.b.value
            self.visit(linear_form(atom.a), below)
