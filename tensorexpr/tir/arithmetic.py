"""Builders behind the Python operators: folding of constants, canonical order.

Integers fold with two's complement wrap-around; x+0, x*1, x*0 and the like fold on integers only, since they
change NaN, infinities or -0.0 on floats. A division by a constant zero is left as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DeclarationError, TypeMismatchError
from ..tir.operations import LogicalExpr
from .conversion import as_int, cast, const, convert, is_const_int, match_types
from .dtype import parse_dtype, rounded_float, with_lanes, wrap_int
from .expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CmpExpr,
    Div,
    ExprOp,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    Sub,
)  # fmt: skip

__all__ = [
    "ON_INTEGERS", "add", "all", "any", "as_int", "binary", "build_binary", "cast", "ceildiv", "compare", "const", "convert",
    "div", "floordiv", "floormod", "fold", "fold_binary", "indexdiv", "indexmod", "is_const_int", "logical_and", "logical_not",
    "logical_or", "match_types", "maximum", "minimum", "multiply", "negate", "nested_operands", "subtract", "to_bool",
    "true_divide", "truncated", "truncdiv", "truncmod",
]  # fmt: skip


def nested_operands(expr: PrimExpr, kind: type[BinaryExpr] | type[LogicalExpr]) -> list[PrimExpr]:
    """The operands of a nest of one operator, in order: a, b, c of `(a and b) and c`; `expr` itself if it is of another kind."""
    found, stack = [], [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            # The right one first, so that the left one is popped before it.
            stack += [node.b, node.a]
        else:
            found.append(node)
    return found


def _is_integral(expr: PrimExpr) -> bool:
    return not parse_dtype(expr.dtype).is_float


def truncated(a: int, b: int) -> int:
    """a / b towards zero."""
    # By magnitudes, as Python's // rounds down: -7 // 2 is -4. Floats would lose the low bits of int64.
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# What the operators do to integers that don't wrap.
ON_INTEGERS: dict[type[BinaryExpr], Callable[[int, int], int]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b,
    Div: truncated,
    Mod: lambda a, b: a - b * truncated(a, b),
    Min: min,
    Max: max,
}  # fmt: skip


_REMAINDERS = (Mod, FloorMod)
_DIVISIONS = (Div, FloorDiv, *_REMAINDERS)
_FLOAT_FOLD: dict[type[BinaryExpr], Callable[[float, float], float]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
}


def fold_binary(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """The constant `op` of two constants, or None if they aren't both constants or the result is undefined."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        if op in _DIVISIONS and b.value == 0:
            return None
        return IntImm(a.dtype, wrap_int(ON_INTEGERS[op](a.value, b.value), a.dtype))
    if isinstance(a, FloatImm) and isinstance(b, FloatImm) and op in _FLOAT_FOLD and a.dtype in ("float32", "float64"):
        with np.errstate(all="ignore"):
            # Rounding twice is exact here: double has 53 bits, and float32's 24 need 2 * 24 + 2.
            return FloatImm(a.dtype, rounded_float(_FLOAT_FOLD[op](float(a), float(b)), a.dtype))
    if isinstance(a, Broadcast) and isinstance(b, Broadcast):
        inner = fold_binary(op, a.value, b.value)
        return Broadcast(inner, a.lanes) if inner is not None else None
    return None


# Neutral and absorbing right operands on integers: op -> (x op value) is x; op -> (x op value) is the constant.
_NEUTRAL: dict[type[BinaryExpr], int] = {Add: 0, Sub: 0, Mul: 1, Div: 1, FloorDiv: 1}
_ABSORBING: dict[type[BinaryExpr], tuple[int, int]] = {Mul: (0, 0), Mod: (1, 0), FloorMod: (1, 0)}
_COMMUTATIVE = (Add, Mul, Min, Max)


def binary(op: type[BinaryExpr], a: Any, b: Any) -> PrimExpr:
    """`op` of two operands after type matching, folded where that is exact, constants on the right."""
    return build_binary(op, *match_types(a, b))


def build_binary(op: type[BinaryExpr], left: PrimExpr, right: PrimExpr) -> PrimExpr:
    """`op` of two operands of one dtype, folded where that is exact, constants on the right."""
    folded = fold_binary(op, left, right)
    if folded is not None:
        return folded
    # One form for 1 + x and x + 1, so that interning finds them equal. Extrema of floats aren't commutative: `a > b ? a : b` of NaN is b.
    if op in _COMMUTATIVE and (isinstance(left, IntImm) or (isinstance(left, FloatImm) and op not in (Max, Min))):
        left, right = right, left
    if isinstance(right, IntImm):
        if _NEUTRAL.get(op) == right.value:
            return left
        absorbing = _ABSORBING.get(op)
        if absorbing and absorbing[0] == right.value:
            return IntImm(left.dtype, absorbing[1])
    if op in _DIVISIONS and parse_dtype(left.dtype).code == "bool":
        left, right = cast(left, with_lanes("int32", parse_dtype(left.dtype).lanes)), cast(right, "int32")
    return op(left, right)


def _operands(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Two operands in one dtype; bools among themselves take part in arithmetic as int32."""
    left, right = match_types(a, b)
    if left.dtype.startswith("bool"):
        wide = with_lanes("int32", parse_dtype(left.dtype).lanes)
        return cast(left, wide), cast(right, wide)
    return left, right


def add(lhs: Any, rhs: Any, span: object = None) -> PrimExpr:
    """lhs + rhs."""
    return build_binary(Add, *_operands(lhs, rhs))


def subtract(lhs: Any, rhs: Any, span: object = None) -> PrimExpr:
    """lhs - rhs.

    Constants of unsigned dtypes wrap around, as machines do.

    Raises:
        TypeMismatchError: for the constant 0 of an unsigned dtype less another, which is meant as a negative number.
    """
    left, right = _operands(lhs, rhs)
    if is_const_int(left, 0) and isinstance(right, IntImm) and right.value > 0 and left.dtype.startswith("uint"):
        raise TypeMismatchError(f"{left} - {right} is below 0, where {left.dtype} begins; subtract in a signed dtype")
    return build_binary(Sub, left, right)


def multiply(lhs: Any, rhs: Any, span: object = None) -> PrimExpr:
    """lhs * rhs."""
    return build_binary(Mul, *_operands(lhs, rhs))


def div(a: Any, b: Any, span: object = None) -> PrimExpr:
    """a / b: IEEE on floats, truncated towards zero on integers, whose division by a constant 0 is refused."""
    left, right = _operands(a, b)
    _checked_divisor(right)
    return build_binary(Div, left, right)


def true_divide(a: Any, b: Any) -> PrimExpr:
    """The `/` operator: floats only, since its meaning on integers differs between languages.

    Raises:
        TypeMismatchError: if both sides are integers; the message names the integer divisions.
    """
    left, right = _operands(a, b)
    if _is_integral(left):
        raise TypeMismatchError(
            f"`/` of the integers {left} and {right} is ambiguous; use // (floor), te.truncdiv, or convert to a float dtype"
        )
    return binary(Div, left, right)


def _checked_divisor(divisor: PrimExpr) -> None:
    """Refuse a division that has no result; passes, which may meet one in code that never runs, build nodes otherwise."""
    zero = divisor.value if isinstance(divisor, Broadcast) else divisor
    if isinstance(zero, IntImm) and zero.value == 0:
        raise DeclarationError("the integer division by 0 has no result; guard the divisor, or divide by another number")


def _integral_only(name: str, op: type[BinaryExpr]) -> Callable[[Any, Any], PrimExpr]:
    def build(a: Any, b: Any, span: object = None) -> PrimExpr:
        left, right = _operands(a, b)
        if not _is_integral(left):
            raise TypeMismatchError(f"{name} takes integers, not {left.dtype}; use te.floor(a / b) or te.fmod on floats")
        _checked_divisor(right)
        if op in _REMAINDERS and left.dtype not in ("int32", "int64"):
            return op(left, right)  # TVM folds remainders of indices only, and programs compare trees: `simplify` folds the others
        return build_binary(op, left, right)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{op.__doc__} Integers only; raises TypeMismatchError on floats."
    return build


floordiv = _integral_only("floordiv", FloorDiv)
floormod = _integral_only("floormod", FloorMod)
truncdiv = _integral_only("truncdiv", Div)
truncmod = _integral_only("truncmod", Mod)
indexdiv = floordiv
indexmod = floormod


def ceildiv(lhs: Any, rhs: Any, span: object = None) -> PrimExpr:
    """The integer quotient rounded towards plus infinity, for a positive divisor."""
    numerator, divisor = as_int(lhs), as_int(rhs)
    if numerator is not None and divisor:  # the sum below may be more than the dtype holds
        quotient = floordiv(lhs, rhs)
        return quotient if numerator % divisor == 0 else add(quotient, 1)
    return floordiv(add(lhs, divisor - 1) if divisor else subtract(add(lhs, rhs), 1), rhs)


def minimum(a: Any, b: Any, span: object = None) -> PrimExpr:
    """The smaller of two values, element by element."""
    return _same_or(Min, a, b)


def maximum(a: Any, b: Any, span: object = None) -> PrimExpr:
    """The larger of two values, element by element."""
    return _same_or(Max, a, b)


def _same_or(op: type[BinaryExpr], a: Any, b: Any) -> PrimExpr:
    left, right = match_types(a, b)
    # Identical operands, NaN included: min(NaN, NaN) is NaN.
    return left if left is right else binary(op, left, right)


def negate(a: Any) -> PrimExpr:
    """-a; on floats the sign flips, -0.0 and NaN included."""
    expr = convert(a)
    if expr.dtype.startswith("bool"):
        expr = cast(expr, with_lanes("int32", parse_dtype(expr.dtype).lanes))
    if isinstance(expr, FloatImm):
        return FloatImm(expr.dtype, -expr.value)
    if _is_integral(expr):
        return binary(Sub, const(0, expr.dtype), expr)
    # 0.0 - x would be 0.0 for x = 0.0, where the negation is -0.0.
    return binary(Mul, expr, const(-1.0, expr.dtype))


_COMPARE: dict[type[PrimExpr], Callable[[Any, Any], bool]] = {
    EQ: lambda a, b: a == b,
    NE: lambda a, b: a != b,
    LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b,
    GT: lambda a, b: a > b,
    GE: lambda a, b: a >= b,
}  # fmt: skip


def compare(op: Any, a: Any, b: Any) -> PrimExpr:
    """A comparison after type matching, folded on constants."""
    left, right = match_types(a, b)
    if isinstance(left, (IntImm, FloatImm)) and isinstance(right, (IntImm, FloatImm)):
        # Python compares floats by IEEE, too: NaN == NaN is false, 0.0 == -0.0 is true.
        return IntImm("bool", int(_COMPARE[op](left.value, right.value)))
    node: PrimExpr = op(left, right)
    return node


def logical_and(a: Any, b: Any, span: object = None) -> PrimExpr:
    """a and b on bools, with constants folded."""
    left, right = _bools(a, b)
    for x, y in ((left, right), (right, left)):
        if isinstance(x, IntImm):
            return y if x.value else x
    return left if left is right else And(left, right)


def logical_or(a: Any, b: Any, span: object = None) -> PrimExpr:
    """a or b on bools, with constants folded."""
    left, right = _bools(a, b)
    for x, y in ((left, right), (right, left)):
        if isinstance(x, IntImm):
            return x if x.value else y
    return left if left is right else Or(left, right)


def logical_not(a: Any, span: object = None) -> PrimExpr:
    """not a, with constants folded."""
    expr = to_bool(a)
    if isinstance(expr, IntImm):
        return IntImm("bool", 1 - expr.value)
    return expr.a if isinstance(expr, Not) else Not(expr)


def to_bool(value: Any) -> PrimExpr:
    """`value` as a condition: bools stay, numbers are compared with zero."""
    expr = convert(value)
    parsed = parse_dtype(expr.dtype)
    return expr if parsed.code == "bool" else compare(NE, expr, const(0, expr.dtype))


def _bools(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    left, right = to_bool(a), to_bool(b)
    lanes = max(parse_dtype(left.dtype).lanes, parse_dtype(right.dtype).lanes)
    return cast(left, with_lanes("bool", lanes)), cast(right, with_lanes("bool", lanes))


def all(*args: Any, span: object = None) -> PrimExpr:
    """The conjunction of conditions; true of none."""
    result: PrimExpr = IntImm("bool", 1)
    for arg in args:
        result = logical_and(result, arg)
    return result


def any(*args: Any, span: object = None) -> PrimExpr:
    """The disjunction of conditions; false of none."""
    result: PrimExpr = IntImm("bool", 0)
    for arg in args:
        result = logical_or(result, arg)
    return result


def fold(node: PrimExpr) -> PrimExpr | None:
    """`node` as the builders would make it from its operands, or None if that is the node itself."""
    if isinstance(node, BinaryExpr):
        result = binary(type(node), node.a, node.b)
    elif isinstance(node, CmpExpr):
        result = compare(type(node), node.a, node.b)
    elif isinstance(node, And):
        result = logical_and(node.a, node.b)
    elif isinstance(node, Or):
        result = logical_or(node.a, node.b)
    elif isinstance(node, Not):
        result = logical_not(node.a)
    elif isinstance(node, Cast):
        result = cast(node.value, node.dtype)
    elif isinstance(node, Select) and isinstance(node.condition, IntImm):
        result = node.true_value if node.condition.value else node.false_value
    elif isinstance(node, Call) and node.op in ("tir.if_then_else", "tir.likely") and isinstance(node.args[0], IntImm):
        result = node.args[0] if node.op == "tir.likely" else node.args[1 if node.args[0].value else 2]
    else:
        return None
    return None if result is node else result


ExprOp._build.update(
    const=const, add=add, sub=subtract, mul=multiply, true_divide=true_divide, floordiv=floordiv, floormod=floormod, neg=negate,
    cast=cast, convert=convert,
    eq=lambda a, b: compare(EQ, a, b), ne=lambda a, b: compare(NE, a, b),
    lt=lambda a, b: compare(LT, a, b), le=lambda a, b: compare(LE, a, b),
    gt=lambda a, b: compare(GT, a, b), ge=lambda a, b: compare(GE, a, b),
)  # fmt: skip
