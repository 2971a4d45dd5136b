"""The layout of a tensor in which the loops that read it go from one element to the next: one index for each loop that moves the read.

for j.o: for k: for j.i: ... B[k, j.o*32 + j.i]    ->    B[j // 32, k, j % 32]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..tir.arithmetic import as_int
from ..tir.expr import ProducerLoad
from .tree import At, AxisExpression, FuseRelation, ScheduleTree, SplitRelation, StageNode


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a loop runs over: of a root axis `extent` places that are `step` apart."""

    root: int
    step: int
    extent: int


def tiled_layout(tree: ScheduleTree, reader: StageNode, load: ProducerLoad) -> tuple[AxisExpression, ...] | None:
    """The indices of the layout in which `reader`, a tiled stage, reads `load` along memory, over the indices of the load.

    None if no loop is cut, an index is anything else than one axis, extents aren't constant, or elements lie in that order already.
    """
    roots = {reader.axes[axis].var: axis for axis in (*reader.spatial, *reader.reduction)}
    places = {roots[index]: place for place, index in enumerate(load.indices) if index in roots}
    sizes = [as_int(extent) for extent in load.producer.shape]
    if len(places) != len(load.indices) or None in sizes or not _is_tiled(tree, reader):
        return None
    loops = _loops(tree, reader)
    if loops is None:
        return None
    pieces = [piece for piece in loops if piece.root in places and piece.extent > 1]
    if _is_in_order(pieces, places, [size or 0 for size in sizes]):
        return None
    coarsest = {root: max(piece.step for piece in pieces if piece.root == root) for root in {piece.root for piece in pieces}}
    return tuple(_index(piece, places[piece.root], coarsest[piece.root]) for piece in pieces)


def _is_tiled(tree: ScheduleTree, stage: StageNode) -> bool:
    around = tree[stage.attach.stage] if isinstance(stage.attach, At) else stage
    return any(isinstance(relation, SplitRelation) for relation in (*stage.relations, *around.relations))


def _index(piece: _Piece, place: int, coarsest: int) -> AxisExpression:
    axis: AxisExpression = ("axis", place)
    whole = axis if piece.step == 1 else ("//", axis, piece.step)
    return whole if piece.step == coarsest else ("%", whole, piece.extent)


def _is_in_order(pieces: Sequence[_Piece], places: Mapping[int, int], sizes: Sequence[int]) -> bool:
    """True if the elements would lie where they are, without padding."""
    ordered = sorted(pieces, key=lambda piece: (places[piece.root], -piece.step))
    held = [1] * len(sizes)
    for piece in pieces:
        held[places[piece.root]] *= piece.extent
    return ordered == list(pieces) and held == list(sizes)


def _loops(tree: ScheduleTree, stage: StageNode) -> list[_Piece] | None:
    """All loops around the statement of a stage, outermost first, by the root axes of the stage that they move."""
    extents: dict[int, int] = {}
    for axis in (*stage.spatial, *stage.reduction):
        dom = stage.axes[axis].dom
        extent = as_int(dom.extent) if dom is not None else None
        if extent is None:
            return None
        extents[axis] = extent
    around: list[_Piece] = []
    if isinstance(stage.attach, At):
        found = _outer_loops(tree, stage, stage.attach)
        if found is None:
            return None
        around = found
        for piece in around:
            extents[piece.root] = min(extents[piece.root], piece.step)
    own = _pieces(stage, extents)
    return None if own is None else [*around, *(piece for axis in stage.leaf for piece in own[axis])]


def _outer_loops(tree: ScheduleTree, stage: StageNode, attach: At) -> list[_Piece] | None:
    """The loops of the stage that another one is computed at, by the axes of that other one, which it reads in place."""
    target = tree[attach.stage]
    loops = _loops(tree, target) if isinstance(target.attach, At) else None
    if isinstance(target.attach, At) and loops is None:
        return None
    read = next((load for load in tree.reads(target) if tree.producer(load).id == stage.id), None)
    axes = {target.axes[axis].var: axis for axis in target.spatial}
    same = {} if read is None else {axes[index]: place for place, index in enumerate(read.indices) if index in axes}
    extents = {axis: as_int(dom.extent) if (dom := target.axes[axis].dom) is not None else None for axis in (*target.spatial, *target.reduction)}
    if None in extents.values():
        return None
    pieces = _pieces(target, {axis: extent or 1 for axis, extent in extents.items()})
    if pieces is None:
        return None
    outside = target.leaf[: target.leaf.index(attach.axis) + 1]
    return [_Piece(same[p.root], p.step, p.extent) for axis in outside for p in pieces[axis] if p.root in same]


def _pieces(stage: StageNode, extents: Mapping[int, int]) -> dict[int, tuple[_Piece, ...]] | None:
    """What each axis of a stage runs over. Parts of uneven tiles, and of several axes, leave all to the innermost part."""
    found = {axis: (_Piece(axis, 1, extent),) for axis, extent in extents.items()}
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            found[relation.fused] = tuple(piece for part in relation.parts for piece in found[part])
            continue
        whole = found[relation.parent]
        found.update(dict.fromkeys(relation.parts, ()))
        factors = [None if factor is None else as_int(factor) for factor in relation.factors]
        if len(whole) != 1 or relation.balanced:
            found[relation.parts[-1]] = whole
        elif relation.factors.count(None) == factors.count(None):
            found.update(zip(relation.parts, _cut(whole[0], factors), strict=True))
        else:
            return None
    return found


def _cut(whole: _Piece, factors: Sequence[int | None]) -> Iterator[tuple[_Piece, ...]]:
    """The parts of a split, outermost first."""
    known = 1
    for factor in factors:
        known *= factor or 1
    extents = [-(-whole.extent // known) if factor is None else factor for factor in factors]
    for place, extent in enumerate(extents):
        step = whole.step
        for inner in extents[place + 1 :]:
            step *= inner
        yield (_Piece(whole.root, step, extent),)


__all__ = ["tiled_layout"]
