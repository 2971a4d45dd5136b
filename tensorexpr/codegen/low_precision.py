"""The 16-bit floats: their bits in an i16, and the ways to and from float32 on machines with and without an instruction for it."""

from __future__ import annotations

from collections.abc import Callable

from .context import FunctionContext
from .types import float_bits, splat, suffix, vector_of

# Half precision in hardware; without it LLVM calls a compiler support library, which a process may not have.
_HALF_FEATURES = frozenset({"f16c", "avx512fp16", "fullfp16", "neon"})
# Exact rounding to bfloat16 in hardware; the instruction of x86 takes denormal numbers for zero.
_BFLOAT_FEATURES = frozenset({"neon", "bf16"})
_HALF_INFINITY = 0x7C00
_HALF_SCALE_UP = 2.0**112


def to_single(ctx: FunctionContext, code: str, lanes: int, value: str) -> str:
    """The float32 of a float16 ("float") or bfloat16 ("bfloat")."""
    write = ctx.text.value
    short, single, word = (vector_of(kind, lanes) for kind in ("i16", "float", "i32"))
    if code == "bfloat":
        raised = write(f"shl {word} {write(f'zext {short} {value} to {word}')}, {splat('i32', '16', lanes)}")
        return write(f"bitcast {word} {raised} to {single}")
    if not _HALF_FEATURES & ctx.module.features:
        return _half_to_single(ctx, lanes, value)
    half = vector_of("half", lanes)
    return write(f"fpext {half} {write(f'bitcast {short} {value} to {half}')} to {single}")


def from_single(ctx: FunctionContext, code: str, lanes: int, value: str) -> str:
    """A float32 rounded to float16 ("float") or bfloat16 ("bfloat"), to nearest even."""
    native = _HALF_FEATURES & ctx.module.features if code == "float" else ctx.module.features >= _BFLOAT_FEATURES
    if not native:
        return (_single_to_half if code == "float" else _single_to_bfloat)(ctx, lanes, value)
    narrow, single = vector_of("half" if code == "float" else "bfloat", lanes), vector_of("float", lanes)
    rounded = ctx.text.value(f"fptrunc {single} {value} to {narrow}")
    return ctx.text.value(f"bitcast {narrow} {rounded} to {vector_of('i16', lanes)}")


def round_to_odd(ctx: FunctionContext, lanes: int, value: str) -> str:
    """A double as a float whose last bit is odd unless it is exact, so that a second rounding is right (Boldo and Melquiond)."""
    write = ctx.text.value
    single, double, word, mask = (vector_of(kind, lanes) for kind in ("float", "double", "i32", "i1"))
    near = write(f"fptrunc {double} {value} to {single}")
    back = write(f"fpext {single} {near} to {double}")
    inexact = write(f"fcmp one {double} {back}, {value}")  # ordered: a NaN stays as it is
    magnitudes = [write(f"call {double} @llvm.fabs.{suffix(double)}({double} {x})") for x in (back, value)]
    above = write(f"fcmp ogt {double} {magnitudes[0]}, {magnitudes[1]}")
    bits = write(f"bitcast {single} {near} to {word}")
    # As integers the bits of a float are in the order of its size: one less is the next one towards 0.
    lower = write(f"add {word} {bits}, {splat('i32', '-1', lanes)}")
    towards_zero = write(f"select {mask} {above}, {word} {lower}, {word} {bits}")
    odd = write(f"or {word} {towards_zero}, {splat('i32', '1', lanes)}")
    chosen = write(f"select {mask} {inexact}, {word} {odd}, {word} {bits}")
    return write(f"bitcast {word} {chosen} to {single}")


def _constants(lanes: int) -> Callable[[int], str]:
    """What writes an i32 in every lane."""
    return lambda constant: splat("i32", str(constant), lanes)


def _single_to_bfloat(ctx: FunctionContext, lanes: int, value: str) -> str:
    """float32 to bfloat16, to nearest even: the upper half of the bits, after adding just under half of what is cut off."""
    write = ctx.text.value
    short, single, word, mask = (vector_of(kind, lanes) for kind in ("i16", "float", "i32", "i1"))
    number = _constants(lanes)
    bits = write(f"bitcast {single} {value} to {word}")
    last = write(f"lshr {word} {bits}, {number(16)}")
    odd = write(f"and {word} {last}, {number(1)}")
    nudged = write(f"add {word} {write(f'add {word} {bits}, {odd}')}, {number(0x7FFF)}")
    upper = write(f"lshr {word} {nudged}, {number(16)}")
    not_a_number = write(f"fcmp uno {single} {value}, {value}")
    # A NaN whose bits all lie in the lower half would become an infinity.
    quiet = write(f"or {word} {last}, {number(0x40)}")
    chosen = write(f"select {mask} {not_a_number}, {word} {quiet}, {word} {upper}")
    return write(f"trunc {word} {chosen} to {short}")


def _half_to_single(ctx: FunctionContext, lanes: int, value: str) -> str:
    """float16 to float32 with integer arithmetic: shift the bits into place and scale by the difference of the biases."""
    write = ctx.text.value
    short, single, word, mask = (vector_of(kind, lanes) for kind in ("i16", "float", "i32", "i1"))
    number = _constants(lanes)
    bits = write(f"zext {short} {value} to {word}")
    magnitude = write(f"and {word} {bits}, {number(0x7FFF)}")
    shifted = write(f"bitcast {word} {write(f'shl {word} {magnitude}, {number(13)}')} to {single}")
    # The product is exact, and brings denormals into normal form too.
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
    short, single, word, mask = (vector_of(kind, lanes) for kind in ("i16", "float", "i32", "i1"))
    number = _constants(lanes)
    bits = write(f"bitcast {single} {value} to {word}")
    sign = write(f"and {word} {bits}, {number(-(1 << 31))}")
    magnitude = write(f"xor {word} {bits}, {sign}")
    odd = write(f"and {word} {write(f'lshr {word} {magnitude}, {number(13)}')}, {number(1)}")
    # Exponents count from 15 instead of 127; 0xFFF is just under half of the 13 bits that are cut off.
    rebiased = write(f"add {word} {magnitude}, {number(0xFFF - (112 << 23))}")
    normal = write(f"lshr {word} {write(f'add {word} {rebiased}, {odd}')}, {number(13)}")
    # Adding 0.5 lines a denormal's bits up with the end of the significand, where the addition rounds them.
    unlined = write(f"bitcast {word} {magnitude} to {single}")
    lined_up = write(f"fadd {single} {unlined}, {splat('float', float_bits(0.5, 'float32'), lanes)}")
    denormal = write(f"sub {word} {write(f'bitcast {single} {lined_up} to {word}')}, {number(0x3F000000)}")
    small = write(f"icmp ult {word} {magnitude}, {number(113 << 23)}")  # 2**-14, the least normal float16
    finite = write(f"select {mask} {small}, {word} {denormal}, {word} {normal}")
    # 2**16; what rounds up to it from below has carried into the exponent, and is infinite already.
    large = write(f"icmp uge {word} {magnitude}, {number(0x47800000)}")
    not_a_number = write(f"icmp ugt {word} {magnitude}, {number(0x7F800000)}")
    special = write(f"select {mask} {not_a_number}, {word} {number(0x7E00)}, {word} {number(_HALF_INFINITY)}")
    unsigned = write(f"select {mask} {large}, {word} {special}, {word} {finite}")
    packed = write(f"or {word} {unsigned}, {write(f'lshr {word} {sign}, {number(16)}')}")
    return write(f"trunc {word} {packed} to {short}")
