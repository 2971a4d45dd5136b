"""Tiles of two sizes, seen by the stages that are computed inside them.

A reader with a balanced split visits the last iteration of the larger tiles only there. A stage at the loop over tiles has
a box of the larger size; what it needn't compute in a smaller tile is the last slice of that box, if the reader's loop
inside the tile moves the read forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...schedule.balanced import ShortTile
from ...schedule.domain import Guard, StageDomain
from ...tir.expr import PrimExpr, ProducerLoad, Range, Var
from ...tir.rewriting import substitute, variables

Read = tuple[StageDomain, ProducerLoad, dict[Var, Range]]
"""A reader, what it reads, and the loops around the read inside the place where the stage is computed."""


def common_short_tile(domain: StageDomain, axis: int, position: int, reads: Sequence[Read], analyzer: Analyzer) -> Guard | None:
    """The guard for the last slice of `axis`, if all reads of index `position` shrink by it in the same tiles."""
    found: list[ShortTile] = []
    for reader, load, inside in reads:
        index = analyzer.simplify(substitute(load.indices[position], reader.root_values()))
        short = _shrinking(reader, index, inside)
        # A read that doesn't shrink, or in other tiles, still needs the last slice.
        if short is None or (found and not _same(short, found[0])):
            return None
        found.append(short)
    if not found:
        return None
    last = analyzer.simplify(domain.extents[axis] - 1)
    short = replace(found[0], last=last)
    return Guard(axis, analyzer.simplify(short.condition(domain.values[axis])), False, short)


def _shrinking(reader: StageDomain, index: PrimExpr, inside: dict[Var, Range]) -> ShortTile | None:
    """The tiles in which the largest value of `index` over the loops inside is less, if there are such."""
    form = linear_form(index)
    for guard in reader.guards:
        if guard.short is None or not variables(guard.short.tile).isdisjoint(inside):
            continue
        loop = reader.values[guard.axis]
        if not isinstance(loop, Var) or loop not in inside or form.coefficient_of(loop) < 1:
            continue
        if all(atom is loop or loop not in variables(atom) for atom in form.terms):
            return guard.short
    return None


def _same(a: ShortTile, b: ShortTile) -> bool:
    return a.tile is b.tile and a.longer is b.longer and a.count is b.count


def stays_inside(value: PrimExpr, size: PrimExpr, domain: StageDomain, guard: Guard | None, analyzer: Analyzer) -> bool:
    """True if `value` is proved to be below `size` wherever the guard of a short tile holds, tiles of either size apart."""
    if guard is None or guard.short is None:
        return False
    short = guard.short
    with analyzer.constraint_scope(short.tile < short.longer):
        if not analyzer.known_less(value, size):
            return False
    with analyzer.constraint_scope(short.tile >= short.longer), analyzer.constraint_scope(domain.values[guard.axis] < short.last):
        return analyzer.known_less(value, size)
