"""Detecting, simplifying, inverting and dividing iterator maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tir.arithmetic import convert, floordiv, floormod
from ..tir.expr import EQ, GE, GT, LE, LT, CmpExpr, IntImm, PrimExpr, Range, Var
from ..tir.rewriting import variables
from .constraints import conjuncts
from .index_analyzer import Analyzer
from .iter_affine_cover import check, check_bounds
from .iter_affine_division import Mapper
from .iter_affine_map import IterMapLevel, IterMapResult, IterSplitExpr, IterSumExpr, NoMap, normalize_iter_map_to_expr

_SWAPPED: dict[type[PrimExpr], type[PrimExpr]] = {LT: GT, GT: LT, LE: GE, GE: LE}
_OPPOSITE: dict[type[PrimExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT}


def _level(check_level: Any) -> IterMapLevel:
    return IterMapLevel.from_str(check_level) if isinstance(check_level, str) else IterMapLevel(check_level)


def _mapper(input_iters: Mapping[Any, Range], check_level: Any, trivial: bool) -> Mapper:
    iters = {var if isinstance(var, Var) else var.var: dom for var, dom in input_iters.items()}
    return Mapper(Analyzer(), iters, _level(check_level), trivial)


def _take_predicate(mapper: Mapper, predicate: Any) -> None:
    """Notes the bounds of sums of iterators; the one of the fewest iterators first.

    Raises:
        NoMap: for a condition that isn't such a bound.
    """
    found: list[tuple[PrimExpr, PrimExpr | None, PrimExpr | None]] = []
    for condition, holds in conjuncts(convert(predicate)):
        if isinstance(condition, IntImm):
            if bool(condition.value) is not holds:
                raise NoMap("the predicate never holds")
            continue
        if not isinstance(condition, CmpExpr) or (not holds and type(condition) not in _OPPOSITE):
            raise NoMap(f"the predicate {condition} is no comparison of iterators")
        kind = type(condition) if holds else _OPPOSITE[type(condition)]
        found.append(_bound(mapper, kind, condition))
    for expr, low, high in sorted(found, key=lambda item: len(variables(item[0]))):
        if variables(expr).isdisjoint(mapper.iters):  # it bounds no iterator
            continue
        total = mapper.sum_of(mapper.simple(expr))
        alone = next((var for var in mapper.iters if mapper.iters[var].args == total.args), None)
        if alone is not None:  # an iterator and a constant
            shift = mapper.iters[alone].base - total.base
            low, high = (None if end is None else mapper.simple(end + shift) for end in (low, high))
            mapper.narrow(alone, low, high)
        else:
            mapper.add_bound(total, low, high)


def _bound(mapper: Mapper, kind: type[PrimExpr], condition: CmpExpr) -> tuple[PrimExpr, PrimExpr | None, PrimExpr | None]:
    """(expr, lower, upper) with lower <= expr < upper; the iterators on the left."""
    a, b = condition.a, condition.b
    left, right = (not variables(side).isdisjoint(mapper.iters) for side in (a, b))
    if left and right:
        # i < j bounds i - j, a sum of both.
        a, b = a - b, IntImm(a.dtype, 0)
    elif right:
        a, b = b, a
        kind = _SWAPPED.get(kind, kind)
    if kind is LT:
        return a, None, b
    if kind is LE:
        return a, None, b + 1
    if kind is GE:
        return a, b, None
    if kind is GT:
        return a, b + 1, None
    if kind is EQ:
        return a, b, b + 1
    raise NoMap(f"the predicate {condition} is no bound")


def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """The indices as splits and fusions of the iterators.

    Args:
        indices: integer expressions of the iterators.
        input_iters: the iterators and their ranges.
        predicate: what holds of the iterators: bounds of sums of them.
        check_level: "bijective", "surjective" (independent, the default) or "nocheck".
        simplify_trivial_iterators: take iterators of extent 1 for their minimum.

    Returns:
        One sum of at most one split an index; no indices and the reason if there is no such map.
    """
    try:
        mapper = _mapper(input_iters, check_level, simplify_trivial_iterators)
        _take_predicate(mapper, predicate)
        sums = [mapper.fused_sum(mapper.sum_of(convert(index))) for index in indices]
        check_bounds(mapper)
        if mapper.level is not IterMapLevel.NoCheck:
            check(mapper, sums)
    except NoMap as reason:
        return IterMapResult(errors=[str(reason)])
    return IterMapResult(sums, padding_predicate=mapper.padding)


def normalize_to_iter_sum(index: Any, input_iters: Mapping[Any, Range]) -> IterSumExpr:
    """The index as a sum of splits with the larger scales first; what is no split of an iterator stays in the base."""
    mapper = _mapper(input_iters, IterMapLevel.NoCheck, trivial=True)
    total = _loose_sum(mapper, convert(index))
    constant = [s for s in total.args if isinstance(s.scale, IntImm)]
    symbolic = [s for s in total.args if not isinstance(s.scale, IntImm)]
    ordered = symbolic + sorted(constant, key=lambda s: -s.scale.value)
    for place in range(1, len(symbolic)):  # a scale that another divides stands before it
        for other in range(place):
            if mapper.divides(symbolic[other].scale, symbolic[place].scale):
                symbolic[other], symbolic[place] = symbolic[place], symbolic[other]
    return IterSumExpr(symbolic + ordered[len(symbolic) :], total.base)


def _loose_sum(mapper: Mapper, expr: PrimExpr) -> IterSumExpr:
    """As `Mapper.sum_of`, with what is no split as a mark of its own."""
    from ..tir.expr import Add, Mul, Sub

    match expr:
        case Add(a, b):
            return mapper.added(_loose_sum(mapper, a), _loose_sum(mapper, b))
        case Sub(a, b):
            return mapper.added(_loose_sum(mapper, a), mapper.scaled(_loose_sum(mapper, b), IntImm(b.dtype, -1)))
        case Mul(a, b):
            left, right = _loose_sum(mapper, a), _loose_sum(mapper, b)
            if not (left.args and right.args):
                return mapper.scaled(left, right.base) if left.args else mapper.scaled(right, left.base)
    try:
        return mapper.sum_of(expr)
    except NoMap:
        return IterSumExpr([], expr)


def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[Any, Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[PrimExpr]:
    """The indices written as splits and fusions of the iterators; as they are if they aren't such a map."""
    found = detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators)
    return [normalize_iter_map_to_expr(total) for total in found.indices] or [convert(index) for index in indices]


def inverse_affine_iter_map(iter_map: Any, outputs: Sequence[Any]) -> dict[Var, PrimExpr]:
    """The iterators in terms of the values of the indices.

    Args:
        iter_map: the sums that `detect_iter_map` found for a bijective map.
        outputs: a value for each.
    """
    sums = iter_map.indices if isinstance(iter_map, IterMapResult) else list(iter_map)
    analyzer = Analyzer()
    missing: dict[int, int] = {}
    seen: list[IterSplitExpr] = [split for total in sums for split in total.args]
    # How many digits of each iterator are waiting: its value is known when the last one is.
    for split in seen:  # grows while it is walked
        known = id(split.source) in missing
        missing[id(split.source)] = missing.get(id(split.source), 0) + 1
        if not known and isinstance(split.source.source, IterSumExpr):
            seen += split.source.source.args
    values: dict[int, PrimExpr] = {}
    inverse: dict[Var, PrimExpr] = {}
    todo: list[tuple[IterSplitExpr, PrimExpr]] = []
    for total, output in zip(sums, outputs, strict=True):
        todo += _parts(analyzer, total, convert(output))
    while todo:
        split, value = todo.pop(0)
        mark = split.source
        # The digit's place value; the sum over all digits is the iterator.
        part = value * split.lower_factor
        values[id(mark)] = values[id(mark)] + part if id(mark) in values else part
        missing[id(mark)] -= 1
        if missing[id(mark)]:
            continue
        whole = analyzer.simplify(values[id(mark)])
        if isinstance(mark.source, IterSumExpr):
            todo += _parts(analyzer, mark.source, whole)
        else:
            _note(analyzer, inverse, mark.source, whole)
    return inverse


def _note(analyzer: Analyzer, inverse: dict[Var, PrimExpr], source: PrimExpr, value: PrimExpr) -> None:
    """The variable of a mark: the mark is the variable, or the variable without its minimum."""
    if isinstance(source, Var):
        inverse[source] = value
        return
    for var in variables(source):
        inverse[var] = analyzer.simplify(value + (var - source))


def _parts(analyzer: Analyzer, total: IterSumExpr, value: PrimExpr) -> list[tuple[IterSplitExpr, PrimExpr]]:
    """The value of each split of a sum whose value is known."""
    value = analyzer.simplify(value - total.base)
    found = []
    for place, split in enumerate(total.args):
        piece = analyzer.simplify(floordiv(value, split.scale))
        if place or (not analyzer.can_prove_equal(split.extent * split.lower_factor, split.source.extent) and len(total.args) > 1):
            piece = analyzer.simplify(floormod(piece, split.extent)) if place else piece
        found.append((split, piece))
    return found
