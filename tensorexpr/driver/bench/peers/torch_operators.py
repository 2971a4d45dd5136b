"""PyTorch's eager operators of the suite topi: a row for each operator, which gets PyTorch, the inputs and the case's attributes.

A row that ends in `_out` writes into a tensor that was allocated once, where PyTorch's operator takes one: memory that the system has to
clear first would be a part of the operator's time otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .base import Call

Make = Callable[[Any, Sequence[Any], Sequence[Any]], Call]


def _out(make: Callable[[Any, Sequence[Any], Sequence[Any]], Callable[..., Any]]) -> Make:
    """Calls of a function with `out`, which is what its first call made."""

    def made(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
        function = make(torch, x, a)
        out = function()
        return lambda: function(out=out)

    return made


def _unary(name: str) -> Make:
    return _out(lambda torch, x, a: lambda **kw: getattr(torch, name)(x[0], **kw))


def _binary(name: str) -> Make:
    return _out(lambda torch, x, a: lambda **kw: getattr(torch, name)(x[0], x[1], **kw))


def _functional(call: Callable[[Any, Sequence[Any], Sequence[Any]], Any]) -> Make:
    """A call of `torch.nn.functional`, which is the first argument."""
    return lambda torch, x, a: lambda: call(torch.nn.functional, x, a)


def _cast(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    out = torch.empty(x[0].shape, dtype=getattr(torch, a[0]))
    return lambda: out.copy_(x[0])


def _transpose(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    view = x[0].permute(a[0])
    out = torch.empty(view.shape)
    return lambda: out.copy_(view)


def _strided_slice(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    view = x[0][tuple(slice(*place) for place in zip(*a, strict=True))]
    out = torch.empty(view.shape)
    return lambda: out.copy_(view)


def _conv_last(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    data, weight = x[0].permute(0, 3, 1, 2), x[1].permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(data, weight, None, *a).permute(0, 2, 3, 1)


def _csr(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    matrix = torch.sparse_csr_tensor(x[2], x[1], x[0], (x[2].shape[0] - 1, x[3].shape[0]), check_invariants=False)
    return lambda: matrix @ x[3]


def _lstm(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    module = torch.nn.LSTM(x[0].shape[2], x[2].shape[1])
    for name, value in zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), x[1:], strict=True):
        getattr(module, name).copy_(value)
    return lambda: module(x[0])[0]


def _grid_sample(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    grid = x[1].permute(0, 2, 3, 1).contiguous()
    return lambda: torch.nn.functional.grid_sample(x[0], grid, "bilinear", "zeros", True)


def _resize(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    kind = {"linear": "bilinear", "nearest_neighbor": "nearest", "cubic": "bicubic"}[a[1]]
    align = {} if kind == "nearest" else {"align_corners": False}
    return lambda: torch.nn.functional.interpolate(x[0], a[0], mode=kind, **align)


def _scatter_add(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    return lambda: x[0].scatter_add(a[0], x[1], x[2])


def _nll(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    targets = x[1].long()
    return lambda: torch.nn.functional.nll_loss(x[0], targets, x[2], reduction=a[0])


def _one_hot(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    at = x[0].long()
    return lambda: torch.nn.functional.one_hot(at, a[0])


def _dft(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    signal = torch.complex(x[0], x[1])
    return lambda: torch.fft.fft(signal).real


def _stft(torch: Any, x: Sequence[Any], a: Sequence[Any]) -> Call:
    return lambda: torch.view_as_real(torch.stft(x[0], a[0], a[1], a[0], x[1], center=False, return_complex=True))


_UNARY = "exp log tanh sigmoid erf rsqrt sin"
_BINARY = {"power": "pow", "multiply": "mul", "bias": "add", "greater": "gt", "bitwise_and": "bitwise_and", "matmul": "mm"}

OPERATORS: dict[str, Make] = {
    **{name: _unary(name) for name in _UNARY.split()},
    **{name: _binary(other) for name, other in _BINARY.items()},
    "clip": _out(lambda torch, x, a: lambda **kw: torch.clamp(x[0], a[0], a[1], **kw)),
    "cast": _cast,
    "where": _out(lambda torch, x, a: lambda **kw: torch.where(x[0], x[1], x[2], **kw)),
    "floor_divide": _binary("floor_divide"),
    "nn.leaky_relu": _out(lambda torch, x, a: lambda **kw: torch._C._nn.leaky_relu(x[0], a[0], **kw)),
    "nn.prelu": _functional(lambda f, x, a: f.prelu(x[0], x[1])),
    "nn.gelu": _out(lambda torch, x, a: lambda **kw: torch._C._nn.gelu(x[0], **kw)),
    "nn.silu": _out(lambda torch, x, a: lambda **kw: torch._C._nn.silu(x[0], **kw)),
    "sum": _out(lambda torch, x, a: lambda **kw: torch.sum(x[0], a[0], **kw)),
    "max": _out(lambda torch, x, a: lambda **kw: torch.amax(x[0], a[0], **kw)),
    "argmax": _out(lambda torch, x, a: lambda **kw: torch.argmax(x[0], a[0], **kw)),
    "nn.softmax": _out(lambda torch, x, a: lambda **kw: torch.softmax(x[0], -1, **kw)),
    "nn.log_softmax": _out(lambda torch, x, a: lambda **kw: torch.log_softmax(x[0], -1, **kw)),
    "nn.batch_norm": _functional(lambda f, x, a: f.batch_norm(x[0], x[3], x[4], x[1], x[2])),
    "nn.layer_norm": _functional(lambda f, x, a: f.layer_norm(x[0], x[1].shape, x[1], x[2])),
    "nn.group_norm": _functional(lambda f, x, a: f.group_norm(x[0], a[0], x[1], x[2])),
    "nn.instance_norm": _functional(lambda f, x, a: f.instance_norm(x[0], weight=x[1], bias=x[2])),
    "nn.rms_norm": _functional(lambda f, x, a: f.rms_norm(x[0], x[1].shape, x[1], 1e-5)),
    "nn.lrn": _functional(lambda f, x, a: f.local_response_norm(x[0], a[0], a[2], a[3], a[4])),
    "nn.nll_loss": _nll,
    "transpose": _transpose,
    "concatenate": _out(lambda torch, x, a: lambda **kw: torch.cat(x, a[0], **kw)),
    "stack": _out(lambda torch, x, a: lambda **kw: torch.stack(x, a[0], **kw)),
    "strided_slice": _strided_slice,
    "flip": lambda torch, x, a: lambda: torch.flip(x[0], (a[0],)),
    "tile": lambda torch, x, a: lambda: torch.tile(x[0], a[0]),
    "repeat": lambda torch, x, a: lambda: torch.repeat_interleave(x[0], a[0], a[1]),
    "nn.pad": _functional(lambda f, x, a: f.pad(x[0], (a[0][3], a[1][3], a[0][2], a[1][2]))),
    "trilu": _out(lambda torch, x, a: lambda **kw: torch.tril(x[0], a[0], **kw)),
    "one_hot": _one_hot,
    "take": _functional(lambda f, x, a: f.embedding(x[1], x[0])),
    "gather": _out(lambda torch, x, a: lambda **kw: torch.gather(x[0], a[0], x[1], **kw)),
    "scatter_elements": _scatter_add,
    "nn.depth_to_space": _functional(lambda f, x, a: f.pixel_shuffle(x[0], a[0])),
    "nn.dense": _functional(lambda f, x, a: f.linear(x[0], x[1], x[2])),
    "nn.batch_matmul": _out(lambda torch, x, a: lambda **kw: torch.bmm(x[0], x[1].transpose(1, 2), **kw)),
    "einsum": lambda torch, x, a: lambda: torch.einsum(a[0], *x),
    "sparse.csrmm": _csr,
    "nn.conv1d_ncw": _functional(lambda f, x, a: f.conv1d(x[0], x[1], None, *a)),
    "nn.conv2d_nchw": _functional(lambda f, x, a: f.conv2d(x[0], x[1], None, *a)),
    "nn.conv2d_nhwc": _conv_last,
    "nn.group_conv2d_nchw": _functional(lambda f, x, a: f.conv2d(x[0], x[1], None, *a)),
    "nn.depthwise_conv2d_nchw": _functional(lambda f, x, a: f.conv2d(x[0], x[1], None, *a, x[0].shape[1])),
    "nn.conv3d_ncdhw": _functional(lambda f, x, a: f.conv3d(x[0], x[1], None, *a)),
    "nn.conv1d_transpose_ncw": _functional(lambda f, x, a: f.conv_transpose1d(x[0], x[1], None, *a)),
    "nn.conv2d_transpose_nchw": _functional(lambda f, x, a: f.conv_transpose2d(x[0], x[1], None, *a)),
    "nn.conv3d_transpose_ncdhw": _functional(lambda f, x, a: f.conv_transpose3d(x[0], x[1], None, *a)),
    "nn.lstm": _lstm,
    "nn.global_pool": _functional(lambda f, x, a: f.adaptive_avg_pool2d(x[0], 1)),
    "nn.adaptive_pool": _functional(lambda f, x, a: f.adaptive_avg_pool2d(x[0], a[0])),
    "nn.pool1d": _functional(lambda f, x, a: f.max_pool1d(x[0], a[0], a[1])),
    "nn.pool2d": _functional(lambda f, x, a: (f.max_pool2d if a[4] == "max" else f.avg_pool2d)(x[0], a[0], a[1], a[3][:2])),
    "nn.pool3d": _functional(lambda f, x, a: f.avg_pool3d(x[0], a[0], a[1])),
    "image.resize2d": _resize,
    "image.grid_sample": _grid_sample,
    "sort": lambda torch, x, a: lambda: torch.sort(x[0], stable=True)[0],
    "argsort": lambda torch, x, a: lambda: torch.argsort(x[0], dim=-1, stable=True),
    "topk": lambda torch, x, a: lambda: torch.topk(x[0], a[0])[0],
    "searchsorted": _out(lambda torch, x, a: lambda **kw: torch.searchsorted(x[0], x[1], **kw)),
    "unique": lambda torch, x, a: lambda: torch.unique(x[0], return_inverse=True)[1],
    "cumsum": _out(lambda torch, x, a: lambda **kw: torch.cumsum(x[0], a[0], **kw)),
    "cumprod": _out(lambda torch, x, a: lambda **kw: torch.cumprod(x[0], a[0], **kw)),
    "dft": _dft,
    "stft": _stft,
}
