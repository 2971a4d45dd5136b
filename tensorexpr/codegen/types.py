"""How dtypes and constants are spelled in LLVM IR.

A value of dtype bool is an `i1` (a vector of them is a mask); in memory it takes a byte. float16 and bfloat16 are their
bits, an `i16`: LLVM would carry them between blocks as floats, and round them by calls of a library that no process has,
wherever the machine lacks the type. The float8 types are bits that are moved and converted.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache

import numpy as np

from ..errors import CodegenError
from ..tir.dtype import DataType, parse_dtype, to_numpy

POISON = "poison"
INDEX = "i64"
LOW_PRECISION = ("float16", "bfloat16")

_FLOATS = {8: "i8", 16: "i16", 32: "float", 64: "double"}
_SUFFIXES = {"float": "f32", "double": "f64"}


def _scalar_type(parsed: DataType) -> str:
    if parsed.is_float:
        return _FLOATS[parsed.bits]
    return "ptr" if parsed.code == "handle" else f"i{parsed.bits}"


def vector_of(scalar: str, lanes: int) -> str:
    """The LLVM type of `lanes` values of the LLVM type `scalar`; one lane is a scalar."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


class _TypeTable(dict[str, str]):
    """dtype -> LLVM type, filled on first use."""

    def __init__(self, in_memory: bool) -> None:
        super().__init__()
        self._in_memory = in_memory

    def __missing__(self, dtype: str) -> str:
        parsed = parse_dtype(dtype)
        scalar = "i8" if self._in_memory and parsed.code == "bool" else _scalar_type(parsed)
        found = self[dtype] = vector_of(scalar, parsed.lanes)
        return found


VALUE_TYPE = _TypeTable(in_memory=False)
MEMORY_TYPE = _TypeTable(in_memory=True)


def computed(dtype: DataType) -> None:
    """Refuse to compute with values of a dtype that no instruction knows.

    Raises:
        CodegenError: for float8.
    """
    if dtype.is_float and dtype.bits == 8:
        raise CodegenError(
            f"code moves and converts {dtype}, but computes in wider types: cast the operands to float32, and the result back"
        )


@cache
def suffix(llvm_type: str) -> str:
    """How a type is spelled in the name of an overloaded intrinsic: `<8 x float>` is `v8f32`."""
    if llvm_type.startswith("<"):
        lanes, _, scalar = llvm_type[1:-1].partition(" x ")
        return f"v{lanes}{suffix(scalar)}"
    return _SUFFIXES.get(llvm_type, llvm_type)


def float_bits(value: float, dtype: str) -> str:
    """A float constant by its bits, so that no digit is lost; `value` is rounded to the scalar `dtype` already."""
    with np.errstate(over="ignore"):
        if dtype == "bfloat16":
            return str(struct.unpack("<I", struct.pack("<f", value))[0] >> 16)
        if dtype == "float16":
            return str(int(np.float16(value).view(np.uint16)))
        if "float8" in dtype:
            return str(int(np.array(value, to_numpy(dtype)).view(np.uint8)))
    # LLVM takes float32 constants, too, by the bits of the double of that value.
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@lru_cache(maxsize=4096)
def int_constant(value: int, dtype: str) -> str:
    """An integer, bool or null constant of a scalar dtype."""
    code = parse_dtype(dtype).code
    if code == "bool":
        return "true" if value else "false"
    return "null" if code == "handle" else str(value)


def splat(scalar_type: str, constant: str, lanes: int) -> str:
    """A constant in every lane."""
    return constant if lanes == 1 else f"splat ({scalar_type} {constant})"


def vector_constant(scalar_type: str, values: tuple[str, ...]) -> str:
    """A vector of constants."""
    return f"<{', '.join(f'{scalar_type} {value}' for value in values)}>"


def size_in_bytes(dtype: str) -> int:
    """Bytes of one value of `dtype` in memory, all lanes."""
    parsed = parse_dtype(dtype)
    return parsed.itemsize * parsed.lanes


def zero(dtype: str) -> str:
    """The zero of a dtype."""
    parsed = parse_dtype(dtype)
    if parsed.lanes > 1:
        return "zeroinitializer"
    return float_bits(0.0, dtype) if parsed.is_float else int_constant(0, dtype)


def identifier(name: str) -> str:
    """A variable's name made fit for a local value: letters, digits, dots and underscores, and no digit first."""
    fit = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "_" for c in name)
    return f"_{fit}" if fit[:1].isdigit() else fit


def symbol(name: str) -> str:
    """The global name of a function, quoted where its spelling asks for it."""
    if name and not name[0].isdigit() and all(c.isascii() and (c.isalnum() or c in "._$-") for c in name):
        return f"@{name}"
    escaped = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in name)
    return f'@"{escaped}"'
