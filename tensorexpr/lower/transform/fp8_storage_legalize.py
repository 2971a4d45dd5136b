"""8 bit floats in memory, as bytes."""

from __future__ import annotations

from ..passes import Pass
from .storage_legalize import storage_legalize


def FP8StorageLegalize() -> Pass:
    """Memory of uint8 in place of 8 bit floats; after `FP8ComputeLegalize`."""
    return Pass("tir.FP8StorageLegalize", lambda func, ctx: storage_legalize(func, ("e4m3_float8", "e5m2_float8")))
