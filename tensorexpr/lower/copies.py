"""Buffers that hold several copies of what one buffer held, one after the other, and the way into one of them."""

from __future__ import annotations

from dataclasses import replace

from ..tir.arithmetic import binary, cast
from ..tir.buffer import Buffer
from ..tir.expr import Add, BufferLoad, Call, IntImm, Mul, PrimExpr, Var
from ..tir.stmt import Allocate, BufferStore, Evaluate, Stmt, is_no_op
from .lanes import lane_binary, lane_cast
from .rebuild import map_expr, map_stmt, operands, own_expressions, walk_statements

_INT32_ELEMENTS = (1 << 31) - 1


def allocated(stmt: Stmt) -> set[Var]:
    """What is allocated in a statement."""
    return {inner.buffer_var for inner in walk_statements(stmt) if isinstance(inner, Allocate)}


def has_pointers(stmt: Stmt, memory: set[Var]) -> bool:
    """True if some of this memory is used other than by loads, stores and pointers to a part of it, which alone can be redirected."""
    seen: set[PrimExpr] = set()
    stack = [expr for inner in walk_statements(stmt) for expr in own_expressions(inner)] if memory else []
    while stack:
        expr = stack.pop()
        if isinstance(expr, Var) and expr in memory:
            return True
        if expr not in seen:
            seen.add(expr)
            stack.extend(expr.args[2:] if isinstance(expr, Call) and _pointed_at(expr) is not None else operands(expr))
    return False


def _pointed_at(call: Call) -> Var | None:
    """The allocation to some elements of which a call points."""
    data = call.args[1] if call.op == "tir.tvm_access_ptr" else None
    return data if isinstance(data, Var) else None


def has_effect(stmt: Stmt) -> bool:
    """True for the evaluation of what may do more than hint at memory that will be read."""
    hint = isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.prefetch"
    return isinstance(stmt, Evaluate) and not hint and not is_no_op(stmt)


class Copies:
    """The allocations that have `count` copies now. Accesses are flat."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._sizes: dict[Var, PrimExpr] = {}
        self._buffers: dict[Buffer, Buffer] = {}

    def __contains__(self, data: Var) -> bool:
        return data in self._sizes

    def multiplied(self, stmt: Allocate) -> Allocate:
        """The allocation with room for all copies; from now on its accesses can be redirected."""
        self._sizes[stmt.buffer_var] = stmt.extents[0]
        return replace(stmt, extents=(self._times(stmt.extents[0], IntImm("int32", self.count)),))

    def redirected(self, stmt: Stmt, which: PrimExpr) -> Stmt:
        """`stmt` with every access going to copy number `which`."""
        known: dict[PrimExpr, PrimExpr] = {}

        def on_expr(expr: PrimExpr) -> PrimExpr:
            found = known.get(expr)
            if found is None:
                found = map_expr(expr, on_expr)
                if isinstance(found, BufferLoad) and found.buffer.data in self._sizes:
                    index = self._index(found.buffer.data, found.indices[0], which)
                    found = BufferLoad(self._buffer(found.buffer), (index,), found.predicate)
                elif isinstance(found, Call) and (data := _pointed_at(found)) in self._sizes and data is not None:
                    found = replace(found, args=(*found.args[:2], self._index(data, found.args[2], which), *found.args[3:]))
                known[expr] = found
            return found

        def on_stmt(inner: Stmt) -> Stmt:
            if not isinstance(inner, BufferStore) or inner.buffer.data not in self._sizes:
                return map_stmt(inner, on_stmt, on_expr)
            predicate = None if inner.predicate is None else on_expr(inner.predicate)
            index = self._index(inner.buffer.data, on_expr(inner.indices[0]), which)
            return BufferStore(self._buffer(inner.buffer), on_expr(inner.value), (index,), predicate)

        return on_stmt(stmt)

    def _buffer(self, buffer: Buffer) -> Buffer:
        """The flat buffer of all copies."""
        if buffer not in self._buffers:
            total = self._times(self._sizes[buffer.data], IntImm("int32", self.count))
            self._buffers[buffer] = replace(buffer, shape=(total,))
        return self._buffers[buffer]

    def _index(self, data: Var, index: PrimExpr, which: PrimExpr) -> PrimExpr:
        offset = self._times(self._sizes[data], which)
        if offset.dtype == "int64" and not index.dtype.startswith("int64"):
            index = lane_cast(index, "int64")
        return lane_binary(Add, index, cast(offset, "int64" if index.dtype.startswith("int64") else "int32"))

    def _times(self, size: PrimExpr, number: PrimExpr) -> PrimExpr:
        # All copies together may need wider indices than one.
        small = isinstance(size, IntImm) and size.value * self.count <= _INT32_ELEMENTS
        dtype = "int32" if small else "int64"
        return binary(Mul, cast(number, dtype), cast(size, dtype))
