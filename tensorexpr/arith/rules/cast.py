"""Conversions."""

from __future__ import annotations

from ...tir.expr import Cast, PrimExpr
from ..bounds import dtype_limits
from ..facts import Facts
from ..linear import is_scalar_int


def cast(facts: Facts, node: Cast) -> PrimExpr | None:
    """Integer conversions through a type that holds every value on the way."""
    inner = node.value
    if not (isinstance(inner, Cast) and is_scalar_int(node.dtype) and is_scalar_int(inner.dtype) and is_scalar_int(inner.value.dtype)):
        return None
    least, most = dtype_limits(inner.value.dtype)
    low, high = dtype_limits(inner.dtype)
    if low <= least and most <= high:
        return inner.value if inner.value.dtype == node.dtype else Cast(node.dtype, inner.value)
    return None
