"""Calls of the operators of neural networks, for `test_rows`: each has a meaning on NumPy's arrays, and a kernel that agrees with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorexpr import relax
from tensorexpr.relax import op
from tensorexpr.tir.expr import Var as Symbol

N = Symbol("n", "int64")
F = "float32"
Case = tuple[Callable[..., Any], tuple[tuple[tuple[Any, ...], str], ...]]
nn = op.nn

X = (((N, 6), F),)
PLANE, BLOCKED = (1, 4, 7, 6), (1, 2, 7, 6, 4)
FUNCTIONS = "celu elu hard_sigmoid hard_swish mish relu6 selu softplus softsign swish thresholded_relu"


def conv(rank: int, *shapes: tuple[int, ...], **attrs: Any) -> Case:
    return partial(getattr(nn, f"conv{rank}d"), **attrs), tuple((shape, F) for shape in shapes)


def transposed(rank: int, *shapes: tuple[int, ...], **attrs: Any) -> Case:
    return partial(getattr(nn, f"conv{rank}d_transpose"), **attrs), tuple((shape, F) for shape in shapes)


def pool(name: str, *shape: Any, **attrs: Any) -> Case:
    return partial(getattr(nn, name), **attrs), ((shape, F),)


def padded(mode: str, *shape: Any, **attrs: Any) -> Case:
    return partial(nn.pad, pad_width=[0, 0, 2, 1, -1, 3], pad_mode=mode, **attrs), ((shape or (2, 3, 4), F),)


CASES: dict[str, Case] = {
    **{name: (getattr(nn, name), X) for name in FUNCTIONS.split()},
    "adaptive_avg_pool1d": pool("adaptive_avg_pool1d", 2, 3, 7, output_size=3),
    "adaptive_avg_pool2d_whole": pool("adaptive_avg_pool2d", 1, 2, N, 4, output_size=1),
    "adaptive_avg_pool2d_blocks": pool("adaptive_avg_pool2d", *BLOCKED, output_size=(3, 2), layout="NCHW4c"),
    "adaptive_avg_pool3d": pool("adaptive_avg_pool3d", 1, 2, 4, 5, 6, output_size=(2, 5, 3)),
    "adaptive_max_pool1d": pool("adaptive_max_pool1d", 2, 3, 8, output_size=4),
    "adaptive_max_pool2d": pool("adaptive_max_pool2d", *PLANE, output_size=(3, 2)),
    "adaptive_max_pool3d": pool("adaptive_max_pool3d", 1, 2, 4, 5, 6, output_size=1),
    "attention": (nn.attention, (((2, 5, 4, 6), F), ((2, 7, 2, 6), F), ((2, 7, 2, 3), F))),
    "attention_with_bias": (
        lambda q, k, v, b: nn.attention(q, k, v, b, 0.5, "BottomRight", 3),
        (((1, 4, 2, 6), F), ((1, 6, 2, 6), F), ((1, 6, 2, 5), F), ((1, 1, 4, 6), F)),
    ),
    "cross_entropy_with_logits": (nn.cross_entropy_with_logits, (((N, 5), F), ((N, 5), F))),
    "nll_loss": (
        lambda p, t, w: op.expand_dims(nn.nll_loss(p, t, w, "mean", 1), 0),
        (((4, 4, 3), F), ((4, 3), "int64"), ((4,), F)),
    ),
    "nll_loss_of_each": (lambda p, t: nn.nll_loss(p, t, reduction="none"), (((4, 4), F), ((4,), "int32"))),
    "avg_pool1d": pool("avg_pool1d", 2, 3, N, pool_size=3, strides=2, padding=1),
    "avg_pool2d_whole_windows": pool("avg_pool2d", *PLANE, pool_size=3, strides=2, padding=1, ceil_mode=True, count_include_pad=True),
    "avg_pool3d": pool("avg_pool3d", 1, 2, 5, 6, 7, pool_size=2, strides=(1, 2, 3), ceil_mode=True),
    "conv1d": conv(1, (2, 4, 9), (6, 2, 3), strides=2, padding=(1, 2), groups=2),
    "conv2d_blocks": conv(2, BLOCKED, (3, 2, 3, 3, 4, 2), padding=1, data_layout="NCHW4c", kernel_layout="OIHW4i2o", out_layout="NCHW2c"),
    "conv2d_blocks_each_channel": conv(2, BLOCKED, (2, 1, 3, 3, 1, 4), groups=8, data_layout="NCHW4c", kernel_layout="OIHW1i4o"),
    "conv2d_blocks_in_groups": conv(2, BLOCKED, (3, 2, 3, 3, 2, 4), groups=2, data_layout="NCHW4c", kernel_layout="OIHW2i4o"),
    "conv2d_other_layout": conv(2, PLANE, (6, 4, 3, 2), dilation=(1, 2), out_layout="NHWC"),
    "conv3d": conv(3, (1, 5, 6, 4, 2), (2, 3, 2, 2, 5), strides=(1, 2, 1), data_layout="NDHWC", kernel_layout="DHWIO"),
    "conv1d_transpose": transposed(1, (2, 4, 5), (4, 3, 3), strides=3, padding=(1, 0), output_padding=2),
    "conv2d_transpose": transposed(2, (2, 4, 5, 6), (4, 3, 3, 2), strides=(2, 3), padding=(1, 0), dilation=(1, 2), groups=2),
    "conv2d_transpose_nhwc": transposed(2, (1, 3, 4, 2), (3, 2, 2, 5), strides=2, data_layout="NHWC", kernel_layout="HWIO"),
    "conv3d_transpose": transposed(3, (1, 2, 3, 4, 2), (2, 3, 2, 2, 2), strides=2),
    "group_norm": (
        lambda x, g, b: nn.group_norm(x, g, b, 2, 1, [2, 3], center=False),
        ((PLANE, F), ((4,), F), ((4,), F)),
    ),
    "instance_norm": (lambda x, g, b: nn.instance_norm(x, g, b, -1, [1], scale=False), (((N, 5, 4), F), ((4,), F), ((4,), F))),
    "layer_norm_of_planes": (lambda x, g, b: nn.layer_norm(x, g, b, [-2, -1]), (((N, 3, 4), F), ((3, 4), F), ((3, 4), F))),
    "lp_pool1d": pool("lp_pool1d", 2, 3, 8, pool_size=3, strides=2, p=3),
    "lp_pool2d": pool("lp_pool2d", *PLANE, pool_size=2, padding=1),
    "lp_pool3d": pool("lp_pool3d", 1, 2, 4, 3, 5, pool_size=2, p=1),
    "lrn": (lambda x: nn.lrn(x, 4, 1, 0.5), ((PLANE, F),)),
    "gru_steps": (
        lambda x, w, h, b, n: nn.gru_steps(x, w, h, b, n, clip=0.5, reverse=True)[0],
        (((4, 2, 60), F), ((20, 60), F), ((2, 20), F), ((20,), F), ((2,), "int32")),
    ),
    "gru_steps_of_products": (
        lambda x, w, h, b: nn.gru_steps(
            x, w, h, b, activations=["HardSigmoid", "LeakyRelu"], alphas=[0.2, 0.1], betas=[0.5, 0.0], linear_before_reset=True
        )[1],
        (((N, 2, 9), F), ((3, 9), F), ((2, 3), F), ((3,), F)),
    ),
    "lstm": (
        lambda x, w, r, h, c: nn.lstm(x, w, r, None, h, c)[0],
        (((N, 2, 5), F), ((72, 5), F), ((72, 18), F), ((2, 18), F), ((2, 18), F)),
    ),
    "lstm_steps": (
        lambda x, w, h, c, p: nn.lstm_steps(x, w, h, c, p, input_forget=True, reverse=True)[2],
        (((3, 2, 12), F), ((3, 12), F), ((2, 3), F), ((2, 3), F), ((9,), F)),
    ),
    "dequantize": (lambda x, s, z: op.dequantize(x, s, z, 0), (((4, 3), "int8"), ((4,), F), ((4,), "int8"))),
    "dequantize_one_scale": (op.dequantize, (((N, 3), "uint8"), ((1,), F), ((1,), "uint8"))),
    "quantize": (lambda x, s, z: op.quantize(x * 20.0 - 9.0, s, z), (((2, 3, N), F), ((N,), F), ((N,), "int8"))),
    "quantize_blocks": (
        lambda x, s, z: op.quantize(x * 20.0, s, z, 1, "uint8"),
        (((2, 6, 3), F), ((2, 2, 3), F), ((2, 2, 3), "uint8")),
    ),
    "requantize": (lambda x, s, z: op.requantize(x, s / 3.0, z, 1, "uint8"), (((2, 4, N), "int32"), ((4,), F), ((4,), "uint8"))),
    "lstm_steps_of_bytes": (
        lambda x, w, s, h, c: nn.lstm_steps_of_bytes(
            x,
            w,
            s * 0.003,
            op.full((2, 80), relax.const(3, "int32"), "int32"),
            op.sum(op.astype(w, "int32") - relax.const(3, "int32"), 1),
            h,
            c,
        )[0],
        (((2, 1, 160), F), ((2, 20, 80), "int8"), ((2, 80), F), ((2, 1, 20), F), ((2, 1, 20), F)),
    ),
    "rnn_steps": (
        lambda x, w, h, n: nn.rnn_steps(x, w, h, n, ["Affine"], [0.5], [0.1])[0],
        (((4, 2, 5), F), ((5, 5), F), ((2, 5), F), ((2,), "int32")),
    ),
    "max_pool1d": pool("max_pool1d", 2, 3, 8, pool_size=3, strides=3, ceil_mode=True),
    "max_pool2d_blocks": pool("max_pool2d", *BLOCKED, pool_size=3, strides=2, padding=1, layout="NCHW4c"),
    "max_pool_with_places": (lambda x: nn.max_pool_with_places(x, 3, 2, 1)[1], (((2, 2, 5, 6), F),)),
    "max_pool_with_places_by_columns": (lambda x: nn.max_pool_with_places(x, 2, 2, ceil_mode=True, storage_order=True)[1], ((PLANE, F),)),
    "max_pool2d_backward": (
        partial(op.grad.max_pool2d_backward, pool_size=3, strides=2, padding=1),
        (((1, 2, 3, 4), F), ((1, 2, 5, 7), F)),
    ),
    "avg_pool2d_backward": (
        partial(op.grad.avg_pool2d_backward, pool_size=(2, 3), strides=(2, 1), padding=(1, 0, 0, 2), ceil_mode=True, layout="NHWC"),
        (((1, 3, 6, 4), F), ((1, 4, 6, 4), F)),
    ),
    "avg_pool2d_backward_of_all": (
        partial(op.grad.avg_pool2d_backward, pool_size=2, padding=1, count_include_pad=True),
        (((1, 2, 6, 5), F), ((1, 2, 5, 4), F)),
    ),
    "grad_marks": (lambda x: op.grad.no_grad(op.grad.end_checkpoint(op.grad.start_checkpoint(x * x))), (((2, 3), F),)),
    "optimization_barrier": (lambda x: x + op.grad.optimization_barrier(x), (((2, 3), F),)),
    "max_pool3d": pool("max_pool3d", 1, 2, 5, 6, 7, pool_size=2, dilation=(1, 2, 3)),
    "pad": padded("constant", pad_value=2.5),
    "pad_circular": padded("circular"),
    "pad_edge": padded("edge", 2, N, 3),
    "pad_reflect": padded("reflect"),
    "pad_reflect_again_and_again": padded("reflect", 1, 2, 2),
    "image_grid_sample": (lambda x, g: op.image.grid_sample(x, g * 2.0 - 1.0, "bicubic"), ((PLANE, F), ((1, 2, 3, 3), F))),
    "image_grid_sample_of_volumes": (
        lambda x, g: op.image.grid_sample(x, g * 3.0 - 1.5, "nearest", "NCDHW", "reflection", False),
        (((2, 1, 3, 4, 2), F), ((2, 3, 2, 2, 2), F)),
    ),
    "image_non_max_suppression": (
        lambda b, s: op.image.non_max_suppression(b, s, op.ones((1,), "int64") * 2, op.full((1,), 0.25, F)),
        (((2, 6, 4), F), ((2, 3, 6), F)),
    ),
    "image_roi_align": (
        lambda x, r: op.image.roi_align(x, op.concat([op.zeros((3, 1), F), r * 8.0], 1), (2, 3), 0.5, is_aligned=True),
        (((1, 2, 5, 6), F), ((3, 4), F)),
    ),
    "image_roi_align_corners": (
        lambda x, r: op.image.roi_align(x, op.concat([op.zeros((3, 1), F), r * 8.0], 1), 2, 0.9, "max_corner", 2),
        (((1, 2, 5, 6), F), ((3, 4), F)),
    ),
    "image_roi_pool": (
        lambda x, r: op.image.roi_pool(x, op.concat([op.zeros((3, 1), F), r * 6.0], 1), (2, 3), 0.75),
        (((1, 2, 5, 6), F), ((3, 4), F)),
    ),
    "conv2d_winograd": (lambda x, w: nn.conv2d_winograd(x, w, (1, 0, 2, 1)), (((2, 7, 6, 4), F), ((4, 4, 4, 5), F))),
    "conv2d_winograd_bytes": (lambda x, w: nn.conv2d_winograd(x, w), (((1, 5, 8, 6), "uint8"), ((4, 4, 6, 9), "int16"))),
    "deform_conv2d": (
        lambda x, o, w, m: nn.deform_conv2d(x, o * 4.0 - 2.0, w, m, 2, (1, 0), groups=2, offset_groups=2),
        (((1, 4, 6, 5), F), ((1, 24, 3, 2), F), ((6, 2, 3, 2), F), ((1, 12, 3, 2), F)),
    ),
    "image_resize1d": (lambda x: op.image.resize1d(x, [5], method="cubic", antialias=True), (((1, 3, 12), F),)),
    "image_resize2d": (lambda x: op.image.resize2d(x, (11, 4), method="cubic", cubic_exclude=1), ((PLANE, F),)),
    "image_resize2d_crop": (
        lambda x: op.image.resize2d(
            x, 5, (0.1, -0.2, 0.9, 0.8), "NHWC", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0
        ),
        (((1, 6, 7, 2), F),),
    ),
    "image_resize3d": (
        lambda x: op.image.resize3d(
            x, (4, 6, 1), method="nearest_neighbor", scales=(2.0, 1.2, 0.4), coordinate_transformation_mode="half_pixel_symmetric"
        ),
        (((1, 2, 2, 5, 3), F),),
    ),
    "image_resize_symbolic": (lambda x: op.image.resize(x, [N * 2], [0], "nearest_neighbor", "asymmetric", "floor"), (((N, 3), "int8"),)),
    "prelu": (lambda x, a: nn.prelu(x - 0.5, a, -1), (((N, 3), F), ((3,), F))),
}
