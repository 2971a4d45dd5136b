"""Arithmetic, comparisons and bit operations: tables from node to instruction.

Products and sums of floats carry the `contract` flag and no other, so that a*b + c becomes one fused multiply-add
where the machine has it; the result then differs from the two-step one by at most the rounding of the product.
Everything else is IEEE as the language says it. float16 and bfloat16 are computed in float32 and rounded each time.
"""

from __future__ import annotations

from functools import cache

from ..tir.dtype import parse_dtype
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BinaryExpr,
    Call,
    CmpExpr,
    Div,
    FloatImm,
    Max,
    Min,
    Mul,
    Not,
    PrimExpr,
    Shuffle,
    Sub,
)
from .casts import low_precision, narrow, widen
from .context import FunctionContext
from .types import LOW_PRECISION, VALUE_TYPE, computed, suffix

_FLOAT: dict[type[PrimExpr], str] = {Add: "fadd contract", Sub: "fsub contract", Mul: "fmul contract", Div: "fdiv"}
_INTEGER: dict[type[PrimExpr], str] = {Add: "add", Sub: "sub", Mul: "mul"}
_FLOAT_COMPARE: dict[type[PrimExpr], str] = {EQ: "oeq", NE: "une", LT: "olt", LE: "ole", GT: "ogt", GE: "oge"}
_SIGNED_COMPARE: dict[type[PrimExpr], str] = {EQ: "eq", NE: "ne", LT: "slt", LE: "sle", GT: "sgt", GE: "sge"}
_UNSIGNED_COMPARE: dict[type[PrimExpr], str] = {EQ: "eq", NE: "ne", LT: "ult", LE: "ule", GT: "ugt", GE: "uge"}
_EXTREME: dict[type[PrimExpr], type[PrimExpr]] = {Min: LT, Max: GT}
_BITWISE = {"tir.bitwise_and": "and", "tir.bitwise_or": "or", "tir.bitwise_xor": "xor"}


@cache
def _instruction(kind: type[PrimExpr], dtype: str) -> str:
    """The instruction with its type, such as "fadd contract <16 x float>"."""
    computed(parse_dtype(dtype))
    table = _FLOAT if parse_dtype(dtype).is_float else _INTEGER
    return f"{table[kind]} {VALUE_TYPE[dtype]}"


def emit_binary(ctx: FunctionContext, node: PrimExpr) -> str:
    """Add, Sub, Mul, and Div of floats."""
    assert isinstance(node, BinaryExpr)
    a, b, dtype = ctx.value(node.a), ctx.value(node.b), node.dtype
    kind: type = type(node)
    if dtype.startswith(LOW_PRECISION):
        wide, a, b = widen(ctx, dtype, a, b)
        # No contraction here: a sum of rounded products is what the narrow type promises.
        return narrow(ctx, dtype, ctx.text.value(f"{_FLOAT[kind].split()[0]} {wide} {a}, {b}"))
    # A flip of the sign bit; exact, and the same for NaN and zeros but for the sign of a NaN.
    if isinstance(node.b, FloatImm) and node.b.value == -1.0 and isinstance(node, Mul):
        return ctx.text.value(f"fneg {VALUE_TYPE[dtype]} {a}")
    if kind is Add and dtype in ("float32", "float64") and isinstance(node.a, Shuffle) and isinstance(node.b, Shuffle):
        return _last_sum(ctx, VALUE_TYPE[dtype], a, b)
    return ctx.text.value(f"{_instruction(kind, dtype)} {a}, {b}")


def _last_sum(ctx: FunctionContext, kind: str, a: str, b: str) -> str:
    """The last addition of a sum over lanes, as one that might set a flag, which LLVM therefore leaves where it is.

    Otherwise it moves whole sums behind loops that don't use them, and all their vectors live through these loops.
    """
    flags = 'metadata !"round.tonearest", metadata !"fpexcept.ignore"'
    return ctx.text.value(f"call {kind} @llvm.experimental.constrained.fadd.{suffix(kind)}({kind} {a}, {kind} {b}, {flags})")


def compare(ctx: FunctionContext, kind: type[PrimExpr], dtype: str, a: str, b: str) -> str:
    """The comparison of two values of `dtype`."""
    parsed = parse_dtype(dtype)
    if not parsed.is_float:
        table = _SIGNED_COMPARE if parsed.is_signed else _UNSIGNED_COMPARE
        return ctx.text.value(f"icmp {table[kind]} {VALUE_TYPE[dtype]} {a}, {b}")
    computed(parsed)
    llvm_type = VALUE_TYPE[dtype]
    if low_precision(dtype):
        llvm_type, a, b = widen(ctx, dtype, a, b)
    return ctx.text.value(f"fcmp {_FLOAT_COMPARE[kind]} {llvm_type} {a}, {b}")


def emit_compare(ctx: FunctionContext, node: PrimExpr) -> str:
    """EQ, NE, LT, LE, GT, GE."""
    assert isinstance(node, CmpExpr)
    return compare(ctx, type(node), node.a.dtype, ctx.value(node.a), ctx.value(node.b))


def emit_extreme(ctx: FunctionContext, node: PrimExpr) -> str:
    """Min as `a < b ? a : b` and Max as `a > b ? a : b`, whatever a NaN or a negative zero makes of that."""
    assert isinstance(node, BinaryExpr)
    a, b = ctx.value(node.a), ctx.value(node.b)
    kind, llvm_type = parse_dtype(node.dtype), VALUE_TYPE[node.dtype]
    if kind.is_float:
        condition = compare(ctx, _EXTREME[type(node)], node.dtype, a, b)
        mask = VALUE_TYPE["bool" if kind.lanes == 1 else f"boolx{kind.lanes}"]
        return ctx.text.value(f"select {mask} {condition}, {llvm_type} {a}, {llvm_type} {b}")
    name = f"{'s' if kind.is_signed else 'u'}{'min' if isinstance(node, Min) else 'max'}"
    return integer_call(ctx, name, node.dtype, a, b)


def integer_call(ctx: FunctionContext, name: str, dtype: str, *args: str) -> str:
    """A call of an LLVM intrinsic on integers of one dtype; further operands (flags) are written with their types."""
    llvm_type = VALUE_TYPE[dtype]
    operands = ", ".join(arg if " " in arg and not arg.startswith(("splat", "<")) else f"{llvm_type} {arg}" for arg in args)
    overload = llvm_type if not llvm_type.startswith("<") else f"v{parse_dtype(dtype).lanes}i{parse_dtype(dtype).bits}"
    return ctx.text.value(f"call {llvm_type} @llvm.{name}.{overload}({operands})")


def emit_not(ctx: FunctionContext, node: PrimExpr) -> str:
    """Not."""
    assert isinstance(node, Not)
    return inverted(ctx, ctx.value(node.a), parse_dtype(node.dtype).lanes)


def inverted(ctx: FunctionContext, mask: str, lanes: int) -> str:
    """The negation of a bool or mask."""
    return ctx.text.value(f"xor i1 {mask}, true" if lanes == 1 else f"xor <{lanes} x i1> {mask}, splat (i1 true)")


def emit_bitwise(ctx: FunctionContext, call: Call) -> str:
    """bitwise_and, bitwise_or, bitwise_xor."""
    a, b = (ctx.value(arg) for arg in call.args)
    return ctx.text.value(f"{_BITWISE[call.op]} {VALUE_TYPE[call.dtype]} {a}, {b}")


def emit_bitwise_not(ctx: FunctionContext, call: Call) -> str:
    """bitwise_not."""
    ones = "-1" if parse_dtype(call.dtype).lanes == 1 else f"splat ({VALUE_TYPE[str(parse_dtype(call.dtype).scalar)]} -1)"
    return ctx.text.value(f"xor {VALUE_TYPE[call.dtype]} {ctx.value(call.args[0])}, {ones}")


def emit_shift(ctx: FunctionContext, call: Call) -> str:
    """Shifts; by the width or more (or a negative amount) all bits leave: 0, or the sign for a signed shift to the right."""
    parsed, llvm_type = parse_dtype(call.dtype), VALUE_TYPE[call.dtype]
    value, amount = ctx.value(call.args[0]), ctx.value(call.args[1])
    to_left = call.op == "tir.shift_left"
    instruction = "shl" if to_left else "ashr" if parsed.is_signed else "lshr"
    low, high = ctx.limits(call.args[1])
    if low >= 0 and high < parsed.bits:
        return ctx.text.value(f"{instruction} {llvm_type} {value}, {amount}")
    scalar = VALUE_TYPE[str(parsed.scalar)]
    largest = str(parsed.bits - 1) if parsed.lanes == 1 else f"splat ({scalar} {parsed.bits - 1})"
    # A shift by the width or more is poison; a negative amount is large as an unsigned number.
    clamped = integer_call(ctx, "umin", call.dtype, amount, largest)
    shifted = ctx.text.value(f"{instruction} {llvm_type} {value}, {clamped}")
    if instruction == "ashr":
        return shifted
    mask = "i1" if parsed.lanes == 1 else f"<{parsed.lanes} x i1>"
    inside = ctx.text.value(f"icmp ule {llvm_type} {amount}, {largest}")
    nothing = "0" if parsed.lanes == 1 else "zeroinitializer"
    return ctx.text.value(f"select {mask} {inside}, {llvm_type} {shifted}, {llvm_type} {nothing}")
