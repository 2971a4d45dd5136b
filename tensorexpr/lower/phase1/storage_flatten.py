"""Give every buffer one dimension: row-major storage for intermediates, strides as declared for parameters.

The storage of an intermediate covers the box that `BufferRealize` states, so its indices are counted from there. Where
an extent is symbolic but bounded, the bound is allocated: constant strides are what later phases need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast as typing_cast

from ...arith import Analyzer
from ...errors import InternalError
from ...tir.arithmetic import binary, cast
from ...tir.buffer import Buffer
from ...tir.expr import Add, BufferLoad, IntImm, Mul, PrimExpr, Sub, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferRealize, BufferStore, DeclBuffer, For, IfThenElse, Stmt
from ..context import PassContext
from ..lanes import lane_binary, lane_cast
from ..rebuild import map_expr, map_stmt
from ..scopes import under_conditions

# A symbolic extent is replaced by its bound up to this many elements; more would waste memory on small problems.
_BOUND_LIMIT = 1 << 16
_INT32_ELEMENTS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the elements of a buffer are: `offset + sum((index - min) * stride)` in `flat`, computed in `dtype`."""

    flat: Buffer
    mins: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    offset: PrimExpr
    dtype: str


def storage_flatten(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with one-dimensional accesses only; BufferRealize becomes Allocate. The signature stays."""
    return func.with_body(_Flattener(func).stmt(func.body))


class _Flattener:
    """One function's layouts and memo, and what is known where a buffer is realised."""

    def __init__(self, func: PrimFunc) -> None:
        self._layouts: dict[Buffer, _Layout] = {}
        self._origins: dict[Var, PrimExpr] = {}
        self._exprs: dict[PrimExpr, PrimExpr] = {}
        self._context: list[For | PrimExpr] = []
        for buffer in func.buffer_map.values():
            self._origins[buffer.data] = buffer.elem_offset
            self._layouts[buffer] = _declared_layout(buffer, IntImm("int32", 0))

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with flat accesses."""
        match stmt:
            case BufferRealize():
                return self._realize(stmt)
            case DeclBuffer():
                return self.stmt(stmt.body)
            case Allocate() if len(stmt.extents) != 1:
                return replace(stmt, extents=(_product(stmt.extents),), body=self.stmt(stmt.body))
            case BufferStore():
                layout = self._layout(stmt.buffer)
                index = _flat_index(layout, [self.expr(i) for i in stmt.indices])
                value = self.expr(stmt.value)
                predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
                same = layout.flat is stmt.buffer and (index, value, predicate) == (stmt.indices[0], stmt.value, stmt.predicate)
                return stmt if same else BufferStore(layout.flat, value, (index,), predicate)
            case For():
                self._context.append(stmt)
                result = map_stmt(stmt, self.stmt, self.expr)
                self._context.pop()
                return result
            case IfThenElse(condition=condition, else_case=None):
                self._context.append(condition)
                result = map_stmt(stmt, self.stmt, self.expr)
                self._context.pop()
                return result
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The expression with flat loads."""
        known = self._exprs.get(expr)
        if known is None:
            known = map_expr(expr, self.expr)
            if isinstance(expr, BufferLoad):
                layout = self._layout(expr.buffer)
                load = typing_cast(BufferLoad, known)
                known = BufferLoad(layout.flat, (_flat_index(layout, load.indices),), load.predicate)
            self._exprs[expr] = known
        return known

    def _layout(self, buffer: Buffer) -> _Layout:
        layout = self._layouts.get(buffer)
        if layout is None:  # a view of memory that something else owns
            origin = self._origins.get(buffer.data, IntImm("int32", 0))
            layout = self._layouts[buffer] = _declared_layout(buffer, binary(Sub, buffer.elem_offset, origin))
        return layout

    def _realize(self, stmt: BufferRealize) -> Stmt:
        buffer = stmt.buffer
        mins = tuple(self.expr(bound.min) for bound in stmt.bounds)
        if buffer.strides:
            extents = tuple(bound.extent for bound in stmt.bounds)
            strides, size = buffer.strides, _span(extents, buffer.strides)
        else:
            extents = tuple(self._bounded(self.expr(bound.extent)) for bound in stmt.bounds)
            strides, size = _row_major(extents), _product(extents)
        self._layouts[buffer] = _layout(buffer, size, mins, strides, IntImm("int32", 0))
        return Allocate(buffer.data, buffer.dtype, (size,), self.expr(stmt.condition), self.stmt(stmt.body))

    def _bounded(self, extent: PrimExpr) -> PrimExpr:
        """The constant that bounds a symbolic extent, if it is a small one."""
        if isinstance(extent, IntImm):
            return extent
        analyzer = Analyzer()
        with under_conditions(analyzer, self._context):
            bound = analyzer.const_int_bound(extent).max_value
            return IntImm(extent.dtype, bound) if 0 <= bound <= _BOUND_LIMIT else analyzer.simplify(extent)


def _product(extents: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements, in int64 unless it is a constant that int32 holds."""
    total: PrimExpr = IntImm("int64", 1)
    for extent in extents:
        total = binary(Mul, total, cast(extent, "int64"))
    if isinstance(total, IntImm) and total.value <= _INT32_ELEMENTS:
        return IntImm("int32", total.value)
    return cast(extents[0], extents[0].dtype) if len(extents) == 1 else total


def _row_major(extents: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    return tuple(_product(extents[d + 1 :]) for d in range(len(extents)))


def _span(extents: Sequence[PrimExpr], strides: Sequence[PrimExpr]) -> PrimExpr:
    """How far the last element of a strided box is from the first, plus one."""
    total: PrimExpr = IntImm("int64", 1)
    for extent, stride in zip(extents, strides, strict=True):
        total = total + (cast(extent, "int64") - 1) * cast(stride, "int64")
    return IntImm("int32", total.value) if isinstance(total, IntImm) and total.value <= _INT32_ELEMENTS else total


def _declared_layout(buffer: Buffer, offset: PrimExpr) -> _Layout:
    """The layout that shape and strides declare. A parameter's data points to its first element, so its own offset is none."""
    mins = tuple(IntImm(extent.dtype, 0) for extent in buffer.shape)
    if buffer.strides:
        return _layout(buffer, _span(buffer.shape, buffer.strides), mins, buffer.strides, offset)
    return _layout(buffer, _product(buffer.shape), mins, _row_major(buffer.shape), offset)


def _layout(buffer: Buffer, size: PrimExpr, mins: tuple[PrimExpr, ...], strides: tuple[PrimExpr, ...], offset: PrimExpr) -> _Layout:
    unmoved = isinstance(offset, IntImm) and offset.value == 0
    small = isinstance(size, IntImm) and size.dtype == "int32"
    plain = len(strides) == 1 and isinstance(strides[0], IntImm) and strides[0].value == 1  # no product that could overflow
    if unmoved and len(buffer.shape) == 1 and not buffer.strides and size is buffer.shape[0]:
        return _Layout(buffer, mins, strides, offset, "int32")
    total = size if unmoved else binary(Add, cast(size, "int64"), cast(offset, "int64"))
    flat = Buffer(buffer.data, buffer.dtype, (total,), (), IntImm("int32", 0), buffer.name, buffer.data_alignment, buffer.offset_factor)
    return _Layout(flat, mins, strides, offset, "int32" if small or plain else "int64")


def _flat_index(layout: _Layout, indices: Sequence[PrimExpr]) -> PrimExpr:
    if len(indices) != len(layout.strides):
        raise InternalError(f"buffer {layout.flat.name} has {len(layout.strides)} dimensions, but is accessed with {len(indices)} indices")
    dtype = "int64" if layout.dtype == "int64" or any(i.dtype.startswith("int64") for i in indices) else "int32"
    total: PrimExpr = cast(layout.offset, dtype)
    for index, low, stride in zip(indices, layout.mins, layout.strides, strict=True):
        distance = lane_binary(Sub, lane_cast(index, dtype), cast(low, dtype))
        total = lane_binary(Add, total, lane_binary(Mul, distance, cast(stride, dtype)))
    return total
