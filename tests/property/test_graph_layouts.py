"""Convolutions in other layouts, blocks of channels among them: whatever stands between them, graphs mean what they did."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, op, transform
from tensorexpr.relax.evaluator import Evaluator

LAYOUTS = (
    ("NCHW4c", "OIHW4i4o"), ("NCHW4c", "OIHW4o"), ("NCHW2c", "OIHW2i4o", "NCHW4c"), ("NHWC4c", "OHWI4o"), ("N4cHWC", "O4oHWI"),
    ("NCHW4c", "default"), ("NHWC", "HWIO"), ("NCHW", "OIHW", "NCHW2c"), ("NHWC", "OHWI", "NCHW"),
)  # fmt: skip
STEPS = (
    "conv", "conv", "grouped", "depthwise", "transposed", "relu", "scalar", "bias", "vector", "whole", "residual", "max_pool", "adaptive",
    "pad", "pad_channels", "concat", "halves", "thirds", "permute", "softmax", "total", "channels", "resize", "quantize",
    "normalized", "rows", "some_channels",
)  # fmt: skip


def weights(*shape: int) -> Any:
    return relax.const(np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype("float32"))


def stepped(step: str, x: Any, earlier: Any, outputs: int) -> Any:
    """An expression behind `x`; None for a step that doesn't fit."""
    n, c, h, w = (int(extent) for extent in x.struct_info.extents)
    match step:
        case "conv":
            return op.nn.conv2d(x, weights(outputs, c, 3, 1), padding=(1, 0), strides=(1, 2 if w > 1 else 1))
        case "grouped":
            return op.nn.conv2d(x, weights(outputs, c // 2, 1, 1), groups=2) if c % 2 == outputs % 2 == 0 else None
        case "depthwise":
            return op.nn.conv2d(x, weights(c, 1, 3, 3), padding=1, groups=c)
        case "transposed":
            return op.nn.conv2d_transpose(x, weights(c, outputs, 2, 1), strides=(1, 1)) if h < 8 else None
        case "relu":
            return op.nn.relu(x)
        case "scalar":
            return op.multiply(x, relax.const(0.5))
        case "bias":
            return op.add(x, weights(1, c, 1, 1))
        case "vector":
            return op.subtract(weights(c, 1, 1), x)
        case "whole":
            return op.maximum(x, weights(n, c, h, w))
        case "residual":
            return op.add(x, earlier) if x.struct_info == earlier.struct_info else None
        case "max_pool":
            return op.nn.max_pool2d(x, (2, 2), (1, 1), (1, 1, 0, 0))
        case "adaptive":
            return op.nn.adaptive_avg_pool2d(x, (h, 1))
        case "pad":
            return op.nn.pad(x, (0, 0, 0, 0, 1, 0, 0, 1))
        case "pad_channels":
            return op.nn.pad(x, (0, 0, 1, 3, 0, 0, 0, 0))
        case "concat":
            return op.concat([x, earlier], 1) if x.struct_info == earlier.struct_info and c < 16 else None
        case "halves" | "thirds":
            parts = op.split(x, 2 if step == "halves" else [c // 3], 1)
            return op.add(parts[0], op.abs(parts[1])) if step == "halves" and c % 2 == 0 else parts[1] if c > 3 else None
        case "permute":
            return op.permute_dims(op.exp(op.permute_dims(x, (0, 2, 3, 1))), (0, 3, 2, 1)) if h == w else None
        case "softmax":
            return op.nn.softmax(x, 1)
        case "total":
            return op.subtract(x, op.mean(x, (2, 3), keepdims=True))
        case "channels":
            return op.subtract(x, op.max(x, 1, keepdims=True))
        case "normalized":
            return op.nn.batch_norm(x, *(op.abs(weights(c)) for _ in range(4)), 1)[0]
        case "rows":
            return op.strided_slice(x, [-2], [0], [h], [2])
        case "some_channels":
            return op.strided_slice(x, [1, 2], [1, 0], [c, h]) if c > 1 else None
        case "resize":
            return op.image.resize2d(x, (h + 1, w), method="nearest_neighbor")
        case _:
            return op.dequantize(
                op.quantize(x, relax.const(np.float32(0.25)), relax.const(np.int8(3)), 1, "int8"),
                relax.const(0.25),
                relax.const(np.int8(3)),
                1,
            )


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[tuple[str, int]], int]:
    steps = draw(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from((4, 8, 6))), min_size=1, max_size=6))
    return [("conv", draw(st.sampled_from((4, 8)))), *steps], draw(st.sampled_from((8, 4, 3)))


def network(steps: list[tuple[str, int]], channels: int, returns_all: bool) -> Any:
    x = Var("x", TensorStructInfo((1, channels, 3, 3)))
    bb = BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            values = [x]
            for step, outputs in steps:
                made = stepped(step, values[-1], values[-2] if len(values) > 1 else values[-1], outputs)
                values += [] if made is None else [bb.emit(made)]
            out = bb.emit_output(op.negative(values[-1]))
            also = bb.emit_output(op.sum(values[len(values) // 2]))
        bb.emit_func_output((out, also) if returns_all else out)
    return bb.get()


@settings(deadline=None, derandomize=True, max_examples=25)
@given(networks(), st.sampled_from(LAYOUTS), st.booleans())
@example(([("conv", 8), ("channels", 4), ("conv", 4)], 8), LAYOUTS[0], False)
@example(([("conv", 8), ("normalized", 4), ("rows", 4), ("conv", 4), ("some_channels", 8)], 8), LAYOUTS[0], False)
@example(([("conv", 8), ("normalized", 4), ("rows", 4), ("conv", 4), ("some_channels", 8)], 8), LAYOUTS[6], True)
@example(([("conv", 8), ("thirds", 4), ("conv", 6)], 4), LAYOUTS[3], True)
@example(([("conv", 8), ("resize", 4), ("pad", 4), ("quantize", 4), ("conv", 8), ("total", 4)], 4), LAYOUTS[4], False)
def test_layouts_of_convolutions(case: Any, layouts: tuple[str, ...], returns_all: bool) -> None:
    (steps, channels) = case
    mod = network(steps, channels, returns_all)
    convert = transform.ConvertLayout({"relax.nn.conv2d": layouts})
    made = convert(mod)
    assert tvm.ir.structural_equal(convert(made), made)
    x = np.random.default_rng(0).uniform(-1, 1, (1, channels, 3, 3)).astype("float32")
    found, wanted = Evaluator(made)("main", x), Evaluator(mod)("main", x)
    for a, b in zip(found, wanted, strict=True) if returns_all else [(found, wanted)]:
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
