"""Axes of a block divided between the loops outside and those inside of a place: value = outer * extent + inner.

for i_0, j, i_1 in T.grid(4, 8, 16)      inside: i_1        vi: outer i_0 (4 values), inner i_1 (16 values)
    B: vi = i_0 * 16 + i_1, vj = j                          vj: outer j   (8 values), no inner
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from ...arith import Analyzer, linear_form
from ...tir.arithmetic import as_int, ceildiv
from ...tir.block import BlockRealize
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from ...tir.stmt import For
from .bindings import conditions, conjunction
from .diagnostics import PrimitiveError


@dataclass(frozen=True, slots=True)
class DividedAxis:
    """An axis: `outer` of `count` values outside, `inner` of `extent` values inside; None for an axis with one value there."""

    axis: IterVar
    outer: PrimExpr
    count: PrimExpr
    inner: PrimExpr | None
    extent: int


@dataclass(frozen=True)
class Division:
    """All axes of a block, and its predicate in two."""

    axes: tuple[DividedAxis, ...]
    outside: PrimExpr
    inside: PrimExpr


def divided(realize: BlockRealize, outer: Sequence[For], inner: Sequence[For], primitive: str) -> Division:
    """A block's axes divided.

    Raises:
        PrimitiveError: for an axis or a condition that mixes loops of both sides so that it doesn't come apart.
    """
    analyzer = Analyzer()
    for loop in (*outer, *inner):
        analyzer.bind(loop.loop_var, Range(loop.min, loop.extent), allow_override=True)
    own = {loop.loop_var for loop in inner}
    axes = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        found = _divided_axis(axis, value, own, analyzer)
        if found is None:
            names = ", ".join(loop.loop_var.name for loop in inner)
            raise PrimitiveError(
                f"{primitive}: the axis {axis.var.name} = {value} of {realize.block.name_hint} is no multiple of a number outside of the "
                f"loops {names} plus a rest inside; split evenly and reorder before",
                realize,
            )
        axes.append(found)
    outside, inside = [], []
    for condition in conditions(realize.predicate):
        mentioned = variables(condition)
        if mentioned & own and mentioned - own:
            raise PrimitiveError(
                f"{primitive}: the condition {condition} of {realize.block.name_hint} is about loops inside and outside at once; "
                "split by a factor that divides, or pad",
                realize,
            )
        (inside if mentioned & own else outside).append(condition)
    return Division(tuple(axes), conjunction(outside), conjunction(inside))


def _divided_axis(axis: IterVar, value: PrimExpr, own: set[Var], analyzer: Analyzer) -> DividedAxis | None:
    zero = IntImm(value.dtype, 0)
    mentioned = variables(value)
    assert axis.dom is not None
    if not mentioned & own:
        constant = not mentioned
        return DividedAxis(axis, value, axis.dom.extent if not constant else IntImm(value.dtype, 1), None, 1)
    parts = _sides(analyzer.simplify(value), own)
    if parts is None:
        return None
    outside, inside = parts
    bound = analyzer.const_int_bound(inside)
    if bound.min_value != 0 or not isinstance(inside, PrimExpr):
        return None
    extent = int(bound.max_value) + 1
    if not variables(outside):
        whole = as_int(outside)
        if whole != 0:
            return None
        return DividedAxis(axis, zero, IntImm(value.dtype, 1), inside if extent > 1 else None, extent)
    if extent == 1:
        return DividedAxis(axis, outside, axis.dom.extent, None, 1)
    if not analyzer.known_divisible(outside, extent):
        return None
    count = analyzer.simplify(ceildiv(axis.dom.extent, extent))
    return DividedAxis(axis, analyzer.simplify(outside // extent), count, inside, extent)


def _sides(value: PrimExpr, own: set[Var]) -> tuple[PrimExpr, PrimExpr] | None:
    """The sum of the terms outside, with the constant, and of those inside; None if a term mixes both."""
    form = linear_form(value)
    sums: list[list[PrimExpr]] = [[IntImm(value.dtype, form.constant)], [IntImm(value.dtype, 0)]]
    for atom, factor in form.terms.items():
        mentioned = variables(atom)
        if mentioned & own and mentioned - own:
            return None
        sums[bool(mentioned & own)].append(atom * factor)
    outside, inside = (reduce(lambda a, b: a + b, terms) for terms in sums)
    return outside, inside


def without_unit_loops(realize: BlockRealize, loops: Sequence[For]) -> dict[Var, PrimExpr]:
    """The only value of each loop of one iteration."""
    return {loop.loop_var: loop.min for loop in loops if as_int(loop.extent) == 1}


__all__ = ["DividedAxis", "Division", "divided", "substitute", "without_unit_loops"]
