"""Math functions of NVIDIA's GPUs: formulas over ex2.approx where that is as good, else those of CPUs, which need no library.

Errors in float32, estimated from ex2.approx's 2 ulp and not measured on hardware: exp within 3 ulp (the product with log2(e) is carried
in two parts), sigmoid within 5, tanh that of CPUs. The instruction gives denormal results. sin, cos and tan hold for |x| <= 2**17: there
is no C library behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import ptx_math_double, vector_math
from .lanes import Lanes
from .types import suffix

_LOG2_E = (1.44269502162933349609375, 1.925963033500e-8)  # log2(e) in two floats


def exp2(x: Lanes) -> Lanes:
    """2**x: ex2.approx."""
    return x.like(f"call {x.llvm_type} @llvm.exp2.{suffix(x.llvm_type)}({x.llvm_type} {x.text})")


def exp(x: Lanes) -> Lanes:
    """e**x = 2**n * 2**r, with x log2(e) = n + r in two parts: r keeps the digits that the product would lose."""
    bounded = x.at_most(89.0).at_least(-105.0)
    n, _ = bounded.rounded(_LOG2_E[0])
    r = bounded.fma(_LOG2_E[0], -n)
    return _two_powers(n, bounded.fma(_LOG2_E[1], r))


def _two_powers(n: Lanes, r: Lanes) -> Lanes:
    """2**n * 2**r in halves of n, so that denormal results and the largest ones come out."""
    half = (n * 0.5).rounded()[0]
    return exp2(r) * exp2(half) * exp2(n - half)


def sigmoid(x: Lanes) -> Lanes:
    """1 / (1 + e**-x), from e**-|x|."""
    tail = exp(-x.abs())
    return x.compare("oge", 0.0).choose(x.constant(1.0), tail) / (tail + 1.0)


FORMULAS: Mapping[str, Mapping[str, Callable[..., Lanes]]] = {
    "float": {**vector_math.FORMULAS["float"], "tir.exp2": exp2, "tir.exp": exp, "tir.sigmoid": sigmoid},
    "double": {**ptx_math_double.FORMULAS, **vector_math.FORMULAS["double"]},
}
