"""CUDA's functions of numbers, as programs call them by name: `expf`, the fast `__expf`, and libdevice's `__nv_expf`.

Each is the intrinsic of the same meaning, with that one's accuracy; the fast ones may be less exact (CUDA C++ Programming Guide,
"Mathematical Functions").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..tir import intrin
from ..tir.expr import Call, Div, PrimExpr, StringImm

_SAME_NAMES = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "acosh", "atanh", "atan2", "hypot", "copysign", "floor", "ceil", "trunc", "round", "nearbyint", "pow",
    "fmod", "fma",
)  # fmt: skip
_NAMED: Mapping[str, Callable[..., PrimExpr]] = {
    **{name: getattr(intrin, name) for name in _SAME_NAMES},
    "fabs": intrin.abs,
    "rint": intrin.nearbyint,
    "fdividef": Div,
}


def as_intrinsic(call: Call) -> PrimExpr | None:
    """What a call of one of CUDA's functions computes; None for another function, and for other types than the name says."""
    name, *args = call.args
    if not isinstance(name, StringImm):
        return None
    base = name.value.removeprefix("__nv_").removeprefix("__")
    width = "float64"
    if base not in _NAMED or base == "fdividef":
        base, width = base if base == "fdividef" else base.removesuffix("f"), "float32"
    if base not in _NAMED or any(one.dtype != width for one in (call, *args)):
        return None
    return _NAMED[base](*args)
