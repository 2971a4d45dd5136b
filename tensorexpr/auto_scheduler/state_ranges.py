"""What is known of the ranges of a program's iterators before its bounds are inferred, and after.

A stage at the root runs over its whole domain, so splits and fusions say how far its iterators go. A stage that was moved into a
loop of another computes what is read there; how much that is, `ComputeDAG.infer_bound_from_state` finds out.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..arith.analyzer import Analyzer
from ..lower.phase0.infer_bound import infer_bound
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.legality import check_tree
from ..schedule.tree import FuseRelation, ScheduleTree, SplitRelation, StageNode
from ..tir.arithmetic import as_int
from ..tir.expr import IntImm, PrimExpr, Range

# (stage, axis) -> its range; None where it isn't known. Axes that aren't listed are as their relations say.
Known = Mapping[tuple[int, int], Range | None]


def range_of(stage: StageNode, axis: int, known: Known) -> Range | None:
    """The range of an iterator; None if it isn't known."""
    if (stage.id, axis) in known:
        return known[stage.id, axis]
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and axis in relation.parts:
            return _counted(stage, _part_extent(stage, relation, axis, known))
        if isinstance(relation, FuseRelation) and axis == relation.fused:
            extents = [_extent(stage, part, known) for part in relation.parts]
            return _counted(stage, None if None in extents else prod(extent for extent in extents if extent is not None))
    return stage.axes[axis].dom


def _part_extent(stage: StageNode, split: SplitRelation, axis: int, known: Known) -> int | None:
    factor = split.factors[split.parts.index(axis)]
    if factor is not None:
        return as_int(factor)
    others = [as_int(factor) for factor in split.factors if factor is not None]
    parent = _extent(stage, split.parent, known)
    if parent is None or None in others:
        return None
    return -(-parent // prod(other for other in others if other is not None))


def _extent(stage: StageNode, axis: int, known: Known) -> int | None:
    found = range_of(stage, axis, known)
    return None if found is None else as_int(found.extent)


def _counted(stage: StageNode, extent: int | None) -> Range | None:
    return None if extent is None else Range.from_min_extent(IntImm("int32", 0), IntImm("int32", extent))


def unknown(stage: StageNode, known: Known) -> Known:
    """What is known after a stage was moved: nothing of its iterators."""
    return {**known, **{(stage.id, axis): None for axis in stage.leaf}}


def forgotten(stage: int, known: Known) -> Known:
    """What is known after a stage got other axes."""
    return {key: found for key, found in known.items() if key[0] != stage}


def inferred(tree: ScheduleTree) -> Known:
    """The ranges of all iterators of a program.

    Raises:
        ScheduleError: if the program is illegal.
    """
    check_tree(tree)
    found: dict[tuple[int, int], Range | None] = {}
    for number, domain in infer_bound(tree, inline_stages(tree), Analyzer()).items():
        for axis in tree[number].leaf:
            first: PrimExpr = domain.region[axis].min if axis in domain.region else IntImm("int32", 0)
            found[number, axis] = Range.from_min_extent(first, domain.extents[axis])
    return found
