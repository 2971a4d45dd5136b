"""Operators that take elements along axes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import relax
from ....tir.dtype import parse_dtype
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op


def axes_of(ctx: Context, attrs: Attributes) -> list[int] | None:
    """The axes of a reduction: an attribute, or since opset 13 or 18 an operand; None for all."""
    if ctx.has(1):
        return ctx.ints(1)
    found: list[int] | None = attrs.ints("axes", None)
    return found


def _logarithm_of_exponentials(x: Any, axes: list[int] | None, keepdims: bool) -> Any:
    """log(sum(exp(x))), shifted by the greatest element where that is finite."""
    dtype = x.struct_info.dtype
    greatest = R.max(x, axes, True)
    shift = R.where(R.isfinite(greatest), greatest, relax.const(0, dtype))
    total = R.add(R.log(R.sum(R.exp(R.subtract(x, shift)), axes, True)), shift)
    return total if keepdims else R.squeeze(total, axes)


_MEANING: dict[str, Callable[[Any, Any, bool], Any]] = {
    "ReduceL1": lambda x, axes, keep: R.sum(R.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: R.sqrt(R.sum(R.square(x), axes, keep)),
    "ReduceLogSum": lambda x, axes, keep: R.log(R.sum(x, axes, keep)),
    "ReduceLogSumExp": _logarithm_of_exponentials,
    "ReduceMax": R.max,
    "ReduceMean": R.mean,
    "ReduceMin": R.min,
    "ReduceProd": R.prod,
    "ReduceSum": R.sum,
    "ReduceSumSquare": lambda x, axes, keep: R.sum(R.square(x), axes, keep),
}
_FLOATS = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})


def _reduction(name: str, make: Callable[[Any, Any, bool], Any]) -> None:
    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        x, dtype, axes = inputs[0], ctx.dtype(0), axes_of(ctx, attrs)
        keepdims = attrs.bool("keepdims", True)
        if not axes:
            by_itself = attrs.bool("noop_with_empty_axes", False)
            axes = [] if by_itself else list(range(ctx.rank(0)))
        if dtype == "bool":  # of ReduceMax and ReduceMin
            return R.astype(make(R.astype(x, "uint8"), axes, keepdims), "bool")
        if name in _FLOATS and not parse_dtype(dtype).is_float:
            return R.astype(make(R.astype(x, "float64"), axes, keepdims), dtype)
        return make(x, axes, keepdims)

    onnx_op(name)(convert)


for _name, _make in _MEANING.items():
    _reduction(_name, _make)


def _position(name: str, make: Callable[[Any, int, bool], Any]) -> None:
    def convert(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
        x, axis, keepdims = inputs[0], attrs.int("axis", 0), attrs.bool("keepdims", True)
        if not attrs.bool("select_last_index", False):
            return make(x, axis, keepdims)
        extent = ctx.extents(0)[ctx.axis(axis)]
        last = relax.const(extent - 1, "int64") if isinstance(extent, int) else None
        if last is None:
            ctx.fail("the last of several positions along an axis whose extent isn't known")
        # The last of equal elements is the first one of the flipped axis.
        return R.subtract(last, make(R.flip(x, axis), axis, keepdims))

    onnx_op(name)(convert)


_position("ArgMax", R.argmax)
_position("ArgMin", R.argmin)
