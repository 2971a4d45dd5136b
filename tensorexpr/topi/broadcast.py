"""Functions of two elements with NumPy's broadcasting: `topi.add(a, b)` and its family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute
from ..te.elementwise import elementwise, operand
from ..te.tensor import Tensor
from ..tir import arithmetic, bitwise, intrin
from ..tir.expr import FloorDiv, FloorMod, PrimExpr, Var
from . import tag
from .math import axis_names
from .utils import equal_const_int, extent_value, shape_text

Binary = Callable[[Any, Any], Any]


def _family(name: str, operator: Binary, summary: str) -> Binary:
    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Tensor) or isinstance(rhs, Tensor):
            return elementwise(f"T_{name}", operator, lhs, rhs)
        return operator(lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{summary}, element by element with broadcasting; of two expressions, the expression."
    return function


def _divide(a: Any, b: Any) -> PrimExpr:
    return arithmetic.div(a, b)


def _mod(a: Any, b: Any) -> PrimExpr:
    x, y = arithmetic.match_types(a, b)
    return intrin.fmod(x, y) if x.dtype.startswith(("float", "bfloat")) else arithmetic.truncmod(x, y)


def _floor_divide(a: Any, b: Any) -> PrimExpr:
    x, y = arithmetic.match_types(a, b)
    return intrin.floor(x / y) if x.dtype.startswith(("float", "bfloat")) else arithmetic.binary(FloorDiv, x, y)


def _floor_mod(a: Any, b: Any) -> PrimExpr:
    x, y = arithmetic.match_types(a, b)
    return x - intrin.floor(x / y) * y if x.dtype.startswith(("float", "bfloat")) else arithmetic.binary(FloorMod, x, y)


def _xor(a: Any, b: Any) -> PrimExpr:
    x, y = arithmetic.to_bool(a), arithmetic.to_bool(b)
    return arithmetic.logical_or(arithmetic.logical_and(x, arithmetic.logical_not(y)), arithmetic.logical_and(arithmetic.logical_not(x), y))


def _comparison(name: str) -> Binary:
    def operator(a: Any, b: Any) -> PrimExpr:
        x, y = arithmetic.match_types(a, b)
        comparisons: dict[str, Callable[[], PrimExpr]] = {
            "greater": lambda: x > y,
            "less": lambda: x < y,
            "equal": lambda: arithmetic.convert(x == y),
            "not_equal": lambda: arithmetic.convert(x != y),
            "greater_equal": lambda: x >= y,
            "less_equal": lambda: x <= y,
        }
        return comparisons[name]()

    return operator


add = _family("add", arithmetic.add, "a + b")
subtract = _family("subtract", arithmetic.subtract, "a - b")
multiply = _family("multiply", arithmetic.multiply, "a * b")
divide = _family("divide", _divide, "a / b, truncating for integers")
div = divide
floor_divide = _family("floor_divide", _floor_divide, "The floor of a / b")
mod = _family("mod", _mod, "The remainder with the sign of a")
floor_mod = _family("floor_mod", _floor_mod, "The remainder with the sign of b")
trunc_divide = _family("trunc_divide", arithmetic.truncdiv, "a / b of integers, towards zero")
maximum = _family("maximum", arithmetic.maximum, "The larger one")
minimum = _family("minimum", arithmetic.minimum, "The smaller one")
power = _family("power", intrin.power, "a to the power of b")
left_shift = _family("left_shift", bitwise.shift_left, "a shifted left by b bits")
right_shift = _family("right_shift", bitwise.shift_right, "a shifted right by b bits")
bitwise_and = _family("bitwise_and", bitwise.bitwise_and, "The bits in both")
bitwise_or = _family("bitwise_or", bitwise.bitwise_or, "The bits in either")
bitwise_xor = _family("bitwise_xor", bitwise.bitwise_xor, "The bits in one of them")
logical_and = _family("logical_and", arithmetic.logical_and, "a and b")
logical_or = _family("logical_or", arithmetic.logical_or, "a or b")
logical_xor = _family("logical_xor", _xor, "a or b, but not both")
greater = _family("greater", _comparison("greater"), "a > b")
less = _family("less", _comparison("less"), "a < b")
equal = _family("equal", _comparison("equal"), "a == b")
not_equal = _family("not_equal", _comparison("not_equal"), "a != b")
greater_equal = _family("greater_equal", _comparison("greater_equal"), "a >= b")
less_equal = _family("less_equal", _comparison("less_equal"), "a <= b")


def broadcast_to(data: Tensor, shape: Sequence[Any]) -> Tensor:
    """`data` repeated to `shape`, as NumPy broadcasts.

    Args:
        data: [any shape], of any dtype.
        shape: extents, at least as many as `data` has.

    Returns:
        [shape], of the dtype of `data`.

    Raises:
        DeclarationError: if an extent of `data` is neither 1 nor that of `shape`.
    """
    wanted = tuple(extent_value(extent) for extent in shape)
    if data.ndim > len(wanted):
        raise DeclarationError(f"broadcast_to: {data.name} has more dimensions than the shape {wanted}")
    ones = []
    for own, extent in zip(data.shape, wanted[len(wanted) - data.ndim :], strict=True):
        is_one = equal_const_int(own, 1)
        a, b = extent_value(own), extent
        if not is_one and isinstance(a, int) and isinstance(b, int) and a != b:
            raise DeclarationError(f"broadcast_to: the shape {shape_text(data)} of {data.name} can't be broadcast to {wanted}")
        ones.append(is_one)

    def body(*i: Var) -> PrimExpr:
        own_axes = i[len(i) - data.ndim :]
        return data(*(0 if is_one else axis for axis, is_one in zip(own_axes, ones, strict=True)))

    return compute(wanted, body, "T_broadcast_to", tag.BROADCAST, varargs_names=axis_names(len(wanted)))


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """`x` where `condition` is not zero, else `y`, with broadcasting.

    Args:
        condition: numbers or bools.
        x, y: tensors, or one of them a number.

    Returns:
        A tensor of the dtype of `x` (of `y` if that is a number), of the shape that all three broadcast to.
    """
    # For its shape alone: those of three operands broadcast two at a time.
    from_x = elementwise("T_where_x", lambda c, a: a, condition, x) if isinstance(x, Tensor) else None
    shape = from_x.shape if from_x is not None else condition.shape
    if isinstance(y, Tensor):
        shape = elementwise("T_where_y", lambda a, b: b, from_x if from_x is not None else condition, y).shape
    dtype = x.dtype if isinstance(x, Tensor) else y.dtype

    def body(*i: Var) -> PrimExpr:
        test = arithmetic.to_bool(operand(condition, i))
        return intrin.if_then_else(test, arithmetic.cast(operand(x, i), dtype), arithmetic.cast(operand(y, i), dtype))

    return compute(shape, body, "T_where", tag.BROADCAST, varargs_names=axis_names(len(shape)))
