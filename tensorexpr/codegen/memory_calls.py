"""Assumptions, null tests, atomic additions and scaling by powers of two: one instruction or LLVM intrinsic each."""

from __future__ import annotations

from ..tir.arithmetic import const
from ..tir.dtype import parse_dtype
from ..tir.expr import Call
from .casts import low_precision, narrow, widen
from .context import FunctionContext
from .memo import IMPURE
from .types import VALUE_TYPE, suffix


def emit_assume(ctx: FunctionContext, call: Call) -> str:
    """assume."""
    condition = ctx.value(call.args[0])
    ctx.reads |= IMPURE
    ctx.text.emit(f"call void @llvm.assume(i1 {condition})")
    return condition


def emit_isnullptr(ctx: FunctionContext, call: Call) -> str:
    """isnullptr."""
    return ctx.text.value(f"icmp eq ptr {ctx.value(call.args[0])}, null")


def emit_undef(ctx: FunctionContext, call: Call) -> str:
    """undef: zero, so that a program does the same every time."""
    return ctx.value(const(0, call.dtype))


def emit_atomic_add(ctx: FunctionContext, call: Call) -> str:
    """atomic_add."""
    place, value = (ctx.value(arg) for arg in call.args)
    ctx.reads |= IMPURE
    operation = "fadd" if parse_dtype(call.dtype).is_float else "add"
    # Monotonic: only the addition itself is to be whole, it orders nothing else.
    old = ctx.text.value(f"atomicrmw {operation} ptr {place}, {VALUE_TYPE[call.dtype]} {value} monotonic")
    ctx.forget_reads()
    return old


def emit_ldexp(ctx: FunctionContext, call: Call) -> str:
    """ldexp."""
    value, exponent = (ctx.value(arg) for arg in call.args)
    dtype, kind, powers = call.dtype, VALUE_TYPE[call.dtype], VALUE_TYPE[call.args[1].dtype]
    if low_precision(dtype):
        kind, value = widen(ctx, dtype, value)
    lanes = parse_dtype(dtype).lanes
    overload = "i32" if lanes == 1 else f"v{lanes}i32"
    scaled = ctx.text.value(f"call {kind} @llvm.ldexp.{suffix(kind)}.{overload}({kind} {value}, {powers} {exponent})")
    return narrow(ctx, dtype, scaled) if low_precision(dtype) else scaled
