"""Operators that work element by element, and reductions.

PyTorch computes in the dtype that its promotion gives; the result's dtype says which, and operands are cast to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import relax
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from .table import CONVERTERS, Context, aten

# Names there -> here, of one operand; the result of an integer is a float, as there.
_OF_FLOATS: Mapping[str, str] = {
    **{name: name for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log", "rsqrt", "sigmoid")},
    **{name: name for name in ("sin", "sinh", "sqrt", "tan", "tanh")},
    "silu": "nn.silu",
}
_OF_ANY: Mapping[str, str] = {
    **{name: name for name in ("abs", "ceil", "floor", "round", "sign", "square", "isnan", "isinf", "isfinite")},
    **{name: name for name in ("logical_not", "bitwise_not")},
    "neg": "negative",
    "relu": "nn.relu",
    "sgn": "sign",
}
# Two operands in the dtype of the result.
_ARITHMETIC: Mapping[str, str] = {
    "mul": "multiply", "maximum": "maximum", "minimum": "minimum", "pow": "power", "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor", "remainder": "floor_mod", "fmod": "mod", "floor_divide": "floor_divide",
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "__lshift__": "left_shift", "__rshift__": "right_shift",
    "gcd": "gcd", "prims.gcd": "gcd",
}  # fmt: skip
_COMPARISONS: Mapping[str, str] = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


def _of_floats(name: str) -> Callable[..., Any]:
    return lambda c, input: c.op(name, c.cast(input, c.dtype))


def _of_any(name: str) -> Callable[..., Any]:
    return lambda c, input, *rest: c.op(name, input)


def _arithmetic(name: str) -> Callable[..., Any]:
    return lambda c, input, other: c.op(name, c.cast(input, c.dtype), c.cast(other, c.dtype))


def by_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of two operands by a function of numbers that is no operator of graphs."""

    def computed(a: Tensor, b: Tensor) -> Tensor:
        made: Tensor = compute(a.shape, lambda *i: function(a(*i), b(*i)), f"T_{function.__name__}", "elemwise")
        return made

    def convert(c: Context, input: Any, other: Any) -> Any:
        shape = relax.ShapeExpr(tuple(c.sizes))
        operands = [c.op("broadcast_to", c.cast(one, c.dtype), shape) for one in (input, other)]
        return c.builder.emit_te(computed, *operands, primfunc_name_hint=function.__name__)

    return convert


CONVERTERS.update({one.__name__: by_function(one) for one in (intrin.atan2, intrin.hypot, intrin.copysign, intrin.nextafter)})
CONVERTERS["prims.nextafter"] = CONVERTERS["nextafter"]


def promoted(c: Context, a: Any, b: Any) -> str:
    """The dtype in which two operands meet: a tensor's before a number's, a float before an integer."""
    import numpy as np

    tensors = [c.dtype_of(one) for one in (a, b) if isinstance(one, relax.Expr)]
    numbers = [one for one in (a, b) if not isinstance(one, relax.Expr)]
    first = tensors[0]
    if len(tensors) == 2 and tensors[0] != tensors[1]:
        # NumPy has no dtype of the name bfloat16.
        first = str(np.promote_types(*tensors)) if "bfloat16" not in tensors else "float32"
    is_wider = any(isinstance(one, float) for one in numbers) and "float" not in first
    return "float32" if is_wider else "int64" if first == "bool" and numbers and not isinstance(numbers[0], bool) else first


def _comparison(name: str) -> Callable[..., Any]:
    def convert(c: Context, input: Any, other: Any) -> Any:
        dtype = promoted(c, input, other)
        return c.op(name, c.cast(input, dtype), c.cast(other, dtype))

    return convert


def _extreme_number(name: str) -> Callable[..., Any]:
    """Of two numbers; of one and a NaN it is the number."""

    def convert(c: Context, input: Any, other: Any) -> Any:
        a, b = c.cast(input, c.dtype), c.cast(other, c.dtype)
        found = c.op(name, a, b)
        return c.op("where", c.op("isnan", a), b, c.op("where", c.op("isnan", b), a, found)) if "float" in c.dtype else found

    return convert


def _logical(name: str) -> Callable[..., Any]:
    return lambda c, input, other: c.op(name, c.cast(input, "bool"), c.cast(other, "bool"))


CONVERTERS.update({name: _of_floats(here) for name, here in _OF_FLOATS.items()})
CONVERTERS.update({name: _of_any(here) for name, here in _OF_ANY.items()})
CONVERTERS.update({name: _arithmetic(here) for name, here in _ARITHMETIC.items()})
CONVERTERS.update({name: _comparison(here) for name, here in _COMPARISONS.items()})
CONVERTERS.update({name: _logical(name) for name in _LOGICAL})
CONVERTERS.update({"fmin": _extreme_number("minimum"), "fmax": _extreme_number("maximum")})


@aten("add")
def _add(c: Context, input: Any, other: Any, alpha: Any = 1) -> Any:
    return _sum(c, "add", input, other, alpha)


@aten("sub")
def _subtract(c: Context, input: Any, other: Any, alpha: Any = 1) -> Any:
    return _sum(c, "subtract", input, other, alpha)


@aten("rsub")
def _subtract_from(c: Context, input: Any, other: Any, alpha: Any = 1) -> Any:
    return _sum(c, "subtract", other, input, alpha)


def _sum(c: Context, name: str, a: Any, b: Any, alpha: Any) -> Any:
    right = c.cast(b, c.dtype)
    if alpha != 1:
        right = c.op("multiply", right, relax.const(alpha, c.dtype))
    return c.op(name, c.cast(a, c.dtype), right)


@aten("div", "true_divide", "prims.div")
def _divide(c: Context, input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    a, b = c.cast(input, c.dtype), c.cast(other, c.dtype)
    if rounding_mode == "floor":
        return c.op("floor_divide", a, b)
    quotient = c.op("divide", a, b)  # of integers it is truncated already
    return _truncated(c, quotient) if rounding_mode == "trunc" and "float" in c.dtype else quotient


def _truncated(c: Context, value: Any) -> Any:
    return c.op("multiply", c.op("sign", value), c.op("floor", c.op("abs", value)))


@aten("trunc", "fix")
def _trunc(c: Context, input: Any) -> Any:
    return _truncated(c, input)


@aten("reciprocal")
def _reciprocal(c: Context, input: Any) -> Any:
    return c.op("divide", relax.const(1, c.dtype), c.cast(input, c.dtype))


@aten("pow.Scalar")
def _power_of_number(c: Context, input: Any, exponent: Any) -> Any:
    return c.op("power", relax.const(input, c.dtype), c.cast(exponent, c.dtype))


@aten("pow.Tensor_Scalar")
def _power(c: Context, input: Any, exponent: Any) -> Any:
    value = c.cast(input, c.dtype)
    if exponent in (2, 2.0):
        return c.op("multiply", value, value)
    if exponent == 0.5:
        return c.op("sqrt", value)
    return c.op("power", value, relax.const(exponent, c.dtype))


def _scaled_log(factor: float) -> Callable[..., Any]:
    return lambda c, input: c.op("multiply", c.op("log", c.cast(input, c.dtype)), relax.const(factor, c.dtype))


@aten("round.decimals")
def _round(c: Context, input: Any, decimals: int = 0) -> Any:
    """To so many digits behind the point, or in front of it."""
    scale = relax.const(10.0 ** abs(decimals), c.dtype)
    there, back = ("multiply", "divide") if decimals >= 0 else ("divide", "multiply")
    return c.op(back, c.op("round", c.op(there, input, scale)), scale)


CONVERTERS.update({"log2": _scaled_log(1 / math.log(2)), "log10": _scaled_log(1 / math.log(10))})


@aten("expm1", "prims.expm1")
def _expm1(c: Context, input: Any) -> Any:
    """Higham, Accuracy and Stability of Numerical Algorithms (2002), section 1.14.1: the errors of exp and log cancel."""
    x, one = c.cast(input, c.dtype), relax.const(1, c.dtype)
    grown = c.op("exp", x)
    less = c.op("subtract", grown, one)
    exact = c.op("divide", c.op("multiply", less, x), c.op("log", grown))
    is_far = c.op("greater", c.op("abs", x), one)  # where nothing cancels, and exp may be 0 or infinite
    # Where exp(x) rounds to 1 the quotient is 0 / 0, and expm1(x) is x.
    near = c.op("where", c.op("equal", grown, one), x, exact)
    return c.op("where", is_far, less, near)


@aten("log1p", "prims.log1p")
def _log1p(c: Context, input: Any) -> Any:
    """As `expm1`."""
    x, one = c.cast(input, c.dtype), relax.const(1, c.dtype)
    grown = c.op("add", x, one)
    exact = c.op("divide", c.op("multiply", c.op("log", grown), x), c.op("subtract", grown, one))
    is_far = c.op("greater", c.op("abs", x), one)
    return c.op("where", is_far, c.op("log", grown), c.op("where", c.op("equal", grown, one), x, exact))


@aten("exp2")
def _exp2(c: Context, input: Any) -> Any:
    return c.op("exp", c.op("multiply", c.cast(input, c.dtype), relax.const(math.log(2), c.dtype)))


@aten("clamp", "clip", "hardtanh", "clamp.Tensor")
def _clamp(c: Context, input: Any, min: Any = None, max: Any = None) -> Any:
    value = c.cast(input, c.dtype)
    if isinstance(min, (int, float)) and isinstance(max, (int, float)):
        return c.op("clip", value, min, max)
    if min is not None:
        value = c.op("maximum", value, c.cast(min, c.dtype))
    return value if max is None else c.op("minimum", value, c.cast(max, c.dtype))


@aten("clamp_min")
def _clamp_min(c: Context, input: Any, min: Any) -> Any:
    return _clamp(c, input, min)


@aten("clamp_max")
def _clamp_max(c: Context, input: Any, max: Any) -> Any:
    return _clamp(c, input, None, max)


@aten("relu6")
def _relu6(c: Context, input: Any) -> Any:
    return c.op("clip", input, 0, 6)


@aten("leaky_relu")
def _leaky_relu(c: Context, input: Any, negative_slope: float = 0.01) -> Any:
    return c.op("nn.leakyrelu", input, alpha=negative_slope)


@aten("gelu")
def _gelu(c: Context, input: Any, approximate: str = "none") -> Any:
    return c.op("nn.gelu_tanh" if approximate == "tanh" else "nn.gelu", input)


@aten("hardsigmoid")
def _hard_sigmoid(c: Context, input: Any) -> Any:
    moved = c.op("clip", c.op("add", input, relax.const(3, c.dtype)), 0, 6)
    return c.op("multiply", moved, relax.const(1 / 6, c.dtype))


@aten("hardswish")
def _hard_swish(c: Context, input: Any) -> Any:
    return c.op("multiply", input, _hard_sigmoid(c, input))


@aten("softplus")
def _softplus(c: Context, input: Any, beta: float = 1, threshold: float = 20) -> Any:
    scaled = c.op("multiply", input, relax.const(beta, c.dtype))
    # log(1 + exp(x)) without an overflow: max(x, 0) + log(1 + exp(-|x|))
    rest = c.op("log", c.op("add", c.op("exp", c.op("negative", c.op("abs", scaled))), relax.const(1, c.dtype)))
    smooth = c.op("divide", c.op("add", c.op("nn.relu", scaled), rest), relax.const(beta, c.dtype))
    return c.op("where", c.op("greater", scaled, relax.const(threshold, c.dtype)), input, smooth)


@aten("elu")
def _elu(c: Context, input: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    below = c.op("multiply", input, relax.const(input_scale, c.dtype))
    below = c.op("minimum", below, relax.const(0, c.dtype))  # where it isn't taken it must not overflow
    curved = c.op("multiply", c.op("subtract", c.op("exp", below), relax.const(1, c.dtype)), relax.const(alpha, c.dtype))
    chosen = c.op("where", c.op("greater", input, relax.const(0, c.dtype)), input, curved)
    return chosen if scale == 1 else c.op("multiply", chosen, relax.const(scale, c.dtype))


@aten("where")
def _where(c: Context, condition: Any, input: Any, other: Any) -> Any:
    return c.op("where", condition, c.cast(input, c.dtype), c.cast(other, c.dtype))


@aten("masked_fill")
def _masked_fill(c: Context, input: Any, mask: Any, value: Any) -> Any:
    return c.op("where", mask, c.cast(value, c.dtype), input)


@aten("to", "_to_copy", "type_as", "to.dtype")
def _to(c: Context, input: Any, *rest: Any) -> Any:
    return c.cast(input, c.dtype)


@aten("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh")
def _same(c: Context, input: Any, *rest: Any) -> Any:
    return input


@aten("masked_scatter")
def _masked_scatter(c: Context, input: Any, mask: Any, source: Any) -> Any:
    shape = relax.ShapeExpr(tuple(c.shape_of(input)))
    mask = c.op("broadcast_to", mask, shape)
    # How many places are masked up to each one is the number of its element of the source.
    counted = c.op("cumsum", c.op("flatten", c.cast(mask, "int64")), axis=0)
    places = c.op("clip", c.op("subtract", counted, relax.const(1, "int64")), 0, math.prod(c.shape_of(source)) - 1)
    taken = c.op("take", c.op("flatten", source), places, axis=0)
    return c.op("where", mask, c.op("reshape", taken, shape), input)


def _reduction(name: str) -> Callable[..., Any]:
    def convert(c: Context, input: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        # An empty list of axes is all of them, as None is.
        axes = [dim] if isinstance(dim, int) else list(dim) if dim else None
        return c.op(name, c.cast(input, c.dtype), axis=axes, keepdims=bool(keepdim))

    return convert


CONVERTERS.update(
    {f"{there}.{kind}": _reduction(here) for there, here in {"sum": "sum", "mean": "mean"}.items() for kind in ("dim_IntList", "dim")}
)
CONVERTERS.update({"amax": _reduction("max"), "amin": _reduction("min"), "prod.dim_int": _reduction("prod")})


def _whole(name: str) -> Callable[..., Any]:
    return lambda c, input, *rest: c.op(name, c.cast(input, c.dtype))


CONVERTERS.update({f"{name}.default": _whole(name) for name in ("sum", "mean", "prod", "max", "min")})


def _truth(name: str) -> Callable[..., Any]:
    def convert(c: Context, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axes = [dim] if isinstance(dim, int) else list(dim) if dim else None
        # Of zeros and ones the greatest says whether any is true, the least whether all are.
        whole = c.op(name, c.cast(c.cast(input, "bool"), "int8"), axis=axes, keepdims=bool(keepdim))
        return c.cast(whole, "bool")

    return convert


CONVERTERS.update({"any": _truth("max"), "all": _truth("min")})


def _chosen(name: str) -> Callable[..., Any]:
    def convert(c: Context, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        return c.cast(c.op(name, input, axis=dim, keepdims=bool(keepdim)), "int64")

    return convert


CONVERTERS.update({"argmax": _chosen("argmax"), "argmin": _chosen("argmin")})


def _extreme(value: str, place: str) -> Callable[..., Any]:
    def convert(c: Context, input: Any, dim: int, keepdim: bool = False) -> Any:
        found = c.op(value, input, axis=[dim], keepdims=bool(keepdim))
        return [found, c.cast(c.op(place, input, axis=dim, keepdims=bool(keepdim)), "int64")]

    return convert


CONVERTERS.update({"max.dim": _extreme("max", "argmax"), "min.dim": _extreme("min", "argmin")})


def _spread(c: Context, input: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean; `correction` is taken from the count that the squares are divided by (Bessel)."""
    axes = [one % c.rank(input) for one in ([dim] if isinstance(dim, int) else dim)] if dim else list(range(c.rank(input)))
    extents = c.shape_of(input)
    count = math.prod(extents[one] for one in axes)
    found = c.op("variance", input, axis=axes, keepdims=bool(keepdim))
    taken = 1 if correction is None else correction
    if not isinstance(count, int):
        both = c.op("subtract", c.cast(count, c.dtype_of(input)), relax.const(taken, c.dtype_of(input)))
        found = c.op("multiply", found, c.op("divide", c.cast(count, c.dtype_of(input)), both))
    elif taken:
        # Of one element the variance is 0 / 0: 0 * inf is the NaN that PyTorch gives.
        found = c.op("multiply", found, relax.const(count / (count - taken) if count != taken else math.inf, c.dtype_of(input)))
    return found, c.op("mean", input, axis=axes, keepdims=bool(keepdim))


@aten("var.correction", "var.dim", "var.default")
def _variance(c: Context, input: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return _spread(c, input, dim, correction, keepdim)[0]


@aten("std.correction", "std.dim", "std.default")
def _deviation(c: Context, input: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return c.op("sqrt", _spread(c, input, dim, correction, keepdim)[0])


@aten("var_mean.correction", "var_mean.dim")
def _variance_and_mean(c: Context, input: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return list(_spread(c, input, dim, correction, keepdim))


@aten("_cdist_forward", "cdist")
def _distances(c: Context, x1: Any, x2: Any, p: float = 2.0, *rest: Any) -> Any:
    apart = c.op("subtract", c.op("expand_dims", x1, axis=c.rank(x1) - 1), c.op("expand_dims", x2, axis=c.rank(x2) - 2))
    return _vector_norm(c, apart, p, [-1])


@aten("linalg_vector_norm")
def _vector_norm(c: Context, input: Any, ord: Any = 2, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: Any = None) -> Any:
    size = c.op("abs", c.cast(input, c.dtype))
    axes = list(dim) if dim else None
    if ord in (math.inf, -math.inf):
        return c.op("max" if ord > 0 else "min", size, axis=axes, keepdims=keepdim)
    if ord == 2:
        return c.op("sqrt", c.op("sum", c.op("multiply", size, size), axis=axes, keepdims=keepdim))
    total = c.op("sum", c.op("power", size, relax.const(ord, c.dtype)), axis=axes, keepdims=keepdim)
    return c.op("power", total, relax.const(1 / ord, c.dtype))
