"""Python's operators in a script: on numbers they calculate, on anything else they make the node that is written.

Nothing is folded or reordered, so that a program reads back as it was printed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from ...errors import DeclarationError
from ...tir import arithmetic, bitwise, intrin
from ...tir import expr as ir
from ...tir.dtype import parse_dtype
from .values import Number, as_condition, as_expr, is_python, matched

_LARGEST_SHIFT = 4096  # a script comes from elsewhere, and 1 << 10**12 would fill the memory
_LONGEST = 1 << 16  # of a string or a list that a script makes while it is read


def _checked_power(a: Any, b: Any) -> Any:
    bits = int(a).bit_length() if isinstance(a, int) else 1
    # a ** b has at most b times the bits of a.
    if isinstance(b, Number) and abs(b) * max(bits, 1) > _LARGEST_SHIFT:
        raise DeclarationError(f"the power has more than {_LARGEST_SHIFT} bits")
    return a**b


def _checked_shift(a: int, b: int) -> int:
    if not 0 <= b <= _LARGEST_SHIFT:
        raise DeclarationError(f"a shift by {b} is out of 0 to {_LARGEST_SHIFT}")
    return a << b


def _checked_times(a: Any, b: Any) -> Any:
    """The product, which may repeat a string or a list, unless it is larger than any program needs."""
    if isinstance(a, int) and isinstance(b, int):
        if a.bit_length() + b.bit_length() > _LARGEST_SHIFT:
            raise DeclarationError(f"the product has more than {_LARGEST_SHIFT} bits")
    elif isinstance(a, (str, list, tuple)) or isinstance(b, (str, list, tuple)):
        items, count = (a, b) if isinstance(b, int) else (b, a)
        if isinstance(count, int) and len(items) * count > _LONGEST:
            raise DeclarationError(
                f"{len(items)} elements repeated {count} times are more than {_LONGEST}, the most that a script may hold"
            )
    return a * b


def _checked_plus(a: Any, b: Any) -> Any:
    if isinstance(a, (str, list, tuple)) and len(a) + len(b) > _LONGEST:
        raise DeclarationError(f"{len(a) + len(b)} elements are more than {_LONGEST}, the most that a script may hold")
    return a + b


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, str):
        raise DeclarationError("strings are not formatted with % in a script; write an f-string, or make the text outside of it")
    return a % b


def node(kind: type[ir.BinaryExpr]) -> Callable[[Any, Any], ir.PrimExpr]:
    """The builder of a node of arithmetic; bools take part as int32."""

    def build(a: Any, b: Any) -> ir.PrimExpr:
        left, right = matched(a, b)
        if left.dtype == "handle":
            raise DeclarationError(f"{kind.__name__} takes numbers, not {left} and {right}, which are handles")
        if parse_dtype(left.dtype).code == "bool" and kind not in (ir.Min, ir.Max):
            return arithmetic.binary(kind, arithmetic.cast(left, "int32"), arithmetic.cast(right, "int32"))
        return kind(left, right)

    build.__doc__ = kind.__doc__
    return build


def comparison(kind: type[ir.CmpExpr]) -> Callable[[Any, Any], ir.PrimExpr]:
    """The builder of a comparison."""
    return lambda a, b: kind(*matched(a, b))


def connective(kind: type[ir.LogicalExpr]) -> Callable[[Any, Any], ir.PrimExpr]:
    """The builder of `and` and `or`."""
    return lambda a, b: kind(*matched(as_condition(a), as_condition(b)))


def _divide(a: Any, b: Any) -> ir.PrimExpr:
    left, right = matched(a, b)
    if not parse_dtype(left.dtype).is_float:
        return arithmetic.true_divide(left, right)  # which says what to write
    return ir.Div(left, right)


def _only_python(a: Any, b: Any) -> NoReturn:
    raise DeclarationError(f"{a} and {b} are expressions")


# Python's operator: on numbers, on expressions.
BINARY: dict[type[ast.operator], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], ir.PrimExpr]]] = {
    ast.Add: (_checked_plus, node(ir.Add)),
    ast.Sub: (operator.sub, node(ir.Sub)),
    ast.Mult: (_checked_times, node(ir.Mul)),
    ast.Div: (operator.truediv, _divide),
    ast.FloorDiv: (operator.floordiv, node(ir.FloorDiv)),
    ast.Mod: (_remainder, node(ir.FloorMod)),
    ast.Pow: (_checked_power, intrin.power),
    ast.LShift: (_checked_shift, bitwise.shift_left),
    ast.RShift: (operator.rshift, bitwise.shift_right),
    ast.BitAnd: (operator.and_, bitwise.bitwise_and),
    ast.BitOr: (operator.or_, bitwise.bitwise_or),
    ast.BitXor: (operator.xor, bitwise.bitwise_xor),
}
COMPARE: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], ir.PrimExpr]]] = {
    ast.Eq: (operator.eq, comparison(ir.EQ)),
    ast.NotEq: (operator.ne, comparison(ir.NE)),
    ast.Lt: (operator.lt, comparison(ir.LT)),
    ast.LtE: (operator.le, comparison(ir.LE)),
    ast.Gt: (operator.gt, comparison(ir.GT)),
    ast.GtE: (operator.ge, comparison(ir.GE)),
    ast.In: (lambda a, b: a in b, _only_python),
    ast.NotIn: (lambda a, b: a not in b, _only_python),
    ast.Is: (operator.is_, _only_python),
    ast.IsNot: (operator.is_not, _only_python),
}
UNARY: dict[type[ast.unaryop], tuple[Callable[[Any], Any], Callable[[Any], ir.PrimExpr]]] = {
    ast.USub: (operator.neg, lambda a: arithmetic.negate(as_expr(a))),
    ast.UAdd: (operator.pos, as_expr),
    ast.Not: (operator.not_, lambda a: ir.Not(as_condition(a))),
    ast.Invert: (operator.invert, lambda a: bitwise.bitwise_not(as_expr(a))),
}
BOOL: dict[type[ast.boolop], tuple[Callable[[Any, Any], Any], Callable[[Any, Any], ir.PrimExpr]]] = {
    ast.And: (lambda a, b: a and b, connective(ir.And)),
    ast.Or: (lambda a, b: a or b, connective(ir.Or)),
}


def apply(row: tuple[Callable[..., Any], Callable[..., Any]], *operands: Any) -> Any:
    """One operator on its operands.

    Raises:
        DeclarationError: where it has no value, as a division by zero.
    """
    if all(map(is_python, operands)):
        try:
            return row[0](*operands)
        except (ArithmeticError, TypeError) as error:
            raise DeclarationError(str(error)) from None
    if row[1] is _only_python:
        raise DeclarationError("`is` and `in` are about Python's values, which expressions are not; expected one of == != < <= > >=")
    return row[1](*(operand if isinstance(operand, Number) else as_expr(operand) for operand in operands))
