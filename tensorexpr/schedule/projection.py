"""A part of a stage's loops as the loops of another stage: some axes with their splits, order and marks, renumbered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dataclass import dataclass, replace
from .tree import FuseRelation, LoopMark, Relation, SplitRelation, StageNode


def axes_of(relation: Relation) -> tuple[int, ...]:
    """All axes that a split or fusion is about."""
    return (relation.parent, *relation.parts) if isinstance(relation, SplitRelation) else (*relation.parts, relation.fused)


def related_axes(stage: StageNode, axis: int) -> frozenset[int]:
    """The axes that share a root with `axis`, through splits and fusions in any direction."""
    found = {axis}
    # Both ways, as a fusion joins axes of different roots: what is split from either of them hangs together.
    while True:
        grown = found.union(*(axes_of(relation) for relation in stage.relations if found.intersection(axes_of(relation))))
        if grown == found:
            return frozenset(found)
        found = grown


@dataclass(frozen=True, slots=True)
class Projection:
    """Axis numbers of one stage -> axis numbers of another, and what of its loops goes along."""

    numbers: Mapping[int, int]
    relations: tuple[Relation, ...]
    leaf: tuple[int, ...]
    marks: Mapping[int, LoopMark]


def project(stage: StageNode, numbers: Mapping[int, int], first_free: int) -> Projection:
    """The loops of the axes in `numbers` and of all that is derived from them.

    Args:
        stage: where they are now.
        numbers: axes -> their numbers in the other stage. A relation goes along exactly if its old axes are here.
        first_free: the number of the next derived axis there.
    """
    known = dict(numbers)
    relations: list[Relation] = []
    for relation in stage.relations:
        # Relations are in the order they were made, so that what one is made of was met before it.
        made = relation.parts if isinstance(relation, SplitRelation) else (relation.fused,)
        if not all(axis in known for axis in axes_of(relation) if axis not in made):
            continue
        for axis in made:
            known[axis] = first_free
            first_free += 1
        relations.append(_renumbered(relation, known))
    leaf = tuple(known[axis] for axis in stage.leaf if axis in known)
    return Projection(known, tuple(relations), leaf, {known[axis]: mark for axis, mark in stage.marks.items() if axis in known})


def _renumbered(relation: Relation, numbers: Mapping[int, int]) -> Relation:
    parts = tuple(numbers[part] for part in relation.parts)
    if isinstance(relation, SplitRelation):
        return replace(relation, parent=numbers[relation.parent], parts=parts)
    return FuseRelation(parts, numbers[relation.fused])


def derived_axes(projection: Projection, roots: Iterable[int]) -> tuple[int, ...]:
    """The old numbers of the axes that `project` added to `roots`, in the order of their new numbers."""
    given = set(roots)
    return tuple(sorted((axis for axis in projection.numbers if axis not in given), key=projection.numbers.__getitem__))
