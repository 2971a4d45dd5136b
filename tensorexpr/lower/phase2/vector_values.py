"""Vector forms of expressions: what `vectorize_loop` computes values and indices with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import cast

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import binary, const, logical_not
from ...tir.arithmetic import cast as convert_to
from ...tir.buffer import Buffer
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import (
    Add,
    And,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    LogicalExpr,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Select,
    Sub,
    Var,
)  # fmt: skip
from ...tir.intrin import INTRINSICS, if_then_else
from ...tir.stmt import For
from ..lanes import broadcast, lane_binary, lane_compare, lanes_of, ramp_binary
from ..rebuild import FreeVars, operands
from ..scopes import under_conditions
from .lane_masks import Mask, Masks

_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)
_ELEMENTWISE_KINDS = ("float", "same", "predicate", "int")


class NoVectorFormError(Exception):
    """A statement or expression without vector form; it is then run lane by lane. Never seen by users."""


class VectorValues:
    """The values of one vector loop.

    given: the arrays of the call, all elements of which are there from the start.
    """

    def __init__(self, loop: For, analyzer: Analyzer, given: frozenset[Var]) -> None:
        self._given = given
        self.lanes = cast(IntImm, loop.extent).value
        self._loop, self._analyzer = loop, analyzer
        # From `min` on, not from 0: the body is written in terms of the variable's own values.
        self._vectors: dict[Var, PrimExpr] = {loop.loop_var: Ramp(loop.min, IntImm(loop.min.dtype, 1), self.lanes)}
        self._private: dict[Var, int] = {}
        self._private_buffers: dict[Buffer, Buffer] = {}
        self._varying = {loop.loop_var}
        self._memo: dict[tuple[PrimExpr, Mask | None], PrimExpr] = {}
        self.masks = Masks(loop, self.lanes, analyzer, FreeVars(), self._varying)
        self.varies = self.masks.varies

    def define(self, var: Var, vector: Var) -> None:
        """`var` stands for a different value in each lane: `vector`."""
        self._vectors[var] = vector
        self._varying.add(var)

    def make_private(self, data: Var, size: int) -> None:
        """Each lane has its own elements behind `data`: element e of lane l is at e * lanes + l."""
        self._private[data] = size
        self._varying.add(data)

    def private(self, buffer: Buffer) -> Buffer | None:
        """The buffer that holds the lanes' private copies of `buffer`, if there are any."""
        size = self._private.get(buffer.data)
        if size is None:
            return None
        if buffer not in self._private_buffers:
            self._private_buffers[buffer] = replace(buffer, shape=(IntImm("int32", size * self.lanes),))
        return self._private_buffers[buffer]

    def index(self, buffer: Buffer, index: PrimExpr, mask: Mask | None) -> PrimExpr:
        """The vector of element numbers for an access to `buffer` at `index`."""
        vector = broadcast(self.expr(index, mask), self.lanes)
        if buffer.data not in self._private:
            return vector
        spread = ramp_binary(Mul, vector, IntImm(index.dtype, self.lanes))
        # Lanes innermost: one element of all lanes is a contiguous vector.
        return ramp_binary(Add, spread, Ramp(IntImm(index.dtype, 0), IntImm(index.dtype, 1), self.lanes))

    def expr(self, expr: PrimExpr, mask: Mask | None) -> PrimExpr:
        """`expr` as a vector if lanes differ, else the scalar; loads leave the lanes outside `mask` alone."""
        # Under another mask the same load is another load.
        key = (expr, mask)
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self._vector(expr, mask) if self.varies(expr) else self._scalar(expr, mask)
        return known

    def _scalar(self, expr: PrimExpr, mask: Mask | None) -> PrimExpr:
        """A value that all lanes share, computed only if some lane runs when computing it could do harm."""
        if mask is None or not self._may_trap(expr):
            return expr
        some = self.masks.some_lane(mask)
        if some is None:  # lane by lane, so that each load carries the mask
            return self._vector(expr, mask)
        return if_then_else(some, expr, const(0, expr.dtype))

    def _may_trap(self, expr: PrimExpr, is_there: Callable[[BufferLoad], bool] = lambda load: False) -> bool:
        """Whether computing it where no lane asks for it could do harm, but for loads of elements that are there."""
        if isinstance(expr, BufferLoad) and not is_there(expr):
            return True
        if isinstance(expr, _DIVISIONS) and _unsafe_divisor(expr):
            return True
        return any(self._may_trap(operand, is_there) for operand in operands(expr))

    def _vector(self, expr: PrimExpr, mask: Mask | None) -> PrimExpr:
        match expr:
            case Var():
                return self._vectors.get(expr, expr)
            case IntImm():
                return expr
            case BufferLoad():
                return self._load(expr, mask)
            case BinaryExpr():
                return self._binary(expr, mask)
            case CmpExpr():
                return lane_compare(type(expr), self.expr(expr.a, mask), self.expr(expr.b, mask))
            case LogicalExpr():
                return self._logical(expr, mask)
            case Not():
                return logical_not(self.expr(expr.a, mask))
            case Cast():
                return self._cast(expr, mask)
            case Select():
                arms = [broadcast(self.expr(arm, mask), self.lanes) for arm in (expr.true_value, expr.false_value)]
                return _chosen(self.expr(expr.condition, mask), arms[0], arms[1])
            case Call():
                return self._call(expr, mask)
            case Let():
                return self._let(expr, mask)
        raise NoVectorFormError(f"a {type(expr).__name__} that differs between lanes")

    def _load(self, load: BufferLoad, mask: Mask | None) -> PrimExpr:
        if load.predicate is not None or len(load.indices) != 1 or lanes_of(load) > 1:
            raise NoVectorFormError("a load that is a vector already")
        buffer = self.private(load.buffer) or load.buffer
        # What all lanes load anyway isn't loaded again under a mask: nobody looks at the lanes that don't run.
        if mask is not None and (load, None) in self._memo and self._is_inside(load):
            return self._memo[load, None]
        index = self.index(load.buffer, load.indices[0], mask)
        # One load for all lanes. With a mask, maybe no lane runs, and then the element needn't exist.
        if isinstance(index, Broadcast) and mask is None:
            return Broadcast(BufferLoad(buffer, (index.value,)), self.lanes)
        return BufferLoad(buffer, (index,), None if mask is None else broadcast(mask.vector, self.lanes))

    def _is_inside(self, load: BufferLoad, mask: Mask | None = None) -> bool:
        """Whether the element is there in every iteration that comes here, in all lanes or those of a mask."""
        known = self._analyzer.known_true  # nothing is kept: further out less is known
        with under_conditions(self._analyzer, [self._loop] if mask is None else [self._loop, mask.scalar]):
            return load.predicate is None and all(
                known(index >= 0) and known(index < convert_to(extent, index.dtype))
                for index, extent in zip(load.indices, load.buffer.shape, strict=True)
            )

    def _is_given(self, load: BufferLoad, mask: Mask | None) -> bool:
        """Whether an element is there in the lanes of a mask, and has a value: in arrays of the function a choice may tell which have."""
        return load.buffer.data in self._given and self._is_inside(load, mask)

    def _binary(self, expr: BinaryExpr, mask: Mask | None) -> PrimExpr:
        a, b = self.expr(expr.a, mask), self.expr(expr.b, mask)
        if mask is not None and isinstance(expr, _DIVISIONS) and _unsafe_divisor(expr):
            # A lane that doesn't run may divide by 0, which traps even if nobody looks at the quotient.
            b = Select(mask.vector, broadcast(b, self.lanes), const(1, with_lanes(b.dtype, self.lanes)))
        if isinstance(expr, (FloorDiv, FloorMod)) and isinstance(a, Ramp) and isinstance(b, IntImm):
            whole = self._block(expr, a, b)
            if whole is not None:
                return whole
        return lane_binary(type(expr), a, b)

    def _block(self, expr: BinaryExpr, a: Ramp, b: IntImm) -> PrimExpr | None:
        """Lanes that lie in one block of b elements: one quotient, and remainders that count up.

        The base is r modulo g, a divisor of b; r + (lanes-1)*stride < g keeps all lanes between two multiples of g. Or the loops around
        keep them there: (j * 32 + lane) % 423 with j < 13 is j * 32 + lane.
        """
        if not isinstance(a.stride, IntImm) or a.stride.value < 0 or b.value <= 0:
            return None
        bound = self._analyzer.const_int_bound(a.base)
        number = bound.min_value // b.value
        if number == (bound.max_value + (self.lanes - 1) * a.stride.value) // b.value:
            if isinstance(expr, FloorDiv):
                return Broadcast(IntImm(b.dtype, number), self.lanes)
            return Ramp(binary(Sub, a.base, IntImm(b.dtype, number * b.value)), a.stride, self.lanes)
        known = self._analyzer.modular_set(a.base)
        period = gcd(known.coeff, b.value)
        if known.base % period + (self.lanes - 1) * a.stride.value >= period:
            return None
        first = binary(type(expr), a.base, b)
        return Broadcast(first, self.lanes) if isinstance(expr, FloorDiv) else Ramp(first, a.stride, self.lanes)

    def _logical(self, expr: LogicalExpr, mask: Mask | None) -> PrimExpr:
        """And, Or: the right side's loads happen in the lanes that need it, or in all where that does no harm; see `_arm`."""
        a = self.expr(expr.a, mask)
        if isinstance(a, IntImm) or (isinstance(a, Broadcast) and isinstance(a.value, IntImm)):
            constant = a if isinstance(a, IntImm) else a.value
            decides = bool(cast(IntImm, constant).value) is isinstance(expr, Or)
            # false and b is false, true and b is b; mirrored for or.
            return a if decides else self.expr(expr.b, mask)
        inner, conjunction, may_trap = mask, isinstance(expr, And), self._may_trap(expr.b)
        harms = may_trap and self._may_trap(expr.b, lambda load: self._is_given(load, mask))
        if harms and lanes_of(a) == 1:
            # n > 3 and A[i] > 0: one decision for all lanes, so a call that stays lazy, or A would be read whatever n is.
            scalar = a.value if isinstance(a, Broadcast) else a
            other = broadcast(self.expr(expr.b, mask), self.lanes)
            decided = broadcast(const(int(not conjunction), "bool"), self.lanes)
            return if_then_else(scalar, other, decided) if conjunction else if_then_else(scalar, decided, other)
        if harms and self._may_trap(expr.b, lambda load: self._is_inside(load) or self._is_given(load, mask)):
            inner = self.masks.narrowed(mask, expr.a if conjunction else ~expr.a, a if conjunction else logical_not(a))
        # Both sides are computed in all lanes; the mask keeps the right one's loads to those that need them.
        sides = broadcast(a, self.lanes), broadcast(self.expr(expr.b, inner), self.lanes)
        if may_trap and not harms:  # bits: `and` is code that asks whether any lane needs what it loads
            return Call(sides[0].dtype, "tir.bitwise_and" if conjunction else "tir.bitwise_or", sides)
        return cast(PrimExpr, type(expr)(*sides))

    def _cast(self, expr: Cast, mask: Mask | None) -> PrimExpr:
        value = self.expr(expr.value, mask)
        wanted = parse_dtype(expr.dtype)
        # Indices don't wrap in 32 bits; in 8 they may: 100, 150, 200 as int8 have no common stride.
        if isinstance(value, Ramp) and wanted.code == "int" and wanted.bits >= 32:
            return Ramp(convert_to(value.base, expr.dtype), convert_to(value.stride, expr.dtype), self.lanes)
        return convert_to(value, with_lanes(expr.dtype, self.lanes))

    def _call(self, call: Call, mask: Mask | None) -> PrimExpr:
        if call.op == "tir.likely":
            return self.expr(call.args[0], mask)
        if call.op == "tir.if_then_else":
            return self._lazy(call, mask)
        row = INTRINSICS.get(call.op)
        if row is None or (row.kind not in _ELEMENTWISE_KINDS and call.op != "tir.reinterpret"):
            raise NoVectorFormError(f"a call of {call.op}")
        # No mask: these work lane by lane and can't trap, and nobody looks at what the other lanes give.
        args = tuple(broadcast(self.expr(arg, mask), self.lanes) for arg in call.args)
        return Call(with_lanes(call.dtype, self.lanes), call.op, args)

    def _lazy(self, call: Call, mask: Mask | None) -> PrimExpr:
        """if_then_else: the loads of an arm happen in the lanes that take it."""
        condition, true_value, false_value = call.args
        chosen = self.expr(condition, mask)
        chosen = chosen.value if isinstance(chosen, Broadcast) else chosen
        if isinstance(chosen, IntImm):
            return self.expr(true_value if chosen.value else false_value, mask)
        if lanes_of(chosen) == 1:
            # The call stays lazy where all lanes choose alike: the arm that isn't taken needs no mask.
            arms = [broadcast(self.expr(arm, mask), self.lanes) for arm in (true_value, false_value)]
            return if_then_else(chosen, arms[0], arms[1])
        taken = self._arm(true_value, mask, condition, chosen)
        other = self._arm(false_value, mask, ~condition, logical_not(chosen))
        return Select(chosen, broadcast(taken, self.lanes), broadcast(other, self.lanes))

    def _arm(self, arm: PrimExpr, mask: Mask | None, condition: PrimExpr, vector: PrimExpr) -> PrimExpr:
        """An arm for the lanes that take it, or for all lanes of the mask where that does no harm: masks cost more than loads."""
        harms = self._may_trap(arm, lambda load: self._is_given(load, mask))
        return self.expr(arm, self.masks.narrowed(mask, condition, vector) if harms else mask)

    def _let(self, let: Let, mask: Mask | None) -> PrimExpr:
        value = self.expr(let.value, mask)
        if lanes_of(value) == 1:
            return Let(let.var, value, self.expr(let.body, mask))
        var = Var(let.var.name, with_lanes(let.var.dtype, self.lanes))
        self.define(let.var, var)
        return Let(var, value, self.expr(let.body, mask))


def _unsafe_divisor(expr: BinaryExpr) -> bool:
    return parse_dtype(expr.dtype).is_int and not (isinstance(expr.b, IntImm) and expr.b.value != 0)


def _chosen(condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    condition = condition.value if isinstance(condition, Broadcast) else condition
    if isinstance(condition, IntImm):
        return a if condition.value else b
    return Select(condition, a, b)
