"""Values of a stage's root axes from those of its loops, where strides can't tell: a loop that was fused and then split moves
several axes in steps of all sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...schedule.tree import FuseRelation, SplitRelation, StageNode
from .indices import Interval
from .nest import Array, StageNest


def splits_fused_loops(stage: StageNode) -> bool:
    """Whether a loop of a stage was fused and then split."""
    fused = {relation.fused for relation in stage.relations if isinstance(relation, FuseRelation)}
    return any(isinstance(relation, SplitRelation) and relation.parent in fused for relation in stage.relations)


def root_values(nest: StageNest, leaves: Mapping[int, Interval]) -> dict[int, Interval]:
    """The intervals of all axes of a stage from those of its loops, counted from where the stage's box starts.

    Args:
        nest: of the stage.
        leaves: loop axis -> its interval, all of one shape [n, any].
    """
    known = dict(leaves)
    # relations stand in the order they were made, so backwards the parts of each are known before what they were cut from
    for relation in reversed(nest.stage.relations):
        if isinstance(relation, FuseRelation):
            known.update(_taken_apart(known[relation.fused], relation.parts, nest.extents))
        else:
            known[relation.parent] = _put_together([known[part] for part in relation.parts], relation.parts, nest.extents)
    return known


def _put_together(values: list[Interval], parts: tuple[int, ...], extents: Mapping[int, Array]) -> Interval:
    low, high = values[0]
    for (least, most), part in zip(values[1:], parts[1:], strict=True):
        size = extents[part][:, None]
        low, high = low * size + least, high * size + most
    return low, high


def _taken_apart(fused: Interval, parts: tuple[int, ...], extents: Mapping[int, Array]) -> dict[int, Interval]:
    low, high = fused
    made: dict[int, Interval] = {}
    for part in reversed(parts[1:]):
        size = np.maximum(extents[part][:, None], 1.0)
        first, last = np.floor(low / size), np.floor(high / size)
        # both ends in one row of the part: 5..7 of rows of 4 is 1..3; 3..5 is in two, so that all of 0..3 may be met
        same = first == last
        made[part] = (np.where(same, low - first * size, 0.0), np.where(same, high - first * size, size - 1))
        low, high = first, last
    made[parts[0]] = (low, high)
    return made
