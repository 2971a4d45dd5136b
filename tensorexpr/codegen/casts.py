"""Conversions between dtypes, and the float32 detour of the 16-bit floats.

Integers wrap; floats become integers by truncation, beyond the range its nearest end, NaN zero; anything becomes a
bool by comparison with zero.
"""

from __future__ import annotations

from ..tir.dtype import DataType, parse_dtype, with_lanes
from ..tir.expr import Cast, PrimExpr
from .context import FunctionContext
from .types import LOW_PRECISION, VALUE_TYPE, float_bits, splat, suffix, vector_of

# Half precision in hardware; without it LLVM calls a compiler support library, which a process may not have.
_HALF_FEATURES = frozenset({"f16c", "avx512fp16", "fullfp16", "neon"})
# Exact rounding to bfloat16 in hardware; the instruction of x86 takes denormal numbers for zero.
_BFLOAT_FEATURES = frozenset({"neon", "bf16"})
_HALF_INFINITY = 0x7C00
_HALF_SCALE_UP = 2.0**112
_HALF_SCALE_DOWN = 2.0**-112


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
    if have.bits == 64 and want.bits == 16:
        return convert(ctx, str(single), str(want), _round_to_odd(ctx, have.lanes, value))
    if (want.code, want.bits) == ("bfloat", 16) and not _BFLOAT_FEATURES <= ctx.module.features:
        return _single_to_bfloat(ctx, have.lanes, value)
    if not _HALF_FEATURES & ctx.module.features:
        if (have.code, have.bits) == ("float", 16):
            return _half_to_single(ctx, have.lanes, value)
        if (want.code, want.bits) == ("float", 16):
            return _single_to_half(ctx, have.lanes, value)
    instruction = "fpext" if have.bits < want.bits else "fptrunc"
    return ctx.text.value(f"{instruction} {VALUE_TYPE[str(have)]} {value} to {VALUE_TYPE[str(want)]}")


def _round_to_odd(ctx: FunctionContext, lanes: int, value: str) -> str:
    """A double as a float whose last bit is odd unless it is exact, so that a second rounding is right (Boldo and Melquiond)."""
    write = ctx.text.value
    single, double, word, mask = (vector_of(kind, lanes) for kind in ("float", "double", "i32", "i1"))
    near = write(f"fptrunc {double} {value} to {single}")
    back = write(f"fpext {single} {near} to {double}")
    inexact = write(f"fcmp one {double} {back}, {value}")
    magnitudes = [write(f"call {double} @llvm.fabs.{suffix(double)}({double} {x})") for x in (back, value)]
    above = write(f"fcmp ogt {double} {magnitudes[0]}, {magnitudes[1]}")
    bits = write(f"bitcast {single} {near} to {word}")
    lower = write(f"add {word} {bits}, {splat('i32', '-1', lanes)}")
    towards_zero = write(f"select {mask} {above}, {word} {lower}, {word} {bits}")
    odd = write(f"or {word} {towards_zero}, {splat('i32', '1', lanes)}")
    chosen = write(f"select {mask} {inexact}, {word} {odd}, {word} {bits}")
    return write(f"bitcast {word} {chosen} to {single}")


def _single_to_bfloat(ctx: FunctionContext, lanes: int, value: str) -> str:
    """float32 to bfloat16, to nearest even: the upper half of the bits, after adding just under half of what is cut off."""
    write = ctx.text.value
    brain, short, single, word, mask = (vector_of(kind, lanes) for kind in ("bfloat", "i16", "float", "i32", "i1"))

    def number(constant: int) -> str:
        return splat("i32", str(constant), lanes)

    bits = write(f"bitcast {single} {value} to {word}")
    last = write(f"lshr {word} {bits}, {number(16)}")
    odd = write(f"and {word} {last}, {number(1)}")
    nudged = write(f"add {word} {write(f'add {word} {bits}, {odd}')}, {number(0x7FFF)}")
    upper = write(f"lshr {word} {nudged}, {number(16)}")
    not_a_number = write(f"fcmp uno {single} {value}, {value}")
    quiet = write(f"or {word} {last}, {number(0x40)}")
    chosen = write(f"select {mask} {not_a_number}, {word} {quiet}, {word} {upper}")
    return write(f"bitcast {short} {write(f'trunc {word} {chosen} to {short}')} to {brain}")


def _half_to_single(ctx: FunctionContext, lanes: int, value: str) -> str:
    """float16 to float32 with integer arithmetic: shift the bits into place and scale by the difference of the biases."""
    write = ctx.text.value
    half, short, single, word, mask = (vector_of(kind, lanes) for kind in ("half", "i16", "float", "i32", "i1"))

    def number(constant: int) -> str:
        return splat("i32", str(constant), lanes)

    bits = write(f"zext {short} {write(f'bitcast {half} {value} to {short}')} to {word}")
    magnitude = write(f"and {word} {bits}, {number(0x7FFF)}")
    shifted = write(f"bitcast {word} {write(f'shl {word} {magnitude}, {number(13)}')} to {single}")
    scaled = write(f"fmul {single} {shifted}, {splat('float', float_bits(_HALF_SCALE_UP, 'float32'), lanes)}")
    special = write(f"icmp uge {word} {magnitude}, {number(_HALF_INFINITY)}")
    plain = write(f"bitcast {single} {scaled} to {word}")
    infinite = write(f"or {word} {plain}, {number(0x7F800000)}")
    unsigned = write(f"select {mask} {special}, {word} {infinite}, {word} {plain}")
    sign = write(f"shl {word} {write(f'and {word} {bits}, {number(0x8000)}')}, {number(16)}")
    return write(f"bitcast {word} {write(f'or {word} {unsigned}, {sign}')} to {single}")


def _single_to_half(ctx: FunctionContext, lanes: int, value: str) -> str:
    """float32 to float16, to nearest even, with integer arithmetic on normal results and an addition for denormal ones."""
    write = ctx.text.value
    half, short, single, word, mask = (vector_of(kind, lanes) for kind in ("half", "i16", "float", "i32", "i1"))

    def number(constant: int) -> str:
        return splat("i32", str(constant), lanes)

    bits = write(f"bitcast {single} {value} to {word}")
    sign = write(f"and {word} {bits}, {number(-(1 << 31))}")
    magnitude = write(f"xor {word} {bits}, {sign}")
    odd = write(f"and {word} {write(f'lshr {word} {magnitude}, {number(13)}')}, {number(1)}")
    rebiased = write(f"add {word} {magnitude}, {number(0xFFF - (112 << 23))}")
    normal = write(f"lshr {word} {write(f'add {word} {rebiased}, {odd}')}, {number(13)}")
    # Adding 0.5 lines a denormal's bits up with the end of the significand, where the addition rounds them.
    unlined = write(f"bitcast {word} {magnitude} to {single}")
    lined_up = write(f"fadd {single} {unlined}, {splat('float', float_bits(0.5, 'float32'), lanes)}")
    denormal = write(f"sub {word} {write(f'bitcast {single} {lined_up} to {word}')}, {number(0x3F000000)}")
    small = write(f"icmp ult {word} {magnitude}, {number(113 << 23)}")
    finite = write(f"select {mask} {small}, {word} {denormal}, {word} {normal}")
    large = write(f"icmp uge {word} {magnitude}, {number(0x47800000)}")
    not_a_number = write(f"icmp ugt {word} {magnitude}, {number(0x7F800000)}")
    special = write(f"select {mask} {not_a_number}, {word} {number(0x7E00)}, {word} {number(_HALF_INFINITY)}")
    unsigned = write(f"select {mask} {large}, {word} {special}, {word} {finite}")
    packed = write(f"or {word} {unsigned}, {write(f'lshr {word} {sign}, {number(16)}')}")
    return write(f"bitcast {short} {write(f'trunc {word} {packed} to {short}')} to {half}")
