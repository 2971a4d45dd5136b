"""Functions of float64 on devices, which have no C library: what differs from those of float32 by more than its coefficients.

Coefficients are Chebyshev fits. Numbers in two parts are a double and what it leaves out. Errors are the most that was seen on some
thousand arguments (`tests/unit/ptx/test_double_math.py`), of those that `vector_math` has for both types, too: 2 ulp, of the inverse
hyperbolic functions and atan2 3; sin, cos and tan hold for |x| <= 2**17.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from .lanes import Lanes
from .vector_math_exp import _EXP, cosh, exp, sinh
from .vector_math_log import _LOG_DOUBLE, _bounded, _split_any, acosh, asinh, atanh, log1p_double
from .vector_math_power import with_sign
from .vector_math_trig import _HALF_PI, acos, asin, atan, atan2

_LN2_IN_TWO = (0.6931471805598903, 5.497923018708371e-14)  # the first in 42 bits, so that its product with an exponent is exact
_LOGARITHMS = (-746.0, 710.0)  # beyond those of all doubles
_THIRD = (1 / 3, 1.850371707708594e-17)
_ATANH = tuple(1 / n for n in range(5, 27, 2))  # (atanh(s)/s - 1) / s**2 - 1/3 over s**2, of s**2 <= 0.0295: what is left out is 2**-64
_LN2, _LN10 = math.log(2.0), math.log(10.0)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_LOG2_10 = 3.321928094887362
_LOG10_2 = (0.3010299955494702, 1.1451100898021838e-10)  # the first in 32 bits, so that its product with an exponent is exact
# (sin(r)/r - 1) / r**2 and (cos(r) - 1 + r**2/2) / r**4 in r**2 on |r| <= pi/4, errors 2**-77 and 2**-70.
_SIN = (
    -0.16666666666666666, 0.008333333333333333, -0.00019841269841269839, 2.75573192239811e-06,
    -2.5052108382389053e-08, 1.6059042780831165e-10, -7.646961319540484e-13, 2.7912426196339972e-15,
)  # fmt: skip
_COS = (
    0.041666666666666664, -0.0013888888888888887, 2.4801587301584645e-05, -2.7557319221401993e-07,
    2.087675579079147e-09, -1.1470460841811526e-11, 4.7458692024108734e-14,
)  # fmt: skip
# erf(x)/x - 1 in x**2 on |x| <= 1, error 2**-62; erfc(x) e**(x**2) in (x - 3) / (x + 2) on [1, 6], error 2**-68.
_ERF_NEAR = (
    0.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792, 0.0052239776248180145, -0.000854832698083379,
    0.0001205533111164271, -1.4925595266831182e-05, 1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08,
    -1.1372848856791674e-09, 5.957176147748911e-11,
)  # fmt: skip
_ERFC = (
    0.17900115118138996, -0.27186130003586434, 0.12524797896091905, -0.037571619338869405, 0.004079312800273504, 0.001707856561152842,
    -0.0005378017270698052, -0.00013684984179942786, 6.0542176901401484e-05, 1.9924114761368276e-05, -6.44429644716394e-06,
    -3.799012263802328e-06, 3.6842664790339435e-07, 7.122526375837056e-07, 1.0492046346130479e-07, -1.0308429588769101e-07,
    -5.037764085911848e-08, 3.539204980045085e-09, 9.999525590414498e-09, 2.7208376418928396e-09,
)  # fmt: skip


def _power(r: Lanes, n: Lanes, exponent: Lanes) -> Lanes:
    """2**n e**r for a small r."""
    return r.polynomial((1.0, 1.0, *_EXP["double"])).scaled(n, exponent)


def exp2(x: Lanes) -> Lanes:
    """2**x, within 1 ulp."""
    clamped = x.at_most(1025.0).at_least(-1080.0)
    n, exponent = clamped.rounded()
    return _power((clamped - n) * _LN2, n, exponent)


def exp10(x: Lanes) -> Lanes:
    """10**x, within 2 ulp."""
    clamped = x.at_most(309.0).at_least(-325.0)
    n, exponent = clamped.rounded(_LOG2_10)
    return _power(n.fma(-_LOG10_2[1], n.fma(-_LOG10_2[0], clamped)) * _LN10, n, exponent)


def _log_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """(ln(m), e) of x = m 2**e."""
    f, e = _split_any(x)
    s = f / (f + 2.0)
    square, half = s * s, (f * f) * 0.5
    return f - (half - s * square.fma(square.polynomial(_LOG_DOUBLE), half)), e


def log2(x: Lanes) -> Lanes:
    """The logarithm to base 2, within 2 ulp; exact for powers of 2."""
    within, e = _log_parts(x)
    return _bounded(x, e + within.fma(_LOG2_E[0], within * _LOG2_E[1]))


def log10(x: Lanes) -> Lanes:
    """The logarithm to base 10, within 2 ulp."""
    within, e = _log_parts(x)
    return _bounded(x, e.fma(_LOG10_2[0], within.fma(_LOG10_E[0], e * _LOG10_2[1])))


def _quadrant(size: Lanes) -> tuple[Lanes, Lanes]:
    """(r, n): size = n pi/2 + r."""
    n, number = size.rounded(2.0 / math.pi)
    high, low = _HALF_PI["double"]
    return n.fma(-low, n.fma(-high, size)), number


def _sine(r: Lanes, square: Lanes) -> Lanes:
    return (r * square).fma(square.polynomial(_SIN), r)


def _cosine(square: Lanes) -> Lanes:
    """1 - r**2/2 + ..., whose first difference gives back what it loses."""
    half = square * 0.5
    first = 1.0 - half
    return first + ((1.0 - first - half) + (square * square) * square.polynomial(_COS))


def _sine_of_quadrant(r: Lanes, number: Lanes) -> Lanes:
    square = r * r
    value = (number & 1).compare("eq", 0).choose(_sine(r, square), _cosine(square))
    return value.flipped_by((number << 62).as_float())  # quadrants 2 and 3 have bit 1 set


def sin(x: Lanes) -> Lanes:
    """The sine, within 2 ulp."""
    r, number = _quadrant(x.abs())
    return _sine_of_quadrant(r, number).flipped_by(x)


def cos(x: Lanes) -> Lanes:
    """The cosine, within 2 ulp."""
    r, number = _quadrant(x.abs())
    return _sine_of_quadrant(r, number + 1)


def tan(x: Lanes) -> Lanes:
    """The tangent, within 4 ulp."""
    r, number = _quadrant(x.abs())
    square = r * r
    sine, cosine = _sine(r, square), _cosine(square)
    even = (number & 1).compare("eq", 0)
    return (even.choose(sine, -cosine) / even.choose(cosine, sine)).flipped_by(x)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x**2 + y**2), within 2 ulp, where its square is a normal number; infinite if either side is, even beside a NaN."""
    result = x.fma(x, y * y).sqrt()
    infinite = x.abs().compare("oeq", math.inf) | y.abs().compare("oeq", math.inf)
    return infinite.choose(x.constant(math.inf), result)


def erf(x: Lanes) -> Lanes:
    """The error function, within 2 ulp: an odd polynomial up to 1, then 1 - e**(-x**2) P."""
    size, square = x.abs(), x * x
    near = x.fma(square.polynomial(_ERF_NEAR), x)
    bounded = size.at_most(6.0)  # from there on it is 1
    tail = exp(-(bounded * bounded)) * ((bounded - 3.0) / (bounded + 2.0)).polynomial(_ERFC)
    return size.compare("olt", 1.0).choose(near, (1.0 - tail).signed_as(x))


def _two_sum(large: Lanes, small: Lanes) -> tuple[Lanes, Lanes]:
    """The sum and what it leaves out, of numbers of which the first is the larger, or 0."""
    total = large + small
    return total, (large - total) + small


def _two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The product and what it leaves out."""
    product = a * b
    return product, a.fma(b, -product)


def _log_in_two(x: Lanes) -> tuple[Lanes, Lanes]:
    """ln(x) of a positive finite number in two parts, which a factor of 1000 leaves exact to a double.

    x = m 2**e, ln(m) = 2 s (1 + s**2 (1/3 + s**2/5 + ...)) with s = (m - 1) / (m + 1).
    """
    f, e = _split_any(x)
    below, lost = _two_sum(x.constant(2.0), f)
    s = f / below
    s_low = ((-s).fma(below, f) - s * lost) / below
    square, square_low = _two_product(s, s)
    square_low = square_low + s * s_low * 2.0
    series, series_low = _two_sum(x.constant(_THIRD[0]), square * square.polynomial(_ATANH))
    series_low = series_low + _THIRD[1]
    ratio, ratio_low = _two_product(square, series)
    ratio_low = ratio_low + square.fma(series_low, square_low * series)
    cubic, cubic_low = _two_product(s, ratio)
    cubic_low = cubic_low + s.fma(ratio_low, s_low * ratio)
    within, within_low = _two_sum(s, cubic)
    within_low = within_low + (s_low + cubic_low)
    total, total_low = _two_sum(e * _LN2_IN_TWO[0], within * 2.0)
    return total, total_low + e.fma(_LN2_IN_TWO[1], within_low * 2.0)


def pow_(x: Lanes, y: Lanes) -> Lanes:
    """x**y by C's rules, within 2 ulp: e**(y ln(x)), with logarithm and product in two parts."""
    base = x.abs()
    high, low = _log_in_two(base)
    # The split is meaningless at 0, infinity and NaN; an infinite logarithm has the right limits.
    ordinary = base.compare("ogt", 0.0) & base.compare("olt", math.inf)
    limit = base.compare("oeq", 0.0).choose(x.constant(-math.inf), base)
    high, low = ordinary.choose(high, limit), ordinary.choose(low, 0.0)
    product, rest = _two_product(high, y)
    rest = rest + low * y
    least, most = _LOGARITHMS
    inside = product.compare("ogt", least) & product.compare("olt", most)
    product, rest = product.at_most(most).at_least(least), inside.choose(rest, 0.0)
    n, exponent = product.rounded(_LOG2_E[0])
    r = n.fma(-_LN2_IN_TWO[0], product) + n.fma(-_LN2_IN_TWO[1], rest)
    return with_sign(x, y, _power(r, n, exponent))


FORMULAS: Mapping[str, Callable[..., Lanes]] = {
    f"tir.{one.__name__}": one
    for one in (exp2, exp10, sinh, cosh, log2, log10, asinh, acosh, atanh, sin, cos, tan, asin, acos, atan, atan2, hypot, erf)
} | {"tir.log1p": log1p_double, "tir.pow": pow_}
