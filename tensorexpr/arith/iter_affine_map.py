"""Iterator maps as programs see them: splits and fusions with symbolic extents, predicates, padding and division.

    mark  ::= (source, extent)                              values 0 .. extent - 1
    split ::= mark // lower_factor % extent * scale
    sum   ::= split + ... + split + base

The vocabulary is TVM's. Scales, factors and extents are expressions; what has to divide or to be equal is proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ..tir.arithmetic import convert, floordiv, floormod, logical_and, logical_or
from ..tir.expr import Add, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Range, Sub, Var
from ..tir.rewriting import variables
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


def _one(expr: Any) -> bool:
    return isinstance(expr, IntImm) and expr.value == 1


def _zero(expr: Any) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


@dataclass(slots=True)
class _Bound:
    """A predicate's bounds of a sum: lower <= sum < upper, without its base."""

    total: IterSumExpr
    lower: PrimExpr | None
    upper: PrimExpr | None
    used: bool = False


class Mapper:
    """Turns indices into sums of splits."""

    def __init__(self, analyzer: Analyzer, input_iters: Mapping[Var, Range], level: IterMapLevel, trivial: bool) -> None:
        self.analyzer = analyzer
        self.level = level
        self.iters: dict[Var, IterSumExpr] = {}
        self.roots: list[IterMark] = []
        self.fused: dict[tuple[Any, ...], tuple[IterMark, PrimExpr]] = {}
        self.bounds: list[_Bound] = []
        self.padding: PrimExpr = IntImm("bool", 0)
        self.padded: dict[tuple[int, PrimExpr, PrimExpr], IterMark] = {}
        for var, dom in input_iters.items():
            if trivial or not _one(dom.extent):
                analyzer.bind(var, dom, allow_override=True)
            if _one(dom.extent) and trivial:
                self.iters[var] = IterSumExpr([], dom.min)
                continue
            mark = IterMark(var if _zero(dom.min) else var - dom.min, dom.extent)
            self.roots.append(mark)
            self.iters[var] = IterSumExpr([IterSplitExpr(mark)], dom.min)

    def narrow(self, var: Var, lower: PrimExpr | None, upper: PrimExpr | None) -> None:
        """Narrows the range of an iterator to lower <= var < upper."""
        total = self.iters[var]
        if not total.args:
            return
        low = total.base if lower is None else self.simple(_max(total.base, lower))
        end = total.base + total.args[0].extent
        high = self.simple(end if upper is None else _min(end, upper))
        self.roots.remove(total.args[0].source)
        mark = IterMark(var if _zero(low) else var - low, self.simple(high - low))
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

    # -- sums

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
                return self.scaled(left, right.base) if left.args else self.scaled(right, left.base)
            case FloorDiv(a, b) | FloorMod(a, b):
                if not variables(b).isdisjoint(self.iters):
                    raise NoMap(f"{expr} divides by an iterator")
                return self.divided(self.sum_of(a), b, isinstance(expr, FloorDiv))
        raise NoMap(f"{expr} is not made of iterators by +, -, *, // and %")

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
        return IterSumExpr([split for split in args if not _zero(split.scale)], self.simple(a.base + b.base))

    def scaled(self, total: IterSumExpr, factor: PrimExpr) -> IterSumExpr:
        """The sum times a factor."""
        args = [IterSplitExpr(s.source, s.lower_factor, s.extent, self.simple(s.scale * factor)) for s in total.args]
        return IterSumExpr([split for split in args if not _zero(split.scale)], self.simple(total.base * factor))

    # -- fusion

    def fuse(self, total: IterSumExpr) -> IterSplitExpr:
        """The sum, base left out, as one split of a fused mark; scales chain up.

        Raises:
            NoMap: if they don't.
        """
        bound = self._bound_of(total)
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
        key = tuple((id(s.source), s.lower_factor, s.extent, s.scale) for s in inner)
        known = self.fused.get(key)
        if known is None:
            base: PrimExpr = IntImm(extent.dtype, 0)
            if bound is not None:
                bound.used = True
                extent, base = self._cut(bound, extent, scale)
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

    # -- predicates

    def add_bound(self, total: IterSumExpr, lower: PrimExpr | None, upper: PrimExpr | None) -> None:
        """Takes over lower <= sum < upper, the base of the sum brought to the other sides."""
        low = None if lower is None else self.simple(lower - total.base)
        high = None if upper is None else self.simple(upper - total.base)
        bare = IterSumExpr(total.args, IntImm(total.dtype, 0))
        for known in self.bounds:
            if self._same_args(known.total.args, bare.args):
                known.lower = low if known.lower is None else known.lower if low is None else self.simple(_max(known.lower, low))
                known.upper = high if known.upper is None else known.upper if high is None else self.simple(_min(known.upper, high))
                return
        self.bounds.append(_Bound(bare, low, high))

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

    def _bound_of(self, total: IterSumExpr) -> _Bound | None:
        """The bounds that a predicate gives of this sum."""
        return next((bound for bound in self.bounds if self._same_args(bound.total.args, total.args)), None)

    def _cut(self, bound: _Bound, extent: PrimExpr, scale: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """Extent and start of a fused mark within the bounds of its sum."""
        low: PrimExpr = IntImm(extent.dtype, 0)
        high = extent
        if bound.lower is not None:
            least = self.simple(floordiv(bound.lower + scale - 1, scale))
            low = self.simple(_max(least, low))
        if bound.upper is not None:
            high = self.simple(_min(self.simple(floordiv(bound.upper + scale - 1, scale)), extent))
        return self.simple(high - low), low

    # -- division

    def divided(self, total: IterSumExpr, divisor: PrimExpr, quotient: bool) -> IterSumExpr:
        """sum // divisor or sum % divisor."""
        divisor = self.simple(divisor)
        if _one(divisor):
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
            args = [] if _one(high.extent) else [high]
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
            if not self.analyzer.can_prove(split.scale >= 0):
                return None
            most = most + (split.extent - 1) * split.scale
        within = self._bound_of(total) is None and self.analyzer.can_prove(total.base >= 0)
        if within and self.analyzer.can_prove(self.simple(most) < divisor):
            return IterSumExpr([], IntImm(total.dtype, 0)) if quotient else total
        return None

    def _padded(self, split: IterSplitExpr, offset: PrimExpr, divisor: PrimExpr) -> tuple[IterSplitExpr, PrimExpr]:
        """A split of a mark whose extent the divisor divides, and by how much it starts earlier than the split.

        Raises:
            NoMap: if the extent doesn't come out even and the map has to be bijective.
        """
        left = self.simple(floormod(offset, divisor))
        right = self.simple(floormod(0 - (split.extent + left), divisor))
        if _zero(left) and (_zero(right) or self.divides(divisor, split.extent)):
            return split, left
        if self.level is IterMapLevel.Bijective:
            raise NoMap(f"the extent {split.extent} at offset {offset} is no multiple of {divisor}, so the map needs padding")
        if not _one(split.lower_factor) or not self.equal(split.extent, split.source.extent):
            raise NoMap(f"the part {split.extent} of an iterator is no multiple of {divisor}")
        mark = split.source
        key = (id(mark), divisor, left)
        padded = self.padded.get(key)
        if padded is None:
            value = normalize_iter_map_to_expr(mark)
            source = IterSumExpr([IterSplitExpr(mark)], left)
            padded = self.padded[key] = IterMark(source, self.simple(left + mark.extent + right))
            if not _zero(left):
                self.padding = logical_or(self.padding, self.simple(value + left) < left)
            if not _zero(right):
                self.padding = logical_or(self.padding, self.simple(value + left) >= self.simple(mark.extent + left))
        return IterSplitExpr(padded), left

    # -- checks

    def check_bounds(self) -> None:
        """Every bound of a sum is one of a fused mark.

        Raises:
            NoMap: naming one that isn't.
        """
        for bound in self.bounds:
            if not bound.used:
                raise NoMap(f"the bound of {normalize_iter_map_to_expr(bound.total)} is no bound of an index")

    def check(self, sums: Sequence[IterSumExpr]) -> None:
        """Every mark is used by splits that don't overlap; for a bijection, up to the last value.

        Raises:
            NoMap: naming what isn't.
        """
        pending: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
        todo = [split for total in sums for split in total.args]
        while todo:
            split = todo.pop()
            mark, splits = pending.setdefault(id(split.source), (split.source, []))
            splits.append(split)
            if len(splits) == 1 and isinstance(mark.source, IterSumExpr):
                todo += mark.source.args
        marks = {id(mark) for mark in self.padded.values()}
        for mark, splits in pending.values():
            if id(mark) in marks:
                self._check_padded(mark, splits)
        if self.level is IterMapLevel.Bijective:
            for root in self.roots:
                if id(root) not in pending:
                    raise NoMap(f"{root.source} isn't used, so the map is no bijection")
        for mark, splits in pending.values():
            self._check_mark(mark, splits)

    def _check_padded(self, mark: IterMark, splits: list[IterSplitExpr]) -> None:
        """What is padded takes each value of one split, not each combination of two."""
        inner = mark.source.args[0].source.extent
        enough = _one(splits[0].lower_factor) is False or self.analyzer.can_prove(splits[0].extent <= inner)
        if len(splits) > 1 or not enough:
            raise NoMap(f"with padding {normalize_iter_map_to_expr(mark)} doesn't take all combinations of values")

    def _check_mark(self, mark: IterMark, splits: list[IterSplitExpr]) -> None:
        left = list(splits)
        reached: PrimExpr = IntImm(mark.extent.dtype, 1)
        while left:
            found = next((s for s in left if self.equal(s.lower_factor, reached)), None)
            if found is None and self.level is not IterMapLevel.Bijective:
                found = next((s for s in left if self.divides(reached, s.lower_factor)), None)
            if found is None:
                raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} overlap or leave a gap")
            left.remove(found)
            reached = self.simple(found.lower_factor * found.extent)
        if self.level is IterMapLevel.Bijective:
            if not self.equal(reached, mark.extent):
                raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} don't cover its extent {mark.extent}")
        elif not self.divides(reached, mark.extent) and not self.analyzer.can_prove(mark.extent <= reached):
            raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} don't divide its extent {mark.extent}")


def _max(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    from ..tir.arithmetic import maximum

    return maximum(a, b)


def _min(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    from ..tir.arithmetic import minimum

    return minimum(a, b)


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
        return total if _zero(expr.base) else total + expr.base
    if isinstance(expr, IterSplitExpr):
        value = normalize_iter_map_to_expr(expr.source)
        analyzer = Analyzer()
        if analyzer.can_prove_equal(expr.extent, expr.source.extent) and _one(expr.lower_factor):
            pass
        elif analyzer.can_prove_equal(expr.source.extent, expr.lower_factor * expr.extent):
            value = floordiv(value, expr.lower_factor)
        else:
            value = floordiv(floormod(value, analyzer.simplify(expr.lower_factor * expr.extent)), expr.lower_factor)
        scaled: PrimExpr = value * expr.scale
        return scaled
    return convert(expr)


__all__ = [
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "Mapper",
    "NoMap",
    "logical_and",
    "normalize_iter_map_to_expr",
]
