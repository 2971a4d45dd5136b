"""Small floats in memory as the integers that hold them: after their arithmetic has become that of wider types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from typing import cast as typing_cast

from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import BufferLoad, Call, PointerType, PrimExpr, PrimType, Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, BufferStore, DeclBuffer, LetStmt, Stmt
from ..rebuild import map_expr, map_stmt
from .small_floats import FORMATS, reinterpreted


def storage_legalize(func: PrimFunc, names: tuple[str, ...]) -> PrimFunc:
    """`func` with memory, pointers and variables of the types `names` as integers; itself if it has none."""
    return _Legalizer(names).function(func)


class _Legalizer:
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._vars: dict[Var, Var] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def function(self, func: PrimFunc) -> PrimFunc:
        """A function, its parameters included."""
        params = tuple(map(self._var, func.params))
        buffers = {self._var(param): self._buffer(buffer) for param, buffer in func.buffer_map.items()}
        body = self.stmt(func.body)
        changed = any(a is not b for a, b in zip(params, func.params, strict=True)) or list(buffers.values()) != list(
            func.buffer_map.values()
        )
        return replace(func, params=params, buffer_map=buffers, body=body) if changed or body is not func.body else func

    def _dtype(self, dtype: str) -> str:
        parsed = parse_dtype(dtype)
        name = str(parsed.scalar)
        return with_lanes(FORMATS[name].storage, parsed.lanes) if name in self._names else dtype

    def _var(self, var: Var) -> Var:
        if var not in self._vars:
            note: Any = var.type_annotation
            dtype = self._dtype(var.dtype)
            if isinstance(note, PointerType) and isinstance(note.element_type, PrimType):
                inner = self._dtype(note.element_type.dtype)
                note = note if inner == note.element_type.dtype else PointerType(PrimType(inner), note.storage_scope)
            same = note is var.type_annotation and dtype == var.dtype
            self._vars[var] = var if same else type(var)(var.name, dtype, note)
        return self._vars[var]

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._buffers:
            data, dtype = self._var(buffer.data), self._dtype(buffer.dtype)
            same = data is buffer.data and dtype == buffer.dtype
            self._buffers[buffer] = buffer if same else replace(buffer, data=data, dtype=dtype)
        return self._buffers[buffer]

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with integers in memory."""
        match stmt:
            case Allocate():
                mapped = typing_cast(Allocate, map_stmt(stmt, self.stmt, self.expr))
                data, dtype = self._var(stmt.buffer_var), self._dtype(stmt.dtype)
                return mapped if data is stmt.buffer_var and dtype == stmt.dtype else replace(mapped, buffer_var=data, dtype=dtype)
            case DeclBuffer():
                buffer, body = self._buffer(stmt.buffer), self.stmt(stmt.body)
                return stmt if buffer is stmt.buffer and body is stmt.body else DeclBuffer(buffer, body)
            case LetStmt():
                return LetStmt(self._var(stmt.var), self.expr(stmt.value), self.stmt(stmt.body))
            case BufferStore():
                buffer, value = self._buffer(stmt.buffer), self.expr(stmt.value)
                if buffer.dtype != stmt.buffer.dtype:
                    value = reinterpreted(str(parse_dtype(buffer.dtype).scalar), value)
                predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
                return BufferStore(buffer, value, tuple(map(self.expr, stmt.indices)), predicate)
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The value; one of a small type is the integer that holds it."""
        if isinstance(expr, Var):
            return self._vars.get(expr, expr) if expr.dtype != "handle" else self._var(expr)
        if isinstance(expr, BufferLoad):
            load = typing_cast(BufferLoad, map_expr(expr, self.expr))
            buffer = self._buffer(expr.buffer)
            return load if buffer is expr.buffer else BufferLoad(buffer, load.indices, load.predicate)
        if isinstance(expr, Call) and expr.op == "tir.reinterpret":
            return reinterpreted(str(parse_dtype(self._dtype(expr.dtype)).scalar), self.expr(expr.args[0]))
        if isinstance(expr, Call) and self._dtype(expr.dtype) != expr.dtype:
            return Call(self._dtype(expr.dtype), expr.op, tuple(map(self.expr, expr.args)))
        return map_expr(expr, self.expr)
