"""Predicates of vector accesses: folded to constants where every lane is known, else a mask value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..tir.dtype import parse_dtype, scalar_dtype, wrap_int
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    IntImm,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Shuffle,
    Sub,
)
from .context import FunctionContext

Lanes = tuple[int, ...]

_FOLD: dict[type[PrimExpr], Callable[[int, int], Any]] = {
    Add: operator.add, Sub: operator.sub, Mul: operator.mul,
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
    And: operator.and_, Or: operator.or_,
}  # fmt: skip


def constant_lanes(expr: PrimExpr) -> Lanes | None:
    """The value of each lane of an integer or bool vector whose lanes are constants, else None."""
    fold = _FOLD.get(type(expr))
    if fold is not None:
        a, b = constant_lanes(expr.a), constant_lanes(expr.b)  # type: ignore[attr-defined]
        if a is None or b is None:
            return None
        dtype = scalar_dtype(expr.dtype)
        return tuple(wrap_int(int(fold(x, y)), dtype) for x, y in zip(a, b, strict=True))
    match expr:
        case IntImm(_, value):
            return (value,)
        case Broadcast(IntImm(_, value), lanes):
            return (value,) * lanes
        case Ramp(IntImm(dtype, base), IntImm(_, stride), lanes):
            return tuple(wrap_int(base + i * stride, dtype) for i in range(lanes))
        case Not(negated):
            inner = constant_lanes(negated)
            return None if inner is None else tuple(1 - x for x in inner)
        case Call(_, "tir.likely", (hinted,)):
            return constant_lanes(hinted)
        case Shuffle(vectors, indices):
            joined: list[int] = []
            for vector in vectors:
                lanes_of_vector = constant_lanes(vector)
                if lanes_of_vector is None:
                    return None
                joined += lanes_of_vector
            return tuple(joined[index] for index in indices)
    return None


class Mask:
    """Which lanes of an access take place: `constant` lanes, or the mask value `text`. No Mask at all means all of them."""

    __slots__ = ("constant", "text")

    def __init__(self, text: str, constant: Lanes | None = None) -> None:
        self.text = text
        self.constant = constant

    @property
    def is_empty(self) -> bool:
        """True if no lane takes place."""
        return self.constant is not None and not any(self.constant)


def _literal(lanes: Lanes) -> str:
    if len(lanes) == 1:
        return "true" if lanes[0] else "false"
    if not any(lanes):
        return "zeroinitializer"
    return f"<{', '.join('i1 true' if lane else 'i1 false' for lane in lanes)}>"


def access_mask(ctx: FunctionContext, predicate: PrimExpr | None, lanes: int) -> Mask | None:
    """The mask of an access of `lanes` elements: its predicate and the conditional around it."""
    mask: Mask | None = None
    if predicate is not None:
        constant = constant_lanes(predicate)
        if constant is not None and len(constant) == 1 < lanes:  # one condition for all lanes
            constant *= lanes
        if constant is None:
            mask = Mask(_spread(ctx, ctx.value(predicate), parse_dtype(predicate.dtype).lanes, lanes))
        # All lanes on is no mask at all, which takes the plain instruction.
        elif not all(constant):
            mask = Mask(_literal(constant), constant)
    # Without a conditional around, or with no lane on at all, the predicate says everything.
    if ctx.mask is None or (mask is not None and mask.is_empty):
        return mask
    around = surrounding(ctx, lanes)
    if mask is None:
        return Mask(around)
    kind = "i1" if lanes == 1 else f"<{lanes} x i1>"
    return Mask(ctx.text.value(f"and {kind} {mask.text}, {around}"))


def _spread(ctx: FunctionContext, mask: str, have: int, lanes: int) -> str:
    """A mask of `lanes` lanes made of one of fewer: each lane repeated."""
    if have == lanes:
        return mask
    if have == 1:
        return splat_value(ctx, "i1", mask, lanes)
    # A predicate of 4 elements of 2 lanes is 0 0 1 1 2 2 3 3.
    picked = ", ".join(f"i32 {lane * have // lanes}" for lane in range(lanes))
    return ctx.text.value(f"shufflevector <{have} x i1> {mask}, <{have} x i1> poison, <{lanes} x i32> <{picked}>")


def surrounding(ctx: FunctionContext, lanes: int) -> str:
    """Inside a vector conditional: its mask for an access of `lanes`: itself, or whether any lane is on."""
    assert ctx.mask is not None
    text, have = ctx.mask
    if have == lanes:
        return text
    any_lane = ctx.once(("any", text), lambda: ctx.text.value(f"call i1 @llvm.vector.reduce.or.v{have}i1(<{have} x i1> {text})"))
    # An element of another width has no lane of its own in the mask, so it is on if any lane is.
    return any_lane if lanes == 1 else ctx.once(("spread", any_lane, lanes), lambda: splat_value(ctx, "i1", any_lane, lanes))


def splat_value(ctx: FunctionContext, scalar_type: str, value: str, lanes: int) -> str:
    """`value` in every one of `lanes` lanes; a constant stays one."""
    if lanes == 1:
        return value
    if not value.startswith("%"):
        return value if value in ("poison", "zeroinitializer") else f"splat ({scalar_type} {value})"
    vector = f"<{lanes} x {scalar_type}>"
    single = ctx.text.value(f"insertelement {vector} poison, {scalar_type} {value}, i64 0")
    return ctx.text.value(f"shufflevector {vector} {single}, {vector} poison, <{lanes} x i32> zeroinitializer")
