"""Intrinsics: the table of calls an expression may hold, and their builders.

A row says how a call is typed and what it computes on NumPy arrays; the interpreter and the reference evaluator
use that column, code generation has its own (see `codegen`). Calls that are not `pure` keep their order and number.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dataclass import dataclass
from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import cast, const, convert, match_types, to_bool
from .dtype import int_limits, parse_dtype, to_numpy, with_lanes
from .expr import Call, FloatImm, IntImm, PrimExpr, Select, StringImm
from .op_registry import BUILTIN, CallEffectKind, is_registered, registered_effect

Array = Any


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64))


def _popcount(x: Array) -> Array:
    x = np.asarray(x)
    bits = np.unpackbits(np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8), axis=1)
    return bits.sum(axis=1).astype(x.dtype).reshape(x.shape)


def _clz(x: Array) -> Array:
    x = np.asarray(x)
    width = x.dtype.itemsize * 8
    # Masked to the width, as a negative number of Python has ones without end.
    values = [width - (int(v) & ((1 << width) - 1)).bit_length() for v in x.reshape(-1)]
    return np.asarray(values, x.dtype).reshape(x.shape)


def _pow(x: Array, y: Array) -> Array:
    """As C has it: NumPy takes the square root for an exponent of 0.5, which differs at -inf and -0.0."""
    return np.where(np.equal(y, 0.5) & (np.isinf(x) | np.equal(x, 0)), np.abs(x), np.power(x, y))


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a*b + c with one rounding: of float64 by exact fractions, of narrower floats by rounding the float64 sum to odd."""
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    if a.dtype == np.float64:
        return np.vectorize(_exact_fma, otypes=[np.float64])(a, b, c)
    # exact: two significands of 24 bits make one of 48
    product, wide = np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)
    total = np.asarray(product + wide)
    # two-sum (Knuth): what the addition rounded away, exactly
    part = total - product
    error = (product - (total - part)) + (wide - part)
    even = (total.view(np.int64) & 1) == 0
    lost = np.isfinite(total) & (error != 0) & even
    return np.where(lost, np.nextafter(total, np.copysign(np.inf, error)), total).astype(a.dtype)


def _exact_fma(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))) or 0 in (a, b):
        # Zero, infinity or NaN leave one rounding at most; and infinity is no fraction.
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    from fractions import Fraction  # which brings decimals and more, for an operation that hardly anybody interprets

    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    # A fraction has one zero; the machine's sum says which of the two it is.
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    try:
        return float(exact)
    # IEEE rounds to infinity where float(...) raises.
    except OverflowError:
        return math.copysign(math.inf, exact)


def _round_away(x: Array) -> Array:
    """Half away from zero, as C's round."""
    x = np.asarray(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(x.dtype)


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One row: `evaluate` works on arrays of the operand dtype; `accuracy` is what compiled code keeps, in ulp."""

    name: str
    arity: int
    kind: str  # "float": floats in and out; "same": any dtype kept; "predicate": bool out; "int": integers; "special"
    evaluate: Callable[..., Array] | None = None
    pure: bool = True
    accuracy: float = 0.0


_ROWS = (
    Intrinsic("exp", 1, "float", np.exp, accuracy=2),
    Intrinsic("exp2", 1, "float", np.exp2, accuracy=2),
    Intrinsic("exp10", 1, "float", lambda x: np.power(np.asarray(10, np.asarray(x).dtype), x), accuracy=4),
    Intrinsic("log", 1, "float", np.log, accuracy=2),
    Intrinsic("log2", 1, "float", np.log2, accuracy=2),
    Intrinsic("log10", 1, "float", np.log10, accuracy=2),
    Intrinsic("log1p", 1, "float", np.log1p, accuracy=4),
    Intrinsic("sqrt", 1, "float", np.sqrt),
    Intrinsic("rsqrt", 1, "float", lambda x: 1 / np.sqrt(x), accuracy=2),
    Intrinsic("sigmoid", 1, "float", lambda x: 1 / (1 + np.exp(-x)), accuracy=4),
    Intrinsic("tanh", 1, "float", np.tanh, accuracy=4),
    Intrinsic("erf", 1, "float", _erf, accuracy=4),
    Intrinsic("sin", 1, "float", np.sin, accuracy=4),
    Intrinsic("cos", 1, "float", np.cos, accuracy=4),
    Intrinsic("tan", 1, "float", np.tan, accuracy=4),
    Intrinsic("asin", 1, "float", np.arcsin, accuracy=4),
    Intrinsic("acos", 1, "float", np.arccos, accuracy=4),
    Intrinsic("atan", 1, "float", np.arctan, accuracy=4),
    Intrinsic("sinh", 1, "float", np.sinh, accuracy=4),
    Intrinsic("cosh", 1, "float", np.cosh, accuracy=4),
    Intrinsic("asinh", 1, "float", np.arcsinh, accuracy=4),
    Intrinsic("acosh", 1, "float", np.arccosh, accuracy=4),
    Intrinsic("atanh", 1, "float", np.arctanh, accuracy=4),
    Intrinsic("floor", 1, "float", np.floor),
    Intrinsic("ceil", 1, "float", np.ceil),
    Intrinsic("trunc", 1, "float", np.trunc),
    Intrinsic("round", 1, "float", _round_away),
    Intrinsic("nearbyint", 1, "float", np.rint),
    Intrinsic("fabs", 1, "same", np.abs),
    Intrinsic("isnan", 1, "predicate", np.isnan),
    Intrinsic("isinf", 1, "predicate", np.isinf),
    Intrinsic("isfinite", 1, "predicate", np.isfinite),
    Intrinsic("pow", 2, "float", _pow, accuracy=4),
    Intrinsic("atan2", 2, "float", np.arctan2, accuracy=4),
    Intrinsic("hypot", 2, "float", np.hypot, accuracy=4),
    Intrinsic("fmod", 2, "float", np.fmod),
    Intrinsic("copysign", 2, "float", np.copysign),
    Intrinsic("nextafter", 2, "float", np.nextafter),
    Intrinsic("fma", 3, "float", fused_multiply_add),
    Intrinsic("ldexp", 2, "special", lambda x, n: np.ldexp(x, np.asarray(n).astype(np.int32))),
    Intrinsic("popcount", 1, "int", _popcount),
    Intrinsic("clz", 1, "int", _clz),
    Intrinsic("bitwise_and", 2, "int", np.bitwise_and),
    Intrinsic("bitwise_or", 2, "int", np.bitwise_or),
    Intrinsic("bitwise_xor", 2, "int", np.bitwise_xor),
    Intrinsic("bitwise_not", 1, "int", np.bitwise_not),
    Intrinsic("shift_left", 2, "int", np.left_shift),
    Intrinsic("shift_right", 2, "int", np.right_shift),
    Intrinsic("if_then_else", 3, "special"),  # evaluates one arm only
    Intrinsic("likely", 1, "special", lambda x: x),  # a hint: a bound check of a tail, true but at the border
    Intrinsic("reinterpret", 1, "special"),
    Intrinsic("call_extern", -1, "special", pure=False),
    Intrinsic("call_pure_extern", -1, "special"),
    Intrinsic("prefetch", -1, "special", pure=False),
    Intrinsic("assume", 1, "special", pure=False),
    Intrinsic("isnullptr", 1, "special"),
    Intrinsic("undef", 0, "special"),
    Intrinsic("atomic_add", 2, "special", pure=False),
    Intrinsic("no_load_merge", 0, "special", pure=False),  # loads after it don't reuse what loads before it gave
    Intrinsic("tvm_call_packed", -1, "special", pure=False),
    Intrinsic("tvm_call_trace_packed", -1, "special", pure=False),
    Intrinsic("tvm_stack_make_array", 6, "special"),
    Intrinsic("tvm_stack_make_shape", -1, "special"),
    Intrinsic("type_annotation", 0, "special"),
    Intrinsic("tvm_access_ptr", 5, "special"),
    Intrinsic("address_of", 1, "special"),
    Intrinsic("call_llvm_intrin", -1, "special", pure=False),
    Intrinsic("call_llvm_pure_intrin", -1, "special"),
)

INTRINSICS: dict[str, Intrinsic] = {f"tir.{row.name}": row for row in _ROWS}
BUILTIN.update(INTRINSICS)


def intrinsic_of(call: Call) -> Intrinsic:
    """The row of a call.

    Raises:
        DeclarationError: for an intrinsic that isn't in the table.
    """
    row = INTRINSICS.get(call.op)
    if row is None and hasattr(call.op, "name_hint"):
        raise DeclarationError(
            f"a call of {call.op.name_hint}, a function of the same module, is not compiled: each function is compiled alone. "
            "tir.transform.InlinePrivateFunctions() puts private functions where they are called; a @T.macro is shared text"
        )
    if row is None and is_registered(call.op):  # a user's own, which a rule of theirs lowers
        return Intrinsic(call.op, -1, "special", pure=registered_effect(call.op) in (CallEffectKind.Pure, CallEffectKind.ExprAnnotation))
    if row is None:
        raise DeclarationError(f"no intrinsic {call.op!r}; known: {', '.join(sorted(INTRINSICS))}")
    return row


def _unary(name: str, summary: str) -> Callable[..., PrimExpr]:
    row = INTRINSICS[f"tir.{name}"]

    def build(x: Any, span: object = None) -> PrimExpr:
        expr = convert(x)
        if not parse_dtype(expr.dtype).is_float:
            expr = cast(expr, with_lanes("float32", parse_dtype(expr.dtype).lanes))
        dtype = with_lanes("bool", parse_dtype(expr.dtype).lanes) if row.kind == "predicate" else expr.dtype
        return Call(dtype, f"tir.{name}", (expr,))

    build.__name__ = build.__qualname__ = name
    accuracy = f" Compiled code is within {row.accuracy:g} ulp on float32." if row.accuracy else ""
    build.__doc__ = f"{summary} Integers are converted to float32 first.{accuracy}"
    return build


def _binary(name: str, summary: str) -> Callable[..., PrimExpr]:
    def build(x1: Any, x2: Any, span: object = None) -> PrimExpr:
        left, right = match_types(x1, x2)
        if not parse_dtype(left.dtype).is_float:
            wanted = with_lanes("float32", parse_dtype(left.dtype).lanes)
            left, right = cast(left, wanted), cast(right, wanted)
        return Call(left.dtype, f"tir.{name}", (left, right))

    build.__name__ = build.__qualname__ = name
    row = INTRINSICS[f"tir.{name}"]
    accuracy = f" Compiled code is within {row.accuracy:g} ulp on float32." if row.accuracy else ""
    build.__doc__ = f"{summary} Integers are converted to float32 first.{accuracy}"
    return build


exp = _unary("exp", "e**x.")
exp2 = _unary("exp2", "2**x.")
exp10 = _unary("exp10", "10**x.")
log = _unary("log", "The natural logarithm.")
log2 = _unary("log2", "The logarithm to base 2.")
log10 = _unary("log10", "The logarithm to base 10.")
log1p = _unary("log1p", "log(1 + x), exact for small x.")
sqrt = _unary("sqrt", "The square root, correctly rounded.")
rsqrt = _unary("rsqrt", "1 / sqrt(x).")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).")
tanh = _unary("tanh", "The hyperbolic tangent.")
erf = _unary("erf", "The error function.")
sin = _unary("sin", "The sine, x in radians.")
cos = _unary("cos", "The cosine, x in radians.")
tan = _unary("tan", "The tangent, x in radians.")
asin = _unary("asin", "The inverse sine, in radians.")
acos = _unary("acos", "The inverse cosine, in radians.")
atan = _unary("atan", "The inverse tangent, in radians.")
sinh = _unary("sinh", "The hyperbolic sine.")
cosh = _unary("cosh", "The hyperbolic cosine.")
asinh = _unary("asinh", "The inverse hyperbolic sine.")
acosh = _unary("acosh", "The inverse hyperbolic cosine.")
atanh = _unary("atanh", "The inverse hyperbolic tangent.")
isinf = _unary("isinf", "True for both infinities.")
isfinite = _unary("isfinite", "True unless infinite or NaN.")
isnan = _unary("isnan", "True for NaN.")
atan2 = _binary("atan2", "The angle of the point (x2, x1), in radians.")
hypot = _binary("hypot", "sqrt(x1*x1 + x2*x2).")
copysign = _binary("copysign", "x1 with the sign of x2.")
nextafter = _binary("nextafter", "The next representable value after x1 towards x2.")


def _rounding(name: str, summary: str) -> Callable[[Any], PrimExpr]:
    def build(x: Any) -> PrimExpr:
        expr = convert(x)
        return Call(expr.dtype, f"tir.{name}", (expr,)) if parse_dtype(expr.dtype).is_float else expr

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{summary} Integers stay as they are."
    return build


floor = _rounding("floor", "The largest integral value not above x.")
ceil = _rounding("ceil", "The smallest integral value not below x.")
trunc = _rounding("trunc", "x without its fraction.")
round = _rounding("round", "The nearest integral value, halves away from zero.")
nearbyint = _rounding("nearbyint", "The nearest integral value, halves to even.")


def abs(x: Any) -> PrimExpr:
    """The absolute value; unsigned integers stay as they are."""
    expr = convert(x)
    return expr if not parse_dtype(expr.dtype).is_signed else Call(expr.dtype, "tir.fabs", (expr,))


def fmod(x: Any, y: Any, span: object = None) -> PrimExpr:
    """The remainder of the truncated division of floats; integers are converted to float32 first."""
    return _fmod(x, y)


def power(x: Any, y: Any, span: object = None) -> PrimExpr:
    """x**y on floats; integers are converted to float32 first."""
    return _power(x, y)


_power = _binary("pow", "x1**x2.")
_fmod = _binary("fmod", "The remainder of the truncated division of floats.")
pow = power


def ldexp(x1: Any, x2: Any) -> PrimExpr:
    """x1 * 2**x2, exact unless the result is subnormal or overflows; x1 a float (integers become float32), x2 an integer.

    Raises:
        TypeMismatchError: for an exponent that is no integer.
    """
    value, exponent = convert(x1), convert(x2)
    if not parse_dtype(exponent.dtype).is_int:
        raise TypeMismatchError(f"ldexp takes an integer exponent, not {exponent} ({exponent.dtype})")
    lanes = max(parse_dtype(value.dtype).lanes, parse_dtype(exponent.dtype).lanes)
    kind = value.dtype if parse_dtype(value.dtype).is_float else "float32"
    operands = (cast(value, with_lanes(kind, lanes)), cast(exponent, with_lanes("int32", lanes)))
    return Call(operands[0].dtype, "tir.ldexp", operands)


def fma(x: Any, y: Any, z: Any) -> PrimExpr:
    """x*y + z with one rounding, on floats."""
    left, right = match_types(x, y)
    left, third = match_types(left, z)
    return Call(left.dtype, "tir.fma", (left, cast(right, left.dtype), third))


def _integer(name: str, x: Any) -> PrimExpr:
    expr = convert(x)
    if not parse_dtype(expr.dtype).is_int:
        raise TypeMismatchError(f"{name} takes integers, not {expr.dtype}")
    return Call(expr.dtype, f"tir.{name}", (expr,))


def popcount(x: Any) -> PrimExpr:
    """The number of one bits of an integer."""
    return _integer("popcount", x)


def clz(x: Any) -> PrimExpr:
    """The number of leading zero bits of an integer; its width for zero."""
    return _integer("clz", x)


def if_then_else(cond: Any, t: Any, f: Any) -> PrimExpr:
    """t where cond holds, else f; only that arm is evaluated, so the other may read out of bounds."""
    condition = to_bool(cond)
    true_value, false_value = match_types(t, f)
    if isinstance(condition, IntImm):
        return true_value if condition.value else false_value
    return Call(true_value.dtype, "tir.if_then_else", (condition, true_value, false_value))


def select(condition: Any, true_value: Any, false_value: Any) -> PrimExpr:
    """`Select` with operands converted to one dtype; both arms are evaluated."""
    left, right = match_types(true_value, false_value)
    return Select(to_bool(condition), left, right)


def likely(cond: Any) -> PrimExpr:
    """A condition that holds but at a border: loop partition cuts the border off."""
    expr = to_bool(cond)
    return expr if isinstance(expr, IntImm) else Call(expr.dtype, "tir.likely", (expr,))


def reinterpret(dtype: str, value: Any) -> PrimExpr:
    """The bits of `value` as another dtype of the same width."""
    expr = convert(value)
    if parse_dtype(dtype).bits * parse_dtype(dtype).lanes != parse_dtype(expr.dtype).bits * parse_dtype(expr.dtype).lanes:
        raise TypeMismatchError(f"{expr.dtype} and {dtype} differ in width; reinterpret keeps the bits")
    return expr if expr.dtype == dtype else Call(dtype, "tir.reinterpret", (expr,))


def call_intrin(dtype: str, func_name: str, *args: Any) -> PrimExpr:
    """A call of the intrinsic `func_name` ("tir.exp", or "exp" as early programs spell it) with a result of `dtype`.

    Raises:
        DeclarationError: for an unknown intrinsic or a wrong number of arguments.
    """
    known = f"tir.{func_name}" if f"tir.{func_name}" in INTRINSICS else func_name
    call = Call(dtype, known, tuple(convert(arg) for arg in args))
    row = intrinsic_of(call)
    if row.arity not in (-1, len(args)):
        raise DeclarationError(f"{func_name} takes {row.arity} arguments, not {len(args)}")
    return call


def call_extern(dtype: str, func_name: str, *args: Any) -> PrimExpr:
    """A call of the C function `func_name`, with side effects."""
    return Call(dtype, "tir.call_extern", (StringImm(func_name), *(convert(arg) for arg in args)))


def call_pure_extern(dtype: str, func_name: str, *args: Any) -> PrimExpr:
    """A call of the C function `func_name`, without side effects."""
    return Call(dtype, "tir.call_pure_extern", (StringImm(func_name), *(convert(arg) for arg in args)))


def min_value(dtype: str) -> PrimExpr:
    """The smallest value of a dtype: the most negative finite float, as TE has it."""
    parsed = parse_dtype(dtype)
    if not parsed.is_float:
        return const(int_limits(dtype)[0], dtype)
    return FloatImm(dtype, -_largest_float(dtype))


def max_value(dtype: str) -> PrimExpr:
    """The largest finite value of a dtype."""
    parsed = parse_dtype(dtype)
    if not parsed.is_float:
        return const(int_limits(dtype)[1], dtype)
    return FloatImm(dtype, _largest_float(dtype))


def _largest_float(dtype: str) -> float:
    number = to_numpy(dtype)
    return float((np if number.kind == "f" else importlib.import_module("ml_dtypes")).finfo(number).max)


def infinity(dtype: str) -> PrimExpr:
    """Positive infinity of a float dtype."""
    if not parse_dtype(dtype).is_float:
        raise TypeMismatchError(f"{dtype} has no infinity; use max_value")
    return FloatImm(dtype, math.inf)
