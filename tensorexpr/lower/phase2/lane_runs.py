"""Loads whose lanes lie in a few pieces, each side by side: the pieces are loaded and the lanes picked out of them.

    P[r * 100 + u for r, u in ((0, 0), (1, 0), (0, 1), (1, 1))]   ->   shuffle(P[0:2], P[100:102]; 0, 2, 1, 3)      (pixel shuffle)
    A[0, 0, 1, 1]                                                 ->   shuffle(A[0:2]; 0, 0, 1, 1)                  (nearest neighbours)

Exactly the elements of the lanes are read, so nothing new is touched; those that a predicate leaves out aren't.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge, gt, le, lt
from typing import TypeAlias

from ...tir.arithmetic import add, binary
from ...tir.dtype import parse_dtype
from ...tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Shuffle,
    Sub,
)
from ..lanes import lanes_of

# Pieces: as many loads and one shuffle less, against a gather, which takes about a load for each lane.
_MOST = 4

_Lanes: TypeAlias = "tuple[PrimExpr, list[int]]"
_COMPARED = {LT: lt, LE: le, GT: gt, GE: ge}


def in_runs(load: BufferLoad) -> PrimExpr | None:
    """The load as a shuffle of loads of neighbours; None where lanes aren't known from each other, or lie in too many pieces."""
    if len(load.indices) != 1 or parse_dtype(load.buffer.dtype).lanes > 1:
        return None
    index, lanes = load.indices[0], lanes_of(load)
    # A ramp, or one element for all lanes, is one load already.
    found = None if lanes < 2 or isinstance(index, (Ramp, Broadcast)) else lanes_from(index)
    if found is None:
        return None
    base, offsets = found
    known = [None] * lanes if load.predicate is None else truths(load.predicate)
    live = [lane for lane in range(lanes) if known[lane] is not False]
    elements = sorted({offsets[lane] for lane in live})
    runs = _pieces(elements)
    is_conditional = any(known[lane] is None for lane in live) and load.predicate is not None
    # An element has one predicate: two lanes that read it could have different ones.
    is_torn = is_conditional and len(elements) < len(live)
    has_long_runs = len(runs) <= _MOST and len(elements) >= 2 * len(runs)
    if not live or is_torn or not has_long_runs:
        return None
    users = {offsets[lane]: lane for lane in live}
    vectors = [_loaded(load, base, run, users if is_conditional else None) for run in runs]
    places = {element: place for place, element in enumerate(elements)}
    if len(live) < lanes:  # what a predicate leaves out is zero
        vectors.append(_zero(load.dtype))
    return Shuffle(tuple(vectors), tuple(places[offsets[lane]] if lane in live else len(elements) for lane in range(lanes)))


def _loaded(load: BufferLoad, base: PrimExpr, run: Sequence[int], users: dict[int, int] | None) -> PrimExpr:
    """Neighbours, under the predicate of the lanes that they are for, if it has one."""
    start, one = add(base, IntImm(base.dtype, run[0])), IntImm(base.dtype, 1)
    predicate = None
    if users is not None:
        assert load.predicate is not None
        predicate = Shuffle((load.predicate,), tuple(users[element] for element in run))
    index = Ramp(start, one, len(run)) if len(run) > 1 else start
    return BufferLoad(load.buffer, (index,), predicate)


def _zero(dtype: str) -> PrimExpr:
    scalar = parse_dtype(dtype).scalar
    # Two lanes make it a vector; the shuffle takes the first.
    return Broadcast(FloatImm(str(scalar), 0.0) if scalar.is_float else IntImm(str(scalar), 0), 2)


def _pieces(elements: Sequence[int]) -> list[list[int]]:
    """Numbers that follow each other."""
    found: list[list[int]] = []
    for element in elements:
        if found and element == found[-1][-1] + 1:
            found[-1].append(element)
        else:
            found.append([element])
    return found


def lanes_from(expr: PrimExpr) -> _Lanes | None:
    """A vector of integers as a scalar and how far each lane is from it, else None."""
    found = _lanes(expr)
    if found is None:
        return None
    base, offsets = found
    return (base, offsets) if base is not None else (IntImm(str(parse_dtype(expr.dtype).scalar), 0), offsets)


def _lanes(expr: PrimExpr) -> tuple[PrimExpr | None, list[int]] | None:
    """As `lanes_from`; without a scalar where all lanes are constants."""
    match expr:
        case Broadcast(IntImm(_, value), lanes):
            return None, [value] * lanes
        case Broadcast(value, lanes):
            return value, [0] * lanes
        case Ramp(IntImm(_, first), IntImm(_, stride), lanes):
            return None, [first + lane * stride for lane in range(lanes)]
        case Ramp(base, IntImm(_, stride), lanes):
            return base, [lane * stride for lane in range(lanes)]
        case Add(a, b) | Sub(a, b):
            return _added(type(expr), _lanes(a), _lanes(b))
        case Mul(a, Broadcast(IntImm(_, factor))) | Mul(Broadcast(IntImm(_, factor)), a):
            inner = _lanes(a)
            if inner is None:
                return None
            scaled = inner[0] if inner[0] is None else binary(Mul, inner[0], IntImm(inner[0].dtype, factor))
            return scaled, [offset * factor for offset in inner[1]]
        case FloorDiv(a, Broadcast(IntImm(_, by))) | FloorMod(a, Broadcast(IntImm(_, by))) if by > 0:
            inner = _lanes(a)
            # (x + offset) // by isn't x // by + offset // by: with an unknown x no lane's distance is a constant.
            if inner is None or inner[0] is not None:
                return None
            return None, [offset // by if isinstance(expr, FloorDiv) else offset % by for offset in inner[1]]
    return None


def _added(
    kind: type[Add | Sub], a: tuple[PrimExpr | None, list[int]] | None, b: tuple[PrimExpr | None, list[int]] | None
) -> tuple[PrimExpr | None, list[int]] | None:
    if a is None or b is None:
        return None
    sign = 1 if kind is Add else -1
    base = a[0]
    if b[0] is not None:
        base = binary(kind, a[0] if a[0] is not None else IntImm(b[0].dtype, 0), b[0])
    return base, [x + sign * y for x, y in zip(a[1], b[1], strict=True)]


def truths(mask: PrimExpr) -> list[bool | None]:
    """For each lane of a condition whether it holds; None where that isn't known."""
    count = lanes_of(mask)
    match mask:
        case Broadcast(IntImm(_, value)):
            return [bool(value)] * count
        case And(a, b) | Or(a, b):
            # One side can settle a lane without the other: False and unknown is False.
            decisive = isinstance(mask, Or)
            pairs = zip(truths(a), truths(b), strict=True)
            return [decisive if decisive in pair else None if None in pair else not decisive for pair in pairs]
        case Not(a):
            return [None if one is None else not one for one in truths(a)]
        case LT(a, b) | LE(a, b) | GT(a, b) | GE(a, b) | EQ(a, b) | NE(a, b):
            left, right = _lanes(a), _lanes(b)
            if left is None or right is None or left[0] is not None or right[0] is not None:
                return [None] * count
            if isinstance(mask, (EQ, NE)):
                return [(x == y) is isinstance(mask, EQ) for x, y in zip(left[1], right[1], strict=True)]
            holds = _COMPARED[type(mask)]
            return [holds(x, y) for x, y in zip(left[1], right[1], strict=True)]
    return [None] * count
