"""Functions of one element: `topi.exp(x)` and its family, casts, clips and filled tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..te.declare import compute
from ..te.tensor import Tensor
from ..tir import arithmetic, bitwise, intrin
from ..tir.arithmetic import cast as cast_expr
from ..tir.arithmetic import const, maximum, minimum
from ..tir.dtype import parse_dtype
from ..tir.expr import PrimExpr, Var
from . import tag

Unary = Callable[[Tensor], Tensor]


def elementwise(x: Tensor, function: Callable[[PrimExpr], PrimExpr], name: str) -> Tensor:
    """The tensor whose elements are `function` of those of `x`."""
    return compute(x.shape, lambda *i: function(x(*i)), name, tag.ELEMWISE, varargs_names=axis_names(x.ndim))


def axis_names(ndim: int) -> list[str]:
    """Names of the axes of an operator of any rank."""
    return [f"ax{n}" for n in range(ndim)]


def _family(name: str, function: Callable[[Any], PrimExpr], summary: str) -> Unary:
    def operator(x: Tensor) -> Tensor:
        return elementwise(x, function, f"T_{name}")

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"{summary} of each element; shape and dtype of `x`."
    return operator


abs = _family("abs", intrin.abs, "The absolute value")
acos = _family("acos", intrin.acos, "The arc cosine")
acosh = _family("acosh", intrin.acosh, "The inverse hyperbolic cosine")
asin = _family("asin", intrin.asin, "The arc sine")
asinh = _family("asinh", intrin.asinh, "The inverse hyperbolic sine")
atan = _family("atan", intrin.atan, "The arc tangent")
atanh = _family("atanh", intrin.atanh, "The inverse hyperbolic tangent")
ceil = _family("ceil", intrin.ceil, "The smallest integer above")
cos = _family("cos", intrin.cos, "The cosine")
cosh = _family("cosh", intrin.cosh, "The hyperbolic cosine")
erf = _family("erf", intrin.erf, "The error function")
exp = _family("exp", intrin.exp, "The exponential")
floor = _family("floor", intrin.floor, "The largest integer below")
isfinite = _family("isfinite", intrin.isfinite, "Whether it is finite")
isinf = _family("isinf", intrin.isinf, "Whether it is infinite")
isnan = _family("isnan", intrin.isnan, "Whether it is no number")
log = _family("log", intrin.log, "The natural logarithm")
log2 = _family("log2", intrin.log2, "The logarithm to base 2")
log10 = _family("log10", intrin.log10, "The logarithm to base 10")
round = _family("round", intrin.round, "The nearest integer, halves away from zero,")
rsqrt = _family("rsqrt", intrin.rsqrt, "The reciprocal square root")
sigmoid = _family("sigmoid", intrin.sigmoid, "1 / (1 + exp(-x))")
sin = _family("sin", intrin.sin, "The sine")
sinh = _family("sinh", intrin.sinh, "The hyperbolic sine")
sqrt = _family("sqrt", intrin.sqrt, "The square root")
tan = _family("tan", intrin.tan, "The tangent")
tanh = _family("tanh", intrin.tanh, "The hyperbolic tangent")
trunc = _family("trunc", intrin.trunc, "The integer towards zero")
negative = _family("negative", arithmetic.negate, "The negative")
identity = _family("identity", lambda x: x, "The value")
# Vector code has its own polynomials, at the accuracy of the plain functions.
fast_exp = _family("fast_exp", intrin.exp, "The exponential")
fast_tanh = _family("fast_tanh", intrin.tanh, "The hyperbolic tangent")
fast_erf = _family("fast_erf", intrin.erf, "The error function")


def logical_not(data: Tensor) -> Tensor:
    """The logical complement of each element, a tensor of booleans."""
    return elementwise(data, arithmetic.logical_not, "T_logical_not")


def bitwise_not(data: Tensor) -> Tensor:
    """The complement of the bits of each element; shape and dtype of `data`."""
    return elementwise(data, bitwise.bitwise_not, "T_bitwise_not")


def left_shift(x: Tensor, n: int) -> Tensor:
    """The integers of `x` shifted left by `n` bits; see `topi.left_shift` for tensors of bits."""
    return elementwise(x, lambda value: bitwise.shift_left(value, const(n, x.dtype)), "T_left_shift")


def right_shift(x: Tensor, n: int) -> Tensor:
    """The integers of `x` shifted right by `n` bits; see `topi.right_shift` for tensors of bits."""
    return elementwise(x, lambda value: bitwise.shift_right(value, const(n, x.dtype)), "T_right_shift")


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1 of each element, in the dtype of `x`; NaN of NaN."""

    def function(value: PrimExpr) -> PrimExpr:
        zero, one = const(0, x.dtype), const(1, x.dtype)
        # Unsigned numbers and bools: none is less than 0, and -1 isn't among them.
        if not x.dtype.startswith(("int", "float", "bfloat")):
            return intrin.select(value > zero, one, zero)
        return intrin.select(value > zero, one, intrin.select(value < zero, const(-1, x.dtype), value))  # 0 and NaN are themselves

    return elementwise(x, function, "T_sign")


def ceil_log2(x: Tensor) -> Tensor:
    """The smallest integer k with 2**k >= element; an integer tensor keeps its dtype, a float one gives floats."""
    if x.dtype.startswith("float"):
        return elementwise(x, lambda v: intrin.ceil(intrin.log2(v)), "T_ceil_log2")

    def function(value: PrimExpr) -> PrimExpr:
        # The length of value - 1 in bits: 5 -> 0b100 -> 3, and 4 -> 0b11 -> 2. Beside 1 a narrow integer is an int32.
        less = value - 1
        leading = intrin.clz(less)
        bits = const(parse_dtype(less.dtype).bits, leading.dtype)
        return intrin.select(value <= 1, const(0, x.dtype), cast_expr(bits - leading, x.dtype))

    return elementwise(x, function, "T_ceil_log2")


def cast(x: Any, dtype: str, span: Any = None) -> Any:
    """`x` in another dtype; a tensor of that dtype already is returned as it is. Expressions are cast too."""
    if not isinstance(x, Tensor):
        return cast_expr(x, dtype)
    return x if x.dtype == dtype else elementwise(x, lambda v: cast_expr(v, dtype), "T_cast")


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The same bits as another dtype of the same width."""
    return elementwise(x, lambda v: intrin.reinterpret(dtype, v), "T_reinterpret")


def clip(x: Tensor, a_min: Any, a_max: Any) -> Tensor:
    """Each element, but at least `a_min` and at most `a_max`."""

    def function(value: PrimExpr) -> PrimExpr:
        return maximum(minimum(value, cast_expr(a_max, x.dtype)), cast_expr(a_min, x.dtype))

    return elementwise(x, function, "T_clip")


def elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape, element by element.

    Raises:
        DeclarationError: for no tensor at all.
    """
    if not xs:
        raise DeclarationError("elemwise_sum: there is no tensor; it takes one or more")

    def body(*i: Var) -> PrimExpr:
        total: PrimExpr = xs[0](*i)
        for other in xs[1:]:
            total = total + other(*i)
        return total

    return compute(xs[0].shape, body, "T_elemwise_sum", tag.ELEMWISE, varargs_names=axis_names(xs[0].ndim))


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> Tensor:
    """A tensor of one value."""
    return compute(tuple(shape), lambda *i: cast_expr(fill_value, dtype), "T_full", tag.ELEMWISE, varargs_names=axis_names(len(shape)))


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """A tensor of one value, with shape and dtype of `x`."""
    return full(x.shape, x.dtype, fill_value)
