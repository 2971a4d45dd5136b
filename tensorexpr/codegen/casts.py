"""Conversions between dtypes, and the float32 detour of the 16-bit floats.

Integers wrap; floats become integers by truncation, beyond the range its nearest end, NaN zero; anything becomes a
bool by comparison with zero.
"""

from __future__ import annotations

from ..tir.dtype import DataType, parse_dtype, with_lanes
from ..tir.expr import Cast, PrimExpr
from .context import FunctionContext
from .low_precision import from_single, round_to_odd, to_single
from .types import LOW_PRECISION, VALUE_TYPE, computed, splat, suffix


def low_precision(dtype: str) -> bool:
    """True for float16 and bfloat16 of any lane count."""
    return dtype.startswith(LOW_PRECISION)


def widen(ctx: FunctionContext, dtype: str, *values: str) -> tuple[str, ...]:
    """The float32 type with the lanes of `dtype`, and values of `dtype` in it."""
    wide = with_lanes("float32", parse_dtype(dtype).lanes)
    return (VALUE_TYPE[wide], *(convert(ctx, dtype, wide, value) for value in values))


def narrow(ctx: FunctionContext, dtype: str, value: str) -> str:
    """A float32 value rounded to `dtype`."""
    return convert(ctx, with_lanes("float32", parse_dtype(dtype).lanes), dtype, value)


def emit_cast(ctx: FunctionContext, node: PrimExpr) -> str:
    """Cast."""
    assert isinstance(node, Cast)
    return convert(ctx, node.value.dtype, node.dtype, ctx.value(node.value))


def convert(ctx: FunctionContext, source: str, wanted: str, value: str) -> str:
    """A value of dtype `source` as dtype `wanted`."""
    if source == wanted:
        return value
    have, want = parse_dtype(source), parse_dtype(wanted)
    computed(have)
    computed(want)
    if have.is_float and want.is_float:
        return _float_to_float(ctx, have, want, value)
    from_type, to_type = VALUE_TYPE[source], VALUE_TYPE[wanted]
    if want.code == "bool":
        return _to_bool(ctx, have, from_type, value)
    if have.is_float:
        return _float_to_int(ctx, have, want, value)
    if want.is_float:
        if want.bits == 16:
            middle = DataType("float", 32 if have.bits < 32 else 64, want.lanes)
            return convert(ctx, str(middle), wanted, convert(ctx, source, str(middle), value))
        return ctx.text.value(f"{'sitofp' if have.is_signed else 'uitofp'} {from_type} {value} to {to_type}")
    if have.code == "handle" or want.code == "handle":
        return ctx.text.value(f"{'ptrtoint' if have.code == 'handle' else 'inttoptr'} {from_type} {value} to {to_type}")
    if have.bits == want.bits:
        return value
    extend = "sext" if have.is_signed else "zext"
    return ctx.text.value(f"{'trunc' if want.bits < have.bits else extend} {from_type} {value} to {to_type}")


def _to_bool(ctx: FunctionContext, have: DataType, from_type: str, value: str) -> str:
    nothing = "zeroinitializer" if have.lanes > 1 else "null" if have.code == "handle" else "0"
    if not have.is_float:
        return ctx.text.value(f"icmp ne {from_type} {value}, {nothing}")
    if have.bits == 16:
        from_type, value = widen(ctx, str(have), value)
    return ctx.text.value(f"fcmp une {from_type} {value}, {splat(from_type, '0x0000000000000000', 1) if have.lanes == 1 else nothing}")


def _float_to_int(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    from_type, to_type = VALUE_TYPE[str(have)], VALUE_TYPE[str(want)]
    if have.bits == 16:
        from_type, value = widen(ctx, str(have), value)
    name = f"llvm.fpto{'s' if want.is_signed else 'u'}i.sat.{suffix(to_type)}.{suffix(from_type)}"
    return ctx.text.value(f"call {to_type} @{name}({from_type} {value})")


def _float_to_float(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    single = DataType("float", 32, have.lanes)
    if have.bits == 16 and want != single:
        return convert(ctx, str(single), str(want), convert(ctx, str(have), str(single), value))
    if have.bits == 16:
        return to_single(ctx, have.code, have.lanes, value)
    if want.bits == 16:
        once = round_to_odd(ctx, have.lanes, value) if have.bits == 64 else value
        return from_single(ctx, want.code, have.lanes, once)
    instruction = "fpext" if have.bits < want.bits else "fptrunc"
    return ctx.text.value(f"{instruction} {VALUE_TYPE[str(have)]} {value} to {VALUE_TYPE[str(want)]}")
