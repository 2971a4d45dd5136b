"""Conversions between dtypes, and the float32 detour of the floats of 16 and 8 bits.

Integers wrap; floats become integers by truncation, beyond the range its nearest end, NaN zero; anything becomes a
bool by comparison with zero.
"""

from __future__ import annotations

from dataclasses import replace

from ..tir.dtype import DataType, int_limits, parse_dtype, with_lanes
from ..tir.expr import Broadcast, Call, Cast, FloatImm, Max, Min, PrimExpr
from .context import FunctionContext
from .lanes import Lanes
from .low_precision import from_single, round_to_odd, to_single
from .types import LOW_PRECISION, VALUE_TYPE, splat, suffix, vector_of

_LARGEST = 2147483520  # the last number below 2**31 that float32 has


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
    have, want = parse_dtype(node.value.dtype), parse_dtype(node.dtype)
    is_one_instruction = have.is_float and have.bits == 32 and want.is_int and want.bits <= 32
    if is_one_instruction and isinstance(node.value, Call) and node.value.op == "tir.nearbyint":
        (inner,) = node.value.args
        if is_between(inner, want):
            return _rounded(ctx, have, want, ctx.value(inner))
    if is_one_instruction and is_between(node.value, want):
        return _truncated(ctx, have, want, ctx.value(node.value))
    return convert(ctx, node.value.dtype, node.dtype, ctx.value(node.value))


def is_between(expr: PrimExpr, want: DataType) -> bool:
    """Whether a float is no NaN, and truncated a number that 32 bits with a sign and the wanted integer have.

    Example:
        min(max(x, -128.0), 127.0) for int8: a NaN isn't greater than -128, and becomes that.
    """
    match expr:
        case Min(Max(_, low), high) | Max(Min(_, high), low):
            least, most = _number(low), _number(high)
        case _:
            return False
    limits = int_limits(str(replace(want, lanes=1)))
    return least is not None and most is not None and limits[0] <= least <= most <= min(limits[1], _LARGEST)


def _number(expr: PrimExpr) -> float | None:
    while isinstance(expr, Broadcast):
        expr = expr.value
    return float(expr.value) if isinstance(expr, FloatImm) else None


def _truncated(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    """A float32 within the limits of an integer as that, by way of int32: vectors have no conversion to fewer bits."""
    single, word = VALUE_TYPE[str(have)], replace(want, code="int", bits=32)
    return convert(ctx, str(word), str(want), ctx.text.value(f"fptosi {single} {value} to {VALUE_TYPE[str(word)]}"))


def _rounded(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    """The nearest integer of a float32 within the limits of an integer, halves to even numbers: the conversion itself rounds.

    Example:
        cast(int32, nearbyint(min(max(x, -255.0), 255.0))): cvtps2dq, without roundps before it.
    """
    single, word = VALUE_TYPE[str(have)], replace(want, code="int", bits=32)
    to = VALUE_TYPE[str(word)]
    return convert(ctx, str(word), str(want), ctx.text.value(f"call {to} @llvm.lrint.{suffix(to)}.{suffix(single)}({single} {value})"))


def convert(ctx: FunctionContext, source: str, wanted: str, value: str) -> str:
    """A value of dtype `source` as dtype `wanted`."""
    if source == wanted:
        return value
    have, want = parse_dtype(source), parse_dtype(wanted)
    if have.is_float and want.is_float:
        return _float_to_float(ctx, have, want, value)
    from_type, to_type = VALUE_TYPE[source], VALUE_TYPE[wanted]
    if want.code == "bool":
        return _to_bool(ctx, have, from_type, value)
    if have.is_float:
        return _float_to_int(ctx, have, want, value)
    if want.is_float:
        if want.bits <= 16:
            # An int16 fits the 24 bits of a float32; of an int32 the rounding to float32 would be one too many.
            middle = DataType("float", 32 if have.bits < 32 else 64, want.lanes)
            if have.bits == 64 and want.code == "bfloat":  # the other floats end where a float64 still has every integer
                value = _odd_beyond_double(ctx, have, value)
            return convert(ctx, str(middle), wanted, convert(ctx, source, str(middle), value))
        return ctx.text.value(f"{'sitofp' if have.is_signed else 'uitofp'} {from_type} {value} to {to_type}")
    if have.code == "handle" or want.code == "handle":
        return ctx.text.value(f"{'ptrtoint' if have.code == 'handle' else 'inttoptr'} {from_type} {value} to {to_type}")
    if have.bits == want.bits:
        return value
    extend = "sext" if have.is_signed else "zext"
    return ctx.text.value(f"{'trunc' if want.bits < have.bits else extend} {from_type} {value} to {to_type}")


def _odd_beyond_double(ctx: FunctionContext, have: DataType, value: str) -> str:
    """An integer of 64 bits as one that a float64 has, whose last bit is odd where it isn't the same: see `round_to_odd`."""
    write, kind = ctx.text.value, VALUE_TYPE[str(have)]
    mask = vector_of("i1", have.lanes)

    def number(constant: int) -> str:
        return splat("i64", str(constant), have.lanes)

    # The 11 bits that float64 lacks leave their trace in the bit above them; of negative numbers too, as they lie in the same order.
    carried = write(f"add {kind} {write(f'and {kind} {value}, {number(0x7FF)}')}, {number(0x7FF)}")
    odd = write(f"and {kind} {write(f'or {kind} {value}, {carried}')}, {number(-0x800)}")
    # From -2**53 to 2**53, shifted to start at 0: below that an unsigned number is large.
    shifted = write(f"add {kind} {value}, {number(1 << 53)}") if have.is_signed else value
    beyond = write(f"icmp ugt {kind} {shifted}, {number(1 << 54 if have.is_signed else 1 << 53)}")
    return write(f"select {mask} {beyond}, {kind} {odd}, {kind} {value}")


def _to_bool(ctx: FunctionContext, have: DataType, from_type: str, value: str) -> str:
    nothing = "zeroinitializer" if have.lanes > 1 else "null" if have.code == "handle" else "0"
    if not have.is_float:
        return ctx.text.value(f"icmp ne {from_type} {value}, {nothing}")
    if have.bits <= 16:
        from_type, value = widen(ctx, str(have), value)
    return ctx.text.value(f"fcmp une {from_type} {value}, {splat(from_type, '0x0000000000000000', 1) if have.lanes == 1 else nothing}")


def _float_to_int(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    from_type, to_type = VALUE_TYPE[str(have)], VALUE_TYPE[str(want)]
    if have.bits <= 16:
        from_type, value = widen(ctx, str(have), value)
    if have.lanes > 1 and have.bits < 64 and want.bits == 32:
        return _limited_words(ctx, replace(have, code="float", bits=32), want, value)
    if have.lanes > 1 and have.bits < 64 and want.bits < 32:
        return _limited(ctx, replace(have, code="float", bits=32), want, value)
    name = f"llvm.fpto{'s' if want.is_signed else 'u'}i.sat.{suffix(to_type)}.{suffix(from_type)}"
    return ctx.text.value(f"call {to_type} @{name}({from_type} {value})")


def _limited(ctx: FunctionContext, single: DataType, want: DataType, value: str) -> str:
    """float32 in lanes as integers of less than 32 bits; LLVM would take lane after lane."""
    x = Lanes(ctx, "float", single.lanes, value)
    low, high = (x.constant(limit) for limit in int_limits(str(replace(want, lanes=1))))
    known = x.compare("ord", x).choose(x, x.constant(0.0)) if want.is_signed else x  # below, NaN isn't greater than 0
    above = known.compare("ogt", low).choose(known, low)
    return _truncated(ctx, single, want, above.compare("olt", high).choose(above, high).text)


def _limited_words(ctx: FunctionContext, single: DataType, want: DataType, value: str) -> str:
    """float32 in lanes as integers of 32 bits; LLVM's own conversion asks for each lane.

    The last integer is no float32: what reaches the next power of two is that integer, all else is below it as a float.
    """
    x = Lanes(ctx, "float", single.lanes, value)
    first, last = int_limits(str(replace(want, lanes=1)))
    low, most = x.constant(first), x.constant(_LARGEST if want.is_signed else 2 * _LARGEST)
    known = x.compare("ord", x).choose(x, x.constant(0.0)) if want.is_signed else x  # below, NaN isn't greater than 0
    above = known.compare("ogt", low).choose(known, low)
    inside = above.compare("olt", most).choose(above, most)
    instruction = "fptosi" if want.is_signed else "fptoui"
    number = inside.like(f"{instruction} {inside.llvm_type} {inside.text} to {VALUE_TYPE[str(want)]}", "i32")
    return x.compare("oge", float(last + 1)).choose(number.constant(last), number).text


def _float_to_float(ctx: FunctionContext, have: DataType, want: DataType, value: str) -> str:
    single = DataType("float", 32, have.lanes)
    if have.bits <= 16 and want != single:
        return convert(ctx, str(single), str(want), convert(ctx, str(have), str(single), value))
    if have.bits <= 16:
        return to_single(ctx, have.code, have.lanes, value)
    if want.bits <= 16:
        once = round_to_odd(ctx, have.lanes, value) if have.bits == 64 else value
        return from_single(ctx, want.code, have.lanes, once)
    instruction = "fpext" if have.bits < want.bits else "fptrunc"
    return ctx.text.value(f"{instruction} {VALUE_TYPE[str(have)]} {value} to {VALUE_TYPE[str(want)]}")
