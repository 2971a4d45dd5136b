"""Normalisations, softmax and dropout."""

from __future__ import annotations

from typing import Any

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op

R = relax.op


def _scalar(ctx: Context, value: float, index: int = 0) -> Any:
    return relax.const(value, ctx.dtype(index))


def _in_dtype(ctx: Context, inputs: Inputs, index: int) -> Any:
    """An operand in the dtype of operand 0."""
    return inputs[index] if ctx.dtype(index) == ctx.dtype(0) else R.astype(inputs[index], ctx.dtype(0))


@onnx_op("BatchNormalization")
def batch_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Channels by their running mean and variance; when training by those of the batch."""
    epsilon = attrs.float("epsilon", 1e-5)
    if attrs.bool("training_mode", False):
        return _training(ctx, inputs, epsilon, attrs.float("momentum", 0.9))
    if not attrs.bool("spatial", True):
        ctx.fail("spatial=0, a mean for each place of a plane")
    vectors = [_in_dtype(ctx, inputs, n) for n in range(1, 5)]
    made = ctx.emit(R.nn.batch_norm(inputs[0], *vectors, axis=min(1, ctx.rank(0) - 1), epsilon=epsilon))
    return [relax.TupleGetItem(made, 0)]


def _training(ctx: Context, inputs: Inputs, epsilon: float, momentum: float) -> list[Any]:
    axes = [n for n in range(ctx.rank(0)) if n != 1]
    shape = [1, -1, *[1] * (ctx.rank(0) - 2)]
    mean, variance = ctx.emit(R.mean(inputs[0], axes)), ctx.emit(R.variance(inputs[0], axes))
    apart = inputs[0] - R.reshape(mean, shape)
    scale = _in_dtype(ctx, inputs, 1) * R.rsqrt(variance + _scalar(ctx, epsilon))
    result = apart * R.reshape(scale, shape) + R.reshape(_in_dtype(ctx, inputs, 2), shape)
    running = [
        inputs[n] * _scalar(ctx, momentum, n) + R.astype(new, ctx.dtype(n)) * _scalar(ctx, 1 - momentum, n)
        for n, new in ((3, mean), (4, variance))
    ]
    return [result, *running]


@onnx_op("InstanceNormalization")
def instance_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Each plane with a mean of 0 and a variance of 1, scaled and shifted."""
    axes = list(range(2, ctx.rank(0)))
    return R.nn.instance_norm(inputs[0], inputs[1], inputs[2], 1, axes, attrs.float("epsilon", 1e-5))


def _along(ctx: Context, inputs: Inputs, index: int, axes: list[int], filling: float) -> Any:
    """A scale or shift in the shape of the axes that are normalised; one number everywhere where it is left out."""
    shape = [ctx.extents(0)[axis] for axis in axes]
    if not ctx.has(index):
        return R.full(shape, _scalar(ctx, filling))
    found = _in_dtype(ctx, inputs, index)
    return found if [str(one) for one in ctx.extents(index)] == [str(one) for one in shape] else R.broadcast_to(found, shape)


@onnx_op("LayerNormalization")
def layer_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The last axes with a mean of 0 and a variance of 1, scaled and shifted; mean and inverse deviation too, where they are used."""
    rank, epsilon = ctx.rank(0), attrs.float("epsilon", 1e-5)
    axes = list(range(ctx.axis(attrs.int("axis", -1)), rank))
    gamma, beta = _along(ctx, inputs, 1, axes, 1.0), _along(ctx, inputs, 2, axes, 0.0)
    made = [R.nn.layer_norm(inputs[0], gamma, beta, axes, epsilon)]
    if ctx.wants(1) or ctx.wants(2):
        # The standard has statistics of narrower floats in float32.
        wide = inputs[0] if ctx.dtype(0) in ("float32", "float64") else ctx.emit(R.astype(inputs[0], "float32"))
        dtype = "float64" if ctx.dtype(0) == "float64" else "float32"
        deviation = R.rsqrt(R.variance(wide, axes, keepdims=True) + relax.const(epsilon, dtype))
        made += [R.mean(wide, axes, keepdims=True), deviation]
    return made


@onnx_op("RMSNormalization")
def rms_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The last axes with a mean square of 1, scaled."""
    rank = ctx.rank(0)
    axes = list(range(ctx.axis(attrs.int("axis", -1)), rank))
    return R.nn.rms_norm(inputs[0], _along(ctx, inputs, 1, axes, 1.0), axes, attrs.float("epsilon", 1e-5))


@onnx_op("GroupNormalization")
def group_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Groups of channels with a mean of 0 and a variance of 1, scaled and shifted by channels, before opset 21 by groups."""
    groups = attrs.int("num_groups")
    gamma, beta = inputs[1], inputs[2]
    if ctx.opset < 21:
        share = int(ctx.extents(0)[1]) // groups
        gamma, beta = R.repeat(gamma, share, 0), R.repeat(beta, share, 0)
    axes = list(range(2, ctx.rank(0)))
    return R.nn.group_norm(inputs[0], gamma, beta, groups, 1, axes, attrs.float("epsilon", 1e-5))


@onnx_op("LRN")
def lrn(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements by the squares of their neighbours among the channels."""
    options = {"alpha": attrs.float("alpha", 1e-4), "beta": attrs.float("beta", 0.75), "bias": attrs.float("bias", 1.0)}
    return R.nn.lrn(inputs[0], attrs.int("size"), 1, **options)


@onnx_op("LpNormalization")
def lp_normalization(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Elements by the norm of their row; rows of zeros stay."""
    axis, p = attrs.int("axis", -1), attrs.int("p", 2)
    x = inputs[0]
    if p not in (1, 2):
        ctx.fail(f"a norm of p {p}; there are 1 and 2")
    norm = R.sum(R.abs(x), [axis], keepdims=True) if p == 1 else R.sqrt(R.sum(R.multiply(x, x), [axis], keepdims=True))
    found = ctx.emit(norm)
    return R.divide(x, R.where(R.equal(found, _scalar(ctx, 0.0)), _scalar(ctx, 1.0), found))


def _flat(ctx: Context, inputs: Inputs, attrs: Attributes, function: Any) -> Any:
    """Up to opset 12 what is behind an axis is one row."""
    if ctx.opset >= 13:
        return function(inputs[0], attrs.int("axis", -1))
    rank = ctx.rank(0)
    # The axis may be behind the last one: then each element is a row.
    axis = attrs.int("axis", 1) if attrs.int("axis", 1) == rank else ctx.axis(attrs.int("axis", 1))
    if axis == rank - 1:
        return function(inputs[0], -1)
    extents = ctx.extents(0)
    rows: Any = 1
    for extent in extents[:axis]:
        rows = rows * extent
    return R.reshape(function(ctx.emit(R.reshape(inputs[0], [rows, -1])), -1), extents)


@onnx_op("Softmax")
def softmax(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Exponentials by their sum."""
    return _flat(ctx, inputs, attrs, R.nn.softmax)


@onnx_op("LogSoftmax")
def log_softmax(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The logarithm of the softmax."""
    return _flat(ctx, inputs, attrs, R.nn.log_softmax)


@onnx_op("Hardmax")
def hardmax(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """1 where the first of the greatest elements of a row is, else 0."""

    def one_hot(x: Any, axis: int) -> Any:
        extents = ctx.extents(0) if x is inputs[0] else x.struct_info.extents
        places = R.argmax(x, axis, keepdims=True)
        shape = [1] * len(extents)
        shape[axis] = -1
        own = R.reshape(R.arange(0, extents[axis], 1, "int64"), shape)
        return R.astype(R.equal(R.astype(places, "int64"), own), ctx.dtype(0))

    return _flat(ctx, inputs, attrs, one_hot)


@onnx_op("Dropout")
def dropout(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The tensor as it is, and a mask of ones: nothing is dropped when a network runs."""
    training = ctx.has(2) and bool(ctx.number(2))
    ratio = float(ctx.number(1)) if training and ctx.has(1) else 0.5
    if training and ratio:
        ctx.fail("training_mode drops elements at random, and networks are imported to be run")
    made = [ctx.value(0)]
    if ctx.wants(1):
        made.append(R.ones_like(inputs[0], "bool" if ctx.opset >= 10 else ctx.dtype(0)))
    return made
