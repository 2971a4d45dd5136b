"""Channels last where that saves more than transposes take: which convolutions, what is left of transposes, and that it means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import relax
from tensorexpr.lower.context import PassContext
from tensorexpr.relax import op, transform
from tests.effort import share_of

from .test_simplify import checked, graph, left, weights

# Small planes of many channels, where two transposes are nothing beside the products.
IMAGE = (1, 128, 8, 8)


def layouts(mod: Any) -> list[str]:
    """Those of a function's convolutions."""
    values = [binding.value for binding in mod["main"].body.bindings()]
    return [str(value.attrs["data_layout"]) for value in values if str(getattr(value, "op", "")) == "relax.nn.conv2d"]


def canonical(make: Callable[[Any], Any]) -> Any:
    """A module as passes before have left it: what is written twice is computed once."""
    return transform.CanonicalizeBindings()(transform.EliminateCommonSubexpr()(graph(make, IMAGE)))


def conv(x: Any, outputs: int = 128, inputs: int = 128, size: int = 3, **attrs: Any) -> Any:
    """A convolution with a border, an offset and a ReLU."""
    made = op.nn.conv2d(x, weights(outputs, inputs, size, size), padding=size // 2, **attrs)
    return op.nn.relu(made + weights(1, outputs, 1, 1))


def residual(x: Any) -> Any:
    """What is read twice, by a convolution and by a sum behind it."""
    first = conv(x)
    return conv(op.add(conv(first), first))


def parts(x: Any) -> Any:
    """Two ways from a pool, joined."""
    pooled = op.nn.max_pool2d(conv(x), (3, 3), (2, 2), (1, 1))
    return conv(op.concat([conv(pooled, size=1), conv(pooled), pooled], 1), inputs=384)


def enlarged(x: Any) -> Any:
    """A smaller plane on top of a larger one, as pyramids of features are."""
    first = conv(x)
    return conv(op.add(first, op.image.resize(conv(op.nn.avg_pool2d(first, (2, 2), (2, 2))), (8, 8), (2, 3))))


def excited(x: Any) -> Any:
    """Planes times a number for each, which convolutions of a single pixel make."""
    y = conv(x)
    return conv(op.multiply(y, op.sigmoid(conv(conv(op.mean(y, [2, 3], True), 16, size=1), inputs=16, size=1))))


@pytest.mark.parametrize("make", [conv, residual, parts, enlarged, excited])
def test_all_convolutions_have_channels_last_and_two_transposes_are_left(make: Callable[[Any], Any]) -> None:
    mod = canonical(make)
    made = checked(mod, transform.ChannelsLast(), 1e-4)
    assert set(layouts(made)) == {"NHWC"}
    assert left(made).split().count("permute_dims") == 2


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: conv(conv(conv(x), inputs=8, groups=16)), ["NHWC", "NCHW", "NHWC"]),  # groups that fill no vector
        (lambda x: conv(conv(x, inputs=32, groups=4)), ["NHWC", "NHWC"]),  # groups of whole vectors
        (lambda x: conv(conv(x, inputs=1, groups=128)), ["NHWC", "NHWC"]),  # a channel each
        (lambda x: conv(x, 2, size=1), ["NCHW"]),  # few products beside the transposes
    ],
)
def test_convolutions_that_stay(make: Callable[[Any], Any], expected: list[str]) -> None:
    mod = canonical(make)
    assert layouts(transform.ChannelsLast()(mod)) == expected


def test_weights_that_are_arguments_stay() -> None:
    mod = graph(lambda x, w: op.nn.conv2d(x, w), IMAGE, (128, 128, 3, 3))
    assert transform.ChannelsLast()(mod)["main"] is mod["main"]


def test_what_works_on_planes_alone_keeps_them() -> None:
    def make(x: Any) -> Any:
        y = conv(x, 8)
        for _ in range(4):  # a depth-to-space by hand between convolutions: each would need two transposes
            y = conv(op.reshape(op.permute_dims(op.reshape(y, (1, 2, 4, 8, 8)), (0, 2, 1, 3, 4)), (1, 8, 8, 8)), 8, 8, 1)
        return y

    mod = canonical(make)
    assert set(layouts(transform.ChannelsLast()(mod))) == {"NCHW"}


@settings(max_examples=share_of(25), deadline=None)
@given(steps=st.lists(st.sampled_from(["conv", "depthwise", "pool", "add", "concat", "scale", "pad", "planes"]), min_size=1, max_size=6))
@example(steps=["pool", "concat", "add"])
@example(steps=["scale", "conv", "planes", "conv", "scale"])
def test_any_chain_means_the_same(steps: list[str]) -> None:
    def make(x: Any) -> Any:
        y, before = conv(x, 16), conv(x, 16, size=1)
        for step in steps:
            match step:
                case "conv":
                    y = conv(y, 16, 16)
                case "depthwise":
                    y = conv(y, 16, 1, groups=16)
                case "pool":
                    y = op.nn.avg_pool2d(y, (3, 3), (1, 1), (1, 1))
                case "add":
                    y = op.add(y, before)
                case "concat":
                    y = conv(op.concat([before, y], 1), 16, 32, 1)
                case "scale":
                    y = op.multiply(y, op.sigmoid(op.mean(y, [2, 3], True)))
                case "pad":
                    y = op.nn.max_pool2d(op.nn.pad(y, (0, 0, 0, 0, 1, 1, 1, 1)), (3, 3))
                case "planes":
                    y = op.nn.softmax(y, axis=1)
        return y

    mod = canonical(make)
    checked(mod, transform.ChannelsLast(), 1e-3)


def test_a_build_can_leave_it_out() -> None:
    mod = graph(residual, IMAGE)
    with PassContext(disabled_pass=["ChannelsLast"]):
        kept = relax.build(mod, upto=2)
    assert set(layouts(kept)) == {"NCHW"}
    assert set(layouts(relax.build(mod, upto=2))) == {"NHWC"}


def test_a_network_gives_what_it_gave() -> None:
    mod = graph(lambda x: conv(op.nn.max_pool2d(conv(x, 64), (2, 2), (2, 2)), 16, 64), IMAGE)
    x = np.random.default_rng(1).standard_normal(IMAGE).astype("float32")
    found = []
    for left_out in ([], ["ChannelsLast"]):
        with PassContext(disabled_pass=left_out):
            found.append(relax.VirtualMachine(relax.build(mod, "llvm"))["main"](x).numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)
