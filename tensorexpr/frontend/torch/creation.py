"""Tensors that are made: filled with a number, ranges, constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import relax
from .table import Context, aten


def _filled(c: Context, shape: Sequence[Any], value: Any) -> Any:
    return c.op("full", relax.ShapeExpr(tuple(shape)), c.cast(value, c.dtype), dtype=c.dtype)


@aten("full", "new_full")
def _full(c: Context, *args: Any) -> Any:
    size, value = (args[1], args[2]) if isinstance(args[0], relax.Expr) else (args[0], args[1])
    return _filled(c, size, value)


@aten("full_like", "fill", "fill.Scalar", "fill.Tensor")
def _full_like(c: Context, input: Any, value: Any, *rest: Any) -> Any:
    return _filled(c, c.shape_of(input), value)


@aten("zeros", "empty", "empty_permuted")
def _zeros(c: Context, size: Any, *rest: Any) -> Any:
    return _filled(c, size, 0)


@aten("ones")
def _ones(c: Context, size: Any, *rest: Any) -> Any:
    return _filled(c, size, 1)


@aten("new_zeros", "new_empty")
def _new_zeros(c: Context, input: Any, size: Any, *rest: Any) -> Any:
    return _filled(c, size, 0)


@aten("new_ones")
def _new_ones(c: Context, input: Any, size: Any, *rest: Any) -> Any:
    return _filled(c, size, 1)


@aten("zeros_like", "empty_like")
def _zeros_like(c: Context, input: Any, *rest: Any) -> Any:
    return _filled(c, c.shape_of(input), 0)


@aten("ones_like")
def _ones_like(c: Context, input: Any, *rest: Any) -> Any:
    return _filled(c, c.shape_of(input), 1)


@aten("scalar_tensor")
def _scalar(c: Context, value: Any, *rest: Any) -> Any:
    return c.cast(value, c.dtype)


@aten("arange.default", "arange")
def _range(c: Context, end: Any, *rest: Any) -> Any:
    return _arange(c, 0, end, 1)


@aten("arange.start")
def _range_from(c: Context, start: Any, end: Any, *rest: Any) -> Any:
    return _arange(c, start, end, 1)


@aten("arange.start_step")
def _range_by(c: Context, start: Any, end: Any, step: Any = 1, *rest: Any) -> Any:
    return _arange(c, start, end, step)


def _arange(c: Context, start: Any, end: Any, step: Any) -> Any:
    if all(isinstance(one, (int, float)) for one in (start, end, step)):
        count = max(0, math.ceil((end - start) / step))
        # By multiples of the step: with running sums the errors of floats would add up.
        return relax.const(np.asarray(start + step * np.arange(count)), c.dtype)
    return c.op("arange", start, end, step, dtype=c.dtype)


@aten("eye", "eye.m")
def _eye(c: Context, *rest: Any) -> Any:
    n, m = c.sizes
    if isinstance(n, int) and isinstance(m, int):
        return relax.const(np.eye(n, m), c.dtype)
    rows, columns = (c.op("arange", 0, one, 1, dtype="int64") for one in (n, m))
    return c.cast(c.op("equal", c.op("expand_dims", rows, axis=1), columns), c.dtype)
