"""Data types as users write them: ``"float32"``, ``"int8"``, ``"bool"``, ``"bfloat16"``, ``"float32x8"``, ``"handle"``.

A dtype is its string everywhere in the IR; `DataType` is the parsed form, cached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np

from ..errors import TypeMismatchError

_PATTERN = re.compile(r"^(float|int|uint|bfloat)(\d+)(?:x(\d+))?$")
_BITS = {"float": (16, 32, 64), "int": (8, 16, 32, 64), "uint": (1, 8, 16, 32, 64), "bfloat": (16,)}
INDEX_DTYPE = "int32"


@dataclass(frozen=True, slots=True)
class DataType:
    """A parsed dtype: `code` is one of float, bfloat, int, uint, bool, handle; `bits` per lane; `lanes` >= 1."""

    code: str
    bits: int
    lanes: int

    @property
    def is_float(self) -> bool:
        """True for float16/32/64 and bfloat16."""
        return self.code in ("float", "bfloat")

    @property
    def is_int(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.code in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """True where negative values exist."""
        return self.code in ("int", "float", "bfloat")

    @property
    def itemsize(self) -> int:
        """Bytes of one lane in memory."""
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
        base = self.code if self.code in ("bool", "handle") else f"{self.code}{self.bits}"
        return base if self.lanes == 1 else f"{base}x{self.lanes}"


@cache
def parse_dtype(dtype: str) -> DataType:
    """Parse a dtype string.

    Raises:
        TypeMismatchError: for a name that is no dtype; the message lists the known ones.
    """
    if not isinstance(dtype, str):
        raise TypeMismatchError(f"a dtype is a string such as 'float32', not {dtype!r}")
    base, _, lanes = dtype.partition("x")
    if base in ("bool", "uint1"):
        return DataType("bool", 1, int(lanes) if lanes.isdigit() and int(lanes) > 0 else 1)
    if base == "handle" and not lanes:
        return DataType("handle", 64, 1)
    found = _PATTERN.match(dtype)
    if found and int(found[2]) in _BITS[found[1]] and int(found[3] or 1) > 0:
        return DataType(found[1], int(found[2]), int(found[3] or 1))
    known = [f"{code}{bits}" for code, widths in _BITS.items() for bits in widths if bits > 1]
    raise TypeMismatchError(f"{dtype!r} is no dtype; known: bool, {', '.join(known)}, each also with lanes as in 'float32x8'")


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
    return (value - low) % (high - low + 1) + low


@cache
def to_numpy(dtype: str) -> np.dtype[np.generic]:
    """The NumPy dtype of one lane; bfloat16 comes from ml_dtypes, imported on first use."""
    parsed = parse_dtype(dtype)
    if parsed.code == "bfloat":
        import ml_dtypes

        return cast("np.dtype[np.generic]", np.dtype(ml_dtypes.bfloat16))
    if parsed.code == "handle":
        return np.dtype(np.uint64)
    return np.dtype(str(parsed.scalar))


def from_numpy(dtype: np.dtype[np.generic] | type) -> str:
    """The dtype string of a NumPy dtype.

    Raises:
        TypeMismatchError: for dtypes the IR has no name for (complex, structured, strings, ...).
    """
    name: str = np.dtype(dtype).name
    parse_dtype(name)
    return name
