"""The bits of floats that machines don't compute with: widened for arithmetic, rounded for memory, kept as integers.

A format has `mantissa` bits behind an exponent with `bias`; `storage` is the integer that holds it. Rounding is to the
nearest, ties to even. The steps are TVM's, which programs compare: normal numbers alone are right. Smaller ones are widened as if
they were normal (e4m3's 0 to 2**-7) and rounded to zero, infinities and NaN are no exception. Code generation's casts are exact.
"""

from __future__ import annotations

from ...dataclass import dataclass
from ...tir.arithmetic import cast, compare, const
from ...tir.bitwise import bitwise_and, bitwise_or, shift_left, shift_right
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import LT, Call, PrimExpr
from ...tir.intrin import if_then_else


@dataclass(frozen=True)
class Format:
    """How a float is laid out."""

    storage: str
    mantissa: int
    bias: int

    @property
    def bits(self) -> int:
        """All bits of one number."""
        return parse_dtype(self.storage).bits


FORMATS = {
    "e4m3_float8": Format("uint8", 3, 7),
    "e5m2_float8": Format("uint8", 2, 15),
    "bfloat16": Format("uint16", 7, 127),
    "float16": Format("uint16", 10, 15),
    "float32": Format("uint32", 23, 127),
}


def reinterpreted(dtype: str, value: PrimExpr) -> PrimExpr:
    """The bits of `value` as another type; a reinterpretation of one is undone."""
    wanted = with_lanes(dtype, parse_dtype(value.dtype).lanes)
    if isinstance(value, Call) and value.op == "tir.reinterpret" and value.args[0].dtype == wanted:
        return value.args[0]
    return value if value.dtype == wanted else Call(wanted, "tir.reinterpret", (value,))


def widened(value: PrimExpr, to: str) -> PrimExpr:
    """`value`, or the integer that holds it, as a number of the wider type `to`."""
    lanes = parse_dtype(value.dtype).lanes
    name = str(parse_dtype(value.dtype).scalar)
    return widened_bits(reinterpreted(FORMATS[name].storage, value), name, to, lanes)


def widened_bits(bits: PrimExpr, name: str, to: str, lanes: int) -> PrimExpr:
    """The number of format `name` in `bits`, as `to`."""
    small, wide = FORMATS[name], FORMATS[to]
    kind, word = bits.dtype, with_lanes(wide.storage, lanes)
    shift = wide.mantissa - small.mantissa
    if small.bias == wide.bias:  # the same exponent
        moved = shift_left(cast(bits, word), const(wide.bits - small.bits, word))
        return reinterpreted(to, moved)
    mantissa = bitwise_and(shift_left(cast(bits, word), const(shift, word)), const((1 << wide.mantissa) - 1, word))
    field = shift_right(shift_left(bits, const(1, kind)), const(small.mantissa + 1, kind))
    exponent = shift_left(cast(field + const(wide.bias - small.bias, kind), word), const(wide.mantissa, word))
    sign = shift_left(cast(shift_right(bits, const(small.bits - 1, kind)), word), const(wide.bits - 1, word))
    return reinterpreted(to, bitwise_or(bitwise_or(mantissa, exponent), sign))


def rounded_bits(value: PrimExpr, name: str) -> PrimExpr:
    """A wider number rounded to the format `name`, as the integer that holds it."""
    parsed = parse_dtype(value.dtype)
    small, wide = FORMATS[name], FORMATS[str(parsed.scalar)]
    word, kind = with_lanes(wide.storage, parsed.lanes), with_lanes(small.storage, parsed.lanes)
    shift = wide.mantissa - small.mantissa
    bits = reinterpreted(wide.storage, value)
    # Half of the last bit that stays, less one where that bit is 0: a tie is rounded up only to make it even.
    half = bitwise_and(shift_right(bits, const(shift, word)), const(1, word)) + const((1 << (shift - 1)) - 1, word)
    bits = bits + half
    if small.bias == wide.bias:
        return cast(shift_right(bits, const(wide.bits - small.bits, word)), kind)
    mantissa = bitwise_and(cast(shift_right(bits, const(shift, word)), kind), const((1 << small.mantissa) - 1, kind))
    field = shift_right(shift_left(bits, const(1, word)), const(wide.mantissa + 1, word))
    delta = const(wide.bias - small.bias, word)
    exponent = shift_left(cast(field - delta, kind), const(small.mantissa, kind))
    sign = shift_left(cast(shift_right(bits, const(wide.bits - 1, word)), kind), const(small.bits - 1, kind))
    return if_then_else(compare(LT, field, delta), const(0, kind), bitwise_or(bitwise_or(mantissa, exponent), sign))
