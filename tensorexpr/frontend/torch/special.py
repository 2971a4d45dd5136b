"""Special functions, as computations of each element in float64: what they lose there a float32 doesn't show.

lgamma, digamma, polygamma, zeta   by their series for large arguments, which recurrences reach (DLMF 5.11, 5.15, 25.11)
erfc, erfcx, i0, i1 and scaled     by polynomials through the values of their integrals
erfinv, ndtri                      by polynomials of the logarithm of 1 - y * y, in pieces
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from ... import relax
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import cast, const, minimum
from ...tir.expr import PrimExpr
from ...topi.math import elementwise
from .elementwise import by_function
from .table import CONVERTERS, Context, aten

_Function = Callable[[PrimExpr], PrimExpr]
_SHIFT = 10  # from here on ten terms of the series are exact to float64


def _number(value: float) -> PrimExpr:
    return const(value, "float64")


_NAN, _INFINITY = math.nan, math.inf


def _polynomial(coefficients: Sequence[float], x: PrimExpr) -> PrimExpr:
    """The lowest power first."""
    found = _number(coefficients[-1])
    for one in reversed(coefficients[:-1]):
        found = found * x + _number(one)
    return found


@cache
def _bernoulli(count: int) -> list[Fraction]:
    """B_0, B_1, ... by their recurrence."""
    found = [Fraction(1)]
    for n in range(1, count):
        found.append(-sum((math.comb(n + 1, k) * found[k] for k in range(n)), Fraction(0)) / (n + 1))
    return found


def _even(weight: Callable[[int], int]) -> list[float]:
    """The Bernoulli numbers of even index by a weight, from B_2 on."""
    return [float(_bernoulli(22)[2 * k] / weight(2 * k)) for k in range(1, 11)]


def _turned(x: PrimExpr) -> PrimExpr:
    """sin(pi * x), exact where it is 0."""
    nearest = intrin.nearbyint(x)
    sine = intrin.sin((x - nearest) * _number(math.pi))
    return intrin.select(intrin.fmod(nearest, _number(2)) == 0, sine, -sine)


def _lgamma_above(x: PrimExpr) -> PrimExpr:
    """Of arguments from 0 on (DLMF 5.11.1)."""
    product = x
    for n in range(1, _SHIFT):
        product = product * (x + _number(n))
    y = intrin.select(x < _number(_SHIFT), x + _number(_SHIFT), x)
    series = _polynomial(_even(lambda n: n * (n - 1)), 1 / (y * y)) / y
    large = (y - _number(0.5)) * (intrin.log(y) - _number(1)) - _number(0.5) + _number(0.5 * math.log(2 * math.pi)) + series
    return intrin.select(x < _number(_SHIFT), large - intrin.log(product), intrin.select(x == _number(_INFINITY), x, large))


def _lgamma(x: PrimExpr) -> PrimExpr:
    """log(|gamma(x)|), of negative arguments by the reflection (DLMF 5.5.3)."""
    above = _lgamma_above(intrin.select(x < _number(0.5), 1 - x, x))
    below = intrin.log(_number(math.pi) / intrin.abs(_turned(x))) - above
    return intrin.select(x < _number(0.5), intrin.select(x == _number(-_INFINITY), _number(_INFINITY), below), above)


def _digamma(x: PrimExpr) -> PrimExpr:
    """The derivative of lgamma (DLMF 5.11.2, 5.5.4); NaN at the poles but 0, where it is infinite."""
    z = intrin.select(x < _number(0), 1 - x, x)
    y = intrin.select(z < _number(_SHIFT), z + _number(_SHIFT), z)
    square = 1 / (y * y)
    large = intrin.log(y) - 1 / (y + y) - square * _polynomial(_even(lambda n: n), square)
    less = _number(0)
    for n in range(_SHIFT):
        less = less + 1 / (z + _number(n))
    above = intrin.select(z < _number(_SHIFT), large - less, large)
    nearest = intrin.nearbyint(x)
    apart = (x - nearest) * _number(math.pi)
    below = above - _number(math.pi) * intrin.cos(apart) / intrin.sin(apart)
    pole = intrin.select(x == 0, intrin.copysign(_number(_INFINITY), -x), _number(_NAN))
    return intrin.select(x > _number(0), above, intrin.select(x == nearest, pole, below))


def _zeta(s: PrimExpr, q: PrimExpr) -> PrimExpr:
    """sum of 1 / (q + n)^s, of s > 1 and q > 0, by the formula of Euler and Maclaurin (DLMF 25.11.28)."""
    found = _number(0)
    for n in range(_SHIFT):
        found = found + intrin.pow(q + _number(n), -s)
    y = q + _number(_SHIFT)
    tail = intrin.pow(y, -s)
    found = found + y * tail / (s - 1) + tail * _number(0.5)
    rising = tail * s / y
    for n, number in enumerate(_even(math.factorial), 1):
        found = found + _number(number) * rising
        rising = rising * (s + _number(2 * n - 1)) * (s + _number(2 * n)) / (y * y)
    return intrin.select(s > _number(1), intrin.select(q > _number(0), found, _number(_NAN)), _number(_NAN))


def _interpolated(values: Callable[[Any], Any], degree: int) -> list[float]:
    """The powers of t of the polynomial through a function's values at Chebyshev's points of [-1, 1]."""
    from numpy.polynomial import chebyshev

    return [float(one) for one in chebyshev.cheb2poly(chebyshev.chebinterpolate(values, degree))]


def _erfcx_by_integral(x: Any) -> Any:
    """2 / sqrt(pi) * integral of exp(-u * u - 2 * x * u), of x from 0 on, by Gauss's rule as far as a float64 notices."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    end = np.minimum(7.0, 20 / np.maximum(x, 1))[:, None]
    u = (nodes + 1) / 2 * end
    return (np.exp(-u * u - 2 * x[:, None] * u) * weights).sum(1) * end[:, 0] / math.sqrt(math.pi)


@cache
def _of_erfcx() -> list[float]:
    """log(erfcx(x) / t) with t = 1 / (1 + x / 2) from 0 to 1, the argument of the polynomial 2 * t - 1."""

    def values(place: Any) -> Any:
        t = (place + 1) / 2
        return np.log(_erfcx_by_integral(2 * (1 / t - 1)) / t)

    return _interpolated(values, 30)


def _erfcx(x: PrimExpr) -> PrimExpr:
    """exp(x * x) * erfc(x); of negative arguments 2 * exp(x * x) - erfcx(-x)."""
    t = 1 / (1 + intrin.abs(x) * _number(0.5))
    above = t * intrin.exp(_polynomial(_of_erfcx(), t * 2 - 1))
    return intrin.select(x < _number(0), 2 * intrin.exp(x * x) - above, above)


def _erfc(x: PrimExpr) -> PrimExpr:
    tail = intrin.exp(-x * x) * _erfcx(intrin.abs(x))
    return intrin.select(x < _number(0.5), 1 - intrin.erf(x), tail)


# Of w = -log(1 - y * y) up to the first bound, and then of its square root up to the others: erfinv(y) is smooth in each.
_PIECES = ((0.0, 6.25), (2.5, 4.0), (4.0, 8.0), (8.0, 27.0))


@cache
def _of_erfinv(piece: int) -> list[float]:
    """erfinv(y) / y on a piece, whose polynomial's argument goes from -1 to 1."""
    low, high = _PIECES[piece]

    def values(place: Any) -> Any:
        along = low + (high - low) * (place + 1) / 2
        w = along if piece == 0 else along * along
        size = np.sqrt(-np.expm1(-w))
        rest = np.exp(-w) / (1 + size)
        x = np.where(w < 1, size * math.sqrt(math.pi) / 2, np.sqrt(np.maximum(w - np.log1p(w), 0)))
        for _ in range(40):  # Newton's steps of log(erfc), which is nearly a parabola
            scaled = _erfcx_by_integral(x)
            x = np.maximum(x + (np.log(scaled) - x * x - np.log(rest)) * scaled * math.sqrt(math.pi) / 2, 0)
        return x / size

    return _interpolated(values, 30)


def _inverse(size: PrimExpr, rest: PrimExpr) -> PrimExpr:
    """x with erf(x) = size and erfc(x) = rest, of which one is exact where the other is near 1."""
    w = -intrin.log(rest * (1 + size))
    root = intrin.sqrt(w)
    found = _number(_INFINITY)
    for piece in reversed(range(len(_PIECES))):
        low, high = _PIECES[piece]
        along = ((root if piece else w) - _number((low + high) / 2)) * _number(2 / (high - low))
        here = size * _polynomial(_of_erfinv(piece), along)
        found = intrin.select((root if piece else w) <= _number(high), here, found)
    return intrin.select(size <= _number(1), found, _number(_NAN))


def _erfinv(y: PrimExpr) -> PrimExpr:
    size = intrin.abs(y)
    return intrin.copysign(_inverse(size, 1 - size), y)


def _ndtri(p: PrimExpr) -> PrimExpr:
    """The place that a part p of the normal distribution lies below."""
    rest = 2 * minimum(p, 1 - p)
    found = _inverse(1 - rest, rest) * _number(math.sqrt(2))
    return intrin.select(p < _number(0.5), -found, intrin.select(p <= _number(1), found, _number(_NAN)))


@cache
def _of_bessel(order: int, is_large: bool) -> list[float]:
    """exp(-x) * I(x) of x up to 8 (over x^order), or by sqrt(x) behind it: x = 4 * (t + 1), and 8 / x = (t + 1) / 2."""
    angle = np.arange(2048) * (2 * math.pi / 2048)

    def values(place: Any) -> Any:
        x = 4 * (place + 1) if not is_large else 16 / (place + 1)
        # The mean over a period (DLMF 10.32.3): of a periodic function equal steps are exact.
        mean = (np.exp(x[:, None] * (np.cos(angle) - 1)) * np.cos(order * angle)).mean(1)
        return mean * np.sqrt(x) if is_large else mean / x**order

    return _interpolated(values, 26)


def _bessel(order: int, is_scaled: bool, x: PrimExpr) -> PrimExpr:
    """The modified Bessel function I of order 0 or 1."""
    size = intrin.abs(x)
    near = _polynomial(_of_bessel(order, False), size * _number(0.25) - 1)
    away = intrin.select(size < _number(8), _number(8), size)
    far = _polynomial(_of_bessel(order, True), 16 / away - 1) / intrin.sqrt(away)
    found = intrin.select(size < _number(8), near * x if order else near, intrin.copysign(far, x) if order else far)
    return found if is_scaled else found * intrin.exp(size)


def _te_of_element(x: Tensor, function: _Function, name: str) -> Tensor:
    return elementwise(x, lambda value: cast(function(cast(value, "float64")), x.dtype), f"T_{name}")


def _of_element(c: Context, input: Any, function: _Function, name: str) -> Any:
    return c.builder.emit_te(partial(_te_of_element, function=function, name=name), c.cast(input, c.dtype), primfunc_name_hint=name)


def _converter(function: _Function, name: str) -> Callable[..., Any]:
    return lambda c, input: _of_element(c, input, function, name)


_FUNCTIONS: dict[str, tuple[_Function, tuple[str, ...]]] = {
    "lgamma": (_lgamma, ("lgamma",)),
    "digamma": (_digamma, ("digamma", "special_digamma")),
    "erfc": (_erfc, ("erfc", "special_erfc")),
    "erfcx": (_erfcx, ("erfcx", "special_erfcx")),
    "erfinv": (_erfinv, ("erfinv", "erf_inv")),
    "ndtri": (_ndtri, ("ndtri", "special_ndtri")),
}
for _order in (0, 1):
    for _scaled in ("", "e"):
        _kind = f"i{_order}{_scaled}"
        _FUNCTIONS[_kind] = partial(_bessel, _order, bool(_scaled)), (_kind, f"bessel_{_kind}", f"special_{_kind}")
for _name, (_function, _there) in _FUNCTIONS.items():
    CONVERTERS.update({f"{prefix}{one}": _converter(_function, _name) for one in _there for prefix in ("", "prims.")})


@aten("polygamma")
def _polygamma(c: Context, order: int, input: Any) -> Any:
    """Derivatives of digamma: of positive arguments, and the first one of all."""
    if order == 0:
        return _of_element(c, input, _digamma, "digamma")

    def derivative(x: PrimExpr) -> PrimExpr:
        scale = _number((-1.0) ** (order + 1) * math.factorial(order))
        if order > 1:
            return scale * _zeta(_number(order + 1), x)
        above = _zeta(_number(2), intrin.select(x < _number(0.5), 1 - x, x))
        sine = _turned(x) * _number(1 / math.pi)
        return intrin.select(x < _number(0.5), 1 / (sine * sine) - above, above)

    return _of_element(c, input, derivative, "polygamma")


def _te_has_sign(x: Tensor) -> Tensor:
    # Of a negative zero, too, which no comparison tells from 0.
    return elementwise(x, lambda value: intrin.copysign(const(1, x.dtype), value) < const(0, x.dtype), "T_signbit")


@aten("signbit", "prims.signbit")
def _has_sign(c: Context, input: Any) -> Any:
    if "float" not in c.dtype_of(input):
        return c.op("less", input, relax.const(0, c.dtype_of(input)))
    return c.builder.emit_te(_te_has_sign, input, primfunc_name_hint="signbit")


def _parts(value: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """A float64 as a number of 0.5 to 1 and a power of two (IEEE 754's fields); zeros, infinities and NaN as themselves and 0."""
    is_small = intrin.abs(value) < _number(2.0**-1022)  # whose numbers have no leading one
    bits = intrin.reinterpret("int64", intrin.select(is_small, value * _number(2.0**64), value))
    field = cast((bits >> const(52, "int64")) & const(2047, "int64"), "int32")
    half = intrin.reinterpret("float64", (bits & const(~(2047 << 52), "int64")) | const(1022 << 52, "int64"))
    is_itself = intrin.select(value == _number(0), const(True, "bool"), field == const(2047, "int32"))
    power = field - intrin.select(is_small, const(1022 + 64, "int32"), const(1022, "int32"))
    return intrin.select(is_itself, value, half), intrin.select(is_itself, const(0, "int32"), power)


def _te_mantissa(x: Tensor) -> Tensor:
    return elementwise(x, lambda value: cast(_parts(cast(value, "float64"))[0], x.dtype), "T_mantissa")


def _te_exponent(x: Tensor) -> Tensor:
    return elementwise(x, lambda value: _parts(cast(value, "float64"))[1], "T_exponent")


@aten("frexp", "frexp.Tensor", "prims.frexp")
def _frexp(c: Context, input: Any) -> Any:
    return [
        c.builder.emit_te(_te_mantissa, input, primfunc_name_hint="mantissa"),
        c.builder.emit_te(_te_exponent, input, primfunc_name_hint="exponent"),
    ]


def zeta(s: PrimExpr, q: PrimExpr) -> PrimExpr:
    """Hurwitz's zeta function of s > 1 and q > 0, NaN elsewhere."""
    return cast(_zeta(cast(s, "float64"), cast(q, "float64")), s.dtype)


for _name in ("special_zeta", "prims.zeta"):
    CONVERTERS[_name] = by_function(zeta)
