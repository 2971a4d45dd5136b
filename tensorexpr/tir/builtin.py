"""Builders of what is no function of numbers: fixed-point products, halves of vectors, assumptions, atomic additions.

What other nodes can say is built from them, so that every pass and the interpreter know it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import DeclarationError, TypeMismatchError
from . import arithmetic
from .arithmetic import as_int, binary, cast, const, convert, to_bool
from .bitwise import shift_left, shift_right
from .dtype import int_limits, parse_dtype, scalar_dtype, with_lanes
from .expr import Add, BufferLoad, Call, IntImm, Mul, PrimExpr, Shuffle
from .pointers import address_of


def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> PrimExpr:
    """The product of int32 numbers, y with `q` fractional bits, times 2**s, rounded to the nearest (halves upwards).

    Args:
        x, y: int32, or vectors of it.
        q: fractional bits of y.
        s: a constant; positive multiplies before the product, negative divides after it.

    Raises:
        TypeMismatchError: for operands that aren't int32.
        DeclarationError: for a shift that is no constant.
    """
    shift = convert(s)
    if not isinstance(shift, IntImm):
        raise DeclarationError(f"q_multiply_shift: the shift {shift} is no constant; use q_multiply_shift_per_axis")
    left, right = max(shift.value, 0), max(-shift.value, 0)
    return q_multiply_shift_per_axis(x, y, left, right, q, left > 0, right > 0)


def q_multiply_shift_per_axis(
    x: Any, y: Any, ls: Any, rs: Any, q: Any, is_lshift_required: Any = True, is_rshift_required: Any = True
) -> PrimExpr:
    """As `q_multiply_shift` with shifts that may be expressions: x * 2**ls * y / 2**(q + rs), rounded to the nearest.

    Raises:
        TypeMismatchError: for operands that aren't int32.
    """
    first, second = convert(x), convert(y)
    for operand in (first, second):
        if scalar_dtype(operand.dtype) != "int32":
            raise TypeMismatchError(f"a fixed-point product takes int32, not {operand} ({operand.dtype})")
    wide = with_lanes("int64", max(parse_dtype(first.dtype).lanes, parse_dtype(second.dtype).lanes))
    value = cast(first, wide)
    if bool(is_lshift_required):
        value = shift_left(value, cast(ls, wide))
    total = cast(q, wide)
    if bool(is_rshift_required):
        total = binary(Add, total, cast(rs, wide))
    # A right shift rounds down; half of its last place, added before, makes that the nearest, and halves upwards.
    one = cast(const(1, "int64"), wide)
    # Without fractional bits the total may be 0, and no machine shifts by -1: 1 << 0 >> 1 is the half of nothing.
    some = (as_int(convert(q)) or 0) > 0
    half = (
        shift_left(one, binary(Add, total, cast(const(-1, "int64"), wide))) if some else shift_right(shift_left(one, total), cast(1, wide))
    )
    product = binary(Add, binary(Mul, value, cast(second, wide)), half)
    return cast(shift_right(product, total), with_lanes("int32", parse_dtype(wide).lanes))


def _lanes(vector: Any, wanted: str | None, what: str) -> tuple[PrimExpr, int]:
    expr = convert(vector)
    lanes = parse_dtype(expr.dtype).lanes
    if lanes < 2 or lanes % 2:
        raise TypeMismatchError(f"{what} takes a vector of an even number of lanes, not {expr.dtype}")
    if wanted is not None and wanted != with_lanes(expr.dtype, lanes // 2):
        raise TypeMismatchError(f"{what} of {expr.dtype} is {with_lanes(expr.dtype, lanes // 2)}, not {wanted}")
    return expr, lanes


def vectorlow(dtype: str | None, vec: Any) -> PrimExpr:
    """The first half of a vector; `dtype`, if given, is that of the half."""
    expr, lanes = _lanes(vec, dtype, "vectorlow")
    return Shuffle((expr,), tuple(range(lanes // 2)))


def vectorhigh(dtype: str | None, vec: Any) -> PrimExpr:
    """The second half of a vector; `dtype`, if given, is that of the half."""
    expr, lanes = _lanes(vec, dtype, "vectorhigh")
    return Shuffle((expr,), tuple(range(lanes // 2, lanes)))


def vectorcombine(dtype: str | None, vec1: Any, vec2: Any) -> PrimExpr:
    """One vector of the lanes of two; `dtype`, if given, is that of the whole.

    Raises:
        TypeMismatchError: for operands of different dtypes, or another `dtype`.
    """
    first, second = convert(vec1), convert(vec2)
    lanes = parse_dtype(first.dtype).lanes
    whole = with_lanes(first.dtype, 2 * lanes)
    if first.dtype != second.dtype or (dtype is not None and dtype != whole):
        raise TypeMismatchError(f"vectorcombine of {first.dtype} and {second.dtype}" + (f" as {dtype}" if dtype else ""))
    return Shuffle((first, second), tuple(range(2 * lanes)))


def large_uint_imm(dtype: str, low: int, high: int) -> PrimExpr:
    """The unsigned constant high * 2**32 + low."""
    value = (int(high) << 32) | int(low)
    if not 0 <= value <= int_limits(dtype)[1]:
        raise TypeMismatchError(f"{value} is no {dtype}")
    return IntImm(dtype, value)


def undef(dtype: str = "float32") -> PrimExpr:
    """A value that nobody looks at. Code generation and the interpreter take zero, as good as any other."""
    return Call(dtype, "tir.undef", ())


def all(*args: Any, span: object = None) -> PrimExpr:
    """The conjunction of conditions.

    Raises:
        DeclarationError: without any, which is more likely forgotten than meant.
    """
    return arithmetic.all(*_some("all", args))


def any(*args: Any, span: object = None) -> PrimExpr:
    """The disjunction of conditions.

    Raises:
        DeclarationError: without any.
    """
    return arithmetic.any(*_some("any", args))


def _some(name: str, conditions: tuple[Any, ...]) -> tuple[Any, ...]:
    if not conditions:
        raise DeclarationError(f"tir.{name} takes at least one condition")
    return conditions


def vscale() -> PrimExpr:
    """How many times as long a scalable vector is as it would be at least: known to the machine alone."""
    return Call("int32", "tir.vscale", ())


def get_active_lane_mask(dtype: str, base: Any, limit: Any) -> PrimExpr:
    """A bool for each lane: whether base + lane < limit.

    Args:
        dtype: of the mask, such as "uint1xvscalex4".
    """
    return Call(str(parse_dtype(dtype)), "tir.get_active_lane_mask", (convert(base), convert(limit)))


def get_vscale_expr(dtype: str, min_size: int = 128) -> PrimExpr:
    """The lanes of a scalable vector of `dtype` that has at least `min_size` bits."""
    return binary(Mul, vscale(), IntImm("int32", min_size // parse_dtype(dtype).bits))


def assume(cond: Any) -> PrimExpr:
    """States, as a statement of its own, that a condition holds; code may rely on it and nothing tests it but the interpreter."""
    return Call("bool", "tir.assume", (to_bool(cond),))


def isnullptr(pointer: Any) -> PrimExpr:
    """Whether a pointer is null.

    Raises:
        TypeMismatchError: for what is no handle.
    """
    expr = convert(pointer)
    if expr.dtype != "handle":
        raise TypeMismatchError(f"isnullptr takes a handle, not {expr} ({expr.dtype})")
    return Call("bool", "tir.isnullptr", (expr,))


def atomic_add(element: Any, value: Any) -> PrimExpr:
    """Adds `value` to an element of a buffer as one indivisible step, as a statement of its own; the element's old value.

    Raises:
        TypeMismatchError: for what is no scalar element of a buffer.
    """
    if not isinstance(element, BufferLoad) or parse_dtype(element.dtype).lanes > 1 or element.dtype in ("bool", "float16", "bfloat16"):
        raise TypeMismatchError(f"atomic_add takes an element of a buffer of integers, float32 or float64, such as A[i], not {element}")
    return Call(element.dtype, "tir.atomic_add", (address_of(element), cast(value, element.dtype)))


def ret(val: Any, span: object = None) -> PrimExpr:
    """The call that ends a function and gives a number to whoever called it; it stands at the end, not in a loop."""
    value = convert(val)
    return Call(value.dtype, "tir.ret", (value,))


def lookup_param(param_name: str) -> NoReturn:
    """Refused: parameters are arguments here.

    Raises:
        DeclarationError: always.
    """
    raise DeclarationError(f"tir.lookup_param({param_name!r}): there is no table of linked parameters; pass the array as an argument")
