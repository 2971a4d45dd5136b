"""Compute indices, loop counters and index comparisons in int32 wherever bounds prove that nothing is lost.

Memory addresses need no more, and vectors of indices are half as long. What is not proved stays in int64; data is never
touched. An expression is narrowed as a whole, when every part of it fits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast as typing_cast

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import cast
from ...tir.dtype import int_limits, parse_dtype, with_lanes
from ...tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    Ramp,
    Range,
    Select,
    Sub,
    Var,
)  # fmt: skip
from ...tir.function import PrimFunc
from ...tir.stmt import BufferStore, For, Stmt
from ..context import PassContext
from ..rebuild import map_expr, map_stmt, operands, own_expressions, walk_statements

_ARITHMETIC = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)


def narrow_dtype(func: PrimFunc, ctx: PassContext, target_bits: int = 32) -> PrimFunc:
    """`func` with index arithmetic in `target_bits` bits where that is proved to be enough."""
    if target_bits >= 64 or not _has_wide(func.body):
        return func
    return func.with_body(_Narrower(f"int{target_bits}").stmt(func.body))


def _has_wide(body: Stmt) -> bool:
    """True if a loop counter or part of an index, or of a comparison, is wider than int32."""
    seen: set[PrimExpr] = set()
    for stmt in walk_statements(body):
        if isinstance(stmt, For) and stmt.loop_var.dtype == "int64":
            return True
        stack = list(own_expressions(stmt))
        while stack:
            expr = stack.pop()
            if expr not in seen:
                seen.add(expr)
                # Vectors of int64, too.
                if expr.dtype.startswith("int64"):
                    return True
                stack.extend(operands(expr))
    return False


class _Narrower:
    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._limits = int_limits(dtype)
        self._analyzer = Analyzer()
        self._vars: dict[Var, Var] = {}
        self._exprs: dict[PrimExpr, PrimExpr] = {}
        self._narrowed: dict[PrimExpr, PrimExpr | None] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with narrow indices."""
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, BufferStore):
            indices = tuple(map(self.index, stmt.indices))
            value = self.expr(stmt.value)
            predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
            # Identity first: what is unchanged isn't rebuilt by passes to come.
            if value is stmt.value and predicate is stmt.predicate and all(a is b for a, b in zip(indices, stmt.indices, strict=True)):
                return stmt
            return BufferStore(stmt.buffer, value, indices, predicate)
        return map_stmt(stmt, self.stmt, self.expr)

    def _loop(self, loop: For) -> Stmt:
        self._analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), allow_override=True)
        if loop.loop_var.dtype == self._dtype:
            return map_stmt(loop, self.stmt, self.expr)
        low, extent = self._narrow(loop.min), self._narrow(loop.extent)
        # The counter reaches the end before the loop stops, so the end has to fit, too.
        if low is None or extent is None or not self._fits(loop.min + loop.extent) or not self._fits(loop.loop_var):
            return map_stmt(loop, self.stmt, self.expr)
        var = self._vars[loop.loop_var] = type(loop.loop_var)(loop.loop_var.name, self._dtype)
        return replace(loop, loop_var=var, min=low, extent=extent, body=self.stmt(loop.body))

    def _fits(self, expr: PrimExpr) -> bool:
        bound = self._analyzer.const_int_bound(expr)
        return self._limits[0] <= bound.min_value and bound.max_value <= self._limits[1]

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An index, narrow if possible."""
        if not parse_dtype(expr.dtype).is_int or parse_dtype(expr.dtype).bits <= parse_dtype(self._dtype).bits:
            return self.expr(expr)
        narrow = self._narrow(expr)
        return self.expr(expr) if narrow is None else narrow

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """A value of the same dtype, with narrow indices and comparisons inside."""
        known = self._exprs.get(expr)
        if known is None:
            known = self._exprs[expr] = self._rewritten(expr)
        return known

    def _rewritten(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, Var):
            return Cast(expr.dtype, self._vars[expr]) if expr in self._vars else expr
        if isinstance(expr, BufferLoad):
            return map_expr(expr, lambda e: self.expr(e) if e is expr.predicate else self.index(e))
        if isinstance(expr, CmpExpr) and expr.a.dtype.startswith("int64"):
            a, b = self._narrow(expr.a), self._narrow(expr.b)
            if a is not None and b is not None:
                # Both sides or none: a comparison has one dtype.
                return typing_cast(PrimExpr, type(expr)(a, b))
        return map_expr(expr, self.expr)

    def _narrow(self, expr: PrimExpr) -> PrimExpr | None:
        if expr not in self._narrowed:
            self._narrowed[expr] = self._compute_narrow(expr)
        return self._narrowed[expr]

    def _compute_narrow(self, expr: PrimExpr) -> PrimExpr | None:
        """`expr` computed in the narrow type, or None if a part of it isn't proved to fit."""
        wanted = with_lanes(self._dtype, parse_dtype(expr.dtype).lanes)
        match expr:
            case _ if expr.dtype == wanted:
                return self.expr(expr)
            case Cast(_, value) if value.dtype == wanted:
                return self.expr(value)
            case IntImm(_, value):
                return IntImm(wanted, value) if self._limits[0] <= value <= self._limits[1] else None
            case Var():
                if expr in self._vars:
                    return self._vars[expr]
                return cast(expr, wanted) if self._fits(expr) else None
            case Broadcast(value, lanes):
                inner = self._narrow(value)
                return None if inner is None else Broadcast(inner, lanes)
            case Ramp(base, stride, lanes):
                # The first lane is the base, which is proved with it; the last one is the other end of the ramp.
                if not self._fits(base + stride * (lanes - 1)):
                    return None
                start, step = self._narrow(base), self._narrow(stride)
                return None if start is None or step is None else Ramp(start, step, lanes)
            case Select(condition, a, b):
                left, right = self._narrow(a), self._narrow(b)
                return None if left is None or right is None else Select(self.expr(condition), left, right)
        if isinstance(expr, BinaryExpr) and type(expr) in _ARITHMETIC and self._fits_binary(expr):
            left, right = self._narrow(expr.a), self._narrow(expr.b)
            return None if left is None or right is None else typing_cast(PrimExpr, type(expr)(left, right))
        return None

    def _fits_binary(self, expr: BinaryExpr) -> bool:
        """Bounds are known for scalars; a vector's are those of the ramps it is made of."""
        return parse_dtype(expr.dtype).lanes == 1 and self._fits(expr)
