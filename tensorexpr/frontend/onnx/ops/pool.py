"""Pools: windows, and whole planes, taken together."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..windows import letters, plane_of, stated_windows, windows

R = relax.op


@onnx_op("MaxPool")
def max_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The greatest element of each window, and where it is."""
    own = windows(ctx, attrs, attrs.ints("kernel_shape"))
    plane = letters(ctx, own.rank)
    options = own.size, own.strides, own.pads, own.dilations, attrs.bool("ceil_mode", False)
    if ctx.wants(1):
        both = ctx.emit(R.nn.max_pool_with_places(inputs[0], *options, attrs.bool("storage_order", False)))
        return [relax.TupleGetItem(both, 0), relax.TupleGetItem(both, 1)]
    return getattr(R.nn, f"max_pool{len(plane)}d")(inputs[0], *options)


@onnx_op("AveragePool")
def average_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The mean of each window."""
    own = windows(ctx, attrs, attrs.ints("kernel_shape"))
    plane = letters(ctx, own.rank)
    function = getattr(R.nn, f"avg_pool{len(plane)}d")
    options = attrs.bool("ceil_mode", False), attrs.bool("count_include_pad", False)
    return function(inputs[0], own.size, own.strides, own.pads, own.dilations, *options)


@onnx_op("LpPool")
def lp_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The p-norm of each window."""
    own = windows(ctx, attrs, attrs.ints("kernel_shape"))
    plane = letters(ctx, own.rank)
    p = int(attrs.float("p", 2.0)) if ctx.opset < 2 else attrs.int("p", 2)
    function = getattr(R.nn, f"lp_pool{len(plane)}d")
    return function(inputs[0], own.size, own.strides, own.pads, own.dilations, attrs.bool("ceil_mode", False), p)


def _planes(ctx: Context) -> list[int]:
    return list(range(2, ctx.rank(0)))


@onnx_op("GlobalAveragePool")
def global_average_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The mean of each plane."""
    return R.mean(inputs[0], _planes(ctx), keepdims=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The greatest element of each plane."""
    return R.max(inputs[0], _planes(ctx), keepdims=True)


@onnx_op("GlobalLpPool")
def global_lp_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The p-norm of each plane."""
    p = attrs.int("p", 2)
    total = R.sum(R.power(R.abs(inputs[0]), relax.const(p, ctx.dtype(0))), _planes(ctx), keepdims=True)
    return R.power(total, relax.const(1 / p, ctx.dtype(0)))


@onnx_op("MaxUnpool")
def max_unpool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements at the places that they had before a pool took the greatest ones; zeros elsewhere."""
    own, extents = stated_windows(ctx, attrs, attrs.ints("kernel_shape")), ctx.extents(0)
    axes = zip(plane_of(ctx, own.rank), own.strides, own.size, own.pads[: own.rank], own.pads[own.rank :], strict=True)
    plane = [(n - 1) * step + k - low - high for n, step, k, low, high in axes]
    shape = ctx.shape(2) if ctx.has(2) else [*extents[:2], *plane]
    if len(shape) != len(extents):
        ctx.fail(f"a result of {len(shape)} axes of data of {len(extents)}")
    count = 1
    for extent in shape:
        count = count * extent
    # Places count in the shape that was pooled, whatever shape the result has.
    places, indices = [*extents[:2], *plane], R.reshape(inputs[1], [-1])
    if ctx.has(2) and [str(one) for one in places] != [str(one) for one in shape]:
        indices = _moved(indices, places, shape)
    flat = R.scatter_elements(R.zeros([count], ctx.dtype(0)), indices, R.reshape(inputs[0], [-1]))
    return R.reshape(flat, shape)


def _moved(indices: Any, old: list[Any], new: list[Any]) -> Any:
    """Places in one shape as those in another."""
    rest, place, factor = indices, None, 1
    for before, after in zip(reversed(old), reversed(new), strict=True):
        own = R.floor_mod(rest, relax.const(before, "int64")) * relax.const(factor, "int64")
        place = own if place is None else R.add(place, own)
        rest = R.floor_divide(rest, relax.const(before, "int64"))
        factor = factor * after
    return place
