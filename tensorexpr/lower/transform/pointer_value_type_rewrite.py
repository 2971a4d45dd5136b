"""Buffers that are only accessed in aligned vectors of one width, as buffers of these vectors.

    A[i * 4 : i * 4 + 4]  ->  A[T.Div(i * 4, 4)] of a buffer of float32x4;   A[i * 4 + 1]  ->  T.Shuffle([A[...]], [1])

Single elements may be read, where it shows which lane they are, but not stored; a pointer that is passed on keeps its type.
"""

from __future__ import annotations

from typing import cast as typing_cast

from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...tir.arithmetic import binary, const, is_const_int
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import BufferLoad, Call, Div, IntImm, PointerType, PrimExpr, PrimType, Ramp, Range, Shuffle, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import children
from ...tir.stmt import Allocate, AllocateConst, AttrStmt, BufferStore, DeclBuffer, For, LetStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_expr, map_stmt, own_expressions, pointer_scope, sub_statements


def PointerValueTypeRewrite() -> Pass:
    """Buffers and parameters with elements that are vectors, where all accesses are."""

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        uses = _Uses()
        uses.stmt(func.body)
        widths = {data: width for data, seen in uses.seen.items() if (width := seen.width()) is not None}
        return _Rewriter(widths, uses.analyzer).function(func) if widths else func

    return Pass("tir.PointerValueTypeRewrite", run)


@dataclass
class _Seen:
    """How the memory behind one pointer is accessed."""

    lanes: set[int] = field(default_factory=set)
    scalars: list[PrimExpr] = field(default_factory=list)
    coefficients: list[tuple[int, int]] = field(default_factory=list)  # of the indices of scalar reads
    opaque: bool = False
    sizes: list[PrimExpr] = field(default_factory=list)

    def width(self) -> int | None:
        """The lanes of the vectors, or None where they don't fit."""
        if self.opaque or len(self.lanes) != 1:
            return None
        (lanes,) = self.lanes
        if lanes < 2:
            return None
        # Only then a scalar is in the same lane in every iteration: i * 8 + 1 is lane 1 of 4, i * 2 + 1 may be lane 1 or 3.
        fits = all(coefficient % lanes == 0 for coefficient, _ in self.coefficients)
        # The last dimension is what is cut into vectors, so no row may end within one.
        whole = all(isinstance(size, IntImm) and size.value % lanes == 0 for size in self.sizes)
        return lanes if fits and whole else None


class _Uses:
    """Looks at all accesses of a function."""

    def __init__(self) -> None:
        self.seen: dict[Var, _Seen] = {}
        self.analyzer = Analyzer()

    def _of(self, data: Var) -> _Seen:
        return self.seen.setdefault(data, _Seen())

    def stmt(self, stmt: Stmt) -> None:
        """A statement and all in it."""
        if isinstance(stmt, For):
            self.analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent), allow_override=True)
        elif isinstance(stmt, BufferStore):
            self._access(stmt.buffer, stmt.indices, True, stmt.predicate)
        elif isinstance(stmt, AllocateConst):
            self._of(stmt.buffer_var).opaque = True  # its elements are given as scalars
        elif isinstance(stmt, LetStmt) and stmt.var.dtype == "handle":
            self._of(stmt.var).opaque = True
        elif isinstance(stmt, Allocate):
            self._of(stmt.buffer_var).sizes.append(stmt.extents[-1] if stmt.extents else const(1, "int32"))
        for expr in own_expressions(stmt):
            self._expr(expr)
        for inner in sub_statements(stmt):
            self.stmt(inner)

    def _expr(self, expr: PrimExpr) -> None:
        if isinstance(expr, Var) and expr.dtype == "handle":
            self._of(expr).opaque = True
        if isinstance(expr, Call) and expr.op == "tir.address_of" and isinstance(expr.args[0], BufferLoad):
            self._of(expr.args[0].buffer.data).opaque = True
        elif isinstance(expr, BufferLoad):
            self._access(expr.buffer, expr.indices, False, expr.predicate)
        for child in children(expr):
            self._expr(typing_cast(PrimExpr, child))

    def _access(self, buffer: Buffer, indices: tuple[PrimExpr, ...], is_store: bool, predicate: PrimExpr | None) -> None:
        seen = self._of(buffer.data)
        index = indices[-1] if indices else const(0, "int32")
        seen.sizes += buffer.shape[-1:]
        # An offset counts elements, which become longer; a mask has no lanes to choose from in one element.
        if parse_dtype(buffer.dtype).lanes != 1 or buffer.strides or not is_const_int(buffer.elem_offset, 0) or predicate is not None:
            seen.opaque = True
        if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1 and isinstance(index.lanes, int):
            known = self.analyzer.modular_set(index.base)
            lanes = int(index.lanes)
            aligned = known.coeff % lanes == 0 and known.base % lanes == 0
            # Across two vector elements: 0 agrees with no width, and keeps the elements scalars.
            seen.lanes.add(lanes if aligned else 0)
        # A scalar that is read is picked out of its vector; one that is stored would need the other lanes of it.
        elif parse_dtype(index.dtype).lanes != 1 or is_store:
            seen.lanes.add(0)
        else:
            known = self.analyzer.modular_set(index)
            seen.coefficients.append((known.coeff, known.base))


class _Rewriter:
    def __init__(self, widths: dict[Var, int], analyzer: Analyzer) -> None:
        self._widths, self._analyzer = widths, analyzer
        self._pointers: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def function(self, func: PrimFunc) -> PrimFunc:
        """A function with its parameters."""
        buffers = {param: self._buffer(buffer) for param, buffer in func.buffer_map.items()}
        params = {param: self._pointer(param) for param in func.params}
        return replace(
            func, params=tuple(params.values()), buffer_map={params[p]: b for p, b in buffers.items()}, body=self._stmt(func.body)
        )

    def _pointer(self, var: Var) -> Var:
        width = self._widths.get(var)
        if width is None or not isinstance(var.type_annotation, PointerType):
            return var
        if var not in self._pointers:
            element = var.type_annotation.element_type.dtype
            note = PointerType(PrimType(with_lanes(element, width)), pointer_scope(var))
            self._pointers[var] = Var(var.name, "handle", note)
        return self._pointers[var]

    def _buffer(self, buffer: Buffer) -> Buffer:
        width = self._widths.get(buffer.data)
        if width is None:
            return buffer
        if buffer not in self._buffers:
            shape = (*buffer.shape[:-1], binary(Div, buffer.shape[-1], const(width, buffer.shape[-1].dtype)))
            self._buffers[buffer] = replace(buffer, data=self._pointer(buffer.data), dtype=with_lanes(buffer.dtype, width), shape=shape)
        return self._buffers[buffer]

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Allocate() if stmt.buffer_var in self._widths:
                width = self._widths[stmt.buffer_var]
                extents = (*stmt.extents[:-1], binary(Div, stmt.extents[-1], const(width, stmt.extents[-1].dtype)))
                dtype = with_lanes(stmt.dtype, width)
                return replace(stmt, buffer_var=self._pointer(stmt.buffer_var), dtype=dtype, extents=extents, body=self._stmt(stmt.body))
            case DeclBuffer():
                return DeclBuffer(self._buffer(stmt.buffer), self._stmt(stmt.body))
            case AttrStmt() if isinstance(stmt.node, (Var, Buffer)):
                node = self._pointer(stmt.node) if isinstance(stmt.node, Var) else self._buffer(stmt.node)
                mapped = typing_cast(AttrStmt, map_stmt(stmt, self._stmt, self._expr))
                return mapped if node is stmt.node else replace(mapped, node=node)
            case BufferStore() if stmt.buffer.data in self._widths:
                return BufferStore(self._buffer(stmt.buffer), self._expr(stmt.value), self._place(stmt.buffer, stmt.indices)[0])
        return map_stmt(stmt, self._stmt, self._expr)

    def _place(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[tuple[PrimExpr, ...], int | None]:
        """Where the vector is, and the lane of a single element."""
        width = self._widths[buffer.data]
        new = tuple(map(self._expr, indices))
        last = new[-1]
        base = last.base if isinstance(last, Ramp) else last
        # In terms of the old index, of which the analysis was made.
        lane = None if isinstance(last, Ramp) else self._analyzer.modular_set(indices[-1]).base % width
        return (*new[:-1], binary(Div, base, const(width, base.dtype))), lane

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, BufferLoad) and expr.buffer.data in self._widths:
            indices, lane = self._place(expr.buffer, expr.indices)
            load = BufferLoad(self._buffer(expr.buffer), indices)
            return load if lane is None else Shuffle((load,), (lane,))
        return self._pointers.get(expr, expr) if isinstance(expr, Var) else map_expr(expr, self._expr)
