"""Dividing iterator maps: bindings of blocks as outer parts without some iterators and inner parts of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.arithmetic import floordiv, floormod, logical_and
from ..tir.expr import IntImm, PrimExpr, Range, Var
from ..tir.rewriting import variables
from .index_analyzer import Analyzer
from .iter_affine_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, NoMap, normalize_iter_map_to_expr
from .iter_map_queries import detect_iter_map


def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[Any, Range],
    sub_iters: Sequence[Var],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[IterMark]]:
    """Each binding as an outer mark without the sub-iterators and an inner mark of them: outer * extent of inner + inner.

    Returns:
        A pair of marks a binding and a last pair whose extents are the predicates of the outer and the inner iterators;
        empty if the bindings can't be divided so.
    """
    found = detect_iter_map(bindings, input_iters, predicate, check_level, simplify_trivial_iterators)
    if not found.indices:
        return []
    inner_vars = set(sub_iters)
    divider = _Divider(inner_vars)
    try:
        pairs = [list(divider.divide(total)) for total in found.indices]
    except NoMap:
        return []
    zero = IntImm("int32", 0)
    return [*pairs, [IterMark(zero, divider.outer_predicate), IterMark(zero, divider.inner_predicate)]]


class _Divider:
    """Divides sums into an outer and an inner part."""

    def __init__(self, inner_vars: set[Var]) -> None:
        self.inner_vars = inner_vars
        self.analyzer = Analyzer()
        self.outer_predicate: PrimExpr = IntImm("bool", 1)
        self.inner_predicate: PrimExpr = IntImm("bool", 1)
        self.known: dict[int, tuple[IterMark, IterMark, bool, bool]] = {}

    def divide(self, total: IterSumExpr) -> tuple[IterMark, IterMark]:
        """The marks of a sum of at most one split."""
        dtype = total.dtype
        one, zero = IntImm(dtype, 1), IntImm(dtype, 0)
        if not total.args:
            return IterMark(IterSumExpr([], total.base), one), IterMark(IterSumExpr([], zero), one)
        split = total.args[0]
        side = self._side(split)
        mark = split.source
        if side != "both" and isinstance(mark.source, IterSumExpr) and mark.source.args:
            top = mark.source.args[0]
            if not self.analyzer.can_prove_equal(top.scale * top.extent, mark.extent):
                self._note_predicate(mark)
        if side == "inner":
            return IterMark(IterSumExpr([], zero), one), IterMark(IterSumExpr([split], total.base), split.extent)
        if side == "outer":
            return IterMark(IterSumExpr([split], total.base), split.extent), IterMark(IterSumExpr([], zero), one)
        if not isinstance(split.scale, IntImm) or split.scale.value != 1 or not isinstance(split.source.source, IterSumExpr):
            raise NoMap("a scaled sum of both sides can't be divided")
        outer, inner = self._halves(split.source)
        whole = IntImm(dtype, 1)
        if split.lower_factor is not whole or not self.analyzer.can_prove_equal(split.extent, split.source.extent):
            outer, inner = self._cut(split, outer, inner)
        return outer, IterMark(IterSumExpr(inner.source.args, self.analyzer.simplify(inner.source.base + total.base)), inner.extent)

    def _side(self, split: IterSplitExpr) -> str:
        """Which iterators a split is made of: "inner", "outer" or "both"."""
        used = variables(normalize_iter_map_to_expr(split))
        if used <= self.inner_vars:
            return "inner"
        return "outer" if used.isdisjoint(self.inner_vars) else "both"

    def _halves(self, mark: IterMark) -> tuple[IterMark, IterMark]:
        """The outer splits, divided by the extent of the inner ones, and the inner splits of a fused mark."""
        args = mark.source.args
        sides = [self._side(split) for split in args]
        if "both" in sides:
            return self._mixed(mark, sides)
        count = next((place for place, side in enumerate(sides) if side == "inner"), len(sides))
        if any(side != "inner" for side in sides[count:]):
            raise NoMap("inner iterators stand above outer ones")
        return self._joined(mark, args[:count], args[count:])

    def _joined(self, mark: IterMark, above: Sequence[IterSplitExpr], below: Sequence[IterSplitExpr]) -> tuple[IterMark, IterMark]:
        simple = self.analyzer.simplify
        dtype = mark.source.dtype
        inner_extent = simple(below[0].scale * below[0].extent) if below else IntImm(dtype, 1)
        scaled = [IterSplitExpr(s.source, s.lower_factor, s.extent, simple(floordiv(s.scale, inner_extent))) for s in above]
        outer_extent = simple(scaled[0].scale * scaled[0].extent) if scaled else IntImm(dtype, 1)
        if not self.analyzer.can_prove_equal(outer_extent * inner_extent, mark.extent):
            self._note_predicate(mark)
        zero = IntImm(dtype, 0)
        return IterMark(IterSumExpr(scaled, zero), outer_extent), IterMark(IterSumExpr(list(below), zero), inner_extent)

    def _note_predicate(self, mark: IterMark) -> None:
        """The bound of a fused mark as a bound of one of its halves.

        Raises:
            NoMap: if it is a bound of neither.
        """
        value = normalize_iter_map_to_expr(mark)
        condition = self.analyzer.simplify(value) < mark.extent
        used = variables(value)
        if used <= self.inner_vars:
            self.inner_predicate = logical_and(self.inner_predicate, condition)
        elif used.isdisjoint(self.inner_vars):
            self.outer_predicate = logical_and(self.outer_predicate, condition)
        else:
            raise NoMap("a predicate bounds inner and outer iterators together")

    def _mixed(self, mark: IterMark, sides: Sequence[str]) -> tuple[IterMark, IterMark]:
        """A fused mark one of whose splits is made of both sides."""
        place = sides.index("both")
        if any(side != "outer" for side in sides[:place]) or any(side != "inner" for side in sides[place + 1 :]):
            raise NoMap("inner iterators stand above outer ones")
        split = mark.source.args[place]
        if not isinstance(split.source.source, IterSumExpr):
            raise NoMap("an iterator is inner and outer at once")
        high, low = self._cut(split, *self._halves(split.source))
        low_split = IterSplitExpr(low, 1, low.extent, split.scale)
        high_split = IterSplitExpr(high, 1, high.extent, self.analyzer.simplify(split.scale * low.extent))
        return self._joined(mark, [*mark.source.args[:place], high_split], [low_split, *mark.source.args[place + 1 :]])

    def _cut(self, split: IterSplitExpr, outer: IterMark, inner: IterMark) -> tuple[IterMark, IterMark]:
        """outer * extent + inner, divided and cut like the split.

        Raises:
            NoMap: if the cut goes through neither half evenly.
        """
        prove, simple = self.analyzer.can_prove_equal, self.analyzer.simplify
        lower, upper = split.lower_factor, simple(split.lower_factor * split.extent)
        zero, one = IntImm(split.extent.dtype, 0), IntImm(split.extent.dtype, 1)
        if prove(floormod(lower, inner.extent), zero):  # only outer values are left
            part = IterSplitExpr(outer, simple(floordiv(lower, inner.extent)), split.extent)
            return IterMark(IterSumExpr([part], zero), split.extent), IterMark(IterSumExpr([], zero), one)
        if prove(floormod(inner.extent, upper), zero):  # only inner ones
            part = IterSplitExpr(inner, lower, split.extent)
            return IterMark(IterSumExpr([], zero), one), IterMark(IterSumExpr([part], zero), split.extent)
        # The cut has ends on both sides: all of the inner half above `lower`, and some outer values.
        if prove(floormod(upper, inner.extent), zero) and prove(floormod(inner.extent, lower), zero):
            high = IterSplitExpr(outer, 1, simple(floordiv(upper, inner.extent)))
            low = IterSplitExpr(inner, lower, simple(floordiv(inner.extent, lower)))
            return IterMark(IterSumExpr([high], zero), high.extent), IterMark(IterSumExpr([low], zero), low.extent)
        raise NoMap(f"the part {split.extent} at {lower} cuts through inner and outer iterators")
