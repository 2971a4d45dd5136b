"""Complex tensors, which a graph has none of: a pair of real ones, and what operators make of pairs.

view_as_complex(x)      ->  (x[..., 0], x[..., 1]), as it is of a complex input, which is a parameter of one axis more
(a, b) * (c, d)         ->  (a * c - b * d, a * d + b * c)
permute, slice, cat     ->  the same of both
fft(a, b)               ->  relax.dft of both side by side
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ... import relax
from ...dataclass import dataclass
from ...errors import TypeMismatchError
from .table import CONVERTERS, Context, Converter, aten

# What makes complex tensors of real ones.
_MAKERS = frozenset(("complex", "polar", "view_as_complex", "prims.fft_r2c", "linalg_eig", "linalg_eigvals", "_linalg_eigvals"))
_VIEWS = (
    "view reshape permute transpose t unsqueeze squeeze select slice expand alias unbind split split_with_sizes diagonal unfold as_strided "
    "movedim narrow flatten unflatten chunk swapaxes"
)
_MOVES = "_unsafe_view cat stack clone contiguous detach index index_select flip roll neg sum mean repeat tril triu copy gather cumsum"
# What does the same to both parts.
_OF_BOTH = frozenset((*_VIEWS.split(), *_MOVES.split(), *(f"{name}_copy" for name in _VIEWS.split()), "lift_fresh_copy"))
_CASTS = frozenset(("_to_copy", "to"))


@dataclass(frozen=True, eq=False)
class Complex:
    """A complex tensor by its parts."""

    real: Any
    imag: Any

    @property
    def parts(self) -> tuple[Any, Any]:
        """Real and imaginary."""
        return self.real, self.imag


def has_complex(value: Any) -> bool:
    """Whether an argument is a complex tensor, or a list with one."""
    return isinstance(value, Complex) or (isinstance(value, (list, tuple)) and any(map(has_complex, value)))


def is_complex(described: Any) -> bool:
    """Whether a result that PyTorch describes is complex, or the first of several."""
    first = described[0] if isinstance(described, (list, tuple)) and described else described
    return bool(getattr(getattr(first, "dtype", None), "is_complex", False))


def _real(described: Any) -> Any:
    """The description of a part of a complex result."""
    if isinstance(described, (list, tuple)):
        return [_real(one) for one in described]
    return SimpleNamespace(shape=described.shape, dtype=described.dtype.to_real()) if is_complex(described) else described


def _part(c: Context, value: Any, number: int) -> Any:
    if not isinstance(value, (list, tuple)):
        return value.parts[number] if isinstance(value, Complex) else value
    if not has_complex(value) or number == 0:
        return [_part(c, one, number) for one in value]
    # A real tensor that complex ones are joined with.
    return [one.imag if isinstance(one, Complex) else c.op("zeros_like", one) for one in value]


def convert(c: Context, target: Any, work: Converter, given: Sequence[Any]) -> Any:
    """What an operator makes of complex tensors, or of others where its result is complex.

    Raises:
        TypeMismatchError: for operators that have no form for pairs.
    """
    name = str(target).removeprefix("aten.")
    plain = name.rpartition(".")[0] or name
    if plain in _CASTS and not is_complex(c.result):
        return work(c, given[0].real, *given[1:])  # PyTorch warns that the other part is lost
    c.result, c.operand = _real(c.result), _real(c.operand)
    if plain in _ON_PAIRS:
        return _ON_PAIRS[plain](c, *given)
    if plain in _MAKERS or work in _TAKERS:
        return work(c, *given)
    if plain not in _OF_BOTH:
        raise TypeMismatchError(f"{plain} of complex tensors has no counterpart; compute with torch.view_as_real(x) instead")
    found = [work(c, *(_part(c, one, number) for one in given)) for number in range(2)]
    return [Complex(*pair) for pair in zip(*found, strict=True)] if isinstance(found[0], list) else Complex(*found)


def _pair(value: Any) -> tuple[Any, Any]:
    """The parts of an operand; 0.0 where it is real."""
    return value.parts if isinstance(value, Complex) else (value.real, value.imag) if isinstance(value, complex) else (value, 0.0)


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0


def _binary(c: Context, name: str, a: Any, b: Any) -> Any:
    return c.op(name, c.cast(a, c.dtype), c.cast(b, c.dtype))


def _times(c: Context, a: Any, b: Any) -> Any:
    """A product of real parts, 0.0 with one that is absent."""
    return 0.0 if _is_zero(a) or _is_zero(b) else _binary(c, "multiply", a, b)


def _plus(c: Context, a: Any, b: Any, name: str = "add") -> Any:
    if _is_zero(b):
        return a
    return _binary(c, name, a, b)


def _made(c: Context, real: Any, imag: Any) -> Complex:
    """A complex tensor; both parts have the result's shape."""
    shape = relax.ShapeExpr(tuple(c.sizes))
    parts = (c.cast(part, c.dtype) for part in (real, imag))
    return Complex(*(part if c.shape_of(part) == c.sizes else c.op("broadcast_to", part, shape) for part in parts))


def _sum(name: str) -> Converter:
    def total(c: Context, a: Any, b: Any, alpha: Any = 1) -> Any:
        pairs = zip(_pair(a), _pair(b if alpha == 1 else _multiply(c, b, alpha)), strict=True)
        return _made(c, *(_plus(c, one, other, name) for one, other in pairs))

    return total


def _multiply(c: Context, a: Any, b: Any) -> Any:
    (w, x), (y, z) = _pair(a), _pair(b)
    return _made(c, _plus(c, _times(c, w, y), _times(c, x, z), "subtract"), _plus(c, _times(c, w, z), _times(c, x, y)))


def _divide(c: Context, a: Any, b: Any, *rest: Any) -> Any:
    (w, x), (y, z) = _pair(a), _pair(b)
    if _is_zero(z):
        return _made(c, _binary(c, "divide", w, y), 0.0 if _is_zero(x) else _binary(c, "divide", x, y))
    turned = _multiply(c, a, Complex(y, c.op("negative", c.cast(z, c.dtype))))
    size = _plus(c, _times(c, y, y), _times(c, z, z))
    return _made(c, *(_binary(c, "divide", part, size) for part in turned.parts))


def _exp(c: Context, x: Complex) -> Any:
    grown = c.op("exp", x.real)
    return _made(c, _times(c, grown, c.op("cos", x.imag)), _times(c, grown, c.op("sin", x.imag)))


def _log(c: Context, x: Any) -> Any:
    return _made(c, c.op("log", _absolute(c, x)), _angle(c, x))


def _power(c: Context, x: Any, exponent: Any) -> Any:
    """By products where the exponent is a small integer, else exp(exponent * log(x))."""
    if isinstance(exponent, (int, float)) and exponent == int(exponent) and 0 < abs(exponent) <= 16:
        found = x
        for bit in bin(int(abs(exponent)))[3:]:
            found = _multiply(c, found, found)
            found = _multiply(c, found, x) if bit == "1" else found
        return found if exponent > 0 else _divide(c, 1.0, found)
    if isinstance(x, (int, float, complex)):
        return _exp(c, _multiply(c, exponent, cmath.log(x)))
    if not isinstance(x, Complex):
        x = Complex(x, c.op("zeros_like", x))
    return _exp(c, _multiply(c, float(exponent) if isinstance(exponent, int) else exponent, _log(c, x)))


def _square_root(c: Context, x: Complex) -> Any:
    """Of the two roots that on the right, by the sum in which nothing cancels."""
    zero = relax.const(0, c.dtype)
    half = c.op("sqrt", c.op("multiply", c.op("add", _absolute(c, x), c.op("abs", x.real)), relax.const(0.5, c.dtype)))
    other = c.op("divide", x.imag, c.op("multiply", half, relax.const(2, c.dtype)))
    other = c.op("where", c.op("equal", half, zero), zero, other)
    is_right = c.op("greater_equal", x.real, zero)
    turned = CONVERTERS["copysign"](c, half, x.imag)
    return _made(c, c.op("where", is_right, half, c.op("abs", other)), c.op("where", is_right, other, turned))


def _wave(real: tuple[str, str], imag: tuple[str, str], sign: int) -> Converter:
    """sin(a + bi) = sin(a) cosh(b) + i cos(a) sinh(b), and those that are written as it is: names of the functions of a and b."""

    def wave(c: Context, x: Complex) -> Any:
        first, second = (_times(c, c.op(of_a, x.real), c.op(of_b, x.imag)) for of_a, of_b in (real, imag))
        return _made(c, first, second if sign > 0 else c.op("negative", second))

    return wave


def _tanh(c: Context, x: Complex) -> Any:
    """(sinh(2a) + i sin(2b)) / (cosh(2a) + cos(2b)), in which 2a behind 40 changes nothing and would overflow."""
    twice = [c.op("multiply", part, relax.const(2, c.dtype)) for part in x.parts]
    grown = c.op("clip", twice[0], -40, 40)
    below = c.op("add", c.op("cosh", grown), c.op("cos", twice[1]))
    return _made(c, c.op("divide", c.op("sinh", grown), below), c.op("divide", c.op("sin", twice[1]), below))


def _sigmoid(c: Context, x: Complex) -> Any:
    half = _tanh(c, Complex(*(c.op("multiply", part, relax.const(0.5, c.dtype)) for part in x.parts)))
    return _multiply(c, _sum("add")(c, half, 1.0), 0.5)


def _direction(c: Context, x: Complex) -> Any:
    size = _absolute(c, x)
    is_none = c.op("equal", size, relax.const(0, c.dtype))
    return _divide(c, x, c.op("where", is_none, relax.const(1, c.dtype), size))


def _of_parts(name: str, joined: str) -> Converter:
    """A truth of both parts, or of one of them."""

    def truth(c: Context, *values: Any) -> Any:
        dtype = next(c.dtype_of(one.real) for one in values if isinstance(one, Complex))
        pairs = zip(*([c.cast(part, dtype) for part in _pair(one)] for one in values), strict=True)
        return c.op(joined, *(c.op(name, *operands) for operands in pairs))

    return truth


def _tan(c: Context, x: Complex) -> Any:
    """-i tanh(ix)"""
    found = _tanh(c, Complex(c.op("negative", x.imag), x.real))
    return Complex(found.imag, c.op("negative", found.real))


def _product_along(c: Context, x: Complex, *rest: Any) -> Any:
    """All elements, or those along an axis, multiplied in pairs until one is left."""
    by_axis = [one for one in rest if isinstance(one, int)][:1]
    parts: Any = x.parts if by_axis else [c.op("flatten", part) for part in x.parts]
    axis = c.axis(parts[0], by_axis[0]) if by_axis else 0
    while (length := c.shape_of(parts[0])[axis]) > 1:
        half = length // 2
        left, right, rest_of = (
            Complex(*(c.op("strided_slice", part, [axis], [begin], [end]) for part in parts))
            for begin, end in ((0, half), (half, 2 * half), (2 * half, length))
        )
        (w, x_), (y, z) = left.parts, right.parts
        made = (_plus(c, _times(c, w, y), _times(c, x_, z), "subtract"), _plus(c, _times(c, w, z), _times(c, x_, y)))
        parts = [c.op("concat", [one, two], axis=axis) for one, two in zip(made, rest_of.parts, strict=True)] if length % 2 else made
    return Complex(*(c.reshape(part, c.sizes) for part in parts))


def _convolution(c: Context, x: Any, weight: Any, bias: Any = None, *rest: Any) -> Any:
    """As a product: four convolutions of real tensors."""
    (w, x_), (y, z) = _pair(x), _pair(weight)
    work = CONVERTERS[f"conv{c.rank(y) - 2}d"]

    def one(left: Any, right: Any) -> Any:
        return 0.0 if _is_zero(left) or _is_zero(right) else work(c, left, right, None, *rest)

    real, imag = _plus(c, one(w, y), one(x_, z), "subtract"), _plus(c, one(w, z), one(x_, y))
    made = Complex(real, c.op("zeros_like", real) if _is_zero(imag) else imag)
    if bias is None:
        return made
    channels = [1, c.shape_of(_pair(bias)[0])[0], *[1] * (c.rank(y) - 2)][-c.rank(made.real) :]
    return _sum("add")(c, made, Complex(*(part if _is_zero(part) else c.reshape(part, channels) for part in _pair(bias))))


def _product(c: Context, a: Any, b: Any) -> Any:
    (w, x), (y, z) = _pair(a), _pair(b)

    def one(left: Any, right: Any) -> Any:
        return 0.0 if _is_zero(left) or _is_zero(right) else c.op("matmul", left, right)

    return _made(c, _plus(c, one(w, y), one(x, z), "subtract"), _plus(c, one(w, z), one(x, y)))


def _linear(c: Context, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = [one if _is_zero(one) else c.op("permute_dims", one, axes=[1, 0]) for one in _pair(weight)]
    product = _product(c, x, Complex(*turned))
    return product if bias is None else _sum("add")(c, product, bias)


def _added_product(c: Context, x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _product(c, a, b) if alpha == 1 else _multiply(c, _product(c, a, b), alpha)
    return _sum("add")(c, product, x, beta) if beta else product


def _inner(c: Context, a: Any, b: Any) -> Any:
    return _made(c, *_product(c, a, b).parts)


def _conjugate_inner(c: Context, a: Any, b: Any) -> Any:
    return _inner(c, _conjugate(c, a), b)


def _embedded(c: Context, x: Any) -> Any:
    """Matrices a + bi as real ones [[a, -b], [b, a]], whose products and inverses are those of the complex ones."""
    a, b = (c.op("zeros_like", x) if _is_zero(part) else part for part in _pair(x))
    return c.op("concat", [c.op("concat", [a, c.op("negative", b)], axis=-1), c.op("concat", [b, a], axis=-1)], axis=-2)


def _upper_and_lower(c: Context, x: Any, columns: Any) -> Complex:
    """The parts of complex matrices, which stand one below the other in so many columns."""
    rank, rows = c.rank(x), c.shape_of(x)[-2] // 2
    left = c.op("strided_slice", x, [rank - 1], [0], [columns])
    return Complex(*(c.op("strided_slice", left, [rank - 2], [first], [first + rows]) for first in (0, rows)))


def _inverse(c: Context, x: Complex, *rest: Any) -> Any:
    several = isinstance(c.result, list)
    found = _upper_and_lower(c, c.op("linalg.inv", _embedded(c, x)), c.shape_of(x.real)[-1])
    return [found, c.op("zeros", relax.ShapeExpr(tuple(c.shape_of(x.real)[:-2])), "int32")] if several else found


def _solve(c: Context, a: Any, b: Any, left: bool = True, *rest: Any) -> Any:
    several = isinstance(c.result, list)
    if not left:
        raise TypeMismatchError("x @ a = b of complex matrices has no counterpart; solve a.T @ x.T = b.T")
    is_vector = c.rank(_pair(b)[0]) == c.rank(_pair(a)[0]) - 1
    right = [c.op("zeros_like", _pair(b)[0]) if _is_zero(part) else part for part in _pair(b)]
    right = [c.op("expand_dims", part, axis=-1) for part in right] if is_vector else right
    columns = c.op("concat", right, axis=-2)
    found = _upper_and_lower(c, c.op("linalg.solve", _embedded(c, a), columns), c.shape_of(columns)[-1])
    if is_vector:
        found = Complex(*(c.op("squeeze", part, axis=[-1]) for part in found.parts))
    return [found, None, None, c.op("zeros", relax.ShapeExpr(()), "int32")] if several else found


def _choose(c: Context, cond: Any, x: Any, y: Any) -> Any:
    return _made(c, *(c.op("where", cond, c.cast(a, c.dtype), c.cast(b, c.dtype)) for a, b in zip(_pair(x), _pair(y), strict=True)))


def _fill(c: Context, x: Any, mask: Any, value: Any) -> Any:
    return _choose(c, mask, value, x)


def _pad(c: Context, x: Complex, pad: Any, value: Any = 0, *rest: Any) -> Any:
    """As of real tensors: `pad(x, pad, mode, value)`, or without a mode."""
    mode = (value,) if isinstance(value, str) else ()
    constant = (rest[0] if rest and rest[0] is not None else 0) if mode else value
    return Complex(*(CONVERTERS["pad"](c, part, pad, *mode, one) for part, one in zip(x.parts, _pair(constant), strict=True)))


def _cast(c: Context, x: Any, *rest: Any) -> Any:
    return _made(c, *_pair(x))


_ON_PAIRS: dict[str, Converter] = {
    **{"add": _sum("add"), "sub": _sum("subtract"), "mul": _multiply, "div": _divide, "exp": _exp, "pow": _power},
    **{"matmul": _product, "mm": _product, "bmm": _product, "mv": _product, "_to_copy": _cast, "to": _cast},
    **{"linear": _linear, "addmm": _added_product, "baddbmm": _added_product, "dot": _inner, "vdot": _conjugate_inner},
    **{"log": _log, "sqrt": _square_root, "tanh": _tanh, "sigmoid": _sigmoid, "sgn": _direction},
    "sin": _wave(("sin", "cosh"), ("cos", "sinh"), 1),
    "cos": _wave(("cos", "cosh"), ("sin", "sinh"), -1),
    "sinh": _wave(("sinh", "cos"), ("cosh", "sin"), 1),
    "cosh": _wave(("cosh", "cos"), ("sinh", "sin"), 1),
    **{"eq": _of_parts("equal", "logical_and"), "ne": _of_parts("not_equal", "logical_or")},
    **{"isfinite": _of_parts("isfinite", "logical_and"), "isnan": _of_parts("isnan", "logical_or")},
    **{"isinf": _of_parts("isinf", "logical_or"), "logical_not": lambda c, x: _of_parts("equal", "logical_and")(c, x, 0.0)},
    **{"linalg_inv_ex": _inverse, "linalg_inv": _inverse, "inverse": _inverse, "_linalg_solve_ex": _solve, "linalg_solve": _solve},
    **{"where": _choose, "masked_fill": _fill, "constant_pad_nd": _pad, "pad": _pad},
    **{"tan": _tan, "prod": _product_along, "conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution},
    "square": lambda c, x: _multiply(c, x, x),
    "rsqrt": lambda c, x: _divide(c, 1.0, _square_root(c, x)),
    "reciprocal": lambda c, x: _divide(c, 1.0, x),
    "abs": lambda c, x: _absolute(c, x),
    "linalg_vector_norm": lambda c, x, *rest: CONVERTERS["linalg_vector_norm"](c, _sizes(c, x), *rest),
    **{name: lambda c, *rest: _made(c, 1.0, 0.0) for name in ("ones", "ones_like", "new_ones")},
    **{name: lambda c, *rest: _made(c, 0.0, 0.0) for name in ("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty")},
    **{name: lambda c, size, value, *rest: _made(c, *_pair(value)) for name in ("full", "full_like", "fill")},
    "scalar_tensor": lambda c, value, *rest: _made(c, *_pair(value)),
}


def _sizes(c: Context, x: Complex) -> Any:
    """The absolute values, for an operator whose result has another shape."""
    return c.op("sqrt", c.op("add", c.op("square", x.real), c.op("square", x.imag)))


def _absolute(c: Context, x: Complex) -> Any:
    return CONVERTERS["hypot"](c, x.real, x.imag)


@aten("angle")
def _angle(c: Context, x: Any) -> Any:
    if not isinstance(x, Complex):
        x = Complex(x, c.op("zeros_like", x))
    return CONVERTERS["atan2"](c, x.imag, x.real)


@aten("_conj", "conj", "_conj_physical", "conj_physical")
def _conjugate(c: Context, x: Any) -> Any:
    return Complex(x.real, c.op("negative", x.imag)) if isinstance(x, Complex) else x


@aten("real")
def _real_part(c: Context, x: Any) -> Any:
    return x.real if isinstance(x, Complex) else x


@aten("imag")
def _imaginary_part(c: Context, x: Complex) -> Any:
    return x.imag


@aten("view_as_real")
def _as_real(c: Context, x: Complex) -> Any:
    return joined(c, x)


@aten("resolve_conj", "resolve_neg")
def _itself(c: Context, x: Any) -> Any:
    return x


@aten("complex")
def _complex(c: Context, real: Any, imag: Any) -> Any:
    return _made(c, real, imag)


@aten("polar")
def _polar(c: Context, size: Any, angle: Any) -> Any:
    return _made(c, _times(c, size, c.op("cos", angle)), _times(c, size, c.op("sin", angle)))


@aten("view_as_complex")
def _as_complex(c: Context, x: Any) -> Any:
    return parted(c, x)


def joined(c: Context, x: Complex) -> Any:
    """Both parts along a last axis."""
    return c.op("concat", [c.op("expand_dims", part, axis=-1) for part in x.parts], -1)


def parted(c: Context, x: Any) -> Complex:
    axis = c.rank(x) - 1
    return Complex(*(c.op("squeeze", c.op("strided_slice", x, [axis], [n], [n + 1]), axis=[axis]) for n in range(2)))


def _transformed(c: Context, x: Any, dims: Sequence[int], is_inverse: bool) -> Any:
    """Transforms along axes of a tensor with parts along its last one; those back aren't divided by the lengths."""
    for dim in dims:
        length = c.shape_of(x)[dim]
        if not isinstance(length, int):
            raise TypeMismatchError(f"a transform of Fourier along an axis of {length} elements; export with a fixed size")
        x = c.op("dft", x, length, dim, is_inverse)
        if is_inverse:
            x = c.op("multiply", x, relax.const(float(length), c.dtype_of(x)))
    return x


def _axes(dims: Sequence[int], rank: int) -> list[int]:
    return [int(dim) % rank for dim in dims]


@aten("prims.fft_r2c")
def _from_real(c: Context, x: Any, dim: Sequence[int], onesided: bool) -> Any:
    *others, last = _axes(dim, c.rank(x))
    wide, length = c.op("expand_dims", x, axis=-1), c.shape_of(x)[last]
    if not isinstance(length, int):
        raise TypeMismatchError(f"a transform of Fourier along an axis of {length} elements; export with a fixed size")
    return parted(c, _transformed(c, c.op("dft", wide, length, last, False, onesided), others, False))


@aten("prims.fft_c2c")
def _from_complex(c: Context, x: Complex, dim: Sequence[int], forward: bool) -> Any:
    return parted(c, _transformed(c, joined(c, x), _axes(dim, c.rank(x.real)), not forward))


@aten("prims.fft_c2r")
def _to_real(c: Context, x: Complex, dim: Sequence[int], last_dim_size: int) -> Any:
    *others, last = _axes(dim, c.rank(x.real))
    wide = _transformed(c, joined(c, x), others, True)
    found = c.op("dft", wide, last_dim_size, last, True, True)
    scaled = c.op("multiply", found, relax.const(float(last_dim_size), c.dtype_of(found)))
    return c.op("squeeze", scaled, axis=[c.rank(x.real)])


@aten("fft_fftfreq")
def _frequencies(c: Context, n: int, d: float = 1.0, *rest: Any) -> Any:
    return relax.const(np.fft.fftfreq(n, d).astype(c.dtype))


@aten("fft_rfftfreq")
def _frequencies_of_half(c: Context, n: int, d: float = 1.0, *rest: Any) -> Any:
    return relax.const(np.fft.rfftfreq(n, d).astype(c.dtype))


# What takes complex tensors as they are.
_TAKERS: frozenset[Callable[..., Any]] = frozenset(
    (_angle, _conjugate, _real_part, _imaginary_part, _as_real, _itself, _from_complex, _to_real)
)
