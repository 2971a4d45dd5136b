"""The floats of 16 and 8 bits: their bits in an integer, and the ways to and from float32 with and without an instruction for it."""

from __future__ import annotations

from collections.abc import Callable

from ..dataclass import dataclass
from .context import FunctionContext
from .types import float_bits, splat, suffix, vector_of

# Half precision in hardware; without it LLVM calls a compiler support library, which a process may not have.
_HALF_FEATURES = frozenset({"f16c", "avx512fp16", "fullfp16", "neon"})
# Exact rounding to bfloat16 in hardware; the instruction of x86 takes denormal numbers for zero.
_BFLOAT_FEATURES = frozenset({"neon", "bf16"})


@dataclass(frozen=True)
class Form:
    """A float with denormals, by its layout: too large a number is `beyond`, an infinity or, where there is none, a NaN."""

    bits: int
    mantissa: int
    bias: int
    beyond: int  # the least bits that are no number
    nan: int
    overflow: int  # bits of the least float32 that is certainly `beyond`

    @property
    def cut(self) -> int:
        """How many bits of float32's significand it lacks."""
        return 23 - self.mantissa

    @property
    def rebias(self) -> int:
        """What exponents of float32 count more."""
        return 127 - self.bias


# 2**16; what rounds up to it from below has carried into the exponent, and is infinite already. e4m3 has no infinity: 480 would be
# the bits of its NaN, and 500 would carry into the sign.
FORMS = {
    "float": Form(16, 10, 15, 0x7C00, 0x7E00, 0x47800000),
    "e5m2_float": Form(8, 2, 15, 0x7C, 0x7E, 0x47800000),
    "e4m3_float": Form(8, 3, 7, 0x7F, 0x7F, 0x43F00000),
}


def to_single(ctx: FunctionContext, code: str, lanes: int, value: str) -> str:
    """The float32 of a float16 ("float"), bfloat16 ("bfloat") or float8 ("e4m3_float", "e5m2_float")."""
    write = ctx.text.value
    short, single, word = (vector_of(kind, lanes) for kind in ("i16", "float", "i32"))
    if code == "bfloat":
        raised = write(f"shl {word} {write(f'zext {short} {value} to {word}')}, {splat('i32', '16', lanes)}")
        return write(f"bitcast {word} {raised} to {single}")
    if code != "float" or not _HALF_FEATURES & ctx.module.features:
        return _small_to_single(ctx, FORMS[code], lanes, value)
    half = vector_of("half", lanes)
    return write(f"fpext {half} {write(f'bitcast {short} {value} to {half}')} to {single}")


def from_single(ctx: FunctionContext, code: str, lanes: int, value: str) -> str:
    """A float32 rounded to the float that `to_single` calls `code`, to nearest even."""
    native = _HALF_FEATURES & ctx.module.features if code == "float" else code == "bfloat" and ctx.module.features >= _BFLOAT_FEATURES
    if not native:
        return _single_to_bfloat(ctx, lanes, value) if code == "bfloat" else _single_to_small(ctx, FORMS[code], lanes, value)
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


def _small_to_single(ctx: FunctionContext, form: Form, lanes: int, value: str) -> str:
    """A small float to float32 with integer arithmetic: shift the bits into place and scale by the difference of the biases."""
    write = ctx.text.value
    short, single, word, mask = (vector_of(kind, lanes) for kind in (f"i{form.bits}", "float", "i32", "i1"))
    number, sign_bit = _constants(lanes), 1 << (form.bits - 1)
    bits = write(f"zext {short} {value} to {word}")
    magnitude = write(f"and {word} {bits}, {number(sign_bit - 1)}")
    shifted = write(f"bitcast {word} {write(f'shl {word} {magnitude}, {number(form.cut)}')} to {single}")
    # The product is exact, and brings denormals into normal form too.
    scaled = write(f"fmul {single} {shifted}, {splat('float', float_bits(2.0**form.rebias, 'float32'), lanes)}")
    special = write(f"icmp uge {word} {magnitude}, {number(form.beyond)}")
    plain = write(f"bitcast {single} {scaled} to {word}")
    infinite = write(f"or {word} {plain}, {number(0x7F800000)}")
    unsigned = write(f"select {mask} {special}, {word} {infinite}, {word} {plain}")
    sign = write(f"shl {word} {write(f'and {word} {bits}, {number(sign_bit)}')}, {number(32 - form.bits)}")
    return write(f"bitcast {word} {write(f'or {word} {unsigned}, {sign}')} to {single}")


def _single_to_small(ctx: FunctionContext, form: Form, lanes: int, value: str) -> str:
    """float32 to a small float, to nearest even, with integer arithmetic on normal results and an addition for denormal ones."""
    write = ctx.text.value
    short, single, word, mask = (vector_of(kind, lanes) for kind in (f"i{form.bits}", "float", "i32", "i1"))
    number = _constants(lanes)
    bits = write(f"bitcast {single} {value} to {word}")
    sign = write(f"and {word} {bits}, {number(-(1 << 31))}")
    magnitude = write(f"xor {word} {bits}, {sign}")
    odd = write(f"and {word} {write(f'lshr {word} {magnitude}, {number(form.cut)}')}, {number(1)}")
    # Exponents count from the other bias; with it comes just under half of the bits that are cut off.
    rebiased = write(f"add {word} {magnitude}, {number((1 << (form.cut - 1)) - 1 - (form.rebias << 23))}")
    normal = write(f"lshr {word} {write(f'add {word} {rebiased}, {odd}')}, {number(form.cut)}")
    # Adding a power of 2 (0.5 for float16) lines a denormal's bits up with the end of the significand, where the addition rounds them.
    magic = 24 - form.bias - form.mantissa
    unlined = write(f"bitcast {word} {magnitude} to {single}")
    lined_up = write(f"fadd {single} {unlined}, {splat('float', float_bits(2.0**magic, 'float32'), lanes)}")
    denormal = write(f"sub {word} {write(f'bitcast {single} {lined_up} to {word}')}, {number((127 + magic) << 23)}")
    small = write(f"icmp ult {word} {magnitude}, {number((form.rebias + 1) << 23)}")  # the least normal number
    finite = write(f"select {mask} {small}, {word} {denormal}, {word} {normal}")
    large = write(f"icmp uge {word} {magnitude}, {number(form.overflow)}")
    not_a_number = write(f"icmp ugt {word} {magnitude}, {number(0x7F800000)}")
    special = write(f"select {mask} {not_a_number}, {word} {number(form.nan)}, {word} {number(form.beyond)}")
    unsigned = write(f"select {mask} {large}, {word} {special}, {word} {finite}")
    packed = write(f"or {word} {unsigned}, {write(f'lshr {word} {sign}, {number(32 - form.bits)}')}")
    return write(f"trunc {word} {packed} to {short}")
