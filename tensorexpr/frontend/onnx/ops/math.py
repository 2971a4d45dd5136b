"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import relax
from ....relax.ops.narrow import NARROW
from ....tir.dtype import parse_dtype
from ..attributes import Attributes
from ..context import Context, Inputs
from ..dtypes import dtype_of, is_computed
from ..registry import onnx_op
from ..values import Value

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
    # [3, 4] at axis 1 of [2, 3, 4, 5] becomes [3, 4, 1], which broadcasts as shapes do now.
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


def _reciprocal(x: Any) -> Any:
    return R.divide(relax.const(1, x.struct_info.dtype), x)


onnx_op("Reciprocal")(lambda ctx, inputs, attrs: _reciprocal(inputs[0]))


def _variadic(name: str, combine: Callable[..., Any]) -> None:
    """An operator that takes any number of operands together."""

    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        found = inputs[0]
        for one in inputs[1:]:
            found = combine(found, one)
        return R.divide(found, relax.const(len(inputs), ctx.dtype(0))) if name == "Mean" else found

    onnx_op(name)(convert)


for _name, _make in (("Max", R.maximum), ("Min", R.minimum), ("Sum", R.add), ("Mean", R.add)):
    _variadic(_name, _make)


@onnx_op("Pow")
def power(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Powers in the dtype of the base: of integers exact, or by the widest floats where only the exponents are floats."""
    base, exponent = _placed(ctx, inputs, attrs)
    dtype = ctx.dtype(0)
    floats = parse_dtype(dtype).is_float, parse_dtype(ctx.dtype(1)).is_float
    # An exponent of more bits than the base has would lose some, so that 2^32 becomes 0.
    wide = dtype if floats[0] else "float64" if floats[1] else "int64"
    return _in(R.power(_in(base, wide), _in(exponent, wide)), dtype)


def _in(x: Any, dtype: str) -> Any:
    return x if x.struct_info.dtype == dtype else R.astype(x, dtype)


@onnx_op("Mod")
def modulo(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """What division leaves: with the sign of the divisor, or of the dividend for fmod."""
    dtype, a, b = ctx.dtype(0), inputs[0], inputs[1]
    if attrs.bool("fmod", False) or not parse_dtype(dtype).is_float:
        return (R.mod if attrs.bool("fmod", False) else R.floor_mod)(a, b)
    rest, zero = ctx.emit(R.mod(a, b)), relax.const(0, dtype)  # with the sign of a: so it is right for infinite b
    is_other = R.logical_xor(R.less(rest, zero), R.less(b, zero))
    return R.where(R.logical_and(is_other, R.not_equal(rest, zero)), R.add(rest, b), rest)


@onnx_op("BitShift")
def bit_shift(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Bits moved to the left or to the right."""
    direction = attrs.string("direction")
    if direction not in ("LEFT", "RIGHT"):
        ctx.fail(f"the direction of BitShift is LEFT or RIGHT, not {direction!r}")
    return (R.left_shift if direction == "LEFT" else R.right_shift)(inputs[0], inputs[1])


@onnx_op("IsInf")
def is_inf(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Which elements are infinite, of the signs that are asked for."""
    x = inputs[0]
    found = R.isinf(x)
    if not attrs.bool("detect_positive", True):
        found = R.logical_and(found, R.less(x, relax.const(0, ctx.dtype(0))))
    if not attrs.bool("detect_negative", True):
        found = R.logical_and(found, R.greater(x, relax.const(0, ctx.dtype(0))))
    return found


@onnx_op("Clip")
def clip_attributes(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Between two numbers."""
    x, dtype = inputs[0], ctx.dtype(0)
    if "min" in attrs:
        x = R.maximum(x, relax.const(attrs.float("min"), dtype))
    return R.minimum(x, relax.const(attrs.float("max"), dtype)) if "max" in attrs else x


@onnx_op("Clip", since=11)
def clip(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Between two tensors without axes, each of which may be left out."""
    x = inputs[0]
    if ctx.has(1):
        x = R.maximum(x, inputs[1])
    return R.minimum(x, inputs[2]) if ctx.has(2) else x


@onnx_op("Where")
def where(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements of one tensor or of another."""
    return R.where(inputs[0], inputs[1], inputs[2])


def converted(ctx: Context, attrs: Attributes, source: str, to: str) -> Any:
    """The first operand in another dtype."""
    if source == to:
        return ctx.value(0)
    x = ctx.expression(ctx.values[0]) if ctx.values[0] is not None else None
    narrow = [one for one in (source, to) if one in NARROW]
    if narrow:
        made = R.narrow_cast(x, to, attrs.bool("saturate", True), attrs.string("round_mode", "up"))
        return Value(ctx.emit(made), None, ctx.values[0].roots if ctx.values[0] is not None else frozenset(), to if to in NARROW else "")
    if not is_computed(to) or not is_computed(source):
        ctx.fail(f"tensors of {source or 'an unknown dtype'} as {to}: there are no kernels for one of these")
    return R.not_equal(x, relax.const(0, source)) if to == "bool" else R.astype(x, to)


@onnx_op("Cast")
def cast(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements in another dtype; a name of it up to opset 5."""
    to = attrs.string("to").lower() if ctx.opset < 6 else dtype_of(attrs.int("to"), ctx.where)
    made = converted(ctx, attrs, ctx.dtype(0), {"float": "float32", "double": "float64"}.get(to, to))
    known, value = ctx.known(0), ctx.value(0)
    if value is None or known is None or known.is_constant:
        return made
    # The expressions stay known beside their floats: a Range may run to them.
    return Value(ctx.emit(made), None, value.roots, integers=known)


@onnx_op("CastLike")
def cast_like(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements in the dtype of another tensor."""
    return converted(ctx, attrs, ctx.dtype(0), ctx.dtype(1))
