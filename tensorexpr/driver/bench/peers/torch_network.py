"""An ONNX model as a module of PyTorch, node by node, so that eager PyTorch and torch.compile run the network that the others run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .base import Unsupported

# Under this name operators whose meaning changed find the version of the model; no attribute is called so.
_OPSET = "opset version"
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


def _window(x: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[int], list[int], list[int], bool]:
    """The sizes, strides and padding of a window along two axes, and whether a last one that is cut off counts.

    Raises:
        Unsupported: for windows along other than two axes.
    """
    sizes = list(attrs["kernel_shape"])
    if len(sizes) != 2:
        raise Unsupported(f"windows along {len(sizes)} axes")
    return sizes, list(attrs.get("strides", (1, 1))), _pads(attrs), bool(attrs.get("ceil_mode", 0))


def _max_pool(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    sizes, strides, pads, is_ceil = _window(x, attrs)
    return torch.nn.functional.max_pool2d(x[0], sizes, strides, pads, list(attrs.get("dilations", (1, 1))), is_ceil)


def _average_pool(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    sizes, strides, pads, is_ceil = _window(x, attrs)
    if set(attrs.get("dilations", (1,))) != {1}:
        raise Unsupported("averages of windows with gaps")
    return torch.nn.functional.avg_pool2d(x[0], sizes, strides, pads, is_ceil, bool(attrs.get("count_include_pad", 0)))


def _batch_norm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return torch.nn.functional.batch_norm(x[0], x[3], x[4], x[1], x[2], False, 0.0, attrs.get("epsilon", 1e-5))


def _softmax(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if attrs[_OPSET] >= 13:
        return torch.softmax(x[0], attrs.get("axis", -1))
    axis = attrs.get("axis", 1) % x[0].dim()
    return torch.softmax(x[0].flatten(axis), axis).reshape(x[0].shape)  # up to opset 12, all axes from this one on as one


def _gemm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    left = x[0].t() if attrs.get("transA", 0) else x[0]
    bias, alpha, beta = x[2] if len(x) > 2 else None, attrs.get("alpha", 1.0), attrs.get("beta", 1.0)
    if alpha == 1 and (bias is None or (beta == 1 and bias.dim() == 1)):
        return torch.nn.functional.linear(left, x[1] if attrs.get("transB", 0) else x[1].t(), bias)
    product = torch.matmul(left, x[1].t() if attrs.get("transB", 0) else x[1]) * alpha
    return product if bias is None else product + bias * beta


def _gather(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    axis = attrs.get("axis", 0) % x[0].dim()
    if axis == 0 and x[0].dim() == 2 and x[0].is_floating_point():
        return torch.nn.functional.embedding(x[1] % x[0].shape[0], x[0])
    # along an axis: [a, n, b] at [i, j] is [a, i, j, b]
    places = (x[1] % x[0].shape[axis]).reshape(-1)
    return x[0].index_select(axis, places).reshape(*x[0].shape[:axis], *x[1].shape, *x[0].shape[axis + 1 :])


def _div(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    # integers are cut off towards 0, where torch makes floats
    return x[0] / x[1] if x[0].is_floating_point() else torch.div(x[0], x[1], rounding_mode="trunc")


def _flatten(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    axis = attrs.get("axis", 1)
    return x[0].reshape(math.prod(x[0].shape[:axis]), -1)


def _reshape(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    sizes = [int(one) for one in x[1]]
    if not attrs.get("allowzero", 0):
        sizes = [x[0].shape[place] if one == 0 else one for place, one in enumerate(sizes)]
    return x[0].reshape(sizes)


def _layer_norm(torch: Any, x: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    shape, bias = x[0].shape[attrs.get("axis", -1) :], x[2] if len(x) > 2 else None
    if x[1].shape != shape or (bias is not None and bias.shape != shape):
        raise Unsupported(f"a norm over {tuple(shape)} with weights of {tuple(x[1].shape)}")
    return torch.nn.functional.layer_norm(x[0], shape, x[1], bias, attrs.get("epsilon", 1e-5))


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
    "Div": _div,
    "Dropout": lambda torch, x, a: x[0],
    "Erf": lambda torch, x, a: torch.erf(x[0]),
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda torch, x, a: x[0].mean(tuple(range(2, x[0].dim())), keepdim=True),
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
    "Reshape": _reshape,
    "Shape": lambda torch, x, a: torch.tensor(x[0].shape[a.get("start", 0) : a.get("end", x[0].dim())]),
    "Sigmoid": lambda torch, x, a: torch.sigmoid(x[0]),
    "Slice": _slice,
    "Softmax": _softmax,
    "Sqrt": lambda torch, x, a: torch.sqrt(x[0]),
    "Squeeze": _squeeze,
    "Sub": lambda torch, x, a: x[0] - x[1],
    "Sum": lambda torch, x, a: sum(x[1:], x[0]),
    "Tanh": lambda torch, x, a: torch.tanh(x[0]),
    "Transpose": lambda torch, x, a: x[0].permute(list(a.get("perm", range(x[0].dim())[::-1]))),
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
    used = {name for node in nodes for name in node.input} | {one.name for one in model.graph.output}
    weights = {name: torch.from_numpy(onnx.numpy_helper.to_array(one).copy()) for name, one in values.items()}
    inputs = [one.name for one in model.graph.input if one.name not in weights]
    opset = max((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)
    steps = []
    for node in nodes:
        # outputs after the first are masks and statistics, which only training reads
        if read := [name for name in node.output[1:] if name in used]:
            raise Unsupported(f"{node.op_type} with more than one output: {', '.join(read)}")
        attrs = {_OPSET: opset, **{one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}}
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
