"""Values as expressions: constants of a dtype, Python numbers beside expressions, one dtype for both operands, casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DeclarationError, TypeMismatchError
from .dtype import from_numpy, int_limits, parse_dtype, rounded_float, scalar_dtype, with_lanes, wrap_int
from .expr import Broadcast, Cast, ExprOp, FloatImm, IntImm, PrimExpr, StringImm


def const(value: Any, dtype: str | None = None, span: object = None) -> PrimExpr:
    """A constant of `dtype`; without one, bool, int32 (int64 if it must) or float32 (float64) after the Python value.

    Raises:
        TypeMismatchError: if the value has no place in the dtype.
    """
    dtype = _natural_dtype(value) if dtype is None else str(dtype)
    parsed = parse_dtype(dtype)
    if parsed.lanes > 1:
        return Broadcast(const(value, scalar_dtype(dtype)), parsed.lanes)
    if parsed.is_float:
        return FloatImm(dtype, float(value))
    if parsed.code == "handle":
        return StringImm(str(value))
    if isinstance(value, (float, np.floating)) and not float(value).is_integer():
        raise TypeMismatchError(f"{value} is no {dtype}; write a float dtype or round it first")
    return IntImm(dtype, int(value))


_FLOAT32_MAX = float(np.finfo(np.float32).max)


def _natural_dtype(value: Any) -> str:
    """The dtype that a number of Python or NumPy takes on its own."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, np.generic):
        return from_numpy(value.dtype)
    if isinstance(value, (int, np.integer)):
        return "int32" if -(1 << 31) <= value < (1 << 31) else "int64" if value < (1 << 63) else "uint64"
    if not isinstance(value, float):
        raise TypeMismatchError(f"a constant is made of a number, not of {value!r}")
    return "float64" if _FLOAT32_MAX < abs(value) < np.inf else "float32"  # an infinity has its place in float32, too


def convert(expr: Any, dtype: str | None = None) -> PrimExpr:
    """`expr` as an expression: nodes stay, axes and tensors say what they stand for, Python numbers become constants.

    Raises:
        DeclarationError: for objects that are no expression.
    """
    if isinstance(expr, PrimExpr):
        return expr
    if isinstance(expr, ExprOp):
        return expr.asobject()
    if isinstance(expr, (bool, int, float, np.bool_, np.integer, np.floating)):
        return const(expr, dtype)
    if isinstance(expr, np.generic) and expr.dtype.name == "bfloat16":  # ml_dtypes' scalars are no np.floating
        return const(expr, dtype)
    if isinstance(expr, str):
        return StringImm(expr)
    raise DeclarationError(f"{expr!r} ({type(expr).__name__}) is no expression; use numbers, tir expressions, axes or tensor elements")


def as_int(expr: Any) -> int | None:
    """The value of an integer constant (or an int of Python or NumPy), else None."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, int):
        return expr
    return int(expr) if isinstance(expr, np.integer) else None


def is_const_int(expr: Any, value: int) -> bool:
    """True if `expr` is the integer constant `value`."""
    return isinstance(expr, IntImm) and expr.value == value


def match_types(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Both operands in one dtype, as TVM has it: integers become floats; the wider wins, of equal widths the unsigned;
    lanes broadcast. A Python integer is an int32 or more, a Python float a float32 or more."""
    # A Python number takes after the other operand, on either side; of two of them the first counts.
    if not isinstance(a, ExprOp) and isinstance(b, ExprOp):
        second = convert(b)
        first = _adapt(a, second.dtype)
    else:
        first = convert(a)
        second = convert(b) if isinstance(b, ExprOp) else _adapt(b, first.dtype)
    if first.dtype == second.dtype:
        return first, second
    left, right = parse_dtype(first.dtype), parse_dtype(second.dtype)
    if left.lanes != right.lanes:
        if left.lanes == 1:
            return match_types(Broadcast(first, right.lanes), second)
        if right.lanes == 1:
            return match_types(first, Broadcast(second, left.lanes))
        raise TypeMismatchError(f"vectors of {left.lanes} and {right.lanes} lanes can't be combined: {first} and {second}")
    common = with_lanes(_common_dtype(first, second), left.lanes)
    return cast(first, common), cast(second, common)


def _common_dtype(first: PrimExpr, second: PrimExpr) -> str:
    left, right = parse_dtype(first.dtype).scalar, parse_dtype(second.dtype).scalar
    if "handle" in (left.code, right.code):
        raise TypeMismatchError(f"{first} ({first.dtype}) and {second} ({second.dtype}) can't be combined")
    if left.is_float != right.is_float:
        return str(left if left.is_float else right)
    if left.is_float:
        if left.bits == right.bits:
            return "float32"  # float16 with bfloat16: neither holds the other
        return str(left if left.bits > right.bits else right)
    if left.bits == right.bits and left.code != right.code:
        return str(left if left.code == "uint" else right)
    return str(left if left.bits >= right.bits else right)


def _adapt(value: Any, dtype: str) -> PrimExpr:
    """A Python number beside a value of `dtype`: in that dtype, unless it is narrower than what Python numbers are or would lose it."""
    parsed = parse_dtype(dtype)
    if isinstance(value, (bool, np.bool_)):
        return const(int(value), dtype) if parsed.code != "handle" else const(value)
    if isinstance(value, (int, np.integer)):
        if parsed.is_float:
            return const(value, dtype)
        if parsed.is_int and parsed.bits >= 32:
            low, high = int_limits(scalar_dtype(dtype))
            if low <= int(value) <= high:
                return const(value, dtype)
            # x + 2**40 of an int32 x is computed in int64.
            return const(value, with_lanes("int64", parsed.lanes))
        return const(int(value), with_lanes(_natural_dtype(int(value)), parsed.lanes))
    if isinstance(value, (float, np.generic)):
        own = _natural_dtype(value)
        if parsed.is_float and parsed.bits >= parse_dtype(own).bits:
            return const(value, dtype)
        return const(value, with_lanes(own, parsed.lanes))
    return convert(value)


def cast(value: Any, dtype: str) -> PrimExpr:
    """`value` converted to `dtype`; a scalar becomes a vector if the dtype has lanes."""
    expr = convert(value)
    if expr.dtype == dtype:
        return expr
    source, wanted = parse_dtype(expr.dtype), parse_dtype(dtype)
    if source.lanes != wanted.lanes:
        if source.lanes > 1:
            raise TypeMismatchError(f"{expr} has {source.lanes} lanes and can't become {dtype}")
        # The scalar first: a vector is never converted lane by lane where all lanes are one number.
        return Broadcast(cast(expr, scalar_dtype(dtype)), wanted.lanes)
    if "handle" in (source.code, wanted.code):
        raise TypeMismatchError(f"{expr} ({expr.dtype}) can't be converted to {dtype}; use tir.reinterpret")
    if isinstance(expr, Broadcast):
        return Broadcast(cast(expr.value, scalar_dtype(dtype)), expr.lanes)
    if isinstance(expr, IntImm):
        if wanted.is_float:
            return FloatImm(dtype, rounded_float(_sticky(expr.value, dtype), dtype))
        return IntImm(dtype, int(expr.value != 0) if wanted.code == "bool" else wrap_int(expr.value, dtype))
    if isinstance(expr, FloatImm) and wanted.is_float:
        return FloatImm(dtype, rounded_float(float(expr), dtype))
    return Cast(dtype, expr)


def _sticky(value: int, dtype: str) -> float:
    """An integer as a float64 that rounds to a narrower `dtype` as the integer does: 2**60 + 2**36 + 1 is above the tie of float32."""
    cut = abs(value).bit_length() - 53
    if cut <= 0 or dtype == "float64":
        return float(value)
    # What doesn't fit leaves its trace in the last bit: rounding to odd (Boldo and Melquiond).
    kept = (abs(value) >> cut) | bool(abs(value) & ((1 << cut) - 1))
    return float(kept << cut) if value > 0 else -float(kept << cut)
