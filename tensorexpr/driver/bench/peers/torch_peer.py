"""PyTorch: eager operators with their own dispatch, and oneDNN with packed weights and fused bias and activation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....processor import host_features
from ....target import Target
from ....workloads import Case
from .base import Array, Call, Peer, Unsupported
from .torch_network import torch_module
from .torch_operators import OPERATORS

Make = Callable[[Any, Case, Sequence[Any]], Call]


def _gemm(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    out = torch.empty((x[0].shape[0], x[1].shape[1]), dtype=x[0].dtype)
    return lambda: torch.mm(x[0], x[1], out=out)


def _gemm_low(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    a, b = x
    if a.dtype == torch.bfloat16:
        packed = torch.ops.mkldnn._reorder_linear_weight(b.t().contiguous(), a.shape[0])
        return lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], "")
    return _int8(torch, a, b)


def _int8(torch: Any, a: Any, b: Any) -> Call:
    if not hasattr(torch.ops.onednn, "qlinear_prepack"):
        raise Unsupported("this PyTorch has no packed int8 product")
    if not host_features() & {"avx512vnni", "avxvnni"}:
        raise Unsupported("without VNNI its products of bytes are summed in pairs that saturate at 16 bits")
    packed = torch.ops.onednn.qlinear_prepack(b.t().contiguous(), list(a.shape))
    scales, zeros = torch.ones(b.shape[1]), torch.zeros(b.shape[1], dtype=torch.int64)
    return lambda: torch.ops.onednn.qlinear_pointwise(a, 1.0, 0, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")


def _batch_gemm(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    other = x[1].transpose(1, 2) if case.args[-1] is True else x[1]
    out = torch.empty((x[0].shape[0], x[0].shape[1], other.shape[2]))
    return lambda: torch.bmm(x[0], other, out=out)


def _dense(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    data, weight, bias = x
    activation = {"relu": torch.relu_, "gelu": torch.nn.functional.gelu}.get(case.args[-1], lambda value: value)
    return lambda: activation(torch.nn.functional.linear(data, weight, bias))


def _scores(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return lambda: torch.matmul(x[0].permute(0, 2, 1, 3), x[1].permute(0, 2, 3, 1))


def _attention(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    scale = case.args[2] ** -0.5
    return lambda: torch.softmax(torch.bmm(x[0], x[1].transpose(1, 2)) * scale, -1)


def _channels_last(torch: Any, x: Any) -> Any:
    """[n, spatial..., c] as a view with channels first."""
    return x.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def _convolution(torch: Any, dims: int) -> Make:
    def make(torch: Any, case: Case, x: Sequence[Any]) -> Call:
        functional = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}[dims]
        rest = [*case.args[dims + 4 :], *(1, 0, 1, 1)[len(case.args) - dims - 4 :]]
        stride, padding, dilation, groups = rest[:4]
        data, weight = _channels_last(torch, x[0]), x[1].permute(dims + 1, dims, *range(dims)).contiguous()
        if dims == 2:
            weight = weight.contiguous(memory_format=torch.channels_last)
        return lambda: functional(data, weight, None, stride, padding, dilation, groups)

    return make


def _depthwise(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    stride, padding = case.args[5], case.args[6]
    data = _channels_last(torch, x[0])
    weight = x[1].permute(2, 3, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(data, weight, None, stride, padding, 1, data.shape[1])


def _depthwise_nchw(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    stride, padding = case.args[5], case.args[6]
    bias = x[2] if len(x) > 2 else None
    conv = torch.nn.functional.conv2d
    if bias is None:
        return lambda: conv(x[0], x[1], None, stride, padding, 1, x[0].shape[1])
    return lambda: conv(x[0], x[1], bias, stride, padding, 1, x[0].shape[1]).clamp_(0, 6)


def _transposed(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    data, weight = _channels_last(torch, x[0]), x[1].permute(2, 3, 0, 1).contiguous()
    return lambda: torch.nn.functional.conv_transpose2d(data, weight, None, case.args[6], case.args[7])


def _conv_layer(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    data, weight = _channels_last(torch, x[0]), x[1].permute(3, 2, 0, 1)
    bias, offset, scale = x[2], x[3], x[4]
    # outside of what is timed: scale and offset are constants of the case
    folded = (weight * scale[:, None, None, None]).contiguous(memory_format=torch.channels_last)
    shifted = bias * scale + offset
    return lambda: torch.relu_(torch.nn.functional.conv2d(data, folded, shifted, case.args[6], case.args[7]))


def _conv_bias_relu(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return lambda: torch.relu_(torch.nn.functional.conv2d(x[0], x[1], x[2], case.args[6], case.args[7]))


def _unpacked(x: Sequence[Any], case: Case) -> list[Any]:
    """The operands with weights of [co/block, kernel, kernel, ci, block] as [co, ci, kernel, kernel]."""
    data, weight, bias = x
    weight = weight.permute(0, 4, 3, 1, 2).reshape(-1, *weight.permute(0, 4, 3, 1, 2).shape[2:])
    return [data, weight[: case.args[4]].contiguous(), bias]


def _conv_bias_relu_packed(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return _conv_bias_relu(torch, case, _unpacked(x, case))


def _softmax(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    out = torch.empty_like(x[0])
    return lambda: torch.softmax(x[0], 1, out=out)


def _layer_norm(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return lambda: torch.nn.functional.layer_norm(x[0], (x[0].shape[1],), x[1], x[2])


def _elementwise(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    out = torch.empty_like(x[0])
    return lambda: torch.addcmul(x[2], x[0], x[1], out=out).relu_()


def _chain(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return lambda: torch.tanh_(torch.sigmoid(x[0]).mul_(x[1])).add_(torch.exp_(-(x[0] * x[0])))


def _reduce(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    out = torch.empty(x[0].shape[1 - case.args[2]])
    return lambda: torch.sum(x[0], case.args[2], out=out)


def _transpose(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    out = torch.empty((x[0].shape[1], x[0].shape[0]))
    return lambda: out.copy_(x[0].t())


def _norm(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    return lambda: torch.linalg.vector_norm(x[0].view(x[0].shape[0], -1), dim=1)


def _operator(torch: Any, case: Case, x: Sequence[Any]) -> Call:
    name, _, *attributes = case.args
    if name not in OPERATORS:
        raise Unsupported(f"PyTorch has no {name}")
    return OPERATORS[name](torch, x, attributes)


_TABLE: dict[str, Make] = {
    "suite.gemm": _gemm,
    "suite.gemm_low": _gemm_low,
    "suite.matvec": _gemm,
    "suite.batch_gemm": _batch_gemm,
    "suite.dense": _dense,
    "suite.transpose_batch_gemm": _scores,
    "suite.attention_scores": _attention,
    "suite.conv1d": _convolution(None, 1),
    "suite.conv2d": _convolution(None, 2),
    "suite.conv3d": _convolution(None, 3),
    "suite.depthwise": _depthwise,
    "suite.depthwise_nchw": _depthwise_nchw,
    "suite.conv2d_transpose": _transposed,
    "suite.conv_layer": _conv_layer,
    "suite.conv2d_bias_relu": _conv_bias_relu,
    "suite.conv2d_bias_relu_packed": _conv_bias_relu_packed,
    "suite.softmax": _softmax,
    "suite.layer_norm": _layer_norm,
    "suite.elementwise": _elementwise,
    "suite.elementwise_chain": _chain,
    "suite.reduce": _reduce,
    "suite.transpose": _transpose,
    "suite.norm": _norm,
    "suite.topi": _operator,
}
_FUSED = ("suite.conv2d_bias_relu", "suite.conv2d_bias_relu_packed")
# Workloads whose definition has channels last; PyTorch's result comes as a view with channels first.
_LAST = {"suite.conv1d", "suite.conv2d", "suite.conv3d", "suite.depthwise", "suite.conv2d_transpose", "suite.conv_layer"}


class Torch(Peer):
    """PyTorch in eager mode, results written in place where it can."""

    name = "torch"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import torch

        self._torch: Any = torch
        torch.set_num_threads(self.threads)
        torch.set_grad_enabled(False)
        self.version = str(torch.__version__)

    def tensors(self, arrays: Sequence[Array]) -> list[Any]:
        """The arrays as tensors on the same memory (bfloat16 by its bits)."""
        torch = self._torch
        return [
            torch.from_numpy(a.view("int16")).view(torch.bfloat16) if a.dtype.name == "bfloat16" else torch.from_numpy(a) for a in arrays
        ]

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        make = _TABLE.get(case.workload)
        if make is None:
            raise Unsupported("PyTorch has no such operator")
        call = make(self._torch, case, self.tensors(arrays))
        if case.workload not in _LAST:
            return call
        return lambda: call().movedim(1, -1)

    def network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """See `Peer.network`."""
        given = [self._torch.from_numpy(np.ascontiguousarray(one)) for one in feeds.values()]
        module = self._ready(torch_module(model))

        def call() -> Array:
            with self._torch.inference_mode():
                return module(*given).numpy()

        return call

    def _ready(self, module: Any) -> Any:
        """A module as it runs."""
        return module

    def result(self, value: Any) -> Array:
        """The tensor as an array."""
        return value.float().numpy() if value.dtype == self._torch.bfloat16 else value.numpy()


class TorchCompile(Torch):
    """PyTorch's compiler, which writes fused loops in C++ and calls its libraries for convolutions and products. Networks only."""

    name = "torch-compile"

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        raise Unsupported("measured for networks")

    def _ready(self, module: Any) -> Any:
        self._torch._dynamo.reset()
        return self._torch.compile(module)


class OneDNN(Torch):
    """oneDNN through PyTorch: weights packed once, bias and relu fused. Convolutions only."""

    name = "onednn"

    def network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """See `Peer.network`."""
        raise Unsupported

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        torch = self._torch
        if case.workload not in _FUSED or not torch.backends.mkldnn.is_available():
            raise Unsupported("measured for convolutions with bias and relu")
        operands = self.tensors(arrays)
        data, weight, bias = operands if case.workload == _FUSED[0] else _unpacked(operands, case)
        stride, padding = [case.args[6]] * 2, [case.args[7]] * 2
        packed = torch._C._nn.mkldnn_reorder_conv2d_weight(weight.to_mkldnn(), padding, stride, [1, 1], 1, list(data.shape))
        fused = torch.ops.mkldnn._convolution_pointwise
        return lambda: fused(data, packed, bias, padding, stride, [1, 1], 1, "relu", [], "")
