"""Indices as sums of splits: what is divided or cut comes apart evenly, padded where the map may be."""

from __future__ import annotations

from ..tir.arithmetic import floordiv, floormod, is_const_int, logical_or
from ..tir.expr import Add, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Sub, Var
from ..tir.rewriting import variables
from .iter_affine_fusion import Fusion
from .iter_affine_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, NoMap, normalize_iter_map_to_expr


class Mapper(Fusion):
    """Turns indices into sums of splits."""

    def sum_of(self, expr: PrimExpr) -> IterSumExpr:
        """The splits of an index.

        Raises:
            NoMap: if it isn't made of iterators by adding, scaling, dividing and cutting.
        """
        if variables(expr).isdisjoint(self.iters):
            return IterSumExpr([], expr)
        match expr:
            case Var():
                return self.iters[expr]
            case Add(a, b):
                return self.added(self.sum_of(a), self.sum_of(b))
            case Sub(a, b):
                return self.added(self.sum_of(a), self.scaled(self.sum_of(b), IntImm(b.dtype, -1)))
            case Mul(a, b):
                left, right = self.sum_of(a), self.sum_of(b)
                if left.args and right.args:
                    raise NoMap(f"{expr} multiplies iterators")
                # A sum without splits is all base.
                return self.scaled(left, right.base) if left.args else self.scaled(right, left.base)
            case FloorDiv(a, b) | FloorMod(a, b):
                if not variables(b).isdisjoint(self.iters):
                    raise NoMap(f"{expr} divides by an iterator")
                return self.divided(self.sum_of(a), b, isinstance(expr, FloorDiv))
        raise NoMap(f"{expr} is not made of iterators by +, -, *, // and %")

    def divided(self, total: IterSumExpr, divisor: PrimExpr, quotient: bool) -> IterSumExpr:
        """sum // divisor or sum % divisor."""
        divisor = self.simple(divisor)
        if is_const_int(divisor, 1):
            return total if quotient else IterSumExpr([], IntImm(total.dtype, 0))
        if self.analyzer.can_prove(divisor <= 0):
            raise NoMap(f"the divisor {divisor} isn't positive")
        aligned = self._aligned(total, divisor, quotient)
        if aligned is not None:
            return aligned
        total = self.fused_sum(total)
        if not total.args:
            return IterSumExpr([], self.simple((floordiv if quotient else floormod)(total.base, divisor)))
        split = total.args[0]
        if not self.divides(split.scale, divisor) or not self.divides(split.scale, total.base):
            raise NoMap(f"the divisor {divisor} or the offset {total.base} is no multiple of the scale {split.scale}")
        inner = self.simple(floordiv(divisor, split.scale))
        offset = self.simple(floordiv(total.base, split.scale))
        padded, pad = self._padded(split, offset, inner)
        whole = self.simple(offset - pad)  # a multiple of inner
        if quotient:
            high = IterSplitExpr(padded.source, self.simple(padded.lower_factor * inner), self.simple(floordiv(padded.extent, inner)))
            args = [] if is_const_int(high.extent, 1) else [high]
            return IterSumExpr(args, self.simple(floordiv(whole, inner)))
        low = IterSplitExpr(padded.source, padded.lower_factor, inner, split.scale)
        return IterSumExpr([low], IntImm(total.dtype, 0))

    def _aligned(self, total: IterSumExpr, divisor: PrimExpr, quotient: bool) -> IterSumExpr | None:
        """The quotient or remainder of a sum of which the divisor divides everything, or which is less than it."""
        if all(self.divides(divisor, part) for part in (total.base, *(s.scale for s in total.args))):
            if not quotient:
                return IterSumExpr([], IntImm(total.dtype, 0))
            args = [IterSplitExpr(s.source, s.lower_factor, s.extent, self.simple(floordiv(s.scale, divisor))) for s in total.args]
            return IterSumExpr(args, self.simple(floordiv(total.base, divisor)))
        most = total.base
        for split in total.args:
            # Only for a scale >= 0 is the last value of a split its greatest.
            if not self.analyzer.can_prove(split.scale >= 0):
                return None
            most = most + (split.extent - 1) * split.scale
        # A sum with a bound has to be fused, or `check_bounds` finds the bound unused.
        within = self.bound_of(total) is None and self.analyzer.can_prove(total.base >= 0)
        if within and self.analyzer.can_prove(self.simple(most) < divisor):
            return IterSumExpr([], IntImm(total.dtype, 0)) if quotient else total
        return None

    def _padded(self, split: IterSplitExpr, offset: PrimExpr, divisor: PrimExpr) -> tuple[IterSplitExpr, PrimExpr]:
        """A split of a mark whose extent the divisor divides, and by how much it starts earlier than the split.

        Raises:
            NoMap: if the extent doesn't come out even and the map has to be bijective.
        """
        # i + 3 of an extent 6 by 4: 3 in front and 3 behind make three full blocks.
        left = self.simple(floormod(offset, divisor))
        right = self.simple(floormod(0 - (split.extent + left), divisor))
        if is_const_int(left, 0) and (is_const_int(right, 0) or self.divides(divisor, split.extent)):
            return split, left
        if self.level is IterMapLevel.Bijective:
            raise NoMap(f"the extent {split.extent} at offset {offset} is no multiple of {divisor}, so the map needs padding")
        # A part can't be padded: the digits above it begin where it ends.
        if not is_const_int(split.lower_factor, 1) or not self.equal(split.extent, split.source.extent):
            raise NoMap(f"the part {split.extent} of an iterator is no multiple of {divisor}")
        mark = split.source
        # One padded mark for i // 4 and i % 4, or they would count as splits of two iterators.
        key = (id(mark), divisor, left)
        padded = self.padded.get(key)
        if padded is None:
            value = normalize_iter_map_to_expr(mark)
            source = IterSumExpr([IterSplitExpr(mark)], left)
            padded = self.padded[key] = IterMark(source, self.simple(left + mark.extent + right))
            if not is_const_int(left, 0):
                self.padding = logical_or(self.padding, self.simple(value + left) < left)
            if not is_const_int(right, 0):
                self.padding = logical_or(self.padding, self.simple(value + left) >= self.simple(mark.extent + left))
        return IterSplitExpr(padded), left
