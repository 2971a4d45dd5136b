"""The suite topi: operators of topi by themselves, in the shapes of networks, one or more of every family.

A case is the workload "suite.topi" with the operator's name, its inputs as (dtype, extents...) and its attributes. What the attributes of
a row mean is said by `_BUILD`, or by the operator itself, which takes its inputs and then the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import te, topi
from ..auto_scheduler.workload import register_workload
from ..errors import WorkloadError
from ..te.tensor import Tensor
from .case import Case, Drawn

Build = Callable[..., Any]

# Operators that take their arguments in another order than inputs and then attributes, or tensors in a list.
_BUILD: dict[str, Build] = {
    "bias": topi.add,
    "concatenate": lambda *a: topi.concatenate(a[:-1], a[-1]),
    "dft": lambda x, y: topi.dft(x, y, False)[0],
    "einsum": lambda *a: topi.einsum(a[-1], *a[:-1]),
    "gather": lambda x, at, axis: topi.gather(x, axis, at),
    "nn.batch_norm": lambda *a: topi.nn.batch_norm(*a)[0],
    "nn.conv1d_transpose_ncw": lambda x, w, stride, pad: topi.nn.conv1d_transpose_ncw(x, w, stride, pad, "float32", 0),
    "nn.conv2d_transpose_nchw": lambda x, w, stride, pad: topi.nn.conv2d_transpose_nchw(x, w, stride, pad, "float32", 0),
    "nn.conv3d_transpose_ncdhw": lambda x, w, stride, pad: topi.nn.conv3d_transpose_ncdhw(x, w, (stride,) * 3, pad, "float32", (0, 0, 0)),
    "nn.lstm": lambda *a: topi.nn.lstm(*a)[0],
    "image.resize2d": lambda x, size, method, mode, alpha: topi.image.resize2d(
        x, (0.0, 0.0, 0.0, 0.0), size, "NCHW", method, mode, bicubic_alpha=alpha
    ),
    "one_hot": lambda at, depth: topi.one_hot(at, 1, 0, depth, -1, "int64"),
    "sparse.csrmm": topi.sparse.csr_product,
    "stack": lambda *a: topi.stack(a[:-1], a[-1]),
    "stft": lambda x, window, size, hop, shape: topi.stft(x, size, hop, size, window, False, True, shape),
    "topk": lambda x, k: topi.topk(x, k, -1, "both", False, "int64"),
    "unique": lambda x: _first(topi.unique(x), 2),
}


def _first(made: Sequence[Tensor], number: int) -> list[Tensor]:
    """The outputs with that of a number in front: what peers are compared with."""
    return [made[number], *made[:number], *made[number + 1 :]]


def operators() -> dict[str, Build]:
    """What declares each operator that a case may name."""
    return {name: _BUILD[name] if name in _BUILD else _of_topi(name) for name in dict.fromkeys(case.args[0] for case in _ROWS)}


def _of_topi(name: str) -> Build:
    module, _, operator = name.rpartition(".")
    found: Build = getattr(getattr(topi, module) if module else topi, operator)
    return found


@register_workload("suite.topi")
def operator(name: str, inputs: Sequence[Sequence[Any]], *attributes: Any) -> list[Tensor]:
    """One operator of the suite topi on inputs (dtype, extents...).

    Raises:
        WorkloadError: for an operator that no row names.
    """
    build = operators().get(name)
    if build is None:
        raise WorkloadError(f"suite.topi has no operator {name!r}; operators: {', '.join(operators())}")
    tensors = [te.placeholder(tuple(shape), dtype, f"x{number}") for number, (dtype, *shape) in enumerate(inputs)]
    made = build(*tensors, *attributes)
    return [*tensors, *([made] if isinstance(made, Tensor) else made)]


def _f(*shape: int) -> tuple[Any, ...]:
    return ("float32", *shape)


def _i(*shape: int) -> tuple[Any, ...]:
    return ("int32", *shape)


_MILLION = _f(1 << 20)
_PLANES = _f(1, 256, 56, 56)


def _row(
    name: str, operator: str, inputs: Sequence[Any], *attributes: Any, draws: Sequence[Any] = (), constants: tuple[int, ...] = ()
) -> Case:
    """A case; `draws` are the arguments of each `Drawn`."""
    return Case(name, "suite.topi", (operator, tuple(inputs), *attributes), constants, tuple(Drawn(*draw) for draw in draws))


_ELEMENTWISE = [
    _row("exp-1M", "exp", [_MILLION]),
    _row("log-1M", "log", [_MILLION], draws=((0, 0.01, 10.0),)),
    _row("tanh-1M", "tanh", [_MILLION]),
    _row("sigmoid-1M", "sigmoid", [_MILLION]),
    _row("erf-1M", "erf", [_MILLION]),
    _row("rsqrt-1M", "rsqrt", [_MILLION], draws=((0, 0.01, 10.0),)),
    _row("sin-1M", "sin", [_MILLION]),
    _row("power-1M", "power", [_MILLION, _MILLION], draws=((0, 0.1, 4.0),)),
    _row("clip-256x56", "clip", [_PLANES], 0.0, 6.0),
    _row("cast-int32-1M", "cast", [_MILLION], "int32", draws=((0, -1000.0, 1000.0),)),
    _row("leaky_relu-256x56", "nn.leaky_relu", [_PLANES], 0.1),
    _row("prelu-256x56", "nn.prelu", [_PLANES, _f(256)]),
    _row("gelu-128x3072", "nn.gelu", [_f(128, 3072)]),
    _row("silu-256x56", "nn.silu", [_PLANES]),
    _row("bias-256x56", "bias", [_PLANES, _f(256, 1, 1)]),
    _row("multiply-rows-1024", "multiply", [_f(1024, 1024), _f(1024, 1)]),
    _row("where-1M", "where", [("bool", 1 << 20), _MILLION, _MILLION]),
    _row("greater-1M", "greater", [_MILLION, _MILLION]),
    _row("bitwise_and-1M", "bitwise_and", [_i(1 << 20), _i(1 << 20)]),
    _row("floor_divide-1M", "floor_divide", [_i(1 << 20), _i(1 << 20)], draws=((0, -100000, 100000), (1, 1, 1000))),
]
_REDUCE = [
    _row("sum-1024x1024", "sum", [_f(1024, 1024)], 1),
    _row("max-8x256x14", "max", [_f(8, 256, 14, 14)], (2, 3)),
    _row("argmax-1024x1000", "argmax", [_f(1024, 1000)], 1),
    _row("softmax-1536x128", "nn.softmax", [_f(1536, 128)]),
    _row("log_softmax-64x30522", "nn.log_softmax", [_f(64, 30522)]),
    _row("batch_norm-256x56", "nn.batch_norm", [_PLANES, _f(256), _f(256), _f(256), _f(256)], draws=((4, 0.1, 2.0),)),
    _row("layer_norm-512x768", "nn.layer_norm", [_f(512, 768), _f(768), _f(768)], (1,)),
    _row("group_norm-320x64", "nn.group_norm", [_f(1, 320, 64, 64), _f(320), _f(320)], 32, 1, (2, 3)),
    _row("instance_norm-64x128", "nn.instance_norm", [_f(1, 64, 128, 128), _f(64), _f(64)], 1, (2, 3)),
    _row("rms_norm-512x2048", "nn.rms_norm", [_f(512, 2048), _f(2048)], (1,)),
    _row("lrn-96x55", "nn.lrn", [_f(1, 96, 55, 55)], 5, 1, 0.0001, 0.75, 2.0),
    _row("nll_loss-4096x1000", "nn.nll_loss", [_f(4096, 1000), _i(4096), _f(1000)], "mean", -100, draws=((1, 0, 1000), (2, 0.1, 1.0))),
]
_TRANSFORM = [
    _row("transpose-8x64x56", "transpose", [_f(8, 64, 56, 56)], (0, 2, 3, 1)),
    _row("concatenate-3x64x56", "concatenate", [_f(1, 64, 56, 56)] * 3, 1),
    _row("stack-4x256K", "stack", [_f(1 << 18)] * 4, 0),
    _row("strided_slice-1024", "strided_slice", [_f(1024, 1024)], (0, 1), (1024, 1024), (2, 2)),
    _row("flip-64x112", "flip", [_f(1, 64, 112, 112)], 3),
    _row("tile-256x1024", "tile", [_f(256, 1024)], (4, 1)),
    _row("repeat-256x1024", "repeat", [_f(256, 1024)], 4, 0),
    _row("pad-64x112", "nn.pad", [_f(1, 64, 112, 112)], (0, 0, 1, 1), (0, 0, 1, 1)),
    _row("trilu-1024", "trilu", [_f(1024, 1024)], 0, False),
    _row("one_hot-4096x1000", "one_hot", [_i(4096)], 1000, draws=((0, 0, 1000),)),
    _row("take-embedding", "take", [_f(30522, 768), _i(1024)], 0, draws=((1, 0, 30522),)),
    _row("gather-1024x256", "gather", [_f(1024, 1024), ("int64", 1024, 256)], 1, draws=((1, 0, 1024),)),
    _row(
        "scatter-add-1024x256", "scatter_elements", [_f(1024, 1024), ("int64", 1024, 256), _f(1024, 256)], 1, "add", draws=((1, 0, 1024),)
    ),
    _row("depth_to_space-256x56", "nn.depth_to_space", [_PLANES], 2, "NCHW", "CRD"),
]
_PRODUCTS = [
    _row("dense-64x3072x768", "nn.dense", [_f(64, 768), _f(3072, 768), _f(3072)], constants=(1, 2)),
    _row("matmul-512", "matmul", [_f(512, 512), _f(512, 512)]),
    _row("batch_matmul-12x128x64", "nn.batch_matmul", [_f(12, 128, 64), _f(12, 128, 64)]),
    _row("einsum-attention", "einsum", [_f(4, 128, 12, 64), _f(4, 128, 12, 64)], "bihd,bjhd->bhij"),
    _row(
        "csrmm-1024x1024x128",
        "sparse.csrmm",
        [_f(32768), _i(32768), _i(1025), _f(1024, 128)],
        draws=((1, 0, 1024), (2, 0, 32768, True)),
    ),
    _row("conv1d-256x512", "nn.conv1d_ncw", [_f(1, 256, 512), _f(256, 256, 3)], 1, 1, 1, constants=(1,)),
    _row("conv2d-128x28", "nn.conv2d_nchw", [_f(1, 128, 28, 28), _f(128, 128, 3, 3)], 1, 1, 1, constants=(1,)),
    _row("conv2d-dilated-256x28", "nn.conv2d_nchw", [_f(1, 256, 28, 28), _f(256, 256, 3, 3)], 1, 2, 2, constants=(1,)),
    _row("conv2d-last-64x56", "nn.conv2d_nhwc", [_f(1, 56, 56, 64), _f(3, 3, 64, 64)], 1, 1, 1, constants=(1,)),
    _row("group_conv2d-128x28", "nn.group_conv2d_nchw", [_f(1, 128, 28, 28), _f(128, 4, 3, 3)], 1, 1, 1, 32, constants=(1,)),
    _row("depthwise5x5-192x28", "nn.depthwise_conv2d_nchw", [_f(1, 192, 28, 28), _f(192, 1, 5, 5)], 1, 2, 1, constants=(1,)),
    _row("conv3d-16x16x56", "nn.conv3d_ncdhw", [_f(1, 16, 16, 56, 56), _f(32, 16, 3, 3, 3)], 1, 1, 1, constants=(1,)),
    _row("conv1d_transpose-256x128", "nn.conv1d_transpose_ncw", [_f(1, 256, 128), _f(256, 128, 4)], 2, 1, constants=(1,)),
    _row("conv2d_transpose-128x16", "nn.conv2d_transpose_nchw", [_f(1, 128, 16, 16), _f(128, 64, 4, 4)], 2, 1, constants=(1,)),
    _row("conv3d_transpose-32x8x14", "nn.conv3d_transpose_ncdhw", [_f(1, 32, 8, 14, 14), _f(32, 16, 4, 4, 4)], 2, 1, constants=(1,)),
    _row(
        "lstm-32x16x256",
        "nn.lstm",
        [_f(32, 16, 256), _f(1024, 256), _f(1024, 256), _f(1024), _f(1024)],
        # Weights of a trained net: with larger ones rounding errors grow from step to step.
        draws=((1, -0.06, 0.06), (2, -0.06, 0.06)),
        constants=(1, 2, 3, 4),
    ),
]
_WINDOWS = [
    _row("max_pool-64x112", "nn.pool2d", [_f(1, 64, 112, 112)], (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"),
    _row("avg_pool-192x28", "nn.pool2d", [_f(1, 192, 28, 28)], (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "avg"),
    _row("global_pool-8x2048x7", "nn.global_pool", [_f(8, 2048, 7, 7)], "avg"),
    _row("adaptive_pool-512x13", "nn.adaptive_pool", [_f(1, 512, 13, 13)], (6, 6), "avg"),
    _row("pool1d-8x128x1024", "nn.pool1d", [_f(8, 128, 1024)], (2,), (2,), (1,), (0, 0), "max"),
    _row("pool3d-64x16x28", "nn.pool3d", [_f(1, 64, 16, 28, 28)], (2, 2, 2), (2, 2, 2), (1, 1, 1), (0, 0, 0, 0, 0, 0), "avg"),
    _row("resize-linear-64x56", "image.resize2d", [_f(1, 64, 56, 56)], (112, 112), "linear", "half_pixel", -0.5),
    _row("resize-nearest-64x56", "image.resize2d", [_f(1, 64, 56, 56)], (112, 112), "nearest_neighbor", "asymmetric", -0.5),
    _row("resize-cubic-3x224", "image.resize2d", [_f(1, 3, 224, 224)], (448, 448), "cubic", "half_pixel", -0.75),
    _row("grid_sample-64x56", "image.grid_sample", [_f(1, 64, 56, 56), _f(1, 2, 56, 56)], draws=((1, -1.1, 1.1),)),
]
_ORDERS = [
    _row("sort-1M", "sort", [_MILLION]),
    _row("sort-256x4096", "sort", [_f(256, 4096)]),
    _row("argsort-64x8192", "argsort", [_f(64, 8192)], None, -1, True, "int64"),
    _row("topk-128x30522", "topk", [_f(128, 30522)], 50),
    _row("searchsorted-64K-in-1M", "searchsorted", [_MILLION, _f(1 << 16)], draws=((0, -4.0, 4.0, True),)),
    _row("unique-64K", "unique", [_i(1 << 16)], draws=((0, 0, 1000),)),
    _row("cumsum-1024x1024", "cumsum", [_f(1024, 1024)], 1),
    _row("cumsum-columns-1024", "cumsum", [_f(1024, 1024)], 0),
    _row("cumprod-1024x1024", "cumprod", [_f(1024, 1024)], 1, draws=((0, 0.99, 1.01),)),
    _row("dft-256x64", "dft", [_f(256, 64), _f(256, 64)]),
    _row("stft-400x160", "stft", [_f(1, 48240), _f(400)], 400, 160, (1, 201, 300, 2)),
]
_ROWS = [*_ELEMENTWISE, *_REDUCE, *_TRANSFORM, *_PRODUCTS, *_WINDOWS, *_ORDERS]


def topi_cases() -> list[Case]:
    """Operators of topi by themselves, in the shapes of networks."""
    return list(_ROWS)
