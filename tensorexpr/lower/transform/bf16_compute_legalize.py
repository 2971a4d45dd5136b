"""Arithmetic on bfloat16, done in float32."""

from __future__ import annotations

from ..passes import Pass
from .compute_legalize import compute_legalize


def BF16ComputeLegalize() -> Pass:
    """No arithmetic on bfloat16."""
    return Pass("tir.BF16ComputeLegalize", lambda func, ctx: compute_legalize(func, ("bfloat16",), "float32"))
