"""Powers, roots and the error function. pow and hypot of floats are computed in double precision, which leaves no error to speak of."""

from __future__ import annotations

import math

from .lanes import Lanes
from .vector_math_exp import exp
from .vector_math_log import split

# log2((1+s)/(1-s)) / s in s**2, with s = (m-1)/(m+1), and (2**r - 1) / r: errors 2**-52 and 2**-34.
_LOG2 = (
    2.885390081777927, 0.9617966939244079, 0.5770780172293786, 0.4121984037012491,
    0.3206163115784706, 0.2614458905993438, 0.24290333093632452,
)  # fmt: skip
_EXP2 = (
    0.6931471807057052, 0.24022651068727707, 0.05550410362946996, 0.009618037774848808,
    0.0013333936602733638, 0.000154668809468855, 1.5196032931049668e-05,
)  # fmt: skip
# Twice the exponent range of a float, far inside that of a double.
_LARGEST_EXPONENT = 300.0
# erf(x)/x - 1 in x**2 on |x| <= 0.92, error 2**-30; -ln(erfc(x)) on [0.9, 4], error 2**-34 of erf.
_ERF_NEAR = (
    0.12837916612625122, -0.3761262893676758, 0.11283625662326813, -0.026855729520320892,
    0.005192392505705357, -0.0008049514726735651, 7.99504850874655e-05,
)  # fmt: skip
_ERF_FAR = (
    -0.0001506197004346177, 1.1293818950653076, 0.6336629986763, 0.10785876214504242, -0.024775046855211258,
    0.003994404338300228, -0.0003789483744185418, 1.1328113032504916e-05, 7.363384497693914e-07,
)  # fmt: skip
_ERF_SPLIT, _ERF_ONE = 0.91, 4.0


def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x**2 + y**2); infinite if either side is, even beside a NaN."""
    a, b = x.converted("double"), y.converted("double")
    # Squares of floats don't overflow in a double, and are exact there.
    result = a.fma(a, b * b).sqrt().converted("float")
    infinite = x.abs().compare("oeq", math.inf) | y.abs().compare("oeq", math.inf)
    return infinite.choose(x.constant(math.inf), result)


def pow_(x: Lanes, y: Lanes) -> Lanes:
    """x**y by C's rules: a negative base takes integral exponents only, 1**y and x**0 are 1."""
    base, power = x.abs().converted("double"), y.converted("double")
    m, exponent = split(base)
    s = (m - 1.0) / (m + 1.0)
    logarithm = s.fma((s * s).polynomial(_LOG2), exponent.to_float())
    # The split is meaningless at 0, infinity and NaN; an infinite logarithm has the right limits.
    logarithm = base.compare("oeq", 0.0).choose(logarithm.constant(-math.inf), logarithm)
    logarithm = base.compare("olt", math.inf).choose(logarithm, base)
    # 0 times an infinite logarithm is NaN; x**0 is set to 1 in the end.
    product = (power * logarithm).at_most(_LARGEST_EXPONENT).at_least(-_LARGEST_EXPONENT)
    n, number = product.rounded()
    r = product - n
    magnitude = (r.fma(r.polynomial(_EXP2), 1.0) * number.power_of_two()).converted("float")
    return with_sign(x, y, magnitude)


def with_sign(x: Lanes, y: Lanes, magnitude: Lanes) -> Lanes:
    """The sign and the exceptions of x**y."""
    half = y * 0.5
    integral = y.floor().compare("oeq", y)
    even_from = 2.0**24 if x.kind == "float" else 2.0**53  # all floats from there on are
    odd = integral & half.floor().compare("one", half) & y.abs().compare("olt", even_from)
    signed = odd.choose(magnitude.flipped_by(x), magnitude)
    # Finite negative bases have no real power of a fraction; those of infinity and -0.0 are limits.
    invalid = x.compare("olt", 0.0) & x.compare("ogt", -math.inf) & y.floor().compare("one", y)
    result = invalid.choose(x.constant(math.nan), signed)
    result = x.compare("uno", y).choose(x + y, result)
    is_one = x.compare("oeq", 1.0) | y.compare("oeq", 0.0)
    is_one = is_one | (x.compare("oeq", -1.0) & y.abs().compare("oeq", math.inf))
    return is_one.choose(x.constant(1.0), result)


def erf(x: Lanes) -> Lanes:
    """The error function: an odd polynomial near 0, else 1 - e**(a polynomial)."""
    size, square = x.abs(), x * x
    near = x.fma(square.polynomial(_ERF_NEAR), x)
    # From 4 on erf is 1 in a float, and the fit ends there.
    bounded = size.at_most(_ERF_ONE)
    far = (1.0 - exp(-bounded.polynomial(_ERF_FAR))).signed_as(x)
    return size.compare("olt", _ERF_SPLIT).choose(near, far)
