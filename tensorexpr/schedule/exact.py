"""Splits that promise to need no guard are held to it."""

from __future__ import annotations

from ..arith.analyzer import Analyzer
from ..errors import ScheduleError
from ..tir.expr import PrimExpr
from .domain import StageDomain
from .tree import SplitRelation


def check_exact(domain: StageDomain, analyzer: Analyzer) -> None:
    """Check that every split with `disable_predication` covers its axis exactly, whatever the sizes.

    Raises:
        ScheduleError: naming the split, what it covers and what it may cover.
    """
    stage = domain.stage
    for relation in stage.relations:
        if not isinstance(relation, SplitRelation) or not relation.exact:
            continue
        covered: PrimExpr = domain.extents[relation.parts[0]]
        for part in relation.parts[1:]:
            covered = covered * domain.extents[part]
        extent = domain.extents[relation.parent]
        if not analyzer.known_equal(covered, extent):
            name = stage.axes[relation.parent].name
            sizes = " x ".join(str(domain.extents[part]) for part in relation.parts)
            raise ScheduleError(
                f"In schedule for {stage.name}: split of {name!r} with disable_predication would run {sizes} iterations for an extent of "
                f"{extent}, and what lies past the end would be written out of bounds; "
                "give a factor that is known to divide the extent, or keep the guard"
            )
