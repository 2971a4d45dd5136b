"""What a map uses of its iterators: bounds that are bounds of an index, marks taken apart without overlap or gap."""

from __future__ import annotations

from collections.abc import Sequence

from ..tir.arithmetic import is_const_int
from ..tir.expr import IntImm, PrimExpr
from .iter_affine_fusion import Fusion
from .iter_affine_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, NoMap, normalize_iter_map_to_expr


def check_bounds(mapper: Fusion) -> None:
    """Every bound of a sum is one of a fused mark.

    Raises:
        NoMap: naming one that isn't.
    """
    for bound in mapper.bounds:
        if not bound.used:
            raise NoMap(f"the bound of {normalize_iter_map_to_expr(bound.total)} is no bound of an index")


def check(mapper: Fusion, sums: Sequence[IterSumExpr]) -> None:
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
    marks = {id(mark) for mark in mapper.padded.values()}
    for mark, splits in pending.values():
        if id(mark) in marks:
            _check_padded(mapper, mark, splits)
    if mapper.level is IterMapLevel.Bijective:
        for root in mapper.roots:
            if id(root) not in pending:
                raise NoMap(f"{root.source} isn't used, so the map is no bijection")
    for mark, splits in pending.values():
        _check_mark(mapper, mark, splits)


def _check_padded(mapper: Fusion, mark: IterMark, splits: list[IterSplitExpr]) -> None:
    """What is padded takes each value of one split, not each combination of two."""
    inner = mark.source.args[0].source.extent
    enough = is_const_int(splits[0].lower_factor, 1) is False or mapper.analyzer.can_prove(splits[0].extent <= inner)
    if len(splits) > 1 or not enough:
        raise NoMap(f"with padding {normalize_iter_map_to_expr(mark)} doesn't take all combinations of values")


def _check_mark(mapper: Fusion, mark: IterMark, splits: list[IterSplitExpr]) -> None:
    left = list(splits)
    reached: PrimExpr = IntImm(mark.extent.dtype, 1)
    while left:
        found = next((s for s in left if mapper.equal(s.lower_factor, reached)), None)
        # i % 4 and i // 8 leave a digit of i out, which independence allows and a bijection doesn't.
        if found is None and mapper.level is not IterMapLevel.Bijective:
            found = next((s for s in left if mapper.divides(reached, s.lower_factor)), None)
        if found is None:
            raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} overlap or leave a gap")
        left.remove(found)
        reached = mapper.simple(found.lower_factor * found.extent)
    if mapper.level is IterMapLevel.Bijective:
        if not mapper.equal(reached, mark.extent):
            raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} don't cover its extent {mark.extent}")
    elif not mapper.divides(reached, mark.extent) and not mapper.analyzer.can_prove(mark.extent <= reached):
        raise NoMap(f"the splits of {normalize_iter_map_to_expr(mark)} don't divide its extent {mark.extent}")
