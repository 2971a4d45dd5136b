"""Loads of vectors as the machine has them: conditional ones are masked, those at a small stride are shuffles of contiguous ones.

    X[0:16] if r < n else 0.0   ->   X[0:16] where r < n, in all lanes or none, else zero    (a branch otherwise)
    X[1 : 33 : 2]               ->   shuffle(X[1:17], X[16:32]; 0, 2, ..., 14, 17, ..., 31)   (16 loads otherwise)
    X[0, 0, 1, 1, ...]          ->   shuffle(X[0:8]; 0, 0, 1, 1, ...)                         (a gather otherwise; `lane_runs`)

Only elements between the first and the last one of a strided load are read; where it is masked, between those of its lanes.
That holds of the function's arguments: in its own storage what lies between may be padding that nobody wrote.
It stands after the transposes, which use strided loads better.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.arithmetic import add
from ...tir.dtype import parse_dtype
from ...tir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    FloatImm,
    IntImm,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Shuffle,
    Var,
)
from ...tir.function import PrimFunc
from ...tir.stmt import Stmt
from ..context import PassContext
from ..lanes import lanes_of
from ..rebuild import map_expr, map_stmt
from .lane_runs import in_runs

# Vectors that one strided load becomes: as many loads and one shuffle less, against a load and an insertion for each lane.
_MOST = 4


def vector_loads(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with masked and shuffled loads; itself if there is nothing to change."""
    done: dict[PrimExpr, PrimExpr] = {}
    arguments = {buffer.data for buffer in func.buffer_map.values()}

    def on_expr(expr: PrimExpr) -> PrimExpr:
        found = done.get(expr)
        if found is None:
            found = done[expr] = _lowered(map_expr(_zeroed(expr), on_expr), arguments)
        return found

    def on_stmt(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, on_stmt, on_expr)

    return func.with_body(on_stmt(func.body))


def _zeroed(expr: PrimExpr) -> PrimExpr:
    """Lanes that a load's predicate leaves out are zero: selecting zero there says it again, of a shuffle that LLVM can't see through."""
    match expr:
        case Select(condition, BufferLoad(_, _, predicate) as load, other) if predicate is condition and _is_constant(other):
            value = other.value if isinstance(other, Broadcast) else other
            return load if isinstance(value, (IntImm, FloatImm)) and value.value == 0 else expr
    return expr


def _lowered(expr: PrimExpr, arguments: set[Var]) -> PrimExpr:
    match expr:
        case BufferLoad(buffer, (Ramp(_, IntImm(_, stride), lanes),), _) if 2 <= stride <= _MOST and lanes >= 2 * stride:
            return _shuffled(expr, stride, lanes) if parse_dtype(buffer.dtype).lanes == 1 and buffer.data in arguments else expr
        case BufferLoad():
            found = in_runs(expr)
            return expr if found is None else found
        case Call(_, "tir.if_then_else", (condition, BufferLoad(_, (Ramp(_, IntImm(_, 1), _),), _) as load, other)):
            if lanes_of(condition) == 1 and _is_constant(other):
                return _masked(condition, load, other)
    return expr


def _is_constant(expr: PrimExpr) -> bool:
    value = expr.value if isinstance(expr, Broadcast) else expr
    return isinstance(value, (IntImm, FloatImm))


def _masked(condition: PrimExpr, load: BufferLoad, other: PrimExpr) -> PrimExpr:
    """A load of all lanes or none, of neighbours: strided ones are cheaper behind a branch."""
    everywhere = Broadcast(condition, lanes_of(load))
    predicate = everywhere if load.predicate is None else And(everywhere, load.predicate)
    return Select(everywhere, BufferLoad(load.buffer, load.indices, predicate), other)


def _shuffled(load: BufferLoad, stride: int, lanes: int) -> PrimExpr:
    """The lanes of a strided load picked out of vectors of as many neighbours.

    The last vector ends with the last lane, and overlaps the one before it: a shorter one would be put together from pieces.
    """
    index = load.indices[0]
    assert isinstance(index, Ramp)
    span = (lanes - 1) * stride + 1
    step = IntImm(index.base.dtype, 1)
    vectors: list[PrimExpr] = []
    # Four lanes at stride 3 span 10 elements: vectors from 0, 4 and 6, the last one overlapping.
    starts = [min(start, span - lanes) for start in range(0, span, lanes)]
    for start in starts:
        predicate = None
        if load.predicate is not None:
            predicate = _stretched(load.predicate, stride, start, lanes)
            if predicate is None:
                return load
        base = add(index.base, IntImm(index.base.dtype, start))
        vectors.append(BufferLoad(load.buffer, (Ramp(base, step, lanes),), predicate))
    # The vector that an element falls into, then its lane there, which the overlap shifts in the last one.
    places = [(number // lanes * lanes, number - starts[number // lanes]) for number in range(0, span, stride)]
    return Shuffle(tuple(vectors), tuple(vector + lane for vector, lane in places))


def _constants(dtype: str, values: Sequence[int]) -> PrimExpr:
    return Shuffle(tuple(IntImm(dtype, value) for value in values), tuple(range(len(values))))


def _stretched(mask: PrimExpr, stride: int, start: int, size: int) -> PrimExpr | None:
    """The mask of `size` neighbours from number `start` on: what lies between two lanes is read where both are.

    Lanes are cut off at the ends, by comparisons with one value. One that holds from some lane on is asked of the lane before a
    neighbour, one that holds up to some lane of the lane after it. None for masks of another form.
    """
    match mask:
        case Broadcast(value):
            return Broadcast(value, size)
        case And(a, b) | Or(a, b):
            left, right = (_stretched(part, stride, start, size) for part in (a, b))
            return None if left is None or right is None else type(mask)(left, right)
        case LT() | LE() | GT() | GE():
            return _compared(mask, range(start, start + size), stride)
    return None


def _compared(mask: LT | LE | GT | GE, numbers: range, stride: int) -> PrimExpr | None:
    match mask.a, mask.b:
        case (Ramp(base, IntImm(dtype, apart), _), Broadcast(limit)):
            rises = apart > 0
        case (Broadcast(limit), Ramp(base, IntImm(dtype, apart), _)):
            rises = apart < 0
        case _:
            return None
    if rises == isinstance(mask, (GT, GE)):
        lanes = [number // stride for number in numbers]
    else:
        lanes = [-(-number // stride) for number in numbers]
    ramp = Add(Broadcast(base, len(numbers)), _constants(dtype, [lane * apart for lane in lanes]))
    value = Broadcast(limit, len(numbers))
    return type(mask)(ramp, value) if isinstance(mask.a, Ramp) else type(mask)(value, ramp)
