"""The body of one VECTORIZED loop as vector code: what `VectorizeLoop` makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from ...errors import LoweringError
from ...tir.arithmetic import binary, convert
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype
from ...tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    IntImm,
    Let,
    LogicalExpr,
    Mul,
    Not,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
)  # fmt: skip
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import map_children, walk
from ...tir.stmt import Allocate, AssertStmt, AttrStmt, BufferStore, DeclBuffer, For, ForKind, IfThenElse, LetStmt, Stmt, While
from ...tir.stmt_functor import Renaming
from ..rebuild import map_stmt
from .lane_predicates import predicated
from .vector_lanes import is_vector, lane_count, to_lanes, widened

_ELEMENTWISE = ("float", "same", "predicate", "int")


class NoVectorFormError(Exception):
    """What is being rewritten has no vector form and runs lane by lane. Never seen by users."""


class VectorBody:
    """Rewrites statements and expressions of the body of `loop`.

    predicate: whether branches that differ between lanes become predicates of accesses where that is possible.
    """

    def __init__(self, loop: For, predicate: bool) -> None:
        self._loop = loop
        self._predicate = predicate
        lanes: Any = loop.extent.value if isinstance(loop.extent, IntImm) else loop.extent
        self._lanes = lanes
        self._ramp = Ramp(loop.min, IntImm(loop.loop_var.dtype, 1), lanes)
        # A walk replaces the loop's variable by 0, 1, 2, .. and lets lanes spread from there: what doesn't depend on it stays a scalar.
        self._vectors: dict[Var, PrimExpr] = {loop.loop_var: self._ramp}
        self._widened: dict[Var, Var] = {}
        self._slots: set[Var] = set()  # pointers of storage that every lane has its own of
        self._buffers: dict[Buffer, Buffer] = {}

    # Statements

    def outermost(self, body: Stmt) -> Stmt:
        """The whole body as vector code, or as serial loops where it has none."""
        if self._lanes == 1:
            return Renaming({self._loop.loop_var: self._loop.min}, folding=True).apply(body)
        return self.stmt(body)

    def stmt(self, stmt: Stmt) -> Stmt:
        """One statement; where it has no vector form, a serial loop around it."""
        try:
            return self._stmt(stmt)
        # The smallest statement around what has no form becomes the loop, so that its neighbours stay vectors.
        except NoVectorFormError:
            return self._scalar_loop(stmt)

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case BufferStore():
                return self._store(stmt)
            case For():
                return self._inner_loop(stmt)
            case IfThenElse():
                return self._branch(stmt)
            case LetStmt():
                value = self.expr(stmt.value)
                return LetStmt(self._defined(stmt.var, value), value, self.stmt(stmt.body))
            case Allocate():
                return self._allocate(stmt)
            case DeclBuffer() if stmt.buffer.data in self._slots:
                return DeclBuffer(self._private(stmt.buffer), self.stmt(stmt.body))
            case While():
                raise LoweringError(f"the loop over {self._loop.loop_var.name}: A while loop inside a vectorized loop not supported")
            case AttrStmt() | AssertStmt():
                value = stmt.value if isinstance(stmt, AttrStmt) else stmt.condition
                self._scalar_only(value)
                return map_stmt(stmt, self.stmt, self.expr)
        return map_stmt(stmt, self.stmt, self.expr)

    def _scalar_loop(self, stmt: Stmt) -> Stmt:
        var = Var(f"{self._loop.loop_var.name}_s", self._loop.loop_var.dtype)
        mapping: dict[Var, PrimExpr] = {self._loop.loop_var: var}
        # Renamed, as the statement may be walked once more where a loop around it falls back too.
        body = Renaming(mapping, folding=False).apply(stmt)
        return For(var, self._loop.min, self._loop.extent, ForKind.SERIAL, body)

    def _scalar_only(self, value: PrimExpr) -> PrimExpr:
        result = self.expr(value)
        if is_vector(result):
            raise NoVectorFormError(str(value))
        return result

    def _inner_loop(self, loop: For) -> Stmt:
        low, extent = self._scalar_only(loop.min), self._scalar_only(loop.extent)
        kind = ForKind.SERIAL if loop.kind is ForKind.VECTORIZED else loop.kind  # one level of lanes; TVM keeps it serial too
        return replace(loop, min=low, extent=extent, kind=kind, body=self.stmt(loop.body))

    def _branch(self, stmt: IfThenElse) -> Stmt:
        condition = self.expr(stmt.condition)
        if is_vector(condition):
            masked = predicated(self, stmt, condition, self._lanes) if self._predicate else None
            if masked is None:
                raise NoVectorFormError("a branch that differs between lanes")
            return masked
        other = None if stmt.else_case is None else self.stmt(stmt.else_case)
        return IfThenElse(condition, self.stmt(stmt.then_case), other)

    def _store(self, stmt: BufferStore) -> Stmt:
        buffer, indices = self._access(stmt.buffer, stmt.indices)
        value = self.expr(stmt.value)
        if buffer is stmt.buffer and value is stmt.value and all(a is b for a, b in zip(indices, stmt.indices, strict=True)):
            return stmt
        self._check_scalable(stmt, value)
        per_element, own = lane_count(buffer.dtype), lane_count(value.dtype)
        if not any(map(is_vector, indices)) and own not in (1, per_element):
            # The value differs by lane and the index doesn't: all lanes store to one element, as iterations of the loop did.
            indices = (*indices[:-1], to_lanes(indices[-1], self._ramp.lanes, self._ramp.dtype))
        wide = indices[_vector_axis(indices)]
        wanted = buffer.access_dtype(indices)
        if value.dtype != wanted:
            lanes = _lanes_of(wide, self._lanes)
            value = to_lanes(value, lanes if per_element == 1 else lanes * per_element, wanted)
        return BufferStore(buffer, value, indices, stmt.predicate)

    def _check_scalable(self, stmt: BufferStore, value: PrimExpr) -> None:
        """Lanes don't multiply where one of the factors is unknown."""
        if lane_count(stmt.buffer.dtype) < 0:
            raise LoweringError(f"buffer {stmt.buffer.name}: Vectorizing over scalable buffer elements is not supported in vectorizer.")
        before = [lane_count(index.dtype) for index in stmt.indices]
        if lane_count(self._ramp.dtype) < 0 and (max(before) > 1 or min(before) < 0):
            raise LoweringError(f"buffer {stmt.buffer.name}: Creating scalable vectors from existing vectors is not supported.")
        if min(before) < 0:
            raise LoweringError(f"buffer {stmt.buffer.name}: Vectorizing over existing scalable vectors is not supported.")

    def _allocate(self, stmt: Allocate) -> Stmt:
        """Storage inside the loop: one more dimension, the lane, which is the innermost."""
        for extent in (*stmt.extents, stmt.condition):
            self._scalar_only(extent)
        # Innermost, so that the same element of all lanes is one vector load.
        self._slots.add(stmt.buffer_var)
        extents = (*stmt.extents[:-1], binary(Mul, stmt.extents[-1], convert(self._loop.extent))) if stmt.extents else stmt.extents
        return replace(stmt, extents=extents, body=self.stmt(stmt.body))

    def _private(self, buffer: Buffer) -> Buffer:
        """The buffer over storage with a slot for each lane."""
        if buffer.data not in self._slots:
            return buffer
        if buffer not in self._buffers:
            shape = (*buffer.shape[:-1], binary(Mul, buffer.shape[-1], convert(self._loop.extent)))
            strides = tuple(binary(Mul, step, convert(self._loop.extent)) for step in buffer.strides)
            self._buffers[buffer] = replace(buffer, shape=shape, strides=strides)
        return self._buffers[buffer]

    def _access(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        if buffer.data in self._slots:
            last = binary(Add, binary(Mul, indices[-1], convert(self._loop.extent)), self._loop.loop_var)
            return self._private(buffer), tuple(map(self.expr, (*indices[:-1], last)))
        return buffer, tuple(map(self.expr, indices))

    # Expressions

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """A value: a vector if lanes differ, itself if nothing changes."""
        match expr:
            case Var():
                return self._vectors.get(expr, self._widened.get(expr, expr))
            case Add() | Sub():
                return self._sum(expr)
            case Mul():
                return self._product(expr)
            case BinaryExpr() | CmpExpr() | LogicalExpr():
                return self._lanewise(expr, [expr.a, expr.b], lambda new: type(expr)(new[0], new[1]))
            case Not():
                return self._lanewise(expr, [expr.a], lambda new: Not(new[0]))
            case Select():
                parts = [expr.condition, expr.true_value, expr.false_value]
                return self._lanewise(expr, parts, lambda new: Select(new[0], new[1], new[2]))
            case Cast():
                value = self.expr(expr.value)
                return expr if value is expr.value else Cast(widened(expr.dtype, value.dtype), value)
            case Ramp():
                return self._nested_ramp(expr)
            case Broadcast():
                value = self.expr(expr.value)
                if is_vector(value) and value is not expr.value:
                    raise NoVectorFormError("a vector of vectors")
                return expr if value is expr.value else Broadcast(value, expr.lanes)
            case BufferLoad():
                return self._load(expr)
            case Call():
                return self._call(expr)
            case Let():
                value = self.expr(expr.value)
                return Let(self._defined(expr.var, value), value, self.expr(expr.body))
        return map_children(expr, lambda node: self.expr(cast(PrimExpr, node)))

    def _defined(self, var: Var, value: PrimExpr) -> Var:
        """What a variable that stands for `value` is called from here on."""
        if value.dtype == var.dtype:
            return var
        self._widened[var] = wide = Var(var.name, value.dtype)
        return wide

    def _lanewise(self, expr: PrimExpr, parts: list[PrimExpr], make: Callable[[list[PrimExpr]], PrimExpr]) -> PrimExpr:
        new = [self.expr(part) for part in parts]
        if all(a is b for a, b in zip(new, parts, strict=True)):
            return expr
        return make(self._same_lanes(new))

    def _same_lanes(self, values: list[PrimExpr]) -> list[PrimExpr]:
        wide = next((value for value in values if is_vector(value)), None)
        if wide is None:
            return values
        wide = max(values, key=lambda value: abs(lane_count(value.dtype)))
        lanes = _lanes_of(wide, self._lanes)
        return [to_lanes(value, lanes, wide.dtype) for value in values]

    def _sum(self, expr: Add | Sub) -> PrimExpr:
        a, b = self.expr(expr.a), self.expr(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        op = type(expr)
        if not is_vector(a) and isinstance(b, Ramp):
            # Ramps are kept as such through sums and products: a load at base + stride * lane with stride 1 is one instruction, a vector of
            # any indices a gather.
            stride = b.stride if op is Add else binary(Sub, IntImm(b.stride.dtype, 0), b.stride)
            return Ramp(binary(op, a, b.base), stride, b.lanes)
        if isinstance(a, Ramp) and not is_vector(b):
            return Ramp(binary(op, a.base, b), a.stride, a.lanes)
        return _folded(op, *self._same_lanes([a, b]))

    def _product(self, expr: Mul) -> PrimExpr:
        a, b = self.expr(expr.a), self.expr(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        for ramp, factor in ((b, a), (a, b)):
            # A product of 0, or a sign that isn't known, would be a ramp that goes nowhere or backwards, which accesses don't expect.
            if isinstance(ramp, Ramp) and not is_vector(factor) and _positive(factor):
                return Ramp(binary(Mul, ramp.base, factor), binary(Mul, ramp.stride, factor), ramp.lanes)
        return _folded(Mul, *self._same_lanes([a, b]))

    def _nested_ramp(self, expr: Ramp) -> PrimExpr:
        base, stride = self.expr(expr.base), self.expr(expr.stride)
        if base is expr.base and stride is expr.stride:
            return expr
        if (lane_count(expr.dtype) < 0 or lane_count(base.dtype) < 0) and is_vector(base):
            known = lane_count(expr.dtype) < 0 and lane_count(self._ramp.dtype) > 0
            what = "Vectorizing over existing scalable vectors" if known else "Creating scalable vectors from existing vectors"
            raise LoweringError(f"{expr}: {what} is not supported.")
        if is_vector(base) and not is_vector(stride) and isinstance(base, Ramp):
            step, inner = base.stride, expr.stride
            # Lanes of 4 neighbours each, 4 apart, are one long ramp.
            if isinstance(step, IntImm) and isinstance(inner, IntImm) and step.value == inner.value * expr.lanes:
                return Ramp(base.base, stride, expr.lanes * base.lanes)
        if is_vector(base) or is_vector(stride):
            raise NoVectorFormError("a ramp of ramps")
        return Ramp(base, stride, expr.lanes)

    def _load(self, load: BufferLoad) -> PrimExpr:
        buffer, indices = self._access(load.buffer, load.indices)
        if buffer is load.buffer and all(a is b for a, b in zip(indices, load.indices, strict=True)):
            return load
        _vector_axis(indices)
        return BufferLoad(buffer, indices, load.predicate)

    def _call(self, call: Call) -> PrimExpr:
        if call.op == "tir.if_then_else":
            # An if_then_else may guard a read out of bounds: both arms are evaluated in a vector, so its condition has to be the same in
            # all lanes.
            condition = self._scalar_only(call.args[0])
            arms = [self.expr(arm) for arm in call.args[1:]]
            if condition is call.args[0] and all(a is b for a, b in zip(arms, call.args[1:], strict=True)):
                return call
            arms = self._same_lanes(arms)
            return Call(arms[0].dtype, call.op, (condition, *arms))
        # The first argument of these is the number of LLVM's intrinsic, which has no lanes.
        first = 1 if call.op in ("tir.call_llvm_pure_intrin", "tir.call_llvm_intrin") else 0
        kept, parts = call.args[:first], list(call.args[first:])
        new = [self.expr(part) for part in parts]
        if all(a is b for a, b in zip(new, parts, strict=True)):
            return call
        if not any(map(is_vector, new)):
            return Call(call.dtype, call.op, (*kept, *new))
        if not _vectorizable(call.op):
            raise NoVectorFormError(f"a call of {call.op}")
        new = self._same_lanes(new)
        return Call(widened(call.dtype, new[0].dtype), call.op, (*kept, *new))


def _vector_axis(indices: tuple[PrimExpr, ...]) -> int:
    """The number of the one index that has lanes, or of the last one if none has."""
    wide = [axis for axis, index in enumerate(indices) if is_vector(index)]
    if len(wide) > 1:
        raise NoVectorFormError("lanes along several dimensions")
    return wide[0] if wide else -1


def _vectorizable(op: str) -> bool:
    row = INTRINSICS.get(op)
    special = ("tir.reinterpret", "tir.likely", "tir.call_llvm_pure_intrin")
    return op in special or (row is not None and row.kind in _ELEMENTWISE)


def _positive(expr: PrimExpr) -> bool:
    if isinstance(expr, IntImm):
        return expr.value > 0
    calls = [node for node in walk(expr) if isinstance(node, (Call, Var))]
    return bool(calls) and all(isinstance(node, Call) and node.op == "tir.vscale" for node in calls)


def _folded(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """`op` of vectors, of scalars where both repeat one."""
    if isinstance(a, Broadcast) and isinstance(b, Broadcast) and a.dtype == b.dtype and parse_dtype(a.dtype).is_int:
        return Broadcast(binary(op, a.value, b.value), a.lanes)
    return op(a, b)


def _lanes_of(value: PrimExpr, default: Any) -> Any:
    if isinstance(value, (Ramp, Broadcast)):
        return value.lanes
    lanes = lane_count(value.dtype)
    return lanes if lanes > 0 else default
