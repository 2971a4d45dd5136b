"""Builders of bit operations and shifts: on bools the connectives, on integers intrinsics, constants folded.

Python numbers take the dtype of the other operand here, as bits are counted in it: `mask & 1` stays uint8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import compare, convert, logical_and, logical_not, logical_or, match_types
from .dtype import parse_dtype, wrap_int
from .expr import NE, Call, ExprOp, IntImm, PrimExpr

_BITWISE_FOLD: dict[str, Callable[[int, int], int]] = {
    "tir.bitwise_and": lambda a, b: a & b,
    "tir.bitwise_or": lambda a, b: a | b,
    "tir.bitwise_xor": lambda a, b: a ^ b,
}


def _bitwise(op: str, a: Any, b: Any) -> PrimExpr:
    left, right = match_types(*_typed(a, b))
    parsed = parse_dtype(left.dtype)
    if parsed.is_float:
        raise TypeMismatchError(f"{op.removeprefix('tir.')} takes integers or bools, not {left.dtype}")
    if isinstance(left, IntImm) and isinstance(right, IntImm):
        return IntImm(left.dtype, wrap_int(_BITWISE_FOLD[op](left.value, right.value), left.dtype))
    return Call(left.dtype, op, (left, right))


def bitwise_and(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x & y on integers; `and` on bools."""
    return _bools_or_bits(logical_and, "tir.bitwise_and", x, y)


def bitwise_or(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x | y on integers; `or` on bools."""
    return _bools_or_bits(logical_or, "tir.bitwise_or", x, y)


def bitwise_xor(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x ^ y on integers; inequality on bools."""
    return _bools_or_bits(lambda a, b: compare(NE, a, b), "tir.bitwise_xor", x, y)


def bitwise_not(x: Any, span: object = None) -> PrimExpr:
    """~x on integers; `not` on bools."""
    expr = convert(x)
    parsed = parse_dtype(expr.dtype)
    if parsed.code == "bool":
        return logical_not(expr)
    if parsed.is_float:
        raise TypeMismatchError(f"bitwise_not takes integers or bools, not {expr.dtype}")
    return Call(expr.dtype, "tir.bitwise_not", (expr,))


def _bools_or_bits(build: Callable[[Any, Any], PrimExpr], op: str, a: Any, b: Any) -> PrimExpr:
    operands = _typed(a, b)
    codes = [parse_dtype(operand.dtype).code for operand in operands]
    return build(*operands) if codes == ["bool", "bool"] else _bitwise(op, *operands)


def _typed(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Both as expressions, a Python number in the dtype of the other one."""
    if isinstance(a, int) and isinstance(b, ExprOp):
        b = convert(b)
        return convert(a, b.dtype), b
    a = convert(a)
    return a, convert(b, a.dtype) if isinstance(b, int) else convert(b)


def _shift(op: str, a: Any, b: Any) -> PrimExpr:
    left, right = match_types(*_typed(a, b))
    if parse_dtype(left.dtype).is_float:
        raise TypeMismatchError(f"{op.removeprefix('tir.')} takes integers, not {left.dtype}")
    if isinstance(right, IntImm) and not 0 <= right.value < parse_dtype(left.dtype).bits:
        # Poison in LLVM: an amount that is no constant goes unchecked.
        raise DeclarationError(f"a shift of {left.dtype} by {right.value} is undefined; it takes 0 to {parse_dtype(left.dtype).bits - 1}")
    if isinstance(right, IntImm) and right.value == 0:
        return left
    if isinstance(left, IntImm) and isinstance(right, IntImm):
        # Python's shift is arithmetic; the value of an unsigned dtype isn't negative, so it is shifted logically
        shifted = left.value << right.value if op == "tir.shift_left" else left.value >> right.value
        return IntImm(left.dtype, wrap_int(shifted, left.dtype))
    return Call(left.dtype, op, (left, right))


def shift_left(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x << y on integers."""
    return _shift("tir.shift_left", x, y)


def shift_right(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x >> y on integers; arithmetic for signed types."""
    return _shift("tir.shift_right", x, y)


ExprOp._build.update(
    shift_left=shift_left, shift_right=shift_right, bitwise_and=bitwise_and, bitwise_or=bitwise_or,
    bitwise_xor=bitwise_xor, bitwise_not=bitwise_not,
)  # fmt: skip
