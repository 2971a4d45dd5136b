"""The layout of a tensor in which the loops that read it go from one element to the next: one index for each loop that moves the read.

for j.o: for k: for j.i: ... B[k, j.o*32 + j.i]    ->    B[j // 32, k, j % 32]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ..arith.analyzer import Analyzer
from ..arith.linear import linear_form
from ..dataclass import dataclass
from ..tir.arithmetic import as_int
from ..tir.expr import FloorDiv, PrimExpr, ProducerLoad, Var
from ..tir.rewriting import substitute
from .tree import At, AxisExpression, FuseRelation, Inline, ScheduleTree, SplitRelation, StageNode


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a loop runs over: of a root axis, or of an index, `extent` places that are `step` apart."""

    of: int
    step: int
    extent: int


def tiled_layout(tree: ScheduleTree, reader: StageNode, load: ProducerLoad) -> tuple[AxisExpression, ...] | None:
    """The indices of the layout in which `reader`, a tiled stage, reads `load` along memory, over the indices of the load.

    None if no loop is cut, an index isn't the axes' digits in a number, extents aren't constant, or elements lie in that order already.
    """
    places = _places(reader, load)
    sizes = [as_int(extent) for extent in load.producer.shape]
    if places is None or None in sizes or not _is_tiled(tree, reader):
        return None
    loops = _loops(tree, reader)
    if loops is None:
        return None
    moving = [(places[piece.of], piece) for piece in loops if piece.of in places and piece.extent > 1]
    pieces = [_Piece(place, factor * piece.step, piece.extent) for (place, factor), piece in moving]
    if _is_in_order(pieces, [size or 0 for size in sizes]):
        return None
    # j in steps of 32 and of 1 becomes j // 32 and j % 32: the largest step of an index needs no remainder
    coarsest = {place: max(piece.step for piece in pieces if piece.of == place) for place in {piece.of for piece in pieces}}
    return tuple(_index(piece, coarsest[piece.of]) for piece in pieces)


def _places(reader: StageNode, load: ProducerLoad) -> dict[int, tuple[int, int]] | None:
    """For each root axis of the reader that moves a load the index that it moves, and by how much; None if indices aren't sums of axes.

    Whether the axes are digits of the index, none of which overlap, is found when a layout is made of them.
    """
    axes = (*reader.spatial, *reader.reduction)
    roots = {reader.axes[axis].var: axis for axis in axes}
    analyzer = Analyzer({var: dom for var, axis in roots.items() if (dom := reader.axes[axis].dom) is not None})
    places: dict[int, tuple[int, int]] = {}
    for place, index in enumerate(load.indices):
        form = linear_form(analyzer.simplify(index))
        for atom, factor in form.terms.items():
            # An axis in two indices, as B[i, i + j], would have to be cut for both.
            if not isinstance(atom, Var) or atom not in roots or roots[atom] in places or factor < 1:
                return None
            places[roots[atom]] = (place, factor)
        # B[i + 1] leaves out the first row: places of the layout would hold nothing that is read.
        if form.constant:
            return None
    return places


def _is_tiled(tree: ScheduleTree, stage: StageNode) -> bool:
    around = tree[stage.attach.stage] if isinstance(stage.attach, At) else stage
    return any(isinstance(relation, SplitRelation) for relation in (*stage.relations, *around.relations))


def _index(piece: _Piece, coarsest: int) -> AxisExpression:
    axis: AxisExpression = ("axis", piece.of)
    whole = axis if piece.step == 1 else ("//", axis, piece.step)
    return whole if piece.step == coarsest else ("%", whole, piece.extent)


def _is_in_order(pieces: Sequence[_Piece], sizes: Sequence[int]) -> bool:
    """True if the elements would lie where they are, without padding."""
    # as the elements lie already: index by index, and of one index the larger steps first
    ordered = sorted(pieces, key=lambda piece: (piece.of, -piece.step))
    held = [1] * len(sizes)
    for piece in pieces:
        held[piece.of] *= piece.extent
    return ordered == list(pieces) and held == list(sizes)


def _loops(tree: ScheduleTree, stage: StageNode, last: int | None = None) -> list[_Piece] | None:
    """The loops around the statement of a stage, outermost first and down to a loop of its own, by the root axes that they move."""
    extents: dict[int, int] = {}
    for axis in (*stage.spatial, *stage.reduction):
        dom = stage.axes[axis].dom
        extent = as_int(dom.extent) if dom is not None else None
        if extent is None:
            return None
        extents[axis] = extent
    around = _loops_around(tree, stage, stage.attach) if isinstance(stage.attach, At) else []
    if around is None:
        return None
    for piece in around:
        extents[piece.of] = min(extents[piece.of], piece.step)  # what the loops around leave of the axis
    own = _pieces(stage, extents)
    leaf = stage.leaf if last is None else stage.leaf[: stage.leaf.index(last) + 1]
    return None if own is None else [*around, *(piece for axis in leaf for piece in own[axis])]


def _loops_around(tree: ScheduleTree, stage: StageNode, attach: At) -> list[_Piece] | None:
    """The loops that a stage is computed in, by the axes of its own that the other stage's axes read, each in place."""
    target = tree[attach.stage]
    loops = _loops(tree, target, attach.axis)
    if loops is None:
        return None
    axes: dict[PrimExpr, int] = {target.axes[axis].var: axis for axis in target.spatial}
    reads = set(_reads_of(tree, target, stage))
    read = reads.pop() if len(reads) == 1 else ()
    found = {}
    for place, index in enumerate(read):
        var, size = _whole_part(index)
        if var in axes:
            found[axes[var]] = place, size
    # A stage whose own layout is blocks of 64 is read at `f // 64`: a loop of whole blocks moves that axis, one inside a block doesn't.
    moving = [(piece, *found[piece.of]) for piece in loops if piece.of in found]
    return [_Piece(place, piece.step // size, piece.extent) for piece, place, size in moving if piece.step % size == 0]


def _whole_part(index: PrimExpr) -> tuple[PrimExpr, int]:
    """An axis in steps: `f // 64` as f and 64; another index as itself and 1."""
    size = as_int(index.b) if isinstance(index, FloorDiv) else None
    return (index.a, size) if isinstance(index, FloorDiv) and size else (index, 1)


def _reads_of(tree: ScheduleTree, reader: StageNode, stage: StageNode) -> Iterator[tuple[PrimExpr, ...]]:
    """The indices at which a stage reads another one, itself or in what is inlined into it."""
    for load in tree.reads(reader):
        producer = tree.producer(load)
        if producer.id == stage.id:
            yield load.indices
        elif isinstance(producer.attach, Inline):
            values = {producer.axes[axis].var: index for axis, index in zip(producer.spatial, load.indices, strict=True)}
            for indices in _reads_of(tree, producer, stage):
                yield tuple(substitute(index, values) for index in indices)


def _pieces(stage: StageNode, extents: Mapping[int, int]) -> dict[int, tuple[_Piece, ...]] | None:
    """What each axis of a stage runs over. Parts of uneven tiles, and of several axes, leave all to the innermost part."""
    found: dict[int, tuple[_Piece, ...]] = {axis: (_Piece(axis, 1, extent),) for axis, extent in extents.items()}
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
    known = prod(factor or 1 for factor in factors)
    # Rounded up as the loop is; the layout then has padding.
    extents = [-(-whole.extent // known) if factor is None else factor for factor in factors]
    for place, extent in enumerate(extents):
        yield (_Piece(whole.of, whole.step * prod(extents[place + 1 :]), extent),)
