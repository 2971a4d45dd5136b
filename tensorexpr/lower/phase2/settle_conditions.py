"""Conditions of values that became true when loops were unrolled are dropped; so are those of lanes that are all in.

    for io in 8: X[io*14 + 3] if 1 <= io*14 + 3 and 1 <= r else 0    ->    for io in 8: X[io*14 + 3] if 1 <= r else 0

Where the same lanes of a store run in every iteration, it is one of these lanes, or its mask a constant (`live_lanes`).

It stands after unrolling: before, the loop that makes the condition true is still a loop.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import nested_operands
from ...tir.dtype import parse_dtype
from ...tir.expr import GE, GT, LE, LT, And, Broadcast, BufferLoad, Call, CmpExpr, PrimExpr, Select
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, For, Stmt
from ..context import PassContext
from ..rebuild import FreeVars, map_expr, map_stmt, walk_statements
from ..scopes import inside_loop
from .live_lanes import Lanes, live_lanes, ramp_order, shortened


def settle_conditions(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without conditions of values that always hold; itself if there are none."""
    return func.with_body(_Settler(func).stmt(func.body))


class _Settler:
    def __init__(self, func: PrimFunc) -> None:
        self._inner = frozenset(s.buffer_var for s in walk_statements(func.body) if isinstance(s, Allocate))
        self._analyzer = Analyzer()
        self._free = FreeVars()
        # What is known inside the loops around; proofs hold further in too, so only what is mapped is forgotten there.
        self._mapped: dict[PrimExpr, PrimExpr] = {}
        self._proved: dict[PrimExpr, bool] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its conditions settled."""
        if not isinstance(stmt, For):
            mapped = map_stmt(stmt, self.stmt, self.expr)
            return self._stored(mapped) if isinstance(mapped, BufferStore) and mapped.predicate is not None else mapped
        outer = self._mapped, self._proved
        self._mapped, self._proved = {}, {}
        with inside_loop(self._analyzer, stmt):
            body = self.stmt(stmt.body)
        self._mapped, self._proved = outer
        return stmt if body is stmt.body else replace(stmt, body=body)

    def _stored(self, store: BufferStore) -> BufferStore:
        """The store of the lanes that run."""
        assert store.predicate is not None
        if store.buffer.data in self._inner:  # may be registers, whose accesses have their masks in common
            return store
        lanes = self._lanes(store.predicate)
        if lanes is None:
            return store
        if lanes.all:
            return BufferStore(store.buffer, store.value, store.indices)
        short = shortened(store, lanes, self._inner)
        if short is not None:
            return BufferStore(short.buffer, self.expr(short.value), short.indices)
        # A mask without variables is a constant already, in whatever form.
        mask = lanes.mask() if self._free(store.predicate) else None
        return store if mask is None else BufferStore(store.buffer, store.value, store.indices, mask)

    def _lanes(self, condition: PrimExpr) -> Lanes | None:
        """The lanes in which all parts of a condition hold, where that is decided."""
        found = [None if self._free.touches_memory(part) else live_lanes(part, self._analyzer) for part in nested_operands(condition, And)]
        decided = [lanes for lanes in found if lanes is not None]
        return reduce(Lanes.both, decided) if len(decided) == len(found) else None

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The value without conditions that hold."""
        found = self._mapped.get(expr)
        if found is None:
            found = self._mapped[expr] = self._settled(map_expr(expr, self.expr))
        return found

    def _settled(self, expr: PrimExpr) -> PrimExpr:
        match expr:
            case BufferLoad(buffer, indices, PrimExpr() as predicate):
                left = self._left(predicate)
                return expr if left is predicate else BufferLoad(buffer, indices, left)
            case Select(condition, yes, no):
                left = self._left(condition)
                return expr if left is condition else yes if left is None else Select(left, yes, no)
            case Call(dtype, "tir.if_then_else", (condition, yes, no)):
                left = self._left(condition)
                return expr if left is condition else yes if left is None else Call(dtype, expr.op, (left, yes, no))
        return expr

    def _left(self, condition: PrimExpr) -> PrimExpr | None:
        """What is open of a condition: itself, a part of it, or None if it holds."""
        parts = nested_operands(condition, And)
        kept = [part for part in parts if not self._holds(part)]
        if len(kept) == len(parts):
            return condition
        if not kept:
            return None
        return reduce(And, kept)

    def _holds(self, part: PrimExpr) -> bool:
        found = self._proved.get(part)
        if found is None:
            found = self._proved[part] = self._is_true(part)
        return found

    def _is_true(self, part: PrimExpr) -> bool:
        # What memory holds may change while a proof is kept.
        if self._free.touches_memory(part):
            return False
        match part:
            case Broadcast(value):
                return self._is_true(value)
            case LT() | LE() | GT() | GE() if (order := ramp_order(part, self._analyzer)) is not None:
                return order.holds(0) and order.holds(order.ramp.lanes - 1)
        return isinstance(part, CmpExpr) and parse_dtype(part.dtype).lanes == 1 and self._analyzer.known_true(part)
