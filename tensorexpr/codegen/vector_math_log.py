"""Logarithms and the inverse hyperbolic functions. Coefficients are minimax fits.

Reduction: x = m 2**e with m in [sqrt(1/2), sqrt(2)), then a polynomial in f = m - 1, so that results near 0 keep their
relative accuracy.
"""

from __future__ import annotations

import math

from .lanes import Lanes

_LN2 = {
    "float": (0.693145751953125, 1.428606765330187e-06),
    "double": (float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")),
}
_LOG10_2 = (0.301025390625, 4.605039066518657e-06)
# 1/ln(2) - 1, and 1/ln(10) in two parts.
_LOG2_E_ABOVE_ONE = 0.4426950408889634
_LOG10_E = (0.4342944920063019, -1.0103049952192578e-08)
# (ln(1+f) - f + f**2/2) / f**3, error 2**-30.
_LOG = (
    0.3333331346511841, -0.25000008940696716, 0.2000207155942917, -0.16667988896369934, 0.14220358431339264,
    -0.12406232953071594, 0.11883547157049179, -0.11670109629631042, 0.06749295443296432,
)  # fmt: skip
# (log2(1+f) - f log2(e)) / f**2, error 2**-30.
_LOG2 = (
    -0.7213475108146667, 0.48089808225631714, -0.36067456007003784, 0.28856807947158813, -0.240451380610466,
    0.20516015589237213, -0.179169699549675, 0.17155836522579193, -0.16760696470737457, 0.09640417993068695,
)  # fmt: skip
# (log10(1+f) - f log10(e)) / f**2, error 2**-30.
_LOG10 = (
    -0.21714724600315094, 0.14476478099822998, -0.1085733026266098, 0.08686552941799164, -0.07239528000354767,
    0.06180315837264061, -0.05383759364485741, 0.05129573494195938, -0.05067415162920952, 0.02985374443233013,
)  # fmt: skip
# (ln((1+s)/(1-s)) - 2s) / s**3 in s**2, with s = f / (2+f); error 2**-58.
_LOG_DOUBLE = (
    0.6666666666666718, 0.39999999999494573, 0.28571428727820297, 0.2222219985493501,
    0.1818350558247325, 0.15315401353393854, 0.14783635812113027,
)  # fmt: skip
# Bits of sqrt(1/2), the smallest normal number, and the power that makes a denormal number normal.
_SQRT_HALF = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}
_LIFT = {"float": 23, "double": 52}
_FRACTION_BITS = {"float": 23, "double": 52}
# Beyond this sqrt(x**2 + 1) is x.
_LARGE = {"float": 2.0**26, "double": 2.0**28}


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """(m, e) of positive normal x, e as an integer."""
    bits = x.bits()
    # Counted from sqrt(1/2) the exponent field steps there, not at 1, so m lies around 1.
    exponent = (bits - _SQRT_HALF[x.kind]) >> _FRACTION_BITS[x.kind]
    return (bits - (exponent << _FRACTION_BITS[x.kind])).as_float(), exponent


def _split_any(x: Lanes) -> tuple[Lanes, Lanes]:
    """(f, e) of positive x, denormal or not: m - 1, and e as a float."""
    small = x.compare("olt", _NORMAL[x.kind])
    m, exponent = split(small.choose(x * 2.0 ** _LIFT[x.kind], x))
    lift = small.choose(exponent.constant(_LIFT[x.kind]), 0)
    return m - 1.0, (exponent - lift).to_float()


def _bounded(x: Lanes, result: Lanes) -> Lanes:
    """The result of a logarithm of x with its limits: -inf at 0, NaN below, infinity and NaN as they are."""
    result = x.compare("olt", math.inf).choose(result, x)  # NaN isn't less
    outside = x.compare("oeq", 0.0).choose(x.constant(-math.inf), math.nan)
    return x.compare("ugt", 0.0).choose(result, outside)  # "ugt" holds for NaN, which `result` is then


def _log_of(f: Lanes, e: Lanes) -> Lanes:
    """e ln(2) + ln(1 + f) on floats."""
    ln2_high, ln2_low = _LN2["float"]
    square = f * f
    tail = square.fma(-0.5, e.fma(ln2_low, (square * f) * f.polynomial(_LOG)))
    return e.fma(ln2_high, f + tail)


def log(x: Lanes) -> Lanes:
    """The natural logarithm, within 1 ulp."""
    f, e = _split_any(x)
    return _bounded(x, _log_of(f, e))


def log_double(x: Lanes) -> Lanes:
    """The natural logarithm of doubles."""
    f, e = _split_any(x)
    ln2_high, ln2_low = _LN2["double"]
    s = f / (f + 2.0)
    square = s * s
    half = (f * f) * 0.5
    tail = s * square.fma(square.polynomial(_LOG_DOUBLE), half)
    return _bounded(x, e.fma(ln2_high, f - (half - e.fma(ln2_low, tail))))


def log2(x: Lanes) -> Lanes:
    """The logarithm to base 2, within 2 ulp."""
    f, e = _split_any(x)
    tail = f.fma(_LOG2_E_ABOVE_ONE, (f * f) * f.polynomial(_LOG2))
    return _bounded(x, e + (f + tail))


def log10(x: Lanes) -> Lanes:
    """The logarithm to base 10, within 2 ulp."""
    f, e = _split_any(x)
    tail = e.fma(_LOG10_2[1], f.fma(_LOG10_E[1], (f * f) * f.polynomial(_LOG10)))
    return _bounded(x, e.fma(_LOG10_2[0], f.fma(_LOG10_E[0], tail)))


def log1p(x: Lanes) -> Lanes:
    """ln(1 + x): what 1 + x loses to rounding is added to f, at the scale of m."""
    u = x + 1.0
    # What rounding took from x + 1.0, exactly (two-sum).
    back = u - 1.0
    lost = (x - back) + (1.0 - (u - back))
    m, exponent = split(u)
    # Beyond 2**126 the power would leave the range, and nothing that is lost counts.
    down = exponent.constant(0) - exponent
    down = down.compare("sgt", -126).choose(down, -126)
    f = lost.fma(down.power_of_two(), m - 1.0)
    result = _bounded(u, _log_of(f, exponent.to_float()))
    tiny = x.abs().compare("olt", 2.0**-25)
    return tiny.choose(x, result)


def log1p_double(x: Lanes) -> Lanes:
    """ln(1 + x) of doubles, within 2 ulp: what 1 + x loses to rounding is made up for to first order."""
    u = x + 1.0
    back = u - 1.0
    lost = (x - back) + (1.0 - (u - back))
    usual = log_double(u) + lost / u
    result = u.compare("olt", math.inf).choose(usual, u)
    result = u.compare("oeq", 0.0).choose(x.constant(-math.inf), result)
    return x.abs().compare("olt", 2.0**-54).choose(x, result)


_LOG1P = {"float": log1p, "double": log1p_double}


def asinh(x: Lanes) -> Lanes:
    """The inverse hyperbolic sine."""
    size = x.abs()
    large = size.compare("ogt", _LARGE[x.kind])
    square = size * size
    # sqrt(x**2 + 1) - 1 as x**2 / (sqrt(x**2 + 1) + 1), as a difference it would cancel near 0.
    inner = large.choose(size, size + square / ((square + 1.0).sqrt() + 1.0))
    return (_LOG1P[x.kind](inner) + large.choose(x.constant(math.log(2.0)), 0.0)).signed_as(x)


def acosh(x: Lanes) -> Lanes:
    """The inverse hyperbolic cosine; NaN below 1."""
    large = x.compare("ogt", _LARGE[x.kind])
    above = x - 1.0
    inner = large.choose(x, above + (above * (above + 2.0)).sqrt())
    result = _LOG1P[x.kind](inner) + large.choose(x.constant(math.log(2.0)), 0.0)
    return x.compare("olt", 1.0).choose(x.constant(math.nan), result)


def atanh(x: Lanes) -> Lanes:
    """The inverse hyperbolic tangent; infinite at 1, NaN beyond."""
    size = x.abs()
    return (_LOG1P[x.kind]((size + size) / (1.0 - size)) * 0.5).signed_as(x)
