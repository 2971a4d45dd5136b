"""Networks to measure, as ONNX models: those whose topology the package `onnx` ships, and two that are made here.

    model = NETWORKS["mobilenet_v2"]()        float32, batch 1, random weights of a fixed seed

Weights have the spread of He et al. (Delving Deep into Rectifiers, ICCV 2015, section 2.2), so that values neither die out nor overflow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

Model = Any
Array = Any


def light(name: str) -> Model:
    """A network of `onnx`'s test data, whose weights are fills with one number, with random weights in their place."""
    import onnx

    model = onnx.load(os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", f"light_{name}.onnx"))
    graph = model.graph
    shapes = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    fills = {node.output[0]: tuple(shapes[node.input[0]]) for node in graph.node if node.op_type == "ConstantOfShape"}
    # the shapes of fills: nothing else reads them once the weights are there
    used = {name for node in graph.node if node.op_type == "ConstantOfShape" for name in node.input}
    random = np.random.default_rng(0)
    readers = {name: (node, place) for node in reversed(graph.node) for place, name in reversed(list(enumerate(node.input)))}
    made = {name: _weight(random, shape, *_use(readers, name)) for name, shape in fills.items()}
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    initial = [one for one in graph.initializer if one.name not in used]
    weights = {one.name for one in graph.initializer} | made.keys()
    inputs = [one for one in graph.input if one.name not in weights]
    for field, values in (("node", kept), ("initializer", initial), ("input", inputs)):
        del getattr(graph, field)[:]
        getattr(graph, field).extend(values)
    model.ir_version = 8  # from 4 on, weights need not be inputs as well
    graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in made.items())
    return model


def _use(readers: Mapping[str, tuple[Any, int]], name: str) -> tuple[str, int]:
    """The operator that reads a weight, and as which of its inputs; a weight that is reshaped on its way is read by what follows."""
    node, place = readers.get(name, (None, 0))
    if node is None:
        return "", 0
    return _use(readers, node.output[0]) if node.op_type == "Unsqueeze" else (node.op_type, place)


def _weight(random: np.random.Generator, shape: Sequence[int], operator: str, place: int) -> Array:
    """Values for a weight: products keep the variance, scales and variances lie around 1, the others around 0."""
    if operator in ("Conv", "Gemm", "MatMul") and place == 1:
        return random.standard_normal(shape, np.float32) * np.float32(math.sqrt(2 / max(1, math.prod(shape[1:]))))
    spread = random.uniform(-0.1, 0.1, shape)
    # Halved by each norm of a branch, residual sums grow little, and a softmax at the end isn't one-hot.
    middle = {("BatchNormalization", 1): 0.5, ("BatchNormalization", 4): 1.0, ("Mul", 1): 1.0}.get((operator, place), 0.0)
    return (middle + spread).astype(np.float32)


class _Builder:
    """Nodes and weights of a model in the making; values are known by their names."""

    def __init__(self) -> None:
        import onnx

        self._onnx: Any = onnx
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._random = np.random.default_rng(0)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The value that a node computes."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        """A constant as a value."""
        name = f"w_{len(self._weights)}"
        self._weights.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, shape: Sequence[int], inputs: int) -> str:
        """A random weight of sums of `inputs` products."""
        return self.constant(self._random.standard_normal(shape, np.float32) / np.float32(math.sqrt(inputs)))

    def fills(self, count: int, value: float) -> str:
        """As many numbers around one."""
        return self.constant((value + self._random.uniform(-0.1, 0.1, count)).astype(np.float32))

    def model(self, inputs: Mapping[str, tuple[str, Sequence[int]]], output: str) -> Model:
        """The model; `inputs` are dtypes and shapes by name."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        given = [helper.make_tensor_value_info(name, getattr(kinds, kind), shape) for name, (kind, shape) in inputs.items()]
        out = helper.make_tensor_value_info(output, kinds.FLOAT, None)
        graph = helper.make_graph(self._nodes, "network", given, [out], self._weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return self._onnx.shape_inference.infer_shapes(made)


# MobileNetV2's blocks: by how much they widen, channels, how many of them, stride of the first.
_INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet_v2() -> Model:
    """MobileNetV2 (Sandler et al., CVPR 2018, table 2) at 224 x 224, batch norm folded into the convolutions."""
    b = _Builder()

    def conv(data: str, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1, is_clipped: bool = True) -> str:
        fan = inputs // groups * size * size
        weight, bias = b.weight((outputs, inputs // groups, size, size), fan), b.fills(outputs, 0.0)
        value = b.node("Conv", data, weight, bias, strides=[stride] * 2, pads=[size // 2] * 4, group=groups, kernel_shape=[size] * 2)
        return b.node("Clip", value, low, high) if is_clipped else value

    low, high = b.constant(np.float32(0)), b.constant(np.float32(6))
    value, channels = conv("x", 3, 32, 3, 2), 32
    for factor, outputs, count, first in _INVERTED:
        for number in range(count):
            stride, wide = first if number == 0 else 1, channels * factor
            inner = conv(value, channels, wide, 1) if factor > 1 else value
            inner = conv(conv(inner, wide, wide, 3, stride, wide), wide, outputs, 1, is_clipped=False)
            value = b.node("Add", value, inner) if stride == 1 and channels == outputs else inner
            channels = outputs
    pooled = b.node("Flatten", b.node("GlobalAveragePool", conv(value, 320, 1280, 1)))
    return b.model({"x": ("FLOAT", (1, 3, 224, 224))}, b.node("Gemm", pooled, b.weight((1000, 1280), 1280), b.fills(1000, 0.0), transB=1))


def bert(layers: int = 12, width: int = 768, heads: int = 12, tokens: int = 128, words: int = 30522) -> Model:
    """The encoder of BERT (Devlin et al., NAACL 2019, section 3): embeddings, and layers of attention and two products with GELU."""
    b = _Builder()
    one, half, root, scale = (b.constant(np.float32(v)) for v in (1.0, 0.5, math.sqrt(2), 1 / math.sqrt(width // heads)))

    def dense(data: str, inputs: int, outputs: int) -> str:
        return b.node("Add", b.node("MatMul", data, b.weight((inputs, outputs), inputs)), b.fills(outputs, 0.0))

    def norm(data: str) -> str:
        return b.node("LayerNormalization", data, b.fills(width, 1.0), b.fills(width, 0.0), axis=-1, epsilon=1e-12)

    def split(data: str, order: Sequence[int]) -> str:
        return b.node("Transpose", b.node("Reshape", data, b.constant(np.array([1, tokens, heads, width // heads]))), perm=order)

    embedded = b.node("Gather", b.weight((words, width), width), "input_ids")
    value = norm(b.node("Add", embedded, b.weight((1, tokens, width), width)))
    for _ in range(layers):
        query, key, given = (dense(value, width, width) for _ in range(3))
        scores = b.node("MatMul", split(query, (0, 2, 1, 3)), split(key, (0, 2, 3, 1)))
        shares = b.node("Softmax", b.node("Add", b.node("Mul", scores, scale), "mask"), axis=-1)
        mixed = b.node("Transpose", b.node("MatMul", shares, split(given, (0, 2, 1, 3))), perm=(0, 2, 1, 3))
        mixed = b.node("Reshape", mixed, b.constant(np.array([1, tokens, width])))
        value = norm(b.node("Add", value, dense(mixed, width, width)))
        inner = dense(value, width, 4 * width)
        bell = b.node("Add", b.node("Erf", b.node("Div", inner, root)), one)
        gelu = b.node("Mul", b.node("Mul", inner, bell), half)
        value = norm(b.node("Add", value, dense(gelu, 4 * width, width)))
    return b.model({"input_ids": ("INT64", (1, tokens)), "mask": ("FLOAT", (1, 1, 1, tokens))}, value)


NETWORKS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "squeezenet": lambda: light("squeezenet"),
        "resnet50": lambda: light("resnet50"),
        "mobilenet_v2": mobilenet_v2,
        "densenet121": lambda: light("densenet121"),
        "bert_base": bert,
    }
)


def random_feeds(
    model: Model, shapes: Mapping[str, Sequence[int]] = MappingProxyType({}), fills: Mapping[str, float] = MappingProxyType({})
) -> dict[str, Array]:
    """Arrays for the inputs of a model: floats around 0, integers from 0 to 99, booleans true.

    Args:
        shapes: of inputs whose sizes the model leaves open, which are 1 else.
        fills: numbers for inputs that are no data, such as a mask.
    """
    import onnx

    random, feeds = np.random.default_rng(1), {}
    weights = {one.name for one in model.graph.initializer}
    for one in model.graph.input:
        if one.name in weights:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
        shape = tuple(shapes.get(one.name, [dim.dim_value or 1 for dim in one.type.tensor_type.shape.dim]))
        values = random.integers(0, 100, shape) if kind.kind in "iu" else random.standard_normal(shape)
        fill = fills.get(one.name, True if kind.kind == "b" else None)
        feeds[one.name] = np.asarray(values).astype(kind) if fill is None else np.full(shape, fill, kind)
    return feeds


def flops(model: Model, feeds: Mapping[str, Array]) -> float:
    """Multiplications and additions of a model's convolutions and products, by the shapes that onnx infers; 0 where it can't."""
    import onnx

    model = onnx.ModelProto.FromString(model.SerializeToString())
    for one in model.graph.input:
        if one.name in feeds:
            for dim, extent in zip(one.type.tensor_type.shape.dim, feeds[one.name].shape, strict=False):
                # sizes that the file leaves open would leave the shapes of all layers open
                dim.dim_value = extent
    inferred = onnx.shape_inference.infer_shapes(model).graph
    shapes = {one.name: tuple(one.dims) for one in inferred.initializer}
    for one in (*inferred.input, *inferred.value_info, *inferred.output):
        shapes.setdefault(one.name, tuple(dim.dim_value for dim in one.type.tensor_type.shape.dim))
    total = 0
    for node in inferred.node:
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            result, weight = shapes.get(node.output[0], ()), shapes.get(node.input[1], ())
            is_turned = any(a.name == "transB" and a.i for a in node.attribute)
            terms = math.prod(weight[1:]) if node.op_type == "Conv" else (weight[-1] if is_turned else weight[-2]) if len(weight) > 1 else 0
            total += 2 * math.prod(result) * terms if result else 0
    return float(total)
