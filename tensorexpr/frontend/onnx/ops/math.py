"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import relax
from ....tir.dtype import parse_dtype
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op

_UNARY = {
    "Abs": R.abs, "Acos": R.acos, "Acosh": R.acosh, "Asin": R.asin, "Asinh": R.asinh, "Atan": R.atan, "Atanh": R.atanh,
    "BitwiseNot": R.bitwise_not, "Ceil": R.ceil, "Cos": R.cos, "Cosh": R.cosh, "Erf": R.erf, "Exp": R.exp, "Floor": R.floor,
    "IsNaN": R.isnan, "Log": R.log, "Neg": R.negative, "Not": R.logical_not, "Relu": R.nn.relu, "Round": R.round,
    "Sigmoid": R.sigmoid, "Sign": R.sign, "Sin": R.sin, "Sinh": R.sinh, "Sqrt": R.sqrt, "Tan": R.tan, "Tanh": R.tanh,
}  # fmt: skip
_BINARY = {
    "Add": R.add, "And": R.logical_and, "BitwiseAnd": R.bitwise_and, "BitwiseOr": R.bitwise_or, "BitwiseXor": R.bitwise_xor,
    "Div": R.divide, "Equal": R.equal, "Greater": R.greater, "GreaterOrEqual": R.greater_equal, "Less": R.less,
    "LessOrEqual": R.less_equal, "Mul": R.multiply, "Or": R.logical_or, "Sub": R.subtract, "Xor": R.logical_xor,
}  # fmt: skip
_ROUND = frozenset({"Ceil", "Floor", "Round"})  # integers stay what they are


def _unary(name: str, make: Callable[..., Any]) -> None:
    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        if name in _ROUND and not parse_dtype(ctx.dtype(0)).is_float:
            return inputs[0]
        return make(inputs[0])

    onnx_op(name)(convert)


def _placed(ctx: Context, inputs: Inputs, attrs: Attributes) -> list[Any]:
    """Operands of a binary operator; up to opset 6 the second one's axes stand where `axis` says."""
    if ctx.opset >= 7 or not attrs.bool("broadcast", False):
        return [inputs[0], inputs[1]]
    a, b = ctx.rank(0), ctx.rank(1)
    axis = attrs.int("axis", a - b)
    behind = a - (axis + a if axis < 0 else axis) - b
    if behind < 0:
        ctx.fail(f"operand 1 of {b} axes at axis {axis} of operand 0 of {a}")
    return [inputs[0], R.reshape(inputs[1], [*ctx.extents(1), *[1] * behind]) if behind else inputs[1]]


def _binary(name: str, make: Callable[..., Any]) -> None:
    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        return make(*_placed(ctx, inputs, attrs))

    onnx_op(name)(convert)


for _name, _make in _UNARY.items():
    _unary(_name, _make)
for _name, _make in _BINARY.items():
    _binary(_name, _make)


@onnx_op("Identity")
def identity(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The value as it is."""
    return ctx.value(0)
