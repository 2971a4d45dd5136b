"""bfloat16 in memory, as halves of words."""

from __future__ import annotations

from ..passes import Pass
from .storage_legalize import storage_legalize


def BF16StorageLegalize() -> Pass:
    """Memory of uint16 in place of bfloat16; after `BF16ComputeLegalize`."""
    return Pass("tir.BF16StorageLegalize", lambda func, ctx: storage_legalize(func, ("bfloat16",)))
