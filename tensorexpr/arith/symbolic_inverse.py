"""Parts of index maps that are inverted although their factors are symbols: fusions of whole indices, quotient and remainder.

x * n + y          y < n            ->   x = new // n, y = new % n
(x // n, x % n)                     ->   x = new_0 * n + new_1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..tir.arithmetic import as_int, const
from ..tir.expr import FloorDiv, FloorMod, PrimExpr, Range, Var
from ..tir.rewriting import substitute, variables
from .analyzer import Analyzer


def symbolic_inverse(
    old: Sequence[Var], mapped: Sequence[PrimExpr], extents: Sequence[PrimExpr], new: Sequence[PrimExpr], new_extents: Sequence[PrimExpr]
) -> tuple[dict[Var, PrimExpr], list[PrimExpr]] | None:
    """The old indices in terms of the new ones, and the conditions under which there are such.

    None unless each is used by one fusion, or by one quotient and its remainder. Divisors are taken to be positive, as only
    then the map means something.
    """
    analyzer = Analyzer()
    limits = dict(zip(new, new_extents, strict=True))
    conditions: list[PrimExpr] = []
    sizes = dict(zip(old, extents, strict=True))
    found = dict[Var, PrimExpr]()
    left = list(zip(mapped, new, strict=True))
    while left:
        index, place = left.pop(0)
        made = _joined(index, place, left) if isinstance(index, (FloorDiv, FloorMod)) else _unfused(index, place, sizes)
        if made is None or made.keys() & found.keys():
            return None
        found.update(made)
        if isinstance(index, (FloorDiv, FloorMod)):
            conditions += [value < sizes[var] for var, value in made.items()]
        else:
            filled = prod((sizes[var] for var in made), start=const(1, index.dtype))
            conditions += [] if analyzer.known_equal(filled, limits[place]) else [place < filled]
    for var, extent in sizes.items():
        if var not in found and as_int(extent) == 1:
            found[var] = const(0, var.dtype)
    return (found, conditions) if found.keys() == sizes.keys() else None


def is_injective(domain: Mapping[Var, Range], indices: Sequence[PrimExpr]) -> bool:
    """True if different points of a box of symbolic extents, which starts at 0, certainly have different indices."""
    if any(as_int(dom.min) != 0 for dom in domain.values()):
        return False
    places = [Var("place", index.dtype) for index in indices]
    extents = [dom.extent for dom in domain.values()]
    # The extents of the places only make conditions, which aren't asked for.
    return symbolic_inverse(list(domain), indices, extents, places, [const(0, index.dtype) for index in indices]) is not None


def _joined(index: FloorDiv | FloorMod, place: PrimExpr, left: list[tuple[PrimExpr, PrimExpr]]) -> dict[Var, PrimExpr] | None:
    """The variable that a quotient and a remainder, which is taken out of what is left, make up."""
    other = FloorMod if isinstance(index, FloorDiv) else FloorDiv
    match = next(
        (n for n, (i, _) in enumerate(left) if isinstance(i, other) and i.a is index.a and Analyzer().known_equal(i.b, index.b)), None
    )
    if match is None or not isinstance(index.a, Var):
        return None
    second = left.pop(match)[1]
    quotient, remainder = (place, second) if other is FloorMod else (second, place)
    return {index.a: quotient * index.b + remainder}


def _unfused(index: PrimExpr, place: PrimExpr, sizes: Mapping[Var, PrimExpr]) -> dict[Var, PrimExpr] | None:
    """The variables of a sum whose strides are the products of the extents of the faster ones."""
    analyzer = Analyzer({var: Range.from_min_extent(const(0, var.dtype), extent) for var, extent in sizes.items()})
    used = [var for var in sizes if var in variables(index)]
    zero = {var: const(0, var.dtype) for var in used}
    strides = {var: analyzer.simplify(substitute(index, {**zero, var: const(1, var.dtype)})) for var in used}
    total = sum((var * stride for var, stride in strides.items()), const(0, index.dtype))
    # The strides were read off at unit points, which says nothing of x*y or x // 2.
    if not analyzer.known_equal(index, total):
        return None
    found: dict[Var, PrimExpr] = {var: zero[var] for var in used if as_int(sizes[var]) == 1}
    below: PrimExpr = const(1, index.dtype)
    while rest := [var for var in used if var not in found]:
        var = next((var for var in rest if analyzer.known_equal(strides[var], below)), None)
        if var is None:
            return None
        quotient = place // below
        found[var] = quotient if len(rest) == 1 else quotient % sizes[var]  # nothing is above the slowest
        below = analyzer.simplify(below * sizes[var])
    return found
