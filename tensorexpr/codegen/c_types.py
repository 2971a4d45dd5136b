"""How dtypes, constants and names are spelled in C.

A value of float16, bfloat16 or float8 is the `float` that it equals, and its bits in memory; a bool is a byte there.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..errors import CodegenError
from ..tir.dtype import parse_dtype

_KEYWORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
    return short signed sizeof static struct switch typedef union unsigned void volatile while int32_t int64_t"""
KEYWORDS = frozenset(_KEYWORDS.split())
# What else of C and of the text itself can't be the name of a variable.
_TAKEN = """bool true false NULL NAN INFINITY main asm typeof int8_t int16_t uint8_t uint16_t uint32_t uint64_t uintptr_t size_t malloc free
    memcpy args arg_type_ids num_args out_ret_value out_ret_tcode resource_handle words DLTensor TVMValue TVM_DLL y0 y1 yn j0 j1 jn gamma
    signgam index time div abs labs round log exp pow sin cos tan class new delete this private public template operator namespace using
    try catch throw virtual friend and or not xor bitand bitor compl and_eq or_eq xor_eq not_eq unix linux errno stdin stdout stderr"""
RESERVED = KEYWORDS | frozenset(_TAKEN.split())
_WIDTHS = (8, 16, 32, 64)


def _unknown(dtype: str) -> CodegenError:
    return CodegenError(f"{dtype} has no C: cast it to a type that has, such as int8 or float32, or build for target llvm")


@cache
def value_type(dtype: str) -> str:
    """The C type of a value of a scalar dtype.

    Raises:
        CodegenError: for integers of other than 8, 16, 32 and 64 bits.
    """
    parsed = parse_dtype(dtype)
    match parsed.code:
        case "bool" | "void":
            return parsed.code
        case "handle":
            return "void*"
        case "int" | "uint" if parsed.bits in _WIDTHS:
            return f"{parsed.code}{parsed.bits}_t"
    if parsed.is_float:
        return "double" if parsed.bits == 64 else "float"
    raise _unknown(dtype)


@cache
def memory_type(dtype: str) -> str:
    """The C type of an element in memory."""
    parsed = parse_dtype(dtype)
    if is_narrow(dtype):
        return f"uint{parsed.bits}_t"
    if parsed.is_int:
        return f"{parsed.code}{8 * parsed.itemsize}_t"  # an int4 takes a byte
    return "uint8_t" if parsed.code == "bool" else value_type(str(parsed.scalar))


@cache
def is_narrow(dtype: str) -> bool:
    """True for the floats that C has no type for."""
    parsed = parse_dtype(dtype)
    return parsed.is_float and parsed.bits < 32


def computed_in(dtype: str) -> str:
    """The dtype that C computes values of a scalar dtype in."""
    return "float32" if is_narrow(dtype) else dtype


@cache
def int_literal(value: int, dtype: str) -> str:
    """An integer, bool or null constant."""
    parsed = parse_dtype(dtype)
    if parsed.code == "bool":
        return "true" if value else "false"
    if parsed.code == "handle":
        return "NULL"
    if value == -(1 << (parsed.bits - 1)) and parsed.bits >= 32 and parsed.is_signed:
        return f"({int_literal(value + 1, dtype)} - 1)"  # C has no negative literals: its magnitude alone would not fit
    suffix = ("" if parsed.is_signed else "u") if parsed.bits <= 32 else ("ll" if parsed.is_signed else "ull")
    return f"{value}{suffix if parsed.bits >= 32 else ''}"


def float_literal(value: float, dtype: str) -> str:
    """A float constant, in the fewest digits that give it back. (No cache: to it 0.0 and -0.0 are one.)"""
    suffix = "" if dtype == "float64" else "f"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(float(value)) if dtype == "float64" else str(np.float32(value))
    return f"{text}{'' if any(c in text for c in '.e') else '.0'}{suffix}"


def name_in_c(name: str) -> str:
    """A C identifier like `name`."""
    clean = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name) or "_"
    return f"_{clean}" if clean[0].isdigit() or clean in KEYWORDS else clean


def function_in_c(name: str) -> str:
    """What a function is called in C, where `main` is a function of another form: as TVM calls the entry function of C."""
    return "__tvm_main__" if name == "main" else name


class Names:
    """Names of one function, or of a file: each is given once."""

    def __init__(self, taken: frozenset[str] = RESERVED) -> None:
        self._used = set(taken)

    def fresh(self, hint: str) -> str:
        """A name like `hint` that is not taken: the hint itself, else with a number."""
        clean = name = name_in_c(hint)
        number = 0
        while name in self._used:
            number += 1
            name = f"{clean}_{number}"
        self._used.add(name)
        return name

    def release(self, name: str) -> None:
        """Let the name be given again, as that of a variable whose block has ended."""
        self._used.discard(name)
