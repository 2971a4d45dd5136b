"""Operators that work element by element, and those on pairs of elements of shapes that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError, TypeMismatchError
from ...te.elementwise import elementwise
from ...tir import intrin
from ...tir.arithmetic import cast, const
from ...tir.dtype import parse_dtype, to_numpy
from ...tir.expr import IntImm, PrimExpr
from ...topi.math import elementwise as of_elements
from ..expr import Call, Var
from ..relations import same_extents
from ..struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from . import reference
from .row import Expr, Operand, Pattern, Prim, operator, tensor


def _unary(name: str, computed: Any, numpy: Any, result: str | None = None, floats: bool = False) -> Callable[..., Call]:
    """An operator on one tensor; `result` is the dtype of what it gives, `floats` refuses integers."""

    def known(operand: Operand) -> StructInfo:
        if floats and operand.dtype and not parse_dtype(operand.dtype).is_float:
            raise TypeMismatchError(f"relax.op.{name} is a function of floating-point numbers; x is {operand.info}; use astype first")
        return operand.info if result is None else TensorStructInfo(operand.info.shape, result, operand.info.vdevice, operand.ndim)

    def of_x(x: Expr) -> StructInfo:
        return known(tensor(x, "x"))

    def of_data(data: Expr) -> StructInfo:
        return known(tensor(data, "data"))

    # Activations call their operand otherwise.
    rule = of_data if name.startswith("nn.") else of_x
    rule.__doc__ = f"`{name}` of each element."
    # Functions of the C library have some of these names, and kernels may call them.
    kernel = name.rpartition(".")[2] if name.startswith("nn.") else f"tir_{name}"
    return operator(name, Pattern.ELEMENTWISE, te=computed, numpy=numpy, kernel=kernel)(rule)


def _rounded(x: Any) -> Any:
    """To the nearest integer, halves to even ones."""
    return te.compute(x.shape, lambda *i: intrin.nearbyint(x[i]), name="round") if parse_dtype(x.dtype).is_float else x


abs = _unary("abs", topi.abs, np.abs)
acos = _unary("acos", topi.acos, np.arccos, floats=True)
acosh = _unary("acosh", topi.acosh, np.arccosh, floats=True)
asin = _unary("asin", topi.asin, np.arcsin, floats=True)
asinh = _unary("asinh", topi.asinh, np.arcsinh, floats=True)
atan = _unary("atan", topi.atan, np.arctan, floats=True)
atanh = _unary("atanh", topi.atanh, np.arctanh, floats=True)
bitwise_not = _unary("bitwise_not", topi.bitwise_not, np.bitwise_not)
ceil = _unary("ceil", topi.ceil, np.ceil)
cos = _unary("cos", topi.cos, np.cos, floats=True)
cosh = _unary("cosh", topi.cosh, np.cosh, floats=True)
erf = _unary("erf", topi.erf, reference.erf, floats=True)
exp = _unary("exp", topi.exp, np.exp, floats=True)
floor = _unary("floor", topi.floor, np.floor)
isfinite = _unary("isfinite", topi.isfinite, np.isfinite, "bool")
isinf = _unary("isinf", topi.isinf, np.isinf, "bool")
isnan = _unary("isnan", topi.isnan, np.isnan, "bool")
log = _unary("log", topi.log, np.log, floats=True)
logical_not = _unary("logical_not", topi.logical_not, np.logical_not)
negative = _unary("negative", topi.negative, np.negative)
round = _unary("round", _rounded, reference.round)
rsqrt = _unary("rsqrt", topi.rsqrt, reference.rsqrt, floats=True)
sigmoid = _unary("sigmoid", topi.sigmoid, reference.sigmoid, floats=True)
sign = _unary("sign", topi.sign, np.sign)
sin = _unary("sin", topi.sin, np.sin, floats=True)
sinh = _unary("sinh", topi.sinh, np.sinh, floats=True)
sqrt = _unary("sqrt", topi.sqrt, np.sqrt, floats=True)
square = _unary("square", lambda x: topi.multiply(x, x), np.square)
tan = _unary("tan", topi.tan, np.tan, floats=True)
tanh = _unary("tanh", topi.tanh, np.tanh, floats=True)


def broadcast(a: Sequence[PrimExpr], b: Sequence[PrimExpr], name: str) -> list[PrimExpr] | None:
    """The shape of a result whose operands have these shapes (NumPy's rule); None if it depends on symbols.

    Raises:
        DeclarationError: if they don't broadcast.
    """
    length = max(len(a), len(b))
    one = IntImm("int64", 1)
    pairs = zip([one] * (length - len(a)) + list(a), [one] * (length - len(b)) + list(b), strict=True)
    found: list[PrimExpr] = []
    for x, y in pairs:
        same = same_extents(x, y)
        if same or (isinstance(y, IntImm) and y.value == 1):
            found.append(x)
        elif isinstance(x, IntImm) and x.value == 1:
            found.append(y)
        elif same is None and (isinstance(x, IntImm) or isinstance(y, IntImm)):
            found.append(x if isinstance(x, IntImm) else y)  # the other one is as long, or 1
        elif same is None or not (isinstance(x, IntImm) and isinstance(y, IntImm)):  # of n and n + 2 the first may be 1
            return None
        else:
            raise DeclarationError(f"relax.op.{name}: shapes {list(a)} and {list(b)} don't broadcast: {x} and {y} differ and neither is 1")
    return found


def of_rank_0(operand: Any) -> Any:
    """A variable of rank 0 for a number (`R.Prim`), for rules on tensors; other operands as they are."""
    info = getattr(operand, "struct_info", None)
    return Var("number", TensorStructInfo((), info.dtype)) if isinstance(info, PrimStructInfo) else operand


def broadcast_info(operands: Sequence[Any], name: str, dtype: str | None = None) -> TensorStructInfo:
    """The tensor that operands broadcast to.

    Raises:
        DeclarationError: if their shapes don't broadcast.
        TypeMismatchError: if their dtypes differ.
    """
    found = [tensor(operand, f"operand {number} of {name}") for number, operand in enumerate(map(of_rank_0, operands))]
    dtypes = {operand.dtype for operand in found if operand.dtype}
    if dtype is None and len(dtypes) > 1:
        raise TypeMismatchError(f"relax.op.{name}: operands of {' and '.join(sorted(dtypes))}; bring them to one dtype with astype")
    result = (dtypes.pop() if len(dtypes) == 1 and all(o.dtype for o in found) else "") if dtype is None else dtype
    extents: list[PrimExpr] | None = []
    for operand in found:
        extents = None if extents is None or operand.extents is None else broadcast(extents, operand.extents, name)
    if extents is not None:
        return found[0].like(extents, result)
    ndims = [operand.ndim for operand in found]
    return found[0].like(None, result, -1 if -1 in ndims else max(ndims))


def _binary(name: str, computed: Any, numpy: Any, result: str | None = None) -> Callable[..., Call]:
    """An operator on two tensors that broadcast."""

    def rule(x1: Expr, x2: Expr) -> StructInfo:
        info = broadcast_info([x1, x2], name)
        if all(isinstance(one.struct_info, PrimStructInfo) for one in (x1, x2)):
            return PrimStructInfo(result or info.dtype)
        return info if result is None else TensorStructInfo(info.shape, result, info.vdevice, info.ndim)

    rule.__doc__ = f"`{name}` of each pair of elements; shapes broadcast as NumPy's do."
    return operator(name, Pattern.BROADCAST, te=computed, numpy=numpy)(rule)


def _te_extreme(name: str, of_two: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The greater or the lesser element; NaN if one of them is."""

    def chosen(a: Any, b: Any) -> Any:
        return intrin.select(intrin.isnan(a), a, intrin.select(intrin.isnan(b), b, of_two(a, b)))

    return lambda x1, x2: elementwise(f"T_{name}", chosen if parse_dtype(x1.dtype).is_float else of_two, x1, x2)


add = _binary("add", topi.add, np.add)
bitwise_and = _binary("bitwise_and", topi.bitwise_and, np.bitwise_and)
bitwise_or = _binary("bitwise_or", topi.bitwise_or, np.bitwise_or)
bitwise_xor = _binary("bitwise_xor", topi.bitwise_xor, np.bitwise_xor)
divide = _binary("divide", topi.divide, reference.divide)
equal = _binary("equal", topi.equal, np.equal, "bool")
floor_divide = _binary("floor_divide", topi.floor_divide, np.floor_divide)
floor_mod = _binary("floor_mod", topi.floor_mod, np.mod)
greater = _binary("greater", topi.greater, np.greater, "bool")
greater_equal = _binary("greater_equal", topi.greater_equal, np.greater_equal, "bool")
left_shift = _binary("left_shift", topi.left_shift, np.left_shift)
less = _binary("less", topi.less, np.less, "bool")
less_equal = _binary("less_equal", topi.less_equal, np.less_equal, "bool")
logical_and = _binary("logical_and", topi.logical_and, np.logical_and)
logical_or = _binary("logical_or", topi.logical_or, np.logical_or)
logical_xor = _binary("logical_xor", topi.logical_xor, np.logical_xor)
maximum = _binary("maximum", _te_extreme("maximum", topi.maximum), np.maximum)
minimum = _binary("minimum", _te_extreme("minimum", topi.minimum), np.minimum)
mod = _binary("mod", topi.mod, np.fmod)
multiply = _binary("multiply", topi.multiply, np.multiply)
not_equal = _binary("not_equal", topi.not_equal, np.not_equal, "bool")
power = _binary("power", reference.te_power, reference.power)
right_shift = _binary("right_shift", topi.right_shift, np.right_shift)
subtract = _binary("subtract", topi.subtract, np.subtract)


@operator("astype", Pattern.ELEMENTWISE, te=topi.cast, numpy=lambda x, dtype: reference.cast(x, dtype), kernel="cast")
def astype(x: Expr, dtype: str) -> StructInfo:
    """Each element in another dtype."""
    operand = tensor(x, "x")
    parse_dtype(dtype)
    return TensorStructInfo(operand.info.shape, dtype, operand.info.vdevice, operand.ndim)


def _te_bitcast(x: Any, dtype: str) -> Any:
    bits = topi.cast(x, "uint8") if x.dtype == "bool" else x
    return topi.cast(topi.reinterpret(bits, "uint8"), "bool") if dtype == "bool" else topi.reinterpret(bits, dtype)


@operator("bitcast", Pattern.ELEMENTWISE, te=_te_bitcast, numpy=lambda x, dtype: np.asarray(x, order="C").view(to_numpy(dtype)))
def bitcast(x: Expr, dtype: str) -> StructInfo:
    """The bits of each element as those of another dtype of the same width."""
    operand = tensor(x, "x")
    if operand.dtype and parse_dtype(operand.dtype).itemsize != parse_dtype(dtype).itemsize:
        raise TypeMismatchError(f"relax.op.bitcast: elements of {operand.dtype} and of {dtype} have different widths")
    return TensorStructInfo(operand.info.shape, dtype, operand.info.vdevice, operand.ndim)


def _clipped(x: Any, min: Any, max: Any) -> Any:
    # NumPy's order: where the bounds cross, the upper one wins.
    return of_elements(x, lambda v: reference.at_most(reference.at_least(v, cast(min, x.dtype)), cast(max, x.dtype)), "T_clip")


def _relu(x: Any) -> Any:
    return of_elements(x, lambda v: reference.at_least(v, const(0, x.dtype)), "T_relu")


@operator("gcd", numpy=np.gcd)
def gcd(x1: Expr, x2: Expr) -> StructInfo:
    """The greatest common divisor of each pair of integers, which is none below 0; shapes broadcast as NumPy's do."""
    info = broadcast_info([x1, x2], "gcd")
    if info.dtype and parse_dtype(info.dtype).is_float:
        raise TypeMismatchError(f"relax.op.gcd: integers have divisors, {info.dtype} has none")
    return info


@operator("clip", Pattern.ELEMENTWISE, te=_clipped, numpy=np.clip)
def clip(x: Expr, min: Prim, max: Prim) -> StructInfo:
    """Each element, no less than `min` and no more than `max`."""
    return tensor(x, "x").info


@operator("where", Pattern.BROADCAST, te=topi.where, numpy=np.where)
def where(condition: Expr, x1: Expr, x2: Expr) -> StructInfo:
    """Elements of `x1` where the condition holds, else of `x2`; all three broadcast."""
    if tensor(condition, "condition").dtype not in ("bool", ""):
        raise TypeMismatchError(f"relax.op.where: the condition is a tensor of bool, not {condition.struct_info}")
    chosen = broadcast_info([x1, x2], "where")
    return broadcast_info([condition, x1, x2], "where", chosen.dtype)


def _fma(x1: Any, x2: Any, x3: Any) -> Any:
    return topi.add(topi.multiply(x1, x2), x3)


@operator("ewise_fma", Pattern.ELEMENTWISE, te=_fma, numpy=lambda x1, x2, x3: x1 * x2 + x3)
def ewise_fma(x1: Expr, x2: Expr, x3: Expr) -> StructInfo:
    """`x1 * x2 + x3`, element by element."""
    return broadcast_info([x1, x2, x3], "ewise_fma")


def masked_fill(x: Any, mask: Any, value: Any) -> Call:
    """`value` where the mask holds, elsewhere the elements of `x`: a call of `where`."""
    return where(mask, value, x)


# Activations: elementwise, by names of their own.
relu = _unary("nn.relu", _relu, reference.relu)
silu = _unary("nn.silu", reference.te_silu, reference.silu, floats=True)
gelu = _unary("nn.gelu", partial(reference.te_gelu, tanh=False), reference.gelu, floats=True)
gelu_tanh = _unary("nn.gelu_tanh", partial(reference.te_gelu, tanh=True), reference.gelu_tanh, floats=True)


@operator(
    "nn.leakyrelu",
    Pattern.ELEMENTWISE,
    te=topi.nn.leaky_relu,
    numpy=lambda data, alpha: np.where(data > 0, data, data * data.dtype.type(alpha)),
)
def leakyrelu(data: Expr, alpha: float = 0.01) -> StructInfo:
    """Positive elements, and `alpha` times the others."""
    return tensor(data, "data").info
