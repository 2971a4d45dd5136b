"""Splits that promise to need no guard are held to it."""

from __future__ import annotations

from ..arith.analyzer import Analyzer
from .domain import StageDomain, covered
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
        extent = domain.extents[relation.parent]
        if not analyzer.known_equal(covered(relation.parts, domain.extents), extent):
            name = stage.axes[relation.parent].name
            sizes = " x ".join(str(domain.extents[part]) for part in relation.parts)
            raise stage.refused(
                f"split of {name!r} with disable_predication would run {sizes} iterations for an extent of "
                f"{extent}, and what lies past the end would be written out of bounds; "
                "give a factor that is known to divide the extent, or keep the guard"
            )
