"""With `tir.instrument_bound_checkers`: an assert before every statement that its accesses stay inside their buffers.

A load that a condition guards inside an expression is checked under that condition, and a masked lane not at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import logical_and, logical_not, logical_or
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import And, Broadcast, BufferLoad, Call, IntImm, Or, PrimExpr, Ramp, Shuffle, StringImm
from ...tir.function import PrimFunc
from ...tir.stmt import AssertStmt, BufferStore, Stmt
from ..context import PassContext
from ..lanes import lanes_of
from ..rebuild import map_stmt, operands, own_expressions

_TRUE = IntImm("bool", 1)


def instrument_bound_checkers(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with bounds asserted before its accesses, if the context asks for it; else itself."""
    return func.with_body(_checked(func.body)) if ctx.flag("tir.instrument_bound_checkers") else func


def _checked(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _checked)
    checks: dict[PrimExpr, str] = {}
    for expr in own_expressions(stmt):
        for condition, name in _load_checks(expr, _TRUE):
            checks.setdefault(condition, name)
    if isinstance(stmt, BufferStore):
        checks.setdefault(_inside(stmt.buffer, stmt.indices[0], stmt.predicate), stmt.buffer.name)
    for condition, name in reversed(list(checks.items())):
        if not isinstance(condition, IntImm) or not condition.value:
            result = AssertStmt(condition, StringImm(f"an access to {name} is out of bounds"), result)
    return result


def _load_checks(expr: PrimExpr, taken: PrimExpr) -> Iterator[tuple[PrimExpr, str]]:
    """The conditions under which the loads of `expr` are inside; `taken` is when `expr` is evaluated."""
    if isinstance(expr, BufferLoad):
        yield logical_or(logical_not(taken), _inside(expr.buffer, expr.indices[0], expr.predicate)), expr.buffer.name
    if isinstance(expr, Call) and expr.op == "tir.prefetch":  # reads nothing, and may look past the end
        return
    parts = list(operands(expr))
    if isinstance(expr, (And, Or)) and lanes_of(expr) == 1:
        yield from _load_checks(parts[0], taken)
        where = expr.a if isinstance(expr, And) else logical_not(expr.a)
        yield from _load_checks(parts[1], logical_and(taken, where))
    elif isinstance(expr, Call) and expr.op == "tir.if_then_else" and lanes_of(expr.args[0]) == 1:
        yield from _load_checks(parts[0], taken)
        yield from _load_checks(parts[1], logical_and(taken, parts[0]))
        yield from _load_checks(parts[2], logical_and(taken, logical_not(parts[0])))
    else:
        for part in parts:
            yield from _load_checks(part, taken)


def _inside(buffer: Buffer, index: PrimExpr, predicate: PrimExpr | None) -> PrimExpr:
    """The condition that every lane that takes part has an index from 0 up to the size."""
    if buffer.scope() == "register":
        return _TRUE
    size = buffer.shape[0]
    lanes = lanes_of(index)
    if predicate is None and isinstance(index, Ramp):
        # A ramp's lanes lie between its ends: two comparisons for all of them.
        last = index.base + index.stride * (lanes - 1)
        return all_of(*(_in_range(end, size) for end in (index.base, last)))
    conditions = []
    for lane in range(lanes):
        inside = _in_range(_lane(index, lane), size)
        conditions.append(inside if predicate is None else logical_or(logical_not(_lane(predicate, lane)), inside))
    return all_of(*conditions)


def _in_range(index: PrimExpr, size: PrimExpr) -> PrimExpr:
    return logical_and(index >= 0, index < size)


def _lane(vector: PrimExpr, lane: int) -> PrimExpr:
    """One lane of a vector."""
    match vector:
        case Ramp(base, stride, _):
            return base + stride * lane
        case Broadcast(value, _):
            return value
    return vector if parse_dtype(vector.dtype).lanes == 1 else Shuffle((vector,), (lane,))
