"""Data types as users write them: ``"float32"``, ``"int8"``, ``"bool"``, ``"bfloat16"``, ``"float32x8"``, ``"handle"``.

A dtype is its string everywhere in the IR; `DataType` is the parsed form, cached.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from ..dataclass import dataclass
from ..errors import TypeMismatchError

_PATTERN = re.compile(r"^(float|int|uint|bfloat|e4m3_float|e5m2_float|handle)(\d+)?(?:x(vscalex)?(\d+))?$")
_BITS: dict[str, Sequence[int]] = {
    "float": (16, 32, 64), "int": range(1, 65), "uint": range(1, 65),
    "bfloat": (16,), "e4m3_float": (8,), "e5m2_float": (8,), "handle": (64,),
}  # fmt: skip
_USUAL = (4, 8, 16, 32, 64)  # integers of other widths can be computed with; arrays of them have no form in memory
_UNSAID_BITS = {"float": 32, "int": 32, "uint": 32, "handle": 64}
DType: TypeAlias = str
"""A dtype as a field of a node, where "int", "uint" and "float" become their usual widths."""

_FLOATS = frozenset(("float", "bfloat", "e4m3_float", "e5m2_float"))
_ML_DTYPES = {"bfloat16": "bfloat16", "e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2", "int4": "int4", "uint4": "uint4"}
_LARGEST_HALF = 65504.0  # texts of the largest float32 are a bit larger than it is, those of this one never


@dataclass(frozen=True, slots=True)
class DataType:
    """A parsed dtype: `code` is one of float, bfloat, e4m3_float, e5m2_float, int, uint, bool, handle; `bits` per lane.

    `lanes` >= 1; of scalable vectors it is minus the number that `tir.vscale()` multiplies.
    """

    code: str
    bits: int
    lanes: int

    @property
    def is_float(self) -> bool:
        """True for float16/32/64 and bfloat16."""
        return self.code in _FLOATS

    @property
    def is_int(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.code in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """True where negative values exist."""
        return self.code == "int" or self.code in _FLOATS

    @property
    def itemsize(self) -> int:
        """Bytes of one lane in memory."""
        # bool and int4 take a byte each.
        return max(self.bits, 8) // 8

    @property
    def scalar(self) -> DataType:
        """The same type with one lane."""
        return DataType(self.code, self.bits, 1)

    def with_lanes(self, lanes: int) -> DataType:
        """The same type with `lanes` lanes."""
        return DataType(self.code, self.bits, lanes)

    def __str__(self) -> str:
        """The dtype as the IR spells it."""
        base = self.code if self.code in ("bool", "handle", "void") else f"{self.code}{self.bits}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}" if self.lanes > 0 else f"{base}xvscalex{-self.lanes}"


class IntValue(int):
    """An integer of a node, such as the lanes of a vector, that reads as an `IntImm`, too: it has `value` and `dtype`."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The integer."""
        return int(self)

    @property
    def dtype(self) -> str:
        """Always int32."""
        return "int32"


@cache
def parse_dtype(dtype: str) -> DataType:
    """Parse a dtype string.

    Raises:
        TypeMismatchError: for a name that is no dtype; the message lists the known ones.
    """
    if not isinstance(dtype, str):
        raise TypeMismatchError(f"a dtype is a string such as 'float32', not {dtype!r}")
    if dtype == "void":  # of a call that gives nothing
        return DataType("void", 0, 1)
    base, _, rest = dtype.partition("x")
    # TVM calls bools of a vector uint1, as in uint1x4.
    lanes = rest.removeprefix("vscalex")
    if dtype in ("bool", "uint1") or (base in ("bool", "uint1") and lanes.isascii() and lanes.isdecimal() and int(lanes) > 0):
        count = int(lanes or 1)
        return DataType("bool", 1, count if lanes == rest else -count)
    found = _PATTERN.fullmatch(dtype)
    if found and int(found[4] or 1) > 0:
        code, bits, count = found[1], int(found[2] or _UNSAID_BITS.get(found[1], 0)), int(found[4] or 1)
        if bits in _BITS[code]:
            return DataType(code, bits, -count if found[3] else count)
    known = [f"{code}{bits}" for code, widths in _BITS.items() for bits in widths if bits in _USUAL and code != "handle"]
    raise TypeMismatchError(f"{dtype!r} is no dtype; known: bool, {', '.join(known)}, each also with lanes as in 'float32x8'")


def full_dtype(dtype: str) -> DType:
    """A dtype with the bits that "int", "uint" and "float" leave out."""
    return f"{dtype}{_UNSAID_BITS[dtype]}" if dtype in _UNSAID_BITS and dtype != "handle" else dtype


@cache
def with_lanes(dtype: str, lanes: int) -> str:
    """The dtype string of `lanes` elements of the scalar type of `dtype`."""
    return str(parse_dtype(dtype).with_lanes(lanes))


@cache
def scalar_dtype(dtype: str) -> str:
    """The dtype string of one lane."""
    return str(parse_dtype(dtype).scalar)


@cache
def int_limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool dtype."""
    parsed = parse_dtype(dtype)
    if parsed.code == "bool":
        return 0, 1
    if parsed.code == "int":
        return -(1 << (parsed.bits - 1)), (1 << (parsed.bits - 1)) - 1
    if parsed.code == "uint":
        return 0, (1 << parsed.bits) - 1
    raise TypeMismatchError(f"{dtype} is no integer type")


def wrap_int(value: int, dtype: str) -> int:
    """`value` reduced to the two's complement range of an integer dtype, as the machine would."""
    low, high = int_limits(dtype)
    # From 0 at the lowest value: Python's % is never negative, so 200 of int8 is (200 + 128) % 256 - 128 = -56.
    return (value - low) % (high - low + 1) + low


@cache
def to_numpy(dtype: str) -> np.dtype[np.generic]:
    """The NumPy dtype of one lane; bfloat16, fp8 and int4 come from ml_dtypes, imported on first use."""
    parsed = parse_dtype(dtype)
    special = _ML_DTYPES.get(str(parsed.scalar))
    if special is not None:
        import ml_dtypes

        return cast("np.dtype[np.generic]", np.dtype(getattr(ml_dtypes, special)))
    if parsed.code == "handle":
        return np.dtype(np.uint64)
    if parsed.is_int and parsed.bits not in _USUAL:
        raise TypeMismatchError(f"arrays of {parsed.scalar} have no form in memory; use int{1 << max(parsed.bits - 1, 7).bit_length()}")
    return np.dtype(str(parsed.scalar))


@lru_cache(256)  # NumPy makes the name anew each time
def from_numpy(dtype: np.dtype[np.generic] | type) -> str:
    """The dtype string of a NumPy dtype.

    Raises:
        TypeMismatchError: for dtypes the IR has no name for (complex, structured, strings, ...).
    """
    name: str = np.dtype(dtype).name
    name = next((own for own, theirs in _ML_DTYPES.items() if theirs == name), name)
    parse_dtype(name)
    return name


def round_float(value: float, dtype: str) -> float:
    """The nearest value that a float dtype has.

    Raises:
        TypeMismatchError: for a finite value beyond the range of the dtype, or a dtype that is no float.
    """
    if dtype == "float64":
        return value
    rounded = rounded_float(value, dtype)
    if (not math.isfinite(rounded) or (dtype == "float16" and abs(value) > _LARGEST_HALF)) and math.isfinite(value):
        raise TypeMismatchError(f"{value} is beyond the range of {dtype}; use a wider dtype")
    return rounded


def shortest_decimal(value: float, dtype: str) -> float:
    """The number of fewest digits that the float dtype rounds to `value`, which it has: 0.1 for float32's 0.10000000149011612.

    Whole numbers are themselves: float16's largest stays 65504, which 65500 is rounded to.
    """
    if dtype == "float64" or value.is_integer():
        return value
    decimals = (float(f"{value:.{digits}g}") for digits in range(1, 10))  # 9 digits tell any two float32 apart
    return next((decimal for decimal in decimals if rounded_float(decimal, dtype) == value), value)


def rounded_float(value: float, dtype: str) -> float:
    """The value as a machine would round it, beyond the range to infinity."""
    if dtype == "float64":
        return value
    if not parse_dtype(dtype).is_float:
        raise TypeMismatchError(f"{value} as a float constant of {dtype}; write an integer or a float dtype")
    return float(narrowed(np.float64(value), dtype))


def narrowed(values: Any, dtype: str) -> Any:
    """float64, int64 or uint64 numbers (an array or a scalar of NumPy) as floats of `dtype`, rounded once, to the nearest even."""
    wanted = to_numpy(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if wanted.kind == "f" and wanted.isbuiltin == 1:
            return values.astype(wanted)
        return _odd_single(_odd_double(values)).astype(wanted)


# ml_dtypes converts by way of float32, and there 1 + 2**-8 + 2**-40 becomes the tie 1 + 2**-8, which bfloat16 rounds down to 1. Rounding
# to odd on the way (Boldo and Melquiond) leaves a trace of what was lost in the last bit, so the second rounding is that of the number.
def _odd_single(doubles: Any) -> Any:
    near = doubles.astype(np.float32)
    bits = near.view(np.uint32)
    inexact = (near.astype(np.float64) != doubles) & np.isfinite(doubles)
    above = np.abs(near.astype(np.float64)) > np.abs(doubles)
    # As integers the bits of a float are in the order of its size: one less is the next one towards 0.
    return np.where(inexact, (bits - above) | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def _odd_double(values: Any) -> Any:
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    cut = values.dtype.type(0x7FF)  # 64 bits less float64's 53
    # the sum carries into bit 11 if any bit below is set, which makes that bit the sticky one
    odd = (values | ((values & cut) + cut)) & ~cut
    # up to 2**53 float64 holds every integer
    beyond = (values > 1 << 53) | (values < -(1 << 53)) if values.dtype.kind == "i" else values > 1 << 53
    return np.where(beyond, odd, values).astype(np.float64)
