"""Circular functions of floats, and their inverses of floats and doubles. Coefficients are minimax fits.

sin, cos, tan: the quadrant is taken off in double precision, exact to |x| < 2**20; what lies beyond (nobody's kernel,
but the answer must be right) is computed by the C library, element by element.
"""

from __future__ import annotations

import math

from .lanes import Lanes
from .libm import patched

_TWO_OVER_PI = 2.0 / math.pi
# pi/2 in two parts; the first has 33 bits, so that its product with a quadrant number below 2**20 is exact.
_HALF_PI_DOUBLE = (float.fromhex("0x1.921fb54400000p+0"), float.fromhex("0x1.0b4611a626331p-34"))
_LARGEST = 2.0**20
# ... and of each type the number next to it, and what that leaves out.
_HALF_PI = {"float": (1.5707963705062866, -4.371138828673793e-08), "double": (1.5707963267948966, 6.123233995736766e-17)}
# (sin(r)/r - 1) / r**2 and (cos(r) - 1 + r**2/2) / r**4 in r**2 on |r| <= pi/4, errors 2**-32.
_SIN = (-0.1666666716337204, 0.008333379402756691, -0.00019853064441122115, 2.8325100629444933e-06)
_COS = (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05)
# (atan(x)/x - 1) / x**2 in x**2: on |x| <= tan(pi/8), errors 2**-30 and 2**-59, and on |x| <= 1, error 2**-28.
_ATAN = {
    "float": (-0.33333316445350647, 0.19998526573181152, -0.14244344830513, 0.10598728805780411, -0.060887403786182404),
    "double": (
        -0.3333333333333333, 0.19999999999999798, -0.14285714285658574, 0.11111111105033467, -0.09090908747438506, 0.07692296199967973,
        -0.06666421745351814, 0.058788929347181634, -0.052301889934494805, 0.04550384655278787, -0.034539518756678086, 0.01625139658592304,
    ),
}  # fmt: skip
_ATAN_UNIT = (
    -0.33333298563957214, 0.1999852955341339, -0.14264015853405, 0.10950879752635956, -0.08399300277233124,
    0.05788120627403259, -0.031096717342734337, 0.0108684953302145, -0.0017827684059739113,
)  # fmt: skip
_TAN_PI_8, _TAN_3PI_8 = math.tan(math.pi / 8), math.tan(3 * math.pi / 8)
# (asin(x)/x - 1) / x**2 in x**2 on |x| <= 1/2, errors 2**-31 and 2**-55.
_ASIN = {
    "float": (
        0.16666659712791443, 0.07500521838665009, 0.04451338201761246, 0.03183884173631668, 0.014316960237920284, 0.03769168257713318,
    ),
    "double": (
        0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989, 0.017352392720869973,
        0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
        0.028757851367421566,
    ),
}  # fmt: skip


def _quadrant(size: Lanes) -> tuple[Lanes, Lanes]:
    """(r, n): size = n pi/2 + r for a magnitude up to the largest; r as a double, n as i32."""
    wide = size.converted("double")
    n, number = wide.rounded(_TWO_OVER_PI)
    return n.fma(-_HALF_PI_DOUBLE[1], n.fma(-_HALF_PI_DOUBLE[0], wide)), number.converted("i32")


def _sine(r: Lanes, square: Lanes) -> Lanes:
    return (r * square).fma(square.polynomial(_SIN), r)


def _cosine(square: Lanes) -> Lanes:
    return (square * square).fma(square.polynomial(_COS), square.fma(-0.5, 1.0))


def _sine_of_quadrant(r: Lanes, number: Lanes) -> Lanes:
    """sin(number pi/2 + r)."""
    square = r * r
    value = (number & 1).compare("eq", 0).choose(_sine(r, square), _cosine(square))
    # Quadrants 2 and 3, where the sine is negative, have bit 1 set: 30 places up that is the sign.
    return value.flipped_by((number << 30).as_float())


def sin(x: Lanes) -> Lanes:
    """The sine, within 2 ulp."""
    size = x.abs()
    r, number = _quadrant(size)
    return patched(size.compare("ogt", _LARGEST), "sinf", x, _sine_of_quadrant(r.converted("float"), number).flipped_by(x))


def cos(x: Lanes) -> Lanes:
    """The cosine, within 2 ulp."""
    size = x.abs()
    r, number = _quadrant(size)
    # A quadrant on: cos(x) is sin(x + pi/2), and even, so the sign of x isn't needed.
    return patched(size.compare("ogt", _LARGEST), "cosf", x, _sine_of_quadrant(r.converted("float"), number + 1))


def tan(x: Lanes) -> Lanes:
    """The tangent, within 3 ulp: a quotient, so what r loses as a float is made up for in both its sides."""
    size = x.abs()
    exact, number = _quadrant(size)
    r = exact.converted("float")
    # What the conversion to float cut off, as a first-order correction.
    lost = (exact - r.converted("double")).converted("float")
    square = r * r
    sine = r + (r * square).fma(square.polynomial(_SIN), lost)
    cosine = _cosine(square) - r * lost
    even = (number & 1).compare("eq", 0)
    value = even.choose(sine, -cosine) / even.choose(cosine, sine)
    return patched(size.compare("ogt", _LARGEST), "tanf", x, value.flipped_by(x))


def atan(x: Lanes) -> Lanes:
    """The inverse tangent, reduced to |t| <= tan(pi/8) by one division."""
    size = x.abs()
    middle, far = size.compare("ogt", _TAN_PI_8), size.compare("ogt", _TAN_3PI_8)
    one = x.constant(1.0)
    # atan(x) is pi/4 + atan((x - 1) / (x + 1)), and pi/2 + atan(-1 / x).
    numerator = far.choose(-one, middle.choose(size - 1.0, size))
    denominator = far.choose(size, middle.choose(size + 1.0, one))
    t = numerator / denominator
    square, half_pi = t * t, _HALF_PI[x.kind]
    tail = (t * square) * square.polynomial(_ATAN[x.kind])
    base = far.choose(x.constant(half_pi[0]), middle.choose(x.constant(half_pi[0] / 2), 0.0))
    low = far.choose(x.constant(half_pi[1]), middle.choose(x.constant(half_pi[1] / 2), 0.0))
    return (base + (t + (tail + low))).signed_as(x)


def _angle_of(ratio: Lanes) -> Lanes:
    """The inverse tangent from 0 to 1: of doubles one polynomial would have too many terms."""
    if ratio.kind == "double":
        return atan(ratio)
    square = ratio * ratio
    return (ratio * square).fma(square.polynomial(_ATAN_UNIT), ratio)


def atan2(y: Lanes, x: Lanes) -> Lanes:
    """The angle of (x, y): the inverse tangent of the smaller over the larger side, then the octant."""
    width, height = x.abs(), y.abs()
    steep = height.compare("ogt", width)
    short, long = steep.choose(width, height), steep.choose(height, width)
    # Of two infinite sides the quotient would be NaN, of two zeros as well; C has pi/4 and 0.
    ratio = short.compare("oeq", long).choose(x.constant(1.0), short / long)
    ratio = long.compare("oeq", 0.0).choose(x.constant(0.0), ratio)
    angle, half_pi = _angle_of(ratio), _HALF_PI[x.kind]
    angle = steep.choose(half_pi[0] - (angle - half_pi[1]), angle)
    # By the sign bit, as -0.0 counts as negative: atan2(0.0, -0.0) is pi.
    angle = x.bits().compare("slt", 0).choose(2 * half_pi[0] - (angle - 2 * half_pi[1]), angle)
    undefined = x.compare("uno", y)
    return undefined.choose(x + y, angle.signed_as(y))


def _asine(t: Lanes, square: Lanes) -> Lanes:
    return (t * square).fma(square.polynomial(_ASIN[t.kind]), t)


def asin(x: Lanes) -> Lanes:
    """The inverse sine: near 1 by asin(x) = pi/2 - 2 asin(sqrt((1-x)/2)); NaN beyond 1."""
    size = x.abs()
    near = size.compare("ole", 0.5)
    square = near.choose(x * x, (1.0 - size) * 0.5)
    value, half_pi = _asine(near.choose(size, square.sqrt()), square), _HALF_PI[x.kind]
    far = half_pi[0] - ((value + value) - half_pi[1])
    return near.choose(value, far).signed_as(x)


def acos(x: Lanes) -> Lanes:
    """The inverse cosine; NaN beyond 1."""
    size = x.abs()
    near = size.compare("ole", 0.5)
    square = near.choose(x * x, (1.0 - size) * 0.5)
    value, half_pi = _asine(near.choose(x, square.sqrt()), square), _HALF_PI[x.kind]
    negative = x.compare("olt", 0.0)
    twice = value + value
    far = negative.choose(2 * half_pi[0] - (twice - 2 * half_pi[1]), twice)
    return near.choose(half_pi[0] - (value - half_pi[1]), far)
