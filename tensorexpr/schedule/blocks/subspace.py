"""Axes of a block divided between the loops outside and those inside of a place: value = outer * extent + inner.

for i_0, j, i_1 in T.grid(4, 8, 16)      inside: i_1        vi: outer i_0 (4 values), inner i_1 (16 values)
    B: vi = i_0 * 16 + i_1, vj = j                          vj: outer j   (8 values), no inner
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arith import Linear, linear_form
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.arithmetic import as_int, ceildiv, is_const_int
from ...tir.block import BlockRealize
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import variables
from ...tir.stmt import For
from .bindings import conditions, conjunction, knowing
from .diagnostics import PrimitiveError


@dataclass(frozen=True, slots=True)
class DividedAxis:
    """An axis, whose value is `outer` (in the range `dom`) times `extent` plus `inner`; inner is None if it has one value only."""

    axis: IterVar
    outer: PrimExpr
    dom: Range
    inner: PrimExpr | None = None
    extent: int = 1

    @property
    def is_inside(self) -> bool:
        """True if nothing of the axis is outside: its outer side has one value."""
        return is_const_int(self.dom.extent, 1)


@dataclass(frozen=True)
class Division:
    """All axes of a block, and its predicate in two."""

    axes: tuple[DividedAxis, ...]
    outside: PrimExpr
    inside: PrimExpr


def divided(
    realize: BlockRealize, outer: Sequence[For], inner: Sequence[For], primitive: str, preserve_unit_iters: bool = True
) -> Division:
    """A block's axes divided.

    Args:
        preserve_unit_iters: loops of one iteration outside stay terms, as far as axes come apart so.

    Raises:
        PrimitiveError: for an axis or a condition that mixes loops of both sides so that it doesn't come apart.
    """
    analyzers = [knowing([*outer, *inner])]
    if preserve_unit_iters:  # what isn't known to have one value isn't simplified away
        analyzers.insert(0, knowing([*(loop for loop in outer if not is_const_int(loop.extent, 1)), *inner]))
    own = {loop.loop_var for loop in inner}
    name = realize.block.name_hint
    axes = []
    for axis, value in realize.bindings():
        # The first analyzer keeps unit loops as terms; where an axis doesn't come apart so, they are folded away.
        found = next((made for analyzer in analyzers if (made := _divided_axis(axis, value, own, analyzer)) is not None), None)
        if found is None:
            loops = ", ".join(loop.loop_var.name for loop in inner)
            raise PrimitiveError(
                f"{primitive}: the axis {axis.var.name} = {value} of {name} doesn't come apart into a multiple of a number outside of the "
                f"loops {loops} and a rest inside; split by factors that divide, and reorder, before",
                realize,
            )
        axes.append(found)
    outside: list[PrimExpr] = []
    inside: list[PrimExpr] = []
    for condition in conditions(realize.predicate):
        mentioned = variables(condition)
        if mentioned & own and mentioned - own:
            raise PrimitiveError(
                f"{primitive}: the condition {condition} of {name} is about loops inside and outside at once; "
                "split by factors that divide, or pad",
                realize,
            )
        (inside if mentioned & own else outside).append(condition)
    return Division(tuple(axes), conjunction(outside), conjunction(inside))


def _divided_axis(axis: IterVar, value: PrimExpr, own: set[Var], analyzer: Analyzer) -> DividedAxis | None:
    assert axis.dom is not None
    dtype, mentioned = value.dtype, variables(value)
    if not mentioned & own:
        return DividedAxis(axis, value, axis.dom)
    parts = _sides(analyzer.simplify(value), own)
    # outer * extent + inner counts from 0
    if parts is None or not is_const_int(axis.dom.min, 0):
        return None
    outside, inside = parts
    # the inner side stays in [0, extent), or outer * extent + inner could have one value twice
    bound = analyzer.const_int_bound(inside)
    if bound.min_value != 0 or bound.max_value >= bound.POS_INF:
        return None
    extent = bound.max_value + 1
    if extent == 1:
        return DividedAxis(axis, outside, axis.dom)
    if not variables(outside):
        # min: the loops of a guarded split run past the end of the axis, 7 * 16 over 100
        whole = as_int(axis.dom.extent)
        only = Range.from_min_extent(IntImm(dtype, 0), IntImm(dtype, 1))
        return DividedAxis(axis, outside, only, inside, min(extent, whole or extent)) if is_const_int(outside, 0) else None
    if not analyzer.known_divisible(outside, extent):
        return None
    count = analyzer.simplify(ceildiv(axis.dom.extent, extent))
    return DividedAxis(axis, analyzer.simplify(outside // extent), Range.from_min_extent(IntImm(dtype, 0), count), inside, extent)


def _sides(value: PrimExpr, own: set[Var]) -> tuple[PrimExpr, PrimExpr] | None:
    """The sum of the terms outside, with the constant, and of those inside; None if a term mixes both."""
    form = linear_form(value)
    sides: tuple[dict[PrimExpr, int], dict[PrimExpr, int]] = ({}, {})
    for atom, factor in form.terms.items():
        mentioned = variables(atom)
        if mentioned & own and mentioned - own:
            return None
        sides[bool(mentioned & own)][atom] = factor
    return Linear(sides[0], form.constant).to_expr(value.dtype), Linear(sides[1]).to_expr(value.dtype)
