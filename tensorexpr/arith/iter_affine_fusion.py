"""Sums of splits, and those of one mark: scales that chain up, within the bounds that predicates give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..tir.arithmetic import floordiv, floormod, is_const_int, maximum, minimum
from ..tir.expr import IntImm, PrimExpr, Range, Var
from .index_analyzer import Analyzer
from .iter_affine_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, NoMap


@dataclass(slots=True)
class Bound:
    """A predicate's bounds of a sum: lower <= sum < upper, without its base."""

    total: IterSumExpr
    lower: PrimExpr | None
    upper: PrimExpr | None
    used: bool = False


class Fusion:
    """Adds, scales and fuses splits of the iterators that it is made for."""

    def __init__(self, analyzer: Analyzer, input_iters: Mapping[Var, Range], level: IterMapLevel, trivial: bool) -> None:
        self.analyzer = analyzer
        self.level = level
        self.iters: dict[Var, IterSumExpr] = {}
        self.roots: list[IterMark] = []
        self.fused: dict[tuple[Any, ...], tuple[IterMark, PrimExpr]] = {}
        self.bounds: list[Bound] = []
        self.padding: PrimExpr = IntImm("bool", 0)
        self.padded: dict[tuple[int, PrimExpr, PrimExpr], IterMark] = {}
        for var, dom in input_iters.items():
            # Where trivial iterators count, one that is bound to a single value would be simplified away.
            if trivial or not is_const_int(dom.extent, 1):
                analyzer.bind(var, dom, allow_override=True)
            if is_const_int(dom.extent, 1) and trivial:
                self.iters[var] = IterSumExpr([], dom.min)
                continue
            # Marks count from 0; the minimum is in the base.
            mark = IterMark(var if is_const_int(dom.min, 0) else var - dom.min, dom.extent)
            self.roots.append(mark)
            self.iters[var] = IterSumExpr([IterSplitExpr(mark)], dom.min)

    def narrow(self, var: Var, lower: PrimExpr | None, upper: PrimExpr | None) -> None:
        """Narrows the range of an iterator to lower <= var < upper."""
        total = self.iters[var]
        if not total.args:
            return
        low = total.base if lower is None else self.simple(maximum(total.base, lower))
        end = total.base + total.args[0].extent
        high = self.simple(end if upper is None else minimum(end, upper))
        # The narrowed mark takes the old one's place among those that a bijective map must use up.
        self.roots.remove(total.args[0].source)
        mark = IterMark(var if is_const_int(low, 0) else var - low, self.simple(high - low))
        self.roots.append(mark)
        self.iters[var] = IterSumExpr([IterSplitExpr(mark)], low)

    def simple(self, expr: PrimExpr) -> PrimExpr:
        """The expression simplified."""
        return self.analyzer.simplify(expr)

    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """True if two expressions are proved equal."""
        return a is b or self.analyzer.can_prove_equal(a, b)

    def divides(self, divisor: PrimExpr, whole: PrimExpr) -> bool:
        """True if `divisor` is proved to divide `whole`."""
        return self.equal(floormod(whole, divisor), IntImm(whole.dtype, 0))

    def added(self, a: IterSumExpr, b: IterSumExpr) -> IterSumExpr:
        """The sum of sums; equal splits are joined."""
        args = list(a.args)
        for split in b.args:
            for place, known in enumerate(args):
                same = known.source is split.source and self.equal(known.lower_factor, split.lower_factor)
                if same and self.equal(known.extent, split.extent):
                    scale = self.simple(known.scale + split.scale)
                    args[place] = IterSplitExpr(known.source, known.lower_factor, known.extent, scale)
                    break
            else:
                args.append(split)
        # i - i leaves no split: one with scale 0 would break every chain.
        return IterSumExpr([split for split in args if not is_const_int(split.scale, 0)], self.simple(a.base + b.base))

    def scaled(self, total: IterSumExpr, factor: PrimExpr) -> IterSumExpr:
        """The sum times a factor."""
        args = [IterSplitExpr(s.source, s.lower_factor, s.extent, self.simple(s.scale * factor)) for s in total.args]
        return IterSumExpr([split for split in args if not is_const_int(split.scale, 0)], self.simple(total.base * factor))

    def fuse(self, total: IterSumExpr) -> IterSplitExpr:
        """The sum, base left out, as one split of a fused mark; scales chain up.

        Raises:
            NoMap: if they don't.
        """
        bound = self.bound_of(total)
        if bound is None:
            total = self._with_bounded_parts(total)
        if len(total.args) == 1 and bound is None:
            return total.args[0]
        chain, exact = self._chain(total.args)
        scale = chain[-1].scale
        inner = [IterSplitExpr(s.source, s.lower_factor, s.extent, self.simple(floordiv(s.scale, scale))) for s in chain]
        extent = self.simple(inner[0].scale * inner[0].extent)
        if not exact:  # values overlap, so the last ones add up
            extent = IntImm(extent.dtype, 1)
            for split in inner:
                extent = self.simple(extent + split.scale * (split.extent - 1))
        # Identities stay valid: the mark that is kept under them holds its splits, and these their sources.
        key = tuple((id(s.source), s.lower_factor, s.extent, s.scale) for s in inner)
        known = self.fused.get(key)
        if known is None:
            base: PrimExpr = IntImm(extent.dtype, 0)
            if bound is not None:
                bound.used = True
                extent, base = self._cut(bound, extent, scale)
            # The mark counts from 0: what the bound cuts off below is subtracted inside it, and added again by `fused_sum`.
            shift = IterSumExpr(inner, self.simple(0 - base))
            known = self.fused[key] = IterMark(shift, extent), base
        return IterSplitExpr(known[0], 1, known[0].extent, scale)

    def _with_bounded_parts(self, total: IterSumExpr) -> IterSumExpr:
        """The sum with the terms that a predicate bounds together fused: (x*4 + y)*2 + z where x*4 + y is bounded."""
        for bound in self.bounds:
            inner = bound.total.args
            if len(inner) >= len(total.args):
                continue
            pairs = [(part, next((s for s in total.args if s.source is part.source and s.extent is part.extent), None)) for part in inner]
            found = [split for _, split in pairs if split is not None]
            factors = {self.simple(floordiv(split.scale, part.scale)) for part, split in pairs if split is not None}
            if len(found) < len(inner) or len(factors) > 1:
                continue
            whole = self.fused_sum(IterSumExpr(inner, IntImm(total.dtype, 0)))
            rest = [split for split in total.args if all(split is not part for part in found)]
            total = self.added(IterSumExpr(rest, total.base), self.scaled(whole, factors.pop()))
        return total

    def fused_sum(self, total: IterSumExpr) -> IterSumExpr:
        """The sum as one split and its base, with what a predicate cuts off below in the base."""
        if not total.args:
            return total
        split = self.fuse(total)
        source = split.source.source
        if split is total.args[0] or not isinstance(source, IterSumExpr):
            return IterSumExpr([split], total.base)
        return IterSumExpr([split], self.simple(total.base - source.base * split.scale))

    def _chain(self, args: Sequence[IterSplitExpr]) -> tuple[list[IterSplitExpr], bool]:
        """The splits from the largest scale to the smallest, and whether each scale is where the smaller ones end."""
        constant = [s for s in args if isinstance(s.scale, IntImm)]
        if any(isinstance(s.scale, IntImm) and s.scale.value <= 0 for s in args):
            raise NoMap("a negative scale can't be fused")
        # The smallest constant scale starts the chain; without one, the scale that divides the others.
        first = min(reversed(constant), key=lambda s: s.scale.value) if constant else None
        if first is None:
            first = next((s for s in reversed(args) if all(self.divides(s.scale, other.scale) for other in args)), None)
        if first is None:
            raise NoMap("no scale divides the others")
        found, left, exact = [first], [s for s in args if s is not first], True
        expected = first.scale * first.extent
        while left:
            following = next((s for s in reversed(left) if self.equal(s.scale, expected)), None)
            if following is None:
                following, exact = self._overlapping(left, first.scale, expected), False
            found.append(following)
            left.remove(following)
            # Where scales chain up the extents multiply; where values overlap only the greatest sum counts.
            expected = following.scale * following.extent if exact else expected + following.scale * (following.extent - 1)
        return found[::-1], exact

    def _overlapping(self, left: list[IterSplitExpr], scale: PrimExpr, reached: PrimExpr) -> IterSplitExpr:
        """The smallest split that starts within what is reached: sums then take each value, some more than once.

        Raises:
            NoMap: if there is none, or if the map has to be bijective.
        """
        constant = sorted((s for s in left if isinstance(s.scale, IntImm)), key=lambda s: s.scale.value)
        fits = constant and self.analyzer.can_prove(constant[0].scale <= reached) and self.divides(scale, constant[0].scale)
        if not fits or self.level is IterMapLevel.Bijective or self.bounds:
            raise NoMap(f"no iterator of scale {self.simple(reached)} follows")
        return constant[0]

    def add_bound(self, total: IterSumExpr, lower: PrimExpr | None, upper: PrimExpr | None) -> None:
        """Takes over lower <= sum < upper, the base of the sum brought to the other sides."""
        low = None if lower is None else self.simple(lower - total.base)
        high = None if upper is None else self.simple(upper - total.base)
        bare = IterSumExpr(total.args, IntImm(total.dtype, 0))
        for known in self.bounds:
            if self._same_args(known.total.args, bare.args):
                known.lower = low if known.lower is None else known.lower if low is None else self.simple(maximum(known.lower, low))
                known.upper = high if known.upper is None else known.upper if high is None else self.simple(minimum(known.upper, high))
                return
        self.bounds.append(Bound(bare, low, high))

    def _same_args(self, a: Sequence[IterSplitExpr], b: Sequence[IterSplitExpr]) -> bool:
        return len(a) == len(b) and all(
            any(
                x.source is y.source
                and self.equal(x.lower_factor, y.lower_factor)
                and self.equal(x.extent, y.extent)
                and self.equal(x.scale, y.scale)
                for y in b
            )
            for x in a
        )

    def bound_of(self, total: IterSumExpr) -> Bound | None:
        """The bounds that a predicate gives of this sum."""
        return next((bound for bound in self.bounds if self._same_args(bound.total.args, total.args)), None)

    def _cut(self, bound: Bound, extent: PrimExpr, scale: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """Extent and start of a fused mark within the bounds of its sum."""
        low: PrimExpr = IntImm(extent.dtype, 0)
        high = extent
        if bound.lower is not None:
            # Multiples of the scale from `lower` on begin at its ceiling, and those below `upper` end before its ceiling.
            least = self.simple(floordiv(bound.lower + scale - 1, scale))
            low = self.simple(maximum(least, low))
        if bound.upper is not None:
            high = self.simple(minimum(self.simple(floordiv(bound.upper + scale - 1, scale)), extent))
        return self.simple(high - low), low
