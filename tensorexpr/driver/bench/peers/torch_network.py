"""An ONNX model as a module of PyTorch, node by node, so that eager PyTorch and torch.compile run the network that the others run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .base import Unsupported

# What an operator does: torch, its inputs (None where one is left out), its attributes.
_Work = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


def _pads(attrs: Mapping[str, Any]) -> list[int]:
    """The padding of a window on each axis.

    Raises:
        Unsupported: for one that is wider on one side than on the other.
    """
    pads = list(attrs.get("pads", (0, 0, 0, 0)))
    half = len(pads) // 2
    if pads[:half] != pads[half:] or attrs.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise Unsupported(f"windows padded by {pads}, {attrs.get('auto_pad')}")
    return pads[:half]


def _conv(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    bias = x[2] if len(x) > 2 else None
    strides, dilation = list(attrs.get("strides", (1, 1))), list(attrs.get("dilations", (1, 1)))
    return torch.nn.functional.conv2d(x[0], x[1], bias, strides, _pads(attrs), dilation, attrs.get("group", 1))


def _max_pool(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    is_ceil = bool(attrs.get("ceil_mode", 0))
    return torch.nn.functional.max_pool2d(x[0], list(attrs["kernel_shape"]), list(attrs["strides"]), _pads(attrs), ceil_mode=is_ceil)


def _average_pool(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    strides = list(attrs.get("strides", (1, 1)))
    return torch.nn.functional.avg_pool2d(x[0], list(attrs["kernel_shape"]), strides, _pads(attrs), count_include_pad=False)


def _batch_norm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return torch.nn.functional.batch_norm(x[0], x[3], x[4], x[1], x[2], False, 0.0, attrs.get("epsilon", 1e-5))


def _softmax(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if "axis" in attrs or x[0].dim() == 2:
        return torch.softmax(x[0], attrs.get("axis", 1))
    return torch.softmax(x[0].flatten(1), 1).reshape(x[0].shape)  # up to opset 12, all axes from the first on as one


def _gemm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return torch.nn.functional.linear(x[0], x[1] if attrs.get("transB", 0) else x[1].t(), x[2] if len(x) > 2 else None)


def _layer_norm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return torch.nn.functional.layer_norm(x[0], x[1].shape, x[1], x[2] if len(x) > 2 else None, attrs.get("epsilon", 1e-5))


def _unsqueeze(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    value = x[0]
    for axis in attrs["axes"]:
        value = value.unsqueeze(axis)
    return value


_WORK: Mapping[str, _Work] = {
    "Add": lambda torch, x, a: x[0] + x[1],
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Clip": lambda torch, x, a: torch.clamp(x[0], float(x[1]), float(x[2])),
    "Concat": lambda torch, x, a: torch.cat(list(x), a["axis"]),
    "Conv": _conv,
    "Div": lambda torch, x, a: x[0] / x[1],
    "Dropout": lambda torch, x, a: x[0],
    "Erf": lambda torch, x, a: torch.erf(x[0]),
    "Flatten": lambda torch, x, a: x[0].flatten(1),
    "Gather": lambda torch, x, a: torch.nn.functional.embedding(x[1], x[0]),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda torch, x, a: x[0].mean((2, 3), keepdim=True),
    "LayerNormalization": _layer_norm,
    "MatMul": lambda torch, x, a: torch.matmul(x[0], x[1]),
    "MaxPool": _max_pool,
    "Mul": lambda torch, x, a: x[0] * x[1],
    "Relu": lambda torch, x, a: torch.relu(x[0]),
    "Reshape": lambda torch, x, a: x[0].reshape([int(one) for one in x[1]]),
    "Softmax": _softmax,
    "Sum": lambda torch, x, a: sum(x[1:], x[0]),
    "Transpose": lambda torch, x, a: x[0].permute(list(a["perm"])),
    "Unsqueeze": _unsqueeze,
}
# Inputs that are read when the module is made, so that it has no sizes or limits to look up when it runs.
_SETTLED = {"Reshape": (1,), "Clip": (1, 2)}


def torch_module(model: Any) -> Any:
    """A module whose forward takes the model's inputs in order, and returns its first output.

    Raises:
        Unsupported: for operators that it doesn't know, all of them by name.
    """
    import onnx
    import torch

    unknown = sorted({node.op_type for node in model.graph.node} - _WORK.keys())
    if unknown:
        raise Unsupported(f"no {', '.join(unknown)} in PyTorch here")
    weights = {one.name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for one in model.graph.initializer}
    inputs = [one.name for one in model.graph.input if one.name not in weights]
    steps = []
    for node in model.graph.node:
        attrs = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        settled = {place: weights[node.input[place]].tolist() for place in _SETTLED.get(node.op_type, ()) if node.input[place] in weights}
        steps.append((_WORK[node.op_type], tuple(node.input), settled, attrs, node.output[0]))

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *given: Any) -> Any:
            values = {**weights, **dict(zip(inputs, given, strict=True))}
            for work, names, settled, attrs, output in steps:
                operands = [settled[n] if n in settled else values[name] if name else None for n, name in enumerate(names)]
                values[output] = work(torch, operands, attrs)
            return values[model.graph.output[0].name]

    return Module().eval()
