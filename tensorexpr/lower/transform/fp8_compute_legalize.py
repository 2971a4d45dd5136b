"""Arithmetic on 8 bit floats, done in wider ones."""

from __future__ import annotations

from ...errors import PassError
from ..passes import Pass
from .compute_legalize import compute_legalize

FP8 = ("e4m3_float8", "e5m2_float8")


def FP8ComputeLegalize(promote_dtype_str: str = "float32") -> Pass:
    """No arithmetic on 8 bit floats: operands are widened bit by bit, as TVM does it.

    That is right for normal numbers alone; zero of e4m3 becomes 2**-7 (float32 or float16). Where zeros, denormals or NaN count, leave
    the pass out and write `T.Cast("float32", x)` around operations: code generation converts all numbers exactly.

    Args:
        promote_dtype_str: what is computed in: "float32" or "float16".

    Raises:
        PassError: for another type.
    """
    if promote_dtype_str not in ("float16", "float32"):
        raise PassError(f"FP8ComputeLegalize computes in float16 or float32, not {promote_dtype_str!r}")
    return Pass("tir.FP8ComputeLegalize", lambda func, ctx: compute_legalize(func, FP8, promote_dtype_str))
