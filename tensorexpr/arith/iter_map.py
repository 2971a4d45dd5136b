"""Detecting that indices are splits and fusions of iterators, and inverting such maps.

    mark  ::= var - its minimum | a fused sum           values 0 .. extent - 1, each reached once
    split ::= mark // lower_factor % extent * scale
    sum   ::= split + ... + split + base

A sum is fused when its scales chain up: each is the next smaller scale times that one's extent. It then counts its
values without a gap, so it can be divided again. A predicate that bounds a fused sum from above, or an iterator from
above or below, cuts its extent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..dataclass import dataclass, field
from ..tir.arithmetic import floordiv, floormod
from ..tir.expr import GE, GT, LE, LT, FloorDiv, FloorMod, IntImm, PrimExpr, Range, Var
from ..tir.rewriting import variables
from .analyzer import Analyzer
from .bounds import plain_form
from .constraints import conjuncts
from .linear import Linear


@dataclass(frozen=True, slots=True)
class IterMark:
    """An iterator that counts from 0 to extent - 1: a variable without its minimum, or a fused sum without its base."""

    source: Var | IterSumExpr
    extent: int
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class IterSplitExpr:
    """`source // lower_factor % extent * scale`."""

    source: IterMark
    lower_factor: int
    extent: int
    scale: int = 1


@dataclass(frozen=True, slots=True)
class IterSumExpr:
    """The sum of splits and of a base that doesn't depend on the iterators."""

    args: tuple[IterSplitExpr, ...]
    base: PrimExpr


@dataclass(frozen=True, slots=True)
class IterMapResult:
    """The indices as sums of splits; `errors` says why there are none. `trivial` are the iterators of extent 1."""

    indices: tuple[IterSumExpr, ...]
    errors: tuple[str, ...] = ()
    trivial: tuple[IterMark, ...] = ()


class _NoMap(Exception):
    """Why an index isn't a map of the kind."""


Chain = tuple[tuple[IterMark, int, int, int], ...]


@dataclass(slots=True)
class _Detector:
    """The iterators, and the extents that predicates leave of fused sums."""

    analyzer: Analyzer
    marks: dict[Var, IterMark]
    cut: dict[Chain, int] = field(default_factory=dict)

    def sums(self, indices: Sequence[PrimExpr]) -> tuple[IterSumExpr, ...]:
        """The splits of all indices, which together cover every iterator."""
        found = tuple(_normal(self, self.sum_of(index)) for index in indices)
        # After the predicate: an iterator that it leaves one value needn't be used.
        _check_cover([split for total in found for split in total.args], [mark for mark in self.marks.values() if mark.extent > 1])
        return found

    def sum_of(self, expr: PrimExpr) -> IterSumExpr:
        """The splits of an index."""
        form = plain_form(self.analyzer.facts, expr)
        args: list[IterSplitExpr] = []
        rest = Linear({}, form.constant)
        for atom, k in form.terms.items():
            # A parameter, as n in i + n*4, belongs to the base.
            if variables(atom).isdisjoint(self.marks):
                rest = rest.add(Linear({atom: k}))
                continue
            piece = self._atom(atom)
            args += [IterSplitExpr(s.source, s.lower_factor, s.extent, s.scale * k) for s in piece.args]
            rest = rest.add(plain_form(self.analyzer.facts, piece.base), k)
        return IterSumExpr(tuple(args), rest.to_expr(expr.dtype))

    def _atom(self, atom: PrimExpr) -> IterSumExpr:
        if isinstance(atom, Var):
            mark = self.marks[atom]
            # One of extent 1 is its minimum: as a split it would stand in every chain, with a scale that follows from nothing.
            args = (IterSplitExpr(mark, 1, mark.extent),) if mark.extent > 1 else ()
            return IterSumExpr(args, IntImm(atom.dtype, mark.minimum))
        if isinstance(atom, (FloorDiv, FloorMod)) and isinstance(atom.b, IntImm) and atom.b.value > 0:
            return self._divided(self.sum_of(atom.a), atom.b.value, isinstance(atom, FloorDiv), atom.dtype)
        raise _NoMap(f"{atom} is neither an iterator nor its quotient or remainder by a positive constant")

    def _divided(self, total: IterSumExpr, divisor: int, quotient: bool, dtype: str) -> IterSumExpr:
        """(scale * split + base) // c, or % c, where the split comes apart without a rest."""
        split = self.fused(total)
        base = total.base.value if isinstance(total.base, IntImm) else None
        # (i + 1) // 4 steps at i = 3, 7, ...: no split of i begins there.
        if base is None or base % divisor:
            raise _NoMap(f"the offset {total.base} is no multiple of the divisor {divisor}")
        if split.scale % divisor == 0:  # i*8 // 4 is i*2, and i*8 % 4 is 0
            whole = (IterSplitExpr(split.source, split.lower_factor, split.extent, split.scale // divisor),)
            return IterSumExpr(whole if quotient else (), IntImm(dtype, base // divisor if quotient else 0))
        if divisor % split.scale:
            raise _NoMap(f"the divisor {divisor} is no multiple of the scale {split.scale}")
        if not split.extent:
            raise _NoMap("the predicate leaves no iteration")
        low = min(divisor // split.scale, split.extent)  # beyond the extent, the quotient is 0 and the remainder all
        # i // 4 of an extent 6: two blocks, the second half full, which no split says.
        if split.extent % low:
            raise _NoMap(f"the extent {split.extent} is no multiple of {low}")
        if quotient:
            part = IterSplitExpr(split.source, split.lower_factor * low, split.extent // low)
            return IterSumExpr((part,) if part.extent > 1 else (), IntImm(dtype, base // divisor))
        return IterSumExpr((IterSplitExpr(split.source, split.lower_factor, low, split.scale),), IntImm(dtype, 0))

    def fused(self, total: IterSumExpr) -> IterSplitExpr:
        """The sum, base left out, as one split."""
        # One split needs no new mark, unless a predicate cuts it.
        if len(total.args) == 1 and _chain(total.args) not in self.cut:
            return total.args[0]
        parts = sorted(total.args, key=lambda split: -split.scale)
        if not parts or parts[-1].scale <= 0:  # sorted, so the last has the least scale
            raise _NoMap("a sum without iterators or with a negative scale can't be divided")
        for high, low in pairwise(parts):
            if high.scale != low.scale * low.extent:
                raise _NoMap(f"scale {high.scale} doesn't follow from scale {low.scale} with extent {low.extent}")
        scale = parts[-1].scale
        inner = tuple(IterSplitExpr(s.source, s.lower_factor, s.extent, s.scale // scale) for s in parts)
        # The key that `_cut_sum` stores: the chain with its least scale brought to 1.
        extent = self.cut.get(_chain(inner), inner[0].scale * inner[0].extent)
        mark = IterMark(IterSumExpr(inner, IntImm(total.base.dtype, 0)), extent)
        return IterSplitExpr(mark, 1, extent, scale)

    def add_predicate(self, predicate: PrimExpr) -> None:
        """Takes over the bounds of iterators, then the conditions `fused sum < constant`; any other makes the map partial."""
        found = [
            (condition, holds)
            for condition, holds in conjuncts(predicate)
            if not (isinstance(condition, IntImm) and bool(condition.value) is holds)
        ]
        sums = [(condition, holds) for condition, holds in found if not self._cut_iterator(condition, holds)]
        for condition, holds in sums:  # after all iterators: the extents of sums follow from theirs
            self._cut_sum(condition, holds)

    def _cut_iterator(self, condition: PrimExpr, holds: bool) -> bool:
        """Narrow the range of an iterator that a condition bounds by a constant; False if it is about something else."""
        if not holds or not isinstance(condition, (LT, LE, GT, GE)) or not isinstance(condition.b, IntImm):
            return False
        form = plain_form(self.analyzer.facts, condition.a)
        if len(form.terms) != 1:
            return False
        atom, scale = next(iter(form.terms.items()))
        if not isinstance(atom, Var) or atom not in self.marks or scale <= 0:
            return False
        mark = self.marks[atom]
        low, high = mark.minimum, mark.minimum + mark.extent
        room = condition.b.value - form.constant
        # scale*x + c < b is x < ceil((b - c) / scale); <= b is < b + 1, and > b is >= b + 1.
        if isinstance(condition, (LT, LE)):
            high = min(high, -(-(room + isinstance(condition, LE)) // scale))
        else:
            low = max(low, -(-(room + isinstance(condition, GT)) // scale))
        if high <= low:
            raise _NoMap(f"the predicate {condition} leaves no value of {atom}")
        self.marks[atom] = IterMark(atom, high - low, low)
        return True

    def _cut_sum(self, condition: PrimExpr, holds: bool) -> None:
        """Narrow a fused sum that a condition bounds from above."""
        if not holds or not isinstance(condition, (LT, LE)) or not isinstance(condition.b, IntImm):
            raise _NoMap(f"the predicate {condition} is no upper bound of a fused sum")
        total = self.sum_of(condition.a)
        split = self.fused(total)
        if not isinstance(total.base, IntImm) or not isinstance(split.source.source, IterSumExpr):
            raise _NoMap(f"the predicate {condition} bounds no fused sum")
        # scale*v + base < b, of the fused value v, is v < ceil((b - base) / scale).
        room = condition.b.value + isinstance(condition, LE) - total.base.value
        limit = max(-(-room // split.scale), 0)
        self.cut[_chain(split.source.source.args)] = min(limit, split.extent)


def _chain(args: Sequence[IterSplitExpr]) -> Chain:
    return tuple(sorted(((s.source, s.lower_factor, s.extent, s.scale) for s in args), key=lambda part: -part[3]))


def detect_iter_map(
    indices: Sequence[PrimExpr], input_iters: Mapping[Var, Range], predicate: PrimExpr | None = None, analyzer: Analyzer | None = None
) -> IterMapResult:
    """The indices as sums of splits of the iterators, if together they take each combination of their values once.

    Ranges are constant. The result is empty, with reasons, if an index isn't made by splitting and fusing, or if
    iterators are left out or used twice.
    """
    try:
        marks = {var: _mark(var, dom) for var, dom in input_iters.items()}
        inner = Analyzer(None if analyzer is not None else input_iters)
        if analyzer is not None:
            inner.facts = analyzer.facts
            for var, dom in input_iters.items():
                inner.bind(var, dom, allow_override=True)
        plain, simple = None if predicate is None else inner.simplify(predicate), [inner.simplify(index) for index in indices]
        detector, sums = _detected(inner, marks, [(simple, plain), (indices, predicate), (indices, plain)])
    except _NoMap as reason:
        return IterMapResult((), (str(reason),))
    return IterMapResult(sums, trivial=tuple(mark for mark in detector.marks.values() if mark.extent == 1))


def _detected(
    analyzer: Analyzer, marks: Mapping[Var, IterMark], ways: Sequence[tuple[Sequence[PrimExpr], PrimExpr | None]]
) -> tuple[_Detector, tuple[IterSumExpr, ...]]:
    """The splits of indices under a predicate, and what found them: of the first of several ways to write both that shows them.

    Simplified, (i*1024 + j) % 40 is (i*24 + j) % 40, and i*3 + j < 30 with j < 3 is i < 10, which hide the sum that is cut.

    Raises:
        _NoMap: with the reason of the last way.
    """
    for number, (indices, predicate) in enumerate(ways, 1):
        detector = _Detector(analyzer, dict(marks))
        try:
            if predicate is not None:
                detector.add_predicate(predicate)
            return detector, detector.sums(indices)
        except _NoMap:
            if number == len(ways):
                raise
    raise _NoMap("no indices are given")


def _mark(var: Var, dom: Range) -> IterMark:
    if not isinstance(dom.min, IntImm) or not isinstance(dom.extent, IntImm):
        raise _NoMap(f"the range of {var} isn't constant")
    return IterMark(var, dom.extent.value, dom.min.value)


def _normal(detector: _Detector, total: IterSumExpr) -> IterSumExpr:
    """The sum as one split of a fused mark."""
    if not total.args:
        return total
    return IterSumExpr((detector.fused(total),), total.base)


def _splits_by_mark(used: Sequence[IterSplitExpr]) -> dict[IterMark, list[IterSplitExpr]]:
    """All splits below the given ones, each under the mark that it is cut from."""
    found: dict[IterMark, list[IterSplitExpr]] = {}
    todo = list(used)
    while todo:
        split = todo.pop()
        splits = found.setdefault(split.source, [])
        splits.append(split)
        if len(splits) == 1 and isinstance(split.source.source, IterSumExpr):  # into a mark once, however many splits it has
            todo += split.source.source.args
    return found


def _check_cover(used: list[IterSplitExpr], roots: list[IterMark]) -> None:
    """Every mark is used up, without a gap or an overlap, by splits of it.

    Raises:
        _NoMap: naming the mark that isn't.
    """
    pending = _splits_by_mark(used)
    for mark in roots:
        if mark not in pending:
            raise _NoMap(f"{mark.source} isn't used")
    for mark, splits in pending.items():
        # As the digits of a mixed radix: each split begins where those below it end.
        reached = 1
        for split in sorted(splits, key=lambda s: s.lower_factor):
            if split.lower_factor != reached:
                raise _NoMap(f"the splits of {mark.source} overlap or leave a gap at {reached}")
            reached *= split.extent
        if reached != mark.extent:
            raise _NoMap(f"the splits of {mark.source} cover {reached} of {mark.extent} values")


def to_expr(total: IterSumExpr) -> PrimExpr:
    """The sum as an index expression of the iterators."""
    form = Linear({}, 0)
    dtype = total.base.dtype
    for split in total.args:
        form = form.add(Linear({_split_expr(split, dtype): 1}))
    joined = form.to_expr(dtype)
    return joined + total.base


def _split_expr(split: IterSplitExpr, dtype: str) -> PrimExpr:
    source = split.source.source
    value: PrimExpr = source - split.source.minimum if isinstance(source, Var) else to_expr(source)
    if split.lower_factor != 1:
        value = floordiv(value, split.lower_factor)
    # Only the topmost split reaches the mark's extent: nothing is above it to be cut off.
    if split.lower_factor * split.extent != split.source.extent:
        value = floormod(value, split.extent)
    return value * split.scale


def inverse_affine_iter_map(found: IterMapResult, outputs: Sequence[PrimExpr]) -> dict[Var, PrimExpr]:
    """The iterators in terms of the values of the indices, for a map that was detected."""
    missing = {mark: len(splits) for mark, splits in _splits_by_mark([s for total in found.indices for s in total.args]).items()}
    values: dict[IterMark, Linear] = {}
    analyzer = Analyzer()
    inverse: dict[Var, PrimExpr] = {m.source: IntImm(m.source.dtype, m.minimum) for m in found.trivial if isinstance(m.source, Var)}
    todo: deque[tuple[IterSplitExpr, PrimExpr]] = deque()
    for total, output in zip(found.indices, outputs, strict=True):
        todo += _split_values(total.args, analyzer.simplify(output - total.base))
    while todo:
        split, value = todo.popleft()
        mark = split.source
        known = values.get(mark, Linear({}))
        values[mark] = known.add(plain_form(analyzer.facts, analyzer.simplify(value)), split.lower_factor)
        missing[mark] -= 1
        if missing[mark]:  # the value of a mark is the sum of those of all its splits
            continue
        whole = values[mark].shift(mark.minimum).to_expr(value.dtype)
        if isinstance(mark.source, Var):
            inverse[mark.source] = analyzer.simplify(whole)
        else:
            todo += _split_values(mark.source.args, whole)
    return inverse


def _split_values(args: Sequence[IterSplitExpr], value: PrimExpr) -> list[tuple[IterSplitExpr, PrimExpr]]:
    """The value of each split of a fused sum whose value is known."""
    parts = sorted(args, key=lambda split: -split.scale)
    found = []
    for place, split in enumerate(parts):
        piece = floordiv(value, split.scale)
        found.append((split, piece if place == 0 else floormod(piece, split.extent)))
    return found
