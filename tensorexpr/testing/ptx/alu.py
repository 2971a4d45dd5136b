"""What single instructions compute: functions on arrays of a value for each thread, as unsigned integers that hold the bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BITS: Mapping[str, Any] = {
    **{"pred": np.bool_, "b8": np.uint8, "u8": np.uint8, "s8": np.uint8},
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), np.uint16),
    **dict.fromkeys(("b32", "u32", "s32", "f32", "f16x2", "bf16x2", "tf32"), np.uint32),
    **dict.fromkeys(("b64", "u64", "s64", "f64"), np.uint64),
}
KIND: Mapping[str, Any] = {
    **BITS,
    **{"s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64},
    **{"bf16": ml_dtypes.bfloat16, "f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16},
}
SIZE = {name: np.dtype(kind).itemsize for name, kind in BITS.items()}


def seen(value: Array, kind: str) -> Array:
    """Bits as values of a type."""
    wanted = KIND[kind]
    return value if value.dtype == wanted else value.astype(BITS[kind], copy=False).view(wanted)


def bits(value: Array, kind: str) -> Array:
    """Values of a type as bits."""
    stored = BITS[kind]
    return np.ascontiguousarray(value).view(stored) if value.dtype != stored else value


def _wide(kind: str) -> Any:
    return {"u16": np.uint32, "s16": np.int32, "u32": np.uint64, "s32": np.int64, "b16": np.uint32, "b32": np.uint64}[kind]


def _divided(a: Array, b: Array, kind: str) -> Array:
    if kind.startswith("f"):
        return a / b
    safe = np.where(b == 0, 1, b)
    quotient = np.abs(a.astype(object)) // np.abs(safe.astype(object)) if kind.endswith("64") else None
    if quotient is not None:
        signed = np.where((a < 0) != (b < 0), -quotient, quotient)
        return np.array([int(x) & (2**64 - 1) for x in signed], np.uint64).view(KIND[kind])
    wide_a, wide_b = a.astype(np.int64), safe.astype(np.int64)
    return np.asarray((np.sign(wide_a) * np.sign(wide_b) * (np.abs(wide_a) // np.abs(wide_b))).astype(KIND[kind]))


def _remainder(a: Array, b: Array, kind: str) -> Array:
    return np.asarray(a - _divided(a, b, kind) * b)


def _halves(a: Array) -> tuple[Array, Array]:
    """A double as the sum of two of 26 bits."""
    high = a * 134217729.0
    high = high - (high - a)
    return high, a - high


def _fma_of_doubles(a: Array, b: Array, c: Array) -> Array:
    """a * b + c from the exact errors of the product and of the sum (Dekker 1971, Knuth's two-sum): what cancels leaves all its digits."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    part = total - product
    lost = lost + ((product - (total - part)) + (c - part))
    return np.asarray(np.where(np.isfinite(lost), total + lost, total))


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float32:
        # The product is exact in a double; its sum is rounded twice, which differs from once by half an ulp in rare cases.
        return (np.multiply(a, b, dtype=np.float64) + c).astype(np.float32)
    if a.dtype == np.float64:
        return _fma_of_doubles(a, b, c)
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)


def _extreme(a: Array, b: Array, words: tuple[str, ...], least: bool) -> Array:
    if np.issubdtype(a.dtype, np.integer):
        return np.minimum(a, b) if least else np.maximum(a, b)
    if "NaN" in words:
        return np.minimum(a, b) if least else np.maximum(a, b)
    return np.fmin(a, b) if least else np.fmax(a, b)


def _shift(a: Array, b: Array, left: bool) -> Array:
    width = a.dtype.itemsize * 8
    amount = np.minimum(b.astype(np.uint32), width)
    if left:
        return np.where(amount >= width, 0, a << np.minimum(amount, width - 1).astype(a.dtype)).astype(a.dtype)
    small = np.minimum(amount, width - 1).astype(a.dtype)
    if np.issubdtype(a.dtype, np.signedinteger):
        return np.asarray(a >> small)
    return np.where(amount >= width, 0, a >> small).astype(a.dtype)


def binary(op: str, words: tuple[str, ...], kind: str, a: Array, b: Array) -> Array:
    """An instruction of two operands and one result of one type."""
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            if "hi" in words:
                if a.dtype.itemsize == 8:  # NumPy has nothing wider; object's integers have no end
                    high = (a.astype(object) * b.astype(object)) >> 64
                    return np.array([int(x) & (2**64 - 1) for x in high], np.uint64).view(a.dtype)
                wide = _wide(kind)
                return np.asarray(((a.astype(wide) * b.astype(wide)) >> (8 * a.dtype.itemsize)).astype(a.dtype))
            return a * b
        case "div":
            return _divided(a, b, kind)
        case "rem":
            return _remainder(a, b, kind)
        case "min" | "max":
            return _extreme(a, b, words, op == "min")
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl" | "shr":
            return _shift(a, b, op == "shl")
        case "copysign":
            return np.copysign(b, a)
    raise KeyError(op)


def unary(op: str, kind: str, a: Array) -> Array:
    """An instruction of one operand."""
    one = UNARY[op]
    return one(a)


def _leading_zeros(a: Array) -> Array:
    width, result = a.dtype.itemsize * 8, np.zeros(a.shape, np.uint32)
    for bit in range(width):
        result += (a >> a.dtype.type(bit)) == 0
    return result


def _reversed(a: Array) -> Array:
    found = np.zeros_like(a)
    for bit in range(a.dtype.itemsize * 8):
        found = (found << a.dtype.type(1)) | ((a >> a.dtype.type(bit)) & a.dtype.type(1))
    return found


def _bit_count(a: Array) -> Array:
    return np.asarray(sum(((a >> a.dtype.type(bit)) & a.dtype.type(1)).astype(np.uint32) for bit in range(a.dtype.itemsize * 8)))


UNARY: Mapping[str, Callable[[Array], Array]] = {
    "neg": lambda a: -a,
    "abs": np.abs,
    "not": lambda a: ~a,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: (1 / np.sqrt(a)).astype(a.dtype),
    "rcp": lambda a: (1 / a).astype(a.dtype),
    "ex2": lambda a: np.exp2(a.astype(np.float64)).astype(a.dtype),
    "lg2": lambda a: np.log2(a.astype(np.float64)).astype(a.dtype),
    "sin": lambda a: np.sin(a.astype(np.float64)).astype(a.dtype),
    "cos": lambda a: np.cos(a.astype(np.float64)).astype(a.dtype),
    "tanh": lambda a: np.tanh(a.astype(np.float64)).astype(a.dtype),
    "popc": _bit_count,
    "clz": _leading_zeros,
    "brev": _reversed,
}

COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a != b) & ~_unordered(a, b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
    "equ": lambda a, b: (a == b) | _unordered(a, b),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~_unordered(a, b),
    "nan": lambda a, b: _unordered(a, b),
}


def _unordered(a: Array, b: Array) -> Array:
    if a.dtype == np.bool_ or np.issubdtype(a.dtype, np.integer):
        return np.zeros(a.shape, np.bool_)
    return np.isnan(a) | np.isnan(b)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    return _fma(a, b, c)


def converted(value: Array, words: tuple[str, ...], want: str, have: str) -> Array:
    """cvt: between types, with the rounding that its words say."""
    a = seen(value, have)
    floating = have in ("f16", "f32", "f64", "bf16")
    if floating and want in ("f16", "f32", "f64", "bf16", "tf32"):
        for word, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
            if word in words:
                a = function(a)
        if want == "tf32":
            return np.asarray((a.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000))
        return bits(np.clip(a, 0, 1).astype(KIND[want]) if "sat" in words else a.astype(KIND[want]), want)
    if floating:
        whole = np.rint(a.astype(np.float64)) if "rni" in words else np.trunc(a.astype(np.float64))
        whole = np.floor(a.astype(np.float64)) if "rmi" in words else np.ceil(a.astype(np.float64)) if "rpi" in words else whole
        info = np.iinfo(KIND[want])
        limited = np.clip(np.nan_to_num(whole, nan=0.0, posinf=float(info.max), neginf=float(info.min)), float(info.min), float(info.max))
        top = limited >= float(info.max)
        return bits(np.where(top, info.max, np.where(top, 0, limited).astype(KIND[want])).astype(KIND[want]), want)
    if want in ("f16", "f32", "f64", "bf16"):
        return bits(a.astype(np.float32).astype(KIND[want]) if want == "bf16" else a.astype(KIND[want]), want)
    if "sat" in words:
        info = np.iinfo(KIND[want])
        a = np.clip(a.astype(object), info.min, info.max)
    return bits(a.astype(KIND[want]), want)


def permuted(a: Array, b: Array, selector: Array) -> Array:
    """prmt: four bytes picked from eight."""
    joined = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    result = np.zeros(a.shape, np.uint32)
    for at in range(4):
        pick = (selector >> np.uint32(4 * at)) & np.uint32(15)
        byte = ((joined >> ((pick & np.uint32(7)).astype(np.uint64) * np.uint64(8))) & np.uint64(255)).astype(np.uint32)
        byte = np.where(pick & np.uint32(8), np.where(byte & np.uint32(128), 255, 0), byte).astype(np.uint32)
        result |= byte << np.uint32(8 * at)
    return result


def combined(a: Array, b: Array, c: Array, table: int) -> Array:
    """lop3: any function of three bits."""
    result = np.zeros(a.shape, a.dtype)
    for number in range(8):
        if table >> number & 1:
            result |= (a if number & 4 else ~a) & (b if number & 2 else ~b) & (c if number & 1 else ~c)
    return result
