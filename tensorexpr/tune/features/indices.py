"""Values of index expressions for whole populations: intervals, from the intervals of the axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...tir.expr import Add, Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr, Sub, Var
from .nest import Array

Interval = tuple[Array, Array]  # least and largest value, of any one shape


def interval_of(index: PrimExpr, axes: Mapping[Var, Interval], shape: tuple[int, ...]) -> Interval | None:
    """The interval of an index; None where it depends on anything but axes and constants. A point is an interval of one value."""
    match index:
        case IntImm(value=value):
            constant = np.full(shape, float(value))
            return constant, constant
        case Var():
            return axes.get(index)
        case Cast(value=inner):
            return interval_of(inner, axes, shape)
        case Add() | Sub() | Mul() | Min() | Max() | FloorDiv() | FloorMod():
            left, right = interval_of(index.a, axes, shape), interval_of(index.b, axes, shape)
            return None if left is None or right is None else _combined(index, left, right)
        case _:
            return None


def _combined(node: PrimExpr, left: Interval, right: Interval) -> Interval | None:
    (a, b), (c, d) = left, right
    match node:
        case Add():
            return a + c, b + d
        case Sub():
            return a - d, b - c
        case Mul():
            return _hull([a * c, a * d, b * c, b * d])
        case Min():
            return np.minimum(a, c), np.minimum(b, d)
        case Max():
            return np.maximum(a, c), np.maximum(b, d)
    # only a divisor that is one positive number keeps the order of the ends
    if not (c > 0).all() or not (c == d).all():
        return None
    low, high = np.floor(a / c), np.floor(b / c)
    if isinstance(node, FloorDiv):
        return low, high
    # 5..7 % 4 is 1..3, but 3..5 % 4 passes a multiple, so that it may be any of 0..3
    within = low == high
    return np.where(within, a - low * c, 0.0), np.where(within, b - low * c, c - 1)


def _hull(ends: list[Any]) -> Interval:
    return np.asarray(np.minimum.reduce(ends), float), np.asarray(np.maximum.reduce(ends), float)
