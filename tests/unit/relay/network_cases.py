"""As `operator_cases`, of the operators of networks, of pictures and of quantized tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .operator_cases import case, plain, windows

plain("nn.dense", "f:2x3 f:4x3", lambda x, w: x @ w.T)
plain("nn.matmul", "f:3x2 f:4x3", lambda x, y: (y @ x).T, transpose_a=True, transpose_b=True)
plain("nn.batch_matmul", "f:2x3x4 f:2x5x4", lambda x, y: x @ y.transpose(0, 2, 1))
plain("nn.contrib_dense_pack", "f:2x3 f:2x3x2", lambda x, w: x @ w.transpose(0, 2, 1).reshape(4, 3).T, "NC2n")
plain("nn.conv1d", "f:1x2x6 f:3x2x3", None, padding=1)
plain("nn.conv2d", "f:1x2x5x5 f:3x2x3x3", lambda x, w: np.einsum("nchwij,ocij->nohw", windows(x, 3, 2), w), strides=(2, 2))
plain("nn.conv2d", "f:1x4x4x2 f:3x3x2x1", None, groups=2, data_layout="NHWC", kernel_layout="HWOI", channels=2, kernel_size=3, padding=1)
plain("nn.conv3d", "f:1x2x3x4x4 f:3x2x2x2x2")
plain("nn.conv1d_transpose", "f:1x2x4 f:2x3x3", None, strides=(2,), channels=3, kernel_size=(3,))
plain("nn.conv2d_transpose", "f:1x2x3x3 f:2x3x2x2", None, strides=(2, 2), channels=3, kernel_size=(2, 2))
plain("nn.conv3d_transpose", "f:1x2x2x2x2 f:2x3x2x2x2", None, channels=3, kernel_size=(2, 2, 2))
plain("nn.max_pool1d", "f:1x2x6", lambda x: x.reshape(1, 2, 3, 2).max(-1), (2,), (2,))
plain("nn.max_pool2d", "f:1x2x5x5", lambda x: windows(x, 3, 2).max((4, 5)), (3, 3), (2, 2))
plain("nn.max_pool3d", "f:1x2x2x4x4", lambda x: x.reshape(1, 2, 1, 2, 2, 2, 2, 2).max((3, 5, 7)), (2, 2, 2), (2, 2, 2))
plain("nn.avg_pool1d", "f:1x2x6", lambda x: x.reshape(1, 2, 3, 2).mean(-1), (2,), (2,))
plain(
    "nn.avg_pool2d",
    "f:1x2x5x5",
    lambda x: windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), 3, 2).mean((4, 5)),
    (3, 3),
    (2, 2),
    padding=(1, 1),
    count_include_pad=True,
)
plain("nn.avg_pool3d", "f:1x2x2x4x4", lambda x: x.reshape(1, 2, 1, 2, 2, 2, 2, 2).mean((3, 5, 7)), (2, 2, 2), (2, 2, 2))
for rank, extents in ((1, "5"), (2, "3x5"), (3, "2x3x5")):
    axes = tuple(range(2, rank + 2))
    plain(f"nn.global_max_pool{rank}d", f"f:1x2x{extents}", lambda x, axes=axes: x.max(axes, keepdims=True))
    plain(f"nn.global_avg_pool{rank}d", f"f:1x2x{extents}", lambda x, axes=axes: x.mean(axes, keepdims=True))
    plain(f"nn.adaptive_max_pool{rank}d", f"f:1x2x{extents}", lambda x, axes=axes: x.max(axes, keepdims=True), (1,) * rank)
    plain(f"nn.adaptive_avg_pool{rank}d", f"f:1x2x{extents}", lambda x, axes=axes: x.mean(axes, keepdims=True), (1,) * rank)
plain("nn.adaptive_avg_pool2d", "f:1x2x4x6", lambda x: x.reshape(1, 2, 2, 2, 2, 3).mean((3, 5)), (2, 2))
plain("nn.avg_pool2d_grad", "f:1x1x2x2 f:1x1x4x4", lambda g, x: np.repeat(np.repeat(g, 2, 2), 2, 3) / 4, (2, 2), (2, 2))
plain(
    "nn.max_pool2d_grad",
    "f:1x1x2x2 f:1x1x4x4",
    lambda g, x: np.where(
        x == np.repeat(np.repeat(x.reshape(1, 1, 2, 2, 2, 2).max((3, 5)), 2, 2), 2, 3), np.repeat(np.repeat(g, 2, 2), 2, 3), 0
    ),
    (2, 2),
    (2, 2),
)
plain("nn.bias_add", "f:2x3x4 f:3", lambda x, b: x + b[:, None])
case(
    "nn.batch_norm",
    "f:2x3x2 f:3 f:3 f:3 f:3",
    lambda r, *x: r.nn.batch_norm(*x)[0],
    lambda x, g, b, m, v: (x - m[:, None]) / np.sqrt(v[:, None] + 1e-5) * g[:, None] + b[:, None],
)
plain("nn.layer_norm", "f:2x4 f:4 f:4", lambda x, g, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b)
plain(
    "nn.group_norm",
    "f:1x4x3 f:4 f:4",
    lambda x, g, b: (
        ((y := x.reshape(1, 2, 6)) - y.mean(-1, keepdims=True)).__truediv__(np.sqrt(y.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
        * g[:, None]
        + b[:, None]
    ),
    2,
)
plain(
    "nn.instance_norm",
    "f:2x3x4 f:3 f:3",
    lambda x, g, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g[:, None] + b[:, None],
)
plain("nn.l2_normalize", "f:2x3", lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), 1e-12, [1])
plain(
    "nn.lrn",
    "f:1x3x2x2",
    lambda x: x / (2 + 1e-2 / 3 * np.stack([(x[:, max(0, c - 1) : c + 2] ** 2).sum(1) for c in range(3)], 1)) ** 0.75,
    3,
    1,
    2.0,
    1e-2,
    0.75,
)
plain("nn.softmax", "f:2x3", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True))
plain("nn.fast_softmax", "f:2x3", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True))
plain("nn.log_softmax", "f:2x3", lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)))
plain("nn.dropout", "f:2x3", np.copy)
plain("nn.pad", "f:2x3", lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=1.5), ((0, 1), (2, 0)), 1.5)
plain("nn.mirror_pad", "f:3x3", lambda x: np.pad(x, ((1, 0), (0, 2)), "reflect"), ((1, 0), (0, 2)), "REFLECT")
plain("nn.space_to_depth", "f:1x1x2x4", lambda x: x.reshape(1, 1, 1, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 1, 2), 2)
plain("nn.depth_to_space", "f:1x4x1x2", lambda x: x.reshape(1, 2, 2, 1, 1, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 2, 4), 2)
plain("nn.space_to_batch_nd", "f:1x2x2x1", lambda x: x.transpose(1, 2, 0, 3).reshape(4, 1, 1, 1), (2, 2), ((0, 0), (0, 0)))
plain("nn.batch_to_space_nd", "f:4x1x1x1", lambda x: x.reshape(1, 2, 2, 1), (2, 2), ((0, 0), (0, 0)))
plain("nn.dilate", "f:2x2", lambda x: np.array([[x[0, 0], 0, x[0, 1]], [x[1, 0], 0, x[1, 1]]]), (1, 2))
plain("nn.upsampling", "f:1x1x2x2", lambda x: np.repeat(np.repeat(x, 2, 2), 2, 3), 2, 2)
plain(
    "nn.upsampling3d",
    "f:1x1x1x2x2",
    lambda x: np.repeat(np.repeat(np.repeat(x, 2, 2), 2, 3), 2, 4),
    2,
    2,
    2,
    coordinate_transformation_mode="asymmetric",
)
plain("nn.fifo_buffer", "f:2x1 f:2x3", lambda x, b: np.concatenate((b[:, 1:], x), 1), axis=1)
plain("nn.cross_entropy", "f:2x3 f:2x3", lambda p, t: -(t * np.log(p)).sum() / 2)
plain("nn.cross_entropy_with_logits", "f:2x3 f:2x3", lambda p, t: -(t * p).sum() / 2)
plain("nn.nll_loss", "f:2x3 [0,2] f:3", lambda p, t, w: -(p[0, 0] * w[0] + p[1, 2] * w[2]) / (w[0] + w[2]))
plain("nn.deformable_conv2d", "f:1x2x4x4 f:1x18x2x2 f:3x2x3x3", None, channels=3, kernel_size=(3, 3))
plain("nn.correlation", "f:1x2x4x4 f:1x2x4x4", None, 1, 1, 1, 1, 1, True, "NCHW")
plain("nn.bitserial_dense", "i<2:2x32 i<2:3x32", lambda x, w: x @ (2 * w - 1).T, pack_dtype="uint8", out_dtype="int16")
plain("nn.bitserial_conv2d", "i<2:1x8x3x3 i<2:8x8x3x3", None, channels=8, kernel_size=(3, 3), pack_dtype="uint8")
plain("nn.bitpack", "i<2:1x8", lambda x: np.array([[[int("".join(map(str, x[0])), 2)]]]), 1, 1, 1, "uint8")
BLOCKS = {"channels": 4, "kernel_size": (1, 1), "data_layout": "NCHW2c", "out_layout": "NCHW2c"}
case(
    "nn.contrib_conv2d_NCHWc",
    "f:1x2x3x3x2 f:2x2x1x1x2x2",
    lambda r, x, w: r.nn.contrib_conv2d_nchwc(x, w, kernel_layout="OIHW2i2o", **BLOCKS),
    lambda x, w: np.einsum("nchwi,ocyxik->nohwk", x, w),
)
case(
    "nn.contrib_depthwise_conv2d_NCHWc",
    "f:1x2x3x3x2 f:2x1x1x1x1x2",
    lambda r, x, w: r.nn.contrib_depthwise_conv2d_nchwc(x, w, groups=4, kernel_layout="OIHW1i2o", **BLOCKS),
    lambda x, w: np.einsum("nchwk,ck->nchwk", x, w[:, 0, 0, 0, 0]),
)
case(
    "nn.sparse_dense",
    "f:2x3 f:2 [0,2] [0,1,2]",
    lambda r, x, d, i, p: r.nn.sparse_dense(x, r.Tuple((d, i, p))),
    lambda x, d, i, p: np.stack([x[:, 0] * d[0], x[:, 2] * d[1]], 1),
)
case("nn.sparse_transpose", "f:2 [0,1] [0,1,2]", lambda r, d, i, p: r.nn.sparse_transpose(r.Tuple((d, i, p)))[0], lambda d, i, p: d)
case(
    "nn.sparse_add",
    "f:2x3 f:2 [0,2] [0,1,2]",
    lambda r, x, d, i, p: r.nn.sparse_add(x, r.Tuple((d, i, p))),
    lambda x, d, i, p: x + np.array([[d[0], 0, 0], [0, 0, d[1]]]),
)

plain(
    "image.resize1d",
    "f:1x1x3",
    lambda x: x[..., [0, 0, 1, 1, 2, 2]],
    (6,),
    method="nearest_neighbor",
    coordinate_transformation_mode="asymmetric",
    rounding_method="floor",
)
plain("image.resize2d", "f:1x1x2x2", None, (3, 3))
plain("image.resize3d", "f:1x1x2x2x2", None, (3, 3, 3))
case(
    "image.crop_and_resize",
    "f:1x4x4x1 [0]",
    lambda r, x, i: r.image.crop_and_resize(x, r.const(np.array([[0, 0, 1, 1]], "float32")), i, (2, 2), "NHWC"),
    lambda x, i: x[:, ::3, ::3],
)
plain("image.dilation2d", "f:1x1x3x3 f:1x2x2", lambda x, w: (windows(x, 2, 1) + w[:, None, None]).max((4, 5)))
plain("image.affine_grid", "f:1x2x3", None, (2, 2))
plain("image.grid_sample", "f:1x1x3x3 f:1x2x2x2")
case("vision.roi_align", "f:1x1x4x4", lambda r, x: r.vision.roi_align(x, r.const(np.array([[0, 0, 0, 3, 3]], "float32")), (2, 2), 1.0, 2))
case(
    "vision.roi_pool",
    "f:1x1x4x4",
    lambda r, x: r.vision.roi_pool(x, r.const(np.array([[0, 0, 0, 3, 3]], "float32")), (2, 2), 1.0),
    lambda x: x.reshape(1, 1, 2, 2, 2, 2).max((3, 5)),
)
plain("vision.yolo_reorg", "f:1x4x2x2", None, 2)
case("vision.get_valid_counts", "f:1x3x6", lambda r, x: r.vision.get_valid_counts(x, 0.0)[0], lambda x: np.array([3]))

# Of one class: the second box lies in the first one, the third one is apart.
BOXES = np.array([[[0, 0.9, 0, 0, 4, 4], [0, 0.8, 0, 0, 4, 3], [0, 0.7, 6, 6, 8, 8]]], "float32")
case(
    "vision.non_max_suppression",
    "[3] [[0,1,2]]",
    lambda r, n, i: r.vision.non_max_suppression(r.const(BOXES), n, i, id_index=0, return_indices=True)[0],
    lambda n, i: np.array([[0, 2, -1]]),
)

U8 = "u8:2x3"


def scales(r: Any, *values: float) -> list[Any]:
    """Scales and zero points, in turns."""
    return [r.const(float(v)) if n % 2 == 0 else r.const(int(v)) for n, v in enumerate(values)]


case(
    "qnn.quantize",
    "f:2x3",
    lambda r, x: r.qnn.op.quantize(x, *scales(r, 0.1, 3), out_dtype="uint8"),
    lambda x: np.round(x / np.float32(0.1)) + 3,
)
case("qnn.dequantize", U8, lambda r, x: r.qnn.op.dequantize(x, *scales(r, 0.1, 3)), lambda x: (x.astype("f") - 3) * np.float32(0.1))
case(
    "qnn.requantize",
    "i<999:2x3",
    lambda r, x: r.qnn.op.requantize(x, *scales(r, 0.5, 3, 4.0, 5), out_dtype="uint8"),
    lambda x: np.clip(np.floor((x - 3) / 8 + 0.5) + 5, 0, 255),
)
case(
    "qnn.dense",
    "u8:2x3 i8:4x3",
    lambda r, x, w: r.qnn.op.dense(x, w, r.const(3), r.const(0), r.const(0.1), r.const(0.2), 4),
    lambda x, w: (x.astype(int) - 3) @ w.T.astype(int),
)
case(
    "qnn.batch_matmul",
    "u8:2x2x3 i8:2x4x3",
    lambda r, x, w: r.qnn.op.batch_matmul(x, w, r.const(3), r.const(1), r.const(0.1), r.const(0.2)),
    lambda x, w: (x.astype(int) - 3) @ (w.astype(int) - 1).transpose(0, 2, 1),
)
case(
    "qnn.conv2d",
    "u8:1x2x4x4 i8:3x2x3x3",
    lambda r, x, w: r.qnn.op.conv2d(x, w, r.const(3), r.const(0), r.const(0.1), r.const(0.2), (3, 3), 3, padding=(1, 1)),
    lambda x, w: np.einsum("nchwij,ocij->nohw", windows(np.pad(x.astype(int) - 3, ((0, 0), (0, 0), (1, 1), (1, 1))), 3, 1), w.astype(int)),
)
case(
    "qnn.conv2d_transpose",
    "u8:1x2x2x2 i8:2x3x1x1",
    lambda r, x, w: r.qnn.op.conv2d_transpose(
        x, w, r.const(3), r.const(0), r.const(0.1), r.const(0.2), channels=3, kernel_size=(1, 1), out_dtype="int32"
    ),
    lambda x, w: np.einsum("nchw,co->nohw", x.astype(int) - 3, w[..., 0, 0].astype(int)),
)
for name, sign in (("add", 1), ("subtract", -1)):
    case(
        f"qnn.{name}",
        "u8:2x3 u8:2x3",
        lambda r, x, y, name=name: getattr(r.qnn.op, name)(x, y, *scales(r, 1, 3, 1, 5, 2, 7)),
        lambda x, y, s=sign: np.clip(np.floor((x.astype(int) - 3) / 2 + 0.5) + s * np.floor((y.astype(int) - 5) / 2 + 0.5) + 7, 0, 255),
    )
case(
    "qnn.mul",
    "u8:2x3 u8:2x3",
    lambda r, x, y: r.qnn.op.mul(x, y, *scales(r, 0.5, 3, 0.25, 5, 2, 7)),
    lambda x, y: np.clip(np.floor((x.astype(int) - 3) * (y.astype(int) - 5) / 16 + 0.5) + 7, 0, 255),
)
WAVES: dict[str, Any] = {
    "abs": np.abs,
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
}
for name, function in WAVES.items():
    case(
        f"qnn.{name}",
        "u8:2x3",
        lambda r, x, name=name: getattr(r.qnn.op, name)(x, *scales(r, 0.0625, 128, 0.125, 5)),
        lambda x, f=function: np.clip(np.round(f((x.astype("f") - 128) / 16) * 8) + 5, 0, 255),
    )
ROOTS: dict[str, Any] = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "erf": np.vectorize(math.erf)}
for name, function in ROOTS.items():
    case(
        f"qnn.{name}",
        "u8:2x3",
        lambda r, x, name=name: getattr(r.qnn.op, name)(x, *scales(r, 0.0625, -1, 0.125, 5)),
        lambda x, f=function: np.clip(np.round(f((x.astype("f") + 1) / 16) * 8) + 5, 0, 255),
    )
case(
    "qnn.leaky_relu",
    "u8:2x3",
    lambda r, x: r.qnn.op.leaky_relu(x, 0.5, *scales(r, 0.0625, 128, 0.125, 5)),
    lambda x: np.clip(np.round(np.where(x > 128, 1, 0.5) * (x.astype("f") - 128) / 2) + 5, 0, 255),
)
case(
    "qnn.softmax",
    "u8:2x3",
    lambda r, x: r.qnn.op.softmax(x, *scales(r, 0.0625, 128, 1 / 256, 0)),
    lambda x: np.round(np.exp(x / 16) / np.exp(x / 16).sum(-1, keepdims=True) * 256).clip(0, 255),
)
case(
    "qnn.avg_pool2d",
    "u8:1x1x4x4",
    lambda r, x: r.qnn.op.avg_pool2d(x, *scales(r, 1, 0, 1, 0), pool_size=(2, 2), strides=(2, 2), padding=(0, 0), dilation=(1, 1)),
    lambda x: np.round(x.reshape(1, 1, 2, 2, 2, 2).astype("f").mean((3, 5))),
)
case(
    "qnn.concatenate",
    "u8:2x3 u8:2x3",
    lambda r, x, y: r.qnn.op.concatenate(
        r.Tuple((x, y)), r.Tuple((r.const(1.0), r.const(2.0))), r.Tuple((r.const(3), r.const(5))), r.const(2.0), r.const(7), 1
    ),
    lambda x, y: np.concatenate((np.floor((x.astype(int) - 3) / 2 + 0.5) + 7, np.clip(y.astype(int) + 2, 0, 255)), 1),
)
