"""Arithmetic on small floats as arithmetic on wider ones; what is stored outside of the function keeps its type.

C[i] = A[i] + B[i]  with e4m3_float8 everywhere  ->  C: float32, C[i] = widened(A[i]) + widened(B[i])
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast as typing_cast

from ...tir.arithmetic import cast
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import (
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    FloatImm,
    Let,
    PrimExpr,
    Select,
    Shuffle,
    Var,
)  # fmt: skip
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import Allocate, BufferStore, DeclBuffer, LetStmt, Stmt
from ..rebuild import map_expr, map_stmt, pointer_like, pointer_scope, walk_statements
from .small_floats import reinterpreted, rounded_bits, widened

_KEEPS_BITS = ("tir.reinterpret", "tir.address_of", "tir.tvm_access_ptr")


def compute_legalize(func: PrimFunc, names: tuple[str, ...], wide: str) -> PrimFunc:
    """`func` with arithmetic on the types `names` done in `wide`; itself if it has none."""
    return func.with_body(_Legalizer(func.body, names, wide).stmt(func.body))


class _Legalizer:
    def __init__(self, body: Stmt, names: tuple[str, ...], wide: str) -> None:
        self._names, self._wide = names, wide
        # Who gets a pointer expects elements of the declared type: only memory that nobody else sees is widened.
        opaque = {node for node in _pointers(body)}
        inside = (s for s in walk_statements(body) if isinstance(s, Allocate) and self._small(s.dtype))
        self._pointers = {
            s.buffer_var: pointer_like(s.buffer_var, pointer_scope(s.buffer_var), self._widened(s.dtype))
            for s in inside
            if s.buffer_var not in opaque
        }
        self._buffers: dict[Buffer, Buffer] = {}
        self._vars: dict[Var, Var] = {}

    def _small(self, dtype: str) -> bool:
        return str(parse_dtype(dtype).scalar) in self._names

    def _widened(self, dtype: str) -> str:
        return with_lanes(self._wide, parse_dtype(dtype).lanes)

    def _buffer(self, buffer: Buffer) -> Buffer:
        data = self._pointers.get(buffer.data)
        if data is None:
            return buffer
        if buffer not in self._buffers:
            self._buffers[buffer] = replace(buffer, data=data, dtype=self._widened(buffer.dtype))
        return self._buffers[buffer]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with wide arithmetic."""
        match stmt:
            case Allocate() if stmt.buffer_var in self._pointers:
                data = self._pointers[stmt.buffer_var]
                return replace(
                    typing_cast(Allocate, map_stmt(stmt, self.stmt, self.expr)), buffer_var=data, dtype=self._widened(stmt.dtype)
                )
            case DeclBuffer():
                buffer, body = self._buffer(stmt.buffer), self.stmt(stmt.body)
                return stmt if buffer is stmt.buffer and body is stmt.body else DeclBuffer(buffer, body)
            case BufferStore():
                return self._store(stmt)
            case LetStmt() if self._small(stmt.var.dtype):
                value = self._wide_value(stmt.value)
                self._vars[stmt.var] = var = Var(stmt.var.name, value.dtype)
                return LetStmt(var, value, self.stmt(stmt.body))
        return map_stmt(stmt, self.stmt, self.expr)

    def _store(self, stmt: BufferStore) -> Stmt:
        buffer = self._buffer(stmt.buffer)
        indices = tuple(map(self.expr, stmt.indices))
        predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
        value = self.expr(stmt.value)
        if buffer is not stmt.buffer:
            value = self._wide_value(stmt.value)
        elif self._small(stmt.value.dtype) and value.dtype != stmt.value.dtype:
            value = self._narrowed(value, stmt.value.dtype)
        same = value is stmt.value and buffer is stmt.buffer and all(a is b for a, b in zip(indices, stmt.indices, strict=True))
        return stmt if same and predicate is stmt.predicate else BufferStore(buffer, value, indices, predicate)

    def _wide_value(self, expr: PrimExpr) -> PrimExpr:
        """The value as a wide number."""
        value = self.expr(expr)
        return widened(value, self._wide) if self._small(value.dtype) else value

    def _narrowed(self, value: PrimExpr, dtype: str) -> PrimExpr:
        name = str(parse_dtype(dtype).scalar)
        return reinterpreted(name, rounded_bits(value, name))

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The value: wide where it was computed, as it was where it was loaded or reinterpreted."""
        match expr:
            case Var():
                return self._vars.get(expr, expr)
            case FloatImm() if self._small(expr.dtype):
                return FloatImm(self._wide, float(expr))
            case BufferLoad():
                load = typing_cast(BufferLoad, map_expr(expr, self.expr))
                buffer = self._buffer(expr.buffer)
                return load if buffer is expr.buffer else BufferLoad(buffer, load.indices, load.predicate)
            case BinaryExpr() | CmpExpr() if self._small(expr.a.dtype):
                return type(expr)(self._wide_value(expr.a), self._wide_value(expr.b))
            case Select() if self._small(expr.dtype):
                return Select(self.expr(expr.condition), self._wide_value(expr.true_value), self._wide_value(expr.false_value))
            case Broadcast() if self._small(expr.dtype):
                return Broadcast(self._wide_value(expr.value), expr.lanes)
            case Shuffle() if self._small(expr.dtype):
                return Shuffle(tuple(map(self._wide_value, expr.vectors)), expr.indices)
            case Let() if self._small(expr.var.dtype):
                value = self._wide_value(expr.value)
                self._vars[expr.var] = var = Var(expr.var.name, value.dtype)
                return Let(var, value, self.expr(expr.body))
            case Cast():
                return self._cast(expr)
            case Call() if expr.op not in _KEEPS_BITS and any(self._small(e.dtype) for e in (expr, *expr.args)):
                args = tuple(self._wide_value(arg) if self._small(arg.dtype) else self.expr(arg) for arg in expr.args)
                return Call(self._widened(expr.dtype) if self._small(expr.dtype) else expr.dtype, expr.op, args)
        return map_expr(expr, self.expr)

    def _cast(self, expr: Cast) -> PrimExpr:
        from_small, to_small = self._small(expr.value.dtype), self._small(expr.dtype)
        if not from_small and not to_small:
            return map_expr(expr, self.expr)
        value = self._wide_value(expr.value) if from_small else self.expr(expr.value)
        return cast(value, self._widened(expr.dtype) if to_small else expr.dtype)


def _pointers(body: Stmt) -> list[Var]:
    """Pointers that are used as such: passed to calls, or let."""
    found: list[Var] = []
    for node in walk(body):
        if isinstance(node, Call):
            found += [arg for arg in node.args if isinstance(arg, Var) and parse_dtype(arg.dtype).code == "handle"]
        elif isinstance(node, LetStmt) and isinstance(node.value, Var):
            found.append(node.value)
    return found
