"""Operators that work element by element, and those on pairs of elements of shapes that broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import topi
from ...errors import TypeMismatchError
from ...relax import op as graph_op
from ...relax.expr import const as constant
from ...tir.dtype import parse_dtype
from ..expr import Expr as Value
from .row import Computed, Expr, Meaning, dtype, operator


def _is_float(data: Any) -> bool:
    return parse_dtype(dtype(data)).is_float


def _unary(name: str, meaning: Callable[[Any], Any], also: tuple[str, ...] = ()) -> Callable[..., Any]:
    def meant(data: Expr) -> Meaning:
        return meaning(data)

    meant.__doc__ = f"`{name}` of each element."
    return operator(name, also=also)(meant)  # type: ignore[no-any-return]


def _binary(name: str, meaning: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def meant(lhs: Expr, rhs: Expr) -> Meaning:
        return meaning(lhs, rhs)

    meant.__doc__ = f"`{name}` of pairs of elements; shapes broadcast."
    return operator(name)(meant)  # type: ignore[no-any-return]


def _by(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *args: Computed(function, args, {}, name)


def _of_floats(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Rounding of integers is what they are."""
    return lambda data: function(data) if _is_float(data) else data


abs = _unary("abs", graph_op.abs)
acos = _unary("acos", graph_op.acos)
acosh = _unary("acosh", graph_op.acosh)
asin = _unary("asin", graph_op.asin)
asinh = _unary("asinh", graph_op.asinh)
atan = _unary("atan", graph_op.atan)
atanh = _unary("atanh", graph_op.atanh)
bitwise_not = _unary("bitwise_not", graph_op.bitwise_not)
ceil = _unary("ceil", _of_floats(graph_op.ceil))
copy = _unary("copy", lambda data: data)
cos = _unary("cos", graph_op.cos)
cosh = _unary("cosh", graph_op.cosh)
erf = _unary("erf", graph_op.erf)
exp = _unary("exp", graph_op.exp)
fast_erf = _unary("fast_erf", _by(topi.fast_erf, "fast_erf"))
fast_exp = _unary("fast_exp", _by(topi.fast_exp, "fast_exp"))
fast_tanh = _unary("fast_tanh", _by(topi.fast_tanh, "fast_tanh"))
floor = _unary("floor", _of_floats(graph_op.floor))
isfinite = _unary("isfinite", graph_op.isfinite)
isinf = _unary("isinf", graph_op.isinf)
isnan = _unary("isnan", graph_op.isnan)
log = _unary("log", graph_op.log)
log10 = _unary("log10", lambda data: graph_op.multiply(graph_op.log(data), constant(1 / math.log(10), dtype(data))))
log2 = _unary("log2", lambda data: graph_op.multiply(graph_op.log(data), constant(1 / math.log(2), dtype(data))))
logical_not = _unary("logical_not", graph_op.logical_not)
negative = _unary("negative", graph_op.negative)
relu = _unary("nn.relu", graph_op.nn.relu)
round = _unary("round", _of_floats(graph_op.round))
rsqrt = _unary("rsqrt", graph_op.rsqrt)
sigmoid = _unary("sigmoid", graph_op.sigmoid)
sign = _unary("sign", graph_op.sign)
sin = _unary("sin", graph_op.sin)
sinh = _unary("sinh", graph_op.sinh)
sqrt = _unary("sqrt", graph_op.sqrt)
tan = _unary("tan", graph_op.tan)
tanh = _unary("tanh", graph_op.tanh)
trunc = _unary("trunc", _of_floats(_by(topi.trunc, "trunc")))
zeros_like = _unary("zeros_like", graph_op.zeros_like)
ones_like = _unary("ones_like", graph_op.ones_like)

add = _binary("add", graph_op.add)
bitwise_and = _binary("bitwise_and", graph_op.bitwise_and)
bitwise_or = _binary("bitwise_or", graph_op.bitwise_or)
bitwise_xor = _binary("bitwise_xor", graph_op.bitwise_xor)
# Of integers TVM divides towards zero; of graphs' `divide` that isn't said.
divide = _binary("divide", lambda a, b: graph_op.divide(a, b) if _is_float(a) else Computed(topi.trunc_divide, (a, b), {}, "divide"))
equal = _binary("equal", graph_op.equal)
floor_divide = _binary("floor_divide", graph_op.floor_divide)
floor_mod = _binary("floor_mod", graph_op.floor_mod)
greater = _binary("greater", graph_op.greater)
greater_equal = _binary("greater_equal", graph_op.greater_equal)
left_shift = _binary("left_shift", graph_op.left_shift)
less = _binary("less", graph_op.less)
less_equal = _binary("less_equal", graph_op.less_equal)
logical_and = _binary("logical_and", graph_op.logical_and)
logical_or = _binary("logical_or", graph_op.logical_or)
logical_xor = _binary("logical_xor", graph_op.logical_xor)
maximum = _binary("maximum", graph_op.maximum)
minimum = _binary("minimum", graph_op.minimum)
mod = _binary("mod", _by(topi.mod, "mod"))
multiply = _binary("multiply", graph_op.multiply)
not_equal = _binary("not_equal", graph_op.not_equal)
power = _binary("power", graph_op.power)
right_shift = _binary("right_shift", graph_op.right_shift)
subtract = _binary("subtract", graph_op.subtract)
trunc_divide = _binary("trunc_divide", _by(topi.trunc_divide, "trunc_divide"))
trunc_mod = _binary("trunc_mod", _by(topi.mod, "mod"))


@operator("cast")
def cast(data: Expr, dtype: str) -> Meaning:
    """Elements in another dtype; of fractions the part in front of the point."""
    return graph_op.astype(data, dtype)


@operator("cast_like")
def cast_like(data: Expr, dtype_like: Expr) -> Meaning:
    """Elements in the dtype of another tensor."""
    return graph_op.astype(data, dtype(dtype_like))


@operator("reinterpret")
def reinterpret(data: Expr, dtype: str) -> Meaning:
    """The bits of elements as elements of another dtype of the same size."""
    return graph_op.bitcast(data, dtype)


@operator("clip")
def clip(a: Expr, a_min: float, a_max: float) -> Meaning:
    """Elements between two bounds; those beyond are the bounds."""
    low, high = (value if _is_float(a) else int(value) for value in (a_min, a_max))
    return graph_op.clip(a, low, high)


@operator("where")
def where(condition: Expr, x: Expr, y: Expr) -> Meaning:
    """Elements of `x` where the condition isn't 0, else of `y`; shapes broadcast."""
    return graph_op.where(condition if dtype(condition) == "bool" else graph_op.astype(condition, "bool"), x, y)


@operator("nn.leaky_relu")
def leaky_relu(data: Expr, alpha: float = 0.01) -> Meaning:
    """Elements, times `alpha` below 0."""
    return graph_op.nn.leakyrelu(data, alpha)


@operator("nn.prelu")
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Meaning:
    """Elements, below 0 times the factor of their channel."""
    return graph_op.nn.prelu(data, alpha, axis)


@operator("fixed_point_multiply")
def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> Meaning:
    """`data * multiplier * 2**(shift - 31)` in integers, rounded half up."""
    return Computed(topi.fixed_point_multiply, (data,), {"multiplier": multiplier, "shift": shift}, "fixed_point_multiply")


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    """Python's operators take numbers, in the dtype of the tensor beside them."""

    def made(*args: Any) -> Any:
        tensors = [one for one in args if isinstance(one, Value)]
        known = dtype(tensors[0]) if tensors and len(tensors) < len(args) else "float32"
        from ..expr import const

        for one in args:
            if isinstance(one, float) and not parse_dtype(known).is_float:  # 0.5 would be 0 in it
                raise TypeMismatchError(f"the number {one} beside a tensor of {known}; cast the tensor, or write relay.const({one})")
        return function(*(const(one, known) if isinstance(one, (int, float)) else one for one in args))

    return made


def _element(value: Any, index: Any) -> Any:
    from ..expr import TupleGetItem

    return TupleGetItem(value, int(index))


def _call(function: Any, args: Any, attrs: Any) -> Any:
    from ..expr import Call

    return Call(function, args, attrs)


def _unknown(value: Any, name: str) -> Any:
    raise AttributeError(f"a value of Relay has no {name}; expr.checked_type has it")


Value._operators.update(
    add=_number(add), subtract=_number(subtract), multiply=_number(multiply), divide=_number(divide), negative=negative,
    floor_divide=_number(floor_divide), floor_mod=_number(floor_mod), power=_number(power), less=_number(less),
    less_equal=_number(less_equal), greater=_number(greater), greater_equal=_number(greater_equal), astype=cast, element=_element,
    call=_call, of_tensor=_unknown,
)  # fmt: skip
