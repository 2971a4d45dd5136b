"""Lanes of vectors that may be scalable: how values of different lanes meet."""

from __future__ import annotations

from typing import Any

from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import Broadcast, PrimExpr

Lanes = Any  # an int, or for scalable vectors an expression with vscale


def lane_count(dtype: str) -> int:
    """The number of lanes; of a scalable vector the number per vscale, negative."""
    return parse_dtype(dtype).lanes


def is_vector(expr: PrimExpr) -> bool:
    """True if the value has more than one lane."""
    return lane_count(expr.dtype) != 1


def widened(dtype: str, like: str) -> str:
    """The scalar type of `dtype` with the lanes of `like`."""
    return with_lanes(dtype, lane_count(like))


def to_lanes(expr: PrimExpr, lanes: Lanes, like: str) -> PrimExpr:
    """`expr` in every lane; a vector stays, and a repeated value is repeated more often where the lanes divide.

    lanes: as a node takes it; like: a dtype with these lanes.
    """
    own, wanted = lane_count(expr.dtype), lane_count(like)
    if own == wanted:
        return expr
    if isinstance(expr, Broadcast) and own > 0 and wanted > 0 and wanted % own == 0:
        return Broadcast(expr.value, lanes)
    return Broadcast(expr, lanes)
