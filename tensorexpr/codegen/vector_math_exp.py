"""Exponentials and what is made of them. Coefficients are minimax fits, rounded one after the other.

Reduction: x = n ln 2 + r with |r| <= ln(2)/2, ln 2 in two parts of which the first times n is exact; then
e**r = 1 + r + r**2 q(r), scaled by 2**n in one rounding so that denormal results are right.
"""

from __future__ import annotations

from .lanes import Lanes

_LOG2_E = 1.4426950408889634
_LN2 = {
    "float": (0.693145751953125, 1.428606765330187e-06),
    "double": (float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")),
}
_LOG2_10 = 3.321928094887362
_LOG10_2 = (0.301025390625, 4.605039066518657e-06)
# (e**r - 1 - r) / r**2: error 2**-28 (float) and 2**-63 (double) of e**r.
_EXP = {
    "float": (0.4999999403953552, 0.1666652113199234, 0.04166826605796814, 0.008368683978915215, 0.001382094924338162),
    "double": (
        0.5, 0.1666666666666668, 0.04166666666666641, 0.008333333333319263, 0.0013888888889035996, 0.0001984126989186802,
        2.4801587018923672e-05, 2.7557238687779666e-06, 2.7557532448193826e-07, 2.5110877651158427e-08, 2.0836433753592668e-09,
    ),
}  # fmt: skip
# (2**r - 1) / r on |r| <= 1/2, error 2**-28.
_EXP2 = (0.6931471824645996, 0.24022647738456726, 0.05550359562039375, 0.009618502110242844, 0.0013390992535278201, 0.00015328149311244488)
# (10**r - 1) / r on |r| <= log10(2)/2, error 2**-28.
_EXP10 = (2.3025851249694824, 2.6509487628936768, 2.034656047821045, 1.1712950468063354, 0.5418260097503662, 0.20617181062698364)
# (tanh(x)/x - 1) / x**2 in x**2 on |x| <= 0.56, error 2**-33.
_TANH = (-0.3333333134651184, 0.1333322823047638, -0.05394963547587395, 0.021716473624110222, -0.008215525187551975, 0.002175993053242564)
_TANH_SMALL = 0.55
# (sinh(x)/x - 1) / x**2 in x**2 on |x| <= 1, errors 2**-31 and 2**-82.
_SINH = {
    "float": (0.1666666716337204, 0.00833331048488617, 0.00019842891197185963, 2.782267074508127e-06),
    "double": (
        0.16666666666666666, 0.008333333333333333, 0.0001984126984126984, 2.7557319223985825e-06, 2.505210838547607e-08,
        1.605904382690051e-10, 7.647165414593481e-13, 2.8112909646770106e-15, 8.309171941866942e-18,
    ),
}  # fmt: skip
# Arguments beyond these give 0 and infinity (with an exponent to spare for sinh and cosh).
_EXP_RANGE = {"float": (-104.0, 90.0), "double": (-746.0, 711.0)}
# Up to this size of the argument e**x and 2**n are normal numbers, and so are their products with what is in [1/2, 2].
_EXP_PLAIN = {"float": 86.0, "double": 706.0}


def _cut(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """r, and n as a float and as an integer, for x within the range."""
    low, high = _EXP_RANGE[x.kind]
    return _split(x.at_most(high).at_least(low))


def _split(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    n, exponent = x.rounded(_LOG2_E)
    ln2_high, ln2_low = _LN2[x.kind]
    # First the part whose product with n is exact; the rest is a correction in the last bits.
    return n.fma(-ln2_low, n.fma(-ln2_high, x)), n, exponent


def _reduced(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """e**r - 1, and n as a float and as an integer, for x within the range."""
    r, n, exponent = _cut(x)
    return (r * r).fma(r.polynomial(_EXP[x.kind]), r), n, exponent


def exp(x: Lanes) -> Lanes:
    """e**x, within 1 ulp.

    Where no lane is near the ends of the range, nothing is clamped and the power of two is added to the exponent.
    """
    if not x.is_scaled_in_steps:
        return _exp_anywhere(x)
    return x.unless_beyond(_EXP_PLAIN[x.kind], _exp_anywhere, _exp_plain)


def _exp_anywhere(x: Lanes) -> Lanes:
    r, n, exponent = _cut(x)
    return r.polynomial((1.0, 1.0, *_EXP[x.kind])).scaled(n, exponent)


def _exp_plain(x: Lanes) -> Lanes:
    r, _, exponent = _split(x)
    return r.polynomial((1.0, 1.0, *_EXP[x.kind])).shifted(exponent)


def _half_exp(x: Lanes) -> Lanes:
    """e**x / 2, which overflows later than e**x does."""
    above_one, n, exponent = _reduced(x)
    return (above_one + 1.0).scaled(n - 1.0, exponent - 1)


def exp2(x: Lanes) -> Lanes:
    """2**x, within 1 ulp."""
    # 2**128 is infinite and 2**-150 rounds to 0, so both ends have an exponent to spare.
    clamped = x.at_most(130.0).at_least(-151.0)
    n, exponent = clamped.rounded()
    r = clamped - n
    return r.fma(r.polynomial(_EXP2), 1.0).scaled(n, exponent)


def exp10(x: Lanes) -> Lanes:
    """10**x, within 2 ulp."""
    clamped = x.at_most(39.0).at_least(-46.0)
    n, exponent = clamped.rounded(_LOG2_10)
    r = n.fma(-_LOG10_2[1], n.fma(-_LOG10_2[0], clamped))
    return r.fma(r.polynomial(_EXP10), 1.0).scaled(n, exponent)


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + e**-x), from e**-|x| so that small results keep their accuracy."""
    tail = exp(-x.abs())
    # For x >= 0 it is 1 / (1 + t), else t / (1 + t), with t = e**-|x|, which never overflows.
    one = x.constant(1.0)
    return x.compare("oge", 0.0).choose(one, tail) / (tail + 1.0)


def tanh(x: Lanes) -> Lanes:
    """The hyperbolic tangent: an odd polynomial near 0, else 1 - 2 / (e**2|x| + 1)."""
    size = x.abs()
    square = x * x
    near = x.fma(square * square.polynomial(_TANH), x)
    far = 1.0 - 2.0 / (exp(size + size) + 1.0)
    return size.compare("olt", _TANH_SMALL).choose(near, far).signed_as(x)


def tanh_double(x: Lanes) -> Lanes:
    """The hyperbolic tangent of doubles, from e**2|x| - 1 without cancellation."""
    # From there on tanh is 1 in a double.
    size = x.abs().at_most(22.0)
    within, _, exponent = _reduced(size + size)
    power = exponent.power_of_two()
    above_one = within.fma(power, power - 1.0)
    return (above_one / (above_one + 2.0)).signed_as(x)


def sinh(x: Lanes) -> Lanes:
    """The hyperbolic sine."""
    size, square = x.abs(), x * x
    near = x.fma(square * square.polynomial(_SINH[x.kind]), x)
    half = _half_exp(size)
    far = (half - 0.25 / half).signed_as(x)  # e**-x / 2 is a quarter over e**x / 2
    return size.compare("olt", 1.0).choose(near, far)


def cosh(x: Lanes) -> Lanes:
    """The hyperbolic cosine."""
    half = _half_exp(x.abs())
    return half + 0.25 / half
