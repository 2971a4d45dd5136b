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
    bias, rank = x[2] if len(x) > 2 else None, x[0].dim() - 2
    work = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}[rank]
    strides, dilation = (list(attrs.get(name, [1] * rank)) for name in ("strides", "dilations"))
    return work(x[0], x[1], bias, strides, _pads({"pads": [0] * 2 * rank, **attrs}), dilation, attrs.get("group", 1))


def _clip(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    limits = [*x[1:], None, None] if len(x) > 1 else [attrs.get("min"), attrs.get("max")]  # attributes up to opset 6
    return torch.clamp(x[0], *[None if one is None else float(one) for one in limits[:2]])


def _cast(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    import onnx

    return x[0].to(getattr(torch, str(onnx.helper.tensor_dtype_to_np_dtype(attrs["to"]))))


def _slice(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """A slice by steps forward.

    Raises:
        Unsupported: for steps backward.
    """
    starts, ends = (list(map(int, x[place] if len(x) > place else attrs[name])) for place, name in ((1, "starts"), (2, "ends")))
    axes = list(map(int, x[3] if len(x) > 3 and x[3] is not None else attrs.get("axes", range(len(starts)))))
    steps = list(map(int, x[4])) if len(x) > 4 else [1] * len(starts)
    if min(steps) < 1:
        raise Unsupported("slices backward")
    places = [slice(None)] * x[0].dim()
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places[axis] = slice(start, end, step)
    return x[0][tuple(places)]


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
    for axis in _axes(x, attrs):
        value = value.unsqueeze(axis)
    return value


def _squeeze(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    axes = _axes(x, attrs)
    return x[0].squeeze(tuple(axes)) if axes else x[0].squeeze()


def _axes(x: Sequence[Any], attrs: Mapping[str, Any]) -> list[int]:
    """Axes as an input, or as an attribute up to opset 12."""
    return [int(axis) for axis in (x[1] if len(x) > 1 else attrs.get("axes", ()))]


def _mean(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    axes = _axes(x, attrs)
    return x[0].mean(axes or list(range(x[0].dim())), keepdim=bool(attrs.get("keepdims", 1)))


_WORK: Mapping[str, _Work] = {
    "Add": lambda torch, x, a: x[0] + x[1],
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda torch, x, a: torch.cat(list(x), a["axis"]),
    "Conv": _conv,
    "Div": lambda torch, x, a: x[0] / x[1],
    "Dropout": lambda torch, x, a: x[0],
    "Erf": lambda torch, x, a: torch.erf(x[0]),
    "Flatten": lambda torch, x, a: x[0].flatten(1),
    "Gather": lambda torch, x, a: torch.nn.functional.embedding(x[1], x[0]),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda torch, x, a: x[0].mean((2, 3), keepdim=True),
    "HardSigmoid": lambda torch, x, a: torch.clamp(x[0] * a.get("alpha", 0.2) + a.get("beta", 0.5), 0.0, 1.0),
    "HardSwish": lambda torch, x, a: torch.nn.functional.hardswish(x[0]),
    "Identity": lambda torch, x, a: x[0],
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda torch, x, a: torch.nn.functional.leaky_relu(x[0], a.get("alpha", 0.01)),
    "MatMul": lambda torch, x, a: torch.matmul(x[0], x[1]),
    "MaxPool": _max_pool,
    "Mul": lambda torch, x, a: x[0] * x[1],
    "Pow": lambda torch, x, a: torch.pow(x[0], x[1]),
    "ReduceMean": _mean,
    "ReduceMax": lambda torch, x, a: x[0].amax(_axes(x, a) or list(range(x[0].dim())), keepdim=bool(a.get("keepdims", 1))),
    "Relu": lambda torch, x, a: torch.relu(x[0]),
    "Reshape": lambda torch, x, a: x[0].reshape([int(one) for one in x[1]]),
    "Shape": lambda torch, x, a: torch.tensor(x[0].shape),
    "Sigmoid": lambda torch, x, a: torch.sigmoid(x[0]),
    "Slice": _slice,
    "Softmax": _softmax,
    "Sqrt": lambda torch, x, a: torch.sqrt(x[0]),
    "Squeeze": _squeeze,
    "Sub": lambda torch, x, a: x[0] - x[1],
    "Sum": lambda torch, x, a: sum(x[1:], x[0]),
    "Tanh": lambda torch, x, a: torch.tanh(x[0]),
    "Transpose": lambda torch, x, a: x[0].permute(list(a["perm"])),
    "Unsqueeze": _unsqueeze,
}
# Inputs that are read when the module is made, so that it has no sizes or limits to look up when it runs.
_SETTLED = {
    "Clip": (1, 2), "ReduceMax": (1,), "ReduceMean": (1,), "Reshape": (1,), "Slice": (1, 2, 3, 4), "Squeeze": (1,), "Unsqueeze": (1,),
}  # fmt: skip


def torch_module(model: Any) -> Any:
    """A module whose forward takes the model's inputs in order, and returns its first output.

    Raises:
        Unsupported: for operators that it doesn't know, all of them by name.
    """
    import onnx
    import torch

    constants = [(node.output[0], one) for node in model.graph.node if node.op_type == "Constant" for one in node.attribute]
    values = {name: one.t for name, one in constants if one.name == "value"}
    nodes = [node for node in model.graph.node if node.op_type != "Constant" or node.output[0] not in values]
    unknown = sorted({node.op_type for node in nodes} - _WORK.keys())
    if unknown:
        raise Unsupported(f"no {', '.join(unknown)} in PyTorch here")
    values |= {one.name: one for one in model.graph.initializer}
    weights = {name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for name, one in values.items()}
    inputs = [one.name for one in model.graph.input if one.name not in weights]
    steps = []
    for node in nodes:
        attrs = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        known = [place for place in _SETTLED.get(node.op_type, ()) if place < len(node.input) and node.input[place] in weights]
        settled = {place: weights[node.input[place]].tolist() for place in known}
        steps.append((_WORK[node.op_type], tuple(node.input), settled, attrs, node.output[0]))

    class Module(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *given: Any) -> Any:
            values = {**weights, **dict(zip(inputs, given, strict=True))}
            for work, names, settled, attrs, output in steps:
                operands = [settled[n] if n in settled else values[name] if name else None for n, name in enumerate(names)]
                values[output] = work(torch, operands, attrs)
            return values[model.graph.output[0].name]

    return Module().eval()
