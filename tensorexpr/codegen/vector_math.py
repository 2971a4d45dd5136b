"""Math functions: which formula serves which intrinsic and type; what has none calls the C library in each lane."""

from __future__ import annotations

from collections.abc import Callable

from ..tir.dtype import parse_dtype
from . import vector_math_exp as exponentials
from . import vector_math_log as logarithms
from . import vector_math_power as powers
from . import vector_math_trig as circular
from .context import FunctionContext
from .lanes import Lanes
from .libm import by_lane, c_name
from .types import VALUE_TYPE

Formula = Callable[..., Lanes]

_FLOAT: dict[str, Formula] = {
    "tir.exp": exponentials.exp,
    "tir.exp2": exponentials.exp2,
    "tir.exp10": exponentials.exp10,
    "tir.sigmoid": exponentials.sigmoid,
    "tir.tanh": exponentials.tanh,
    "tir.sinh": exponentials.sinh,
    "tir.cosh": exponentials.cosh,
    "tir.log": logarithms.log,
    "tir.log2": logarithms.log2,
    "tir.log10": logarithms.log10,
    "tir.log1p": logarithms.log1p,
    "tir.asinh": logarithms.asinh,
    "tir.acosh": logarithms.acosh,
    "tir.atanh": logarithms.atanh,
    "tir.sin": circular.sin,
    "tir.cos": circular.cos,
    "tir.tan": circular.tan,
    "tir.asin": circular.asin,
    "tir.acos": circular.acos,
    "tir.atan": circular.atan,
    "tir.atan2": circular.atan2,
    "tir.rsqrt": powers.rsqrt,
    "tir.hypot": powers.hypot,
    "tir.pow": powers.pow_,
    "tir.erf": powers.erf,
}
_DOUBLE: dict[str, Formula] = {
    "tir.exp": exponentials.exp,
    "tir.sigmoid": exponentials.sigmoid,
    "tir.tanh": exponentials.tanh_double,
    "tir.log": logarithms.log_double,
    "tir.rsqrt": powers.rsqrt,
}
FORMULAS = {"float": _FLOAT, "double": _DOUBLE}


def emit(ctx: FunctionContext, op: str, dtype: str, values: list[str]) -> str:
    """The intrinsic `op` of float32 or float64 values of one dtype."""
    parsed = parse_dtype(dtype)
    kind = VALUE_TYPE[str(parsed.scalar)]
    formula = ctx.module.formulas[kind].get(op)
    if formula is None:
        return by_lane(ctx, c_name(op.removeprefix("tir."), kind), kind, parsed.lanes, values)
    found: Lanes = formula(*(Lanes(ctx, kind, parsed.lanes, value) for value in values))
    return found.text
