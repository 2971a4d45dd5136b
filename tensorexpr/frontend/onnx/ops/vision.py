"""Regions, boxes and convolutions whose taps are moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..registry import onnx_op
from ..windows import windows
from .conv import biased, taps

R = relax.op


@onnx_op("RoiAlign")
def roi_align(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Interpolated elements of a grid over each region; before opset 16 coordinates are those of the elements' edges."""
    mode = attrs.string("coordinate_transformation_mode", "half_pixel" if ctx.opset >= 16 else "output_half_pixel")
    taken = attrs.string("mode", "avg")
    kind = {"avg": "avg", "max": "max_corner"}.get(taken)
    if kind is None:
        ctx.fail(f"no mode {taken!r}; there are avg and max")
    batch = R.expand_dims(R.astype(inputs[2], ctx.dtype(1)), [1])
    size = attrs.int("output_height", 1), attrs.int("output_width", 1)
    options = attrs.float("spatial_scale", 1.0), kind, attrs.int("sampling_ratio", 0), mode == "half_pixel"
    return R.image.roi_align(inputs[0], R.concat([batch, inputs[1]], 1), size, *options)


@onnx_op("MaxRoiPool")
def max_roi_pool(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """The greatest elements in a grid over each region."""
    return R.image.roi_pool(inputs[0], inputs[1], attrs.ints("pooled_shape"), attrs.float("spatial_scale", 1.0))


@onnx_op("NonMaxSuppression")
def non_max_suppression(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Boxes of the best scores that overlap none of better ones."""
    limit = inputs[2] if ctx.has(2) else relax.const(np.array([0], "int64"))
    most = inputs[3] if ctx.has(3) else relax.const(np.array([0], "float32"))
    return R.image.non_max_suppression(inputs[0], inputs[1], limit, most, inputs[4], attrs.bool("center_point_box", False))


@onnx_op("DeformConv")
def deform_conv(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution whose taps lie where offsets move them, with a bias and a factor for each tap."""
    if ctx.rank(0) != 4:
        ctx.fail(f"data of {ctx.rank(0)} axes; there is a kernel for images")
    own = windows(ctx, attrs, taps(ctx))
    made = R.nn.deform_conv2d(
        inputs[0],
        inputs[2],
        inputs[1],
        inputs[4],
        own.strides,
        own.pads,
        own.dilations,
        attrs.int("group", 1),
        attrs.int("offset_group", 1),
    )
    return biased(made, inputs[3], 2)
