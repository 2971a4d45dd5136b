"""Give every buffer one dimension: row-major storage for intermediates, strides as declared for parameters.

The storage of an intermediate covers the box that `BufferRealize` states, so its indices are counted from there. Where
an extent is symbolic but bounded, the bound is allocated: constant strides are what later phases need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast as typing_cast

from ...arith.analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import binary
from ...tir.attrs import EMPTY, FrozenMap
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Sub, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferBind, BufferRealize, BufferStore, DeclBuffer, For, IfThenElse, Stmt
from ..context import PassContext
from ..rebuild import map_expr, map_stmt
from ..scopes import under_conditions
from .buffer_bind import bound_layout, remade
from .layout import Layout, aligned, declared_layout, flat_index, layout_over, product, row_major, span

# A symbolic extent is replaced by its bound up to this many elements; more would waste memory on small problems.
_BOUND_LIMIT = 1 << 16


def storage_flatten(func: PrimFunc, ctx: PassContext, keep_declarations: bool = False) -> PrimFunc:
    """`func` with one-dimensional accesses only; BufferRealize becomes Allocate. The signature stays.

    Args:
        keep_declarations: leave buffers declared over memory declared, as flat ones; later phases need none.
    """
    return func.with_body(_Flattener(func, keep_declarations).stmt(func.body))


class _Flattener:
    """One function's layouts and memo, and what is known where a buffer is realised."""

    def __init__(self, func: PrimFunc, keep_declarations: bool) -> None:
        self._keep = keep_declarations
        self._layouts: dict[Buffer, Layout] = {}
        self._origins: dict[Var, PrimExpr] = {}
        self._exprs: dict[PrimExpr, PrimExpr] = {}
        self._context: list[For | PrimExpr] = []
        self._values: dict[Var, PrimExpr] = {}  # of what bound buffers define
        self._bound_to: dict[Var, Buffer] = {}  # by the pointer of a bound buffer
        for buffer in func.buffer_map.values():
            self._origins[buffer.data] = buffer.elem_offset
            self._layouts[buffer] = declared_layout(buffer, IntImm("int32", 0))

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with flat accesses."""
        match stmt:
            case BufferRealize():
                return self._realize(stmt)
            case BufferBind():
                return self._bind(stmt)
            case DeclBuffer():
                body = self.stmt(stmt.body)
                return DeclBuffer(self._layout(stmt.buffer).flat, body) if self._keep else body
            case Allocate() if len(stmt.extents) != 1:
                return replace(stmt, extents=(product(stmt.extents),), body=self.stmt(stmt.body))
            case BufferStore():
                layout = self._layout(stmt.buffer)
                index = flat_index(layout, [self.expr(i) for i in stmt.indices])
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
            if isinstance(expr, Var):
                known = self._values.get(expr, expr)
            else:
                known = remade(expr, self.expr) if self._values else map_expr(expr, self.expr)
            if isinstance(expr, BufferLoad):
                layout = self._layout(expr.buffer)
                load = typing_cast(BufferLoad, known)
                known = BufferLoad(layout.flat, (flat_index(layout, load.indices),), load.predicate)
            self._exprs[expr] = known
        return known

    def _layout(self, buffer: Buffer) -> Layout:
        layout = self._layouts.get(buffer)
        if layout is None:  # a view of memory that something else owns
            if buffer.data in self._bound_to:
                layout = self._view_of_bound(buffer)
            else:
                origin = self._origins.get(buffer.data, IntImm("int32", 0))
                layout = declared_layout(buffer, binary(Sub, buffer.elem_offset, origin))
            self._layouts[buffer] = layout
        return layout

    def _realize(self, stmt: BufferRealize) -> Stmt:
        buffer = stmt.buffer
        mins = tuple(self.expr(bound.min) for bound in stmt.bounds)
        # Declared strides say where each element lies, so the storage has to span them all.
        if buffer.strides:
            extents = tuple(bound.extent for bound in stmt.bounds)
            strides, size = buffer.strides, span(extents, buffer.strides)
        else:
            extents = tuple(self._bounded(self.expr(bound.extent)) for bound in stmt.bounds)
            strides, size = _box_layout(extents, stmt.annotations.get("storage_align", ()))
        self._layouts[buffer] = layout_over(buffer, size, mins, strides, IntImm("int32", 0))
        copies = stmt.annotations.get("double_buffer_scope")
        kept = EMPTY if copies is None else FrozenMap({"double_buffer_scope": copies})
        return Allocate(buffer.data, buffer.dtype, (size,), self.expr(stmt.condition), self.stmt(stmt.body), kept)

    def _bind(self, stmt: BufferBind) -> Stmt:
        """The body over the memory of the box."""
        analyzer = Analyzer()
        with under_conditions(analyzer, self._context):
            layout, values = bound_layout(stmt, self._layout(stmt.source.buffer), analyzer, self.expr)
        self._layouts[stmt.buffer] = layout
        self._values.update(values)
        self._bound_to[stmt.buffer.data] = layout.flat
        return self.stmt(stmt.body)

    def _view_of_bound(self, view: Buffer) -> Layout:
        """The layout of a view of a bound buffer's memory, in the memory that it stands for."""
        flat = self._bound_to[view.data]
        shape, strides = tuple(map(self.expr, view.shape)), tuple(map(self.expr, view.strides))
        offset = self.expr(view.elem_offset)
        if flat.dtype != view.dtype:
            raise LoweringError(
                f"buffer {view.name} of {view.dtype} is a view of {flat.name}, which holds {flat.dtype}; views keep the dtype"
            )
        own = declared_layout(replace(view, shape=shape, strides=strides), offset)
        return Layout(flat, own.mins, own.strides, offset, "int32" if offset.dtype == own.dtype == "int32" else "int64")

    def _bounded(self, extent: PrimExpr) -> PrimExpr:
        """The constant that bounds a symbolic extent, if it is a small one."""
        if isinstance(extent, IntImm):
            return extent
        analyzer = Analyzer()
        with under_conditions(analyzer, self._context):
            bound = analyzer.const_int_bound(extent).max_value
            return IntImm(extent.dtype, bound) if 0 <= bound <= _BOUND_LIMIT else analyzer.simplify(extent)


def _box_layout(extents: tuple[PrimExpr, ...], aligns: tuple[tuple[int, int, int], ...]) -> tuple[tuple[PrimExpr, ...], PrimExpr]:
    """Strides and size of the storage of a box: compact, or aligned where the schedule asks for it."""
    return aligned(extents, aligns) if aligns else (row_major(extents), product(extents))
