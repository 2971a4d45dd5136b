"""Buffers of several dimensions as buffers of one (of one per physical axis where there are axis separators).

    A[i, j] of A: (16, 16)  ->  A[i * 16 + j] of a buffer of 256 elements behind the same pointer

Memory holds no bits, so buffers of bool become buffers of int8 with casts around their accesses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast as typing_cast

from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import as_int, binary, cast
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import Add, BufferLoad, IntImm, Mul, PrimExpr, Range, Sub
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, DeclBuffer, For, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_expr, map_stmt
from ..scopes import inside_loop


def FlattenBuffer() -> Pass:
    """Every access with as many indices as memory has axes, one by default; functions lowered from te stay.

    Raises:
        LoweringError: when it runs on a block with match_buffers, which are lowered before.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func if func.attrs.get("from_legacy_te_schedule") else func.with_body(_Flattener().stmt(func.body))

    return Pass("tir.FlattenBuffer", run)


def _product(values: tuple[PrimExpr, ...]) -> PrimExpr:
    total = values[0]
    for value in values[1:]:
        total = binary(Mul, total, value)
    return total


def flat_buffer(buffer: Buffer) -> Buffer:
    """The buffer over the same memory with one dimension for each physical axis."""
    # A bool in memory is a byte.
    dtype = "int8" if buffer.dtype == "bool" else buffer.dtype
    groups = _groups(buffer)
    if not buffer.shape or (len(groups) == buffer.ndim and not buffer.strides and dtype == buffer.dtype):
        return (
            buffer if buffer.shape and dtype == buffer.dtype else replace(buffer, dtype=dtype, shape=buffer.shape or (IntImm("int32", 1),))
        )
    if buffer.strides:  # what is spanned, padding of the outermost dimension included
        shape = tuple(binary(Mul, buffer.strides[group[0]], buffer.shape[group[0]]) for group in groups)
    else:
        shape = tuple(Analyzer().simplify(_product(tuple(buffer.shape[axis] for axis in group))) for group in groups)
    borders = tuple(IntImm("int32", at) for at in range(1, len(groups)))
    return replace(buffer, dtype=dtype, shape=shape, strides=(), buffer_type=Buffer.DEFAULT, axis_separators=borders)


def _groups(buffer: Buffer) -> list[list[int]]:
    """The dimensions that each physical axis holds."""
    borders = [as_int(at) or 0 for at in buffer.axis_separators]
    starts = [0, *borders]
    return [list(range(low, high)) for low, high in zip(starts, [*borders, buffer.ndim], strict=True)]


def flat_indices(buffer: Buffer, indices: tuple[PrimExpr, ...], analyzer: Analyzer) -> tuple[PrimExpr, ...]:
    """Where the element at `indices` stands in `flat_buffer(buffer)`."""
    if not indices:
        return (IntImm("int32", 0),)
    result = []
    for group in _groups(buffer):
        offset: PrimExpr | None = None
        for axis in group:
            if buffer.strides:
                term = binary(Mul, indices[axis], buffer.strides[axis])
                offset = term if offset is None else binary(Add, offset, term)
            else:
                offset = indices[axis] if offset is None else binary(Add, binary(Mul, offset, buffer.shape[axis]), indices[axis])
        result.append(analyzer.simplify(typing_cast(PrimExpr, offset)))
    return tuple(result)


class _Flattener:
    def __init__(self) -> None:
        self._flat: dict[Buffer, Buffer] = {}
        self._analyzer = Analyzer()

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._flat:
            self._flat[buffer] = flat_buffer(buffer)
        return self._flat[buffer]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with flat accesses."""
        match stmt:
            case BufferStore():
                return self._store(stmt)
            case Allocate():
                return self._allocate(stmt)
            case DeclBuffer():
                return self.stmt(stmt.body)
            case For():
                with inside_loop(self._analyzer, stmt):
                    return map_stmt(stmt, self.stmt, self.expr)
            case Block():
                return self._block(stmt)
        return map_stmt(stmt, self.stmt, self.expr)

    def _store(self, stmt: BufferStore) -> Stmt:
        buffer, value = self._buffer(stmt.buffer), self.expr(stmt.value)
        if buffer.dtype != stmt.buffer.dtype:
            value = cast(value, value.dtype.replace("bool", "int8"))
        indices = flat_indices(stmt.buffer, tuple(map(self.expr, stmt.indices)), self._analyzer)
        return BufferStore(buffer, value, indices, None if stmt.predicate is None else self.expr(stmt.predicate))

    def _allocate(self, stmt: Allocate) -> Stmt:
        """One extent, unless a buffer declared over it has several physical axes."""
        extents = tuple(map(self.expr, stmt.extents))
        inner = stmt.body
        declared = inner.buffer if isinstance(inner, DeclBuffer) and inner.buffer.data is stmt.buffer_var else None
        if declared is not None and len(_groups(declared)) > 1:
            extents = self._buffer(declared).shape
        elif len(extents) > 1:
            extents = (_product(extents),)
        dtype = "int8" if stmt.dtype == "bool" else stmt.dtype
        return replace(stmt, dtype=dtype, extents=extents, body=self.stmt(stmt.body))

    def _block(self, stmt: Block) -> Stmt:
        if stmt.match_buffers:
            raise LoweringError(f"block {stmt.name_hint!r} has match_buffers; LowerMatchBuffer comes before FlattenBuffer")
        buffers = tuple(map(self._buffer, stmt.alloc_buffers))
        reads, writes = (tuple(map(self._region, regions)) for regions in (stmt.reads, stmt.writes))
        init = None if stmt.init is None else self.stmt(stmt.init)
        return replace(stmt, alloc_buffers=buffers, reads=reads, writes=writes, init=init, body=self.stmt(stmt.body))

    def _region(self, region: BufferRegion) -> BufferRegion:
        """The box as the range from its first to its last element."""
        buffer = region.buffer
        if self._buffer(buffer) is buffer:
            return region
        one = IntImm("int32", 1)
        first = flat_indices(buffer, tuple(r.min for r in region.region), self._analyzer)
        ends = tuple(binary(Sub, binary(Add, r.min, r.extent), cast(one, r.min.dtype)) for r in region.region)
        last = flat_indices(buffer, ends, self._analyzer)
        ranges = [Range.from_min_extent(low, self._analyzer.simplify(high - low + 1)) for low, high in zip(first, last, strict=True)]
        return BufferRegion(self._buffer(buffer), tuple(ranges))

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The expression with flat loads."""
        if not isinstance(expr, BufferLoad):
            return map_expr(expr, self.expr)
        buffer = self._buffer(expr.buffer)
        indices = flat_indices(expr.buffer, tuple(map(self.expr, expr.indices)), self._analyzer)
        load = BufferLoad(buffer, indices, None if expr.predicate is None else self.expr(expr.predicate))
        return load if buffer.dtype == expr.buffer.dtype else cast(load, expr.dtype)
