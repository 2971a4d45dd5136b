"""Random functions of Relay: passes on their expressions keep what they mean, their operators' names, and what nothing touches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import transform
from tensorexpr.relay.analysis import list_op_freqs
from tensorexpr.relay.to_graph import to_graph
from tests.effort import share_of

SHAPE = (1, 4, 5, 5)
RNG = np.random.default_rng(0)
CHANNELS = RNG.uniform(0.5, 2, (4, 1, 1)).astype("float32")
WEIGHTS = RNG.uniform(-0.4, 0.4, (4, 4, 3, 3)).astype("float32")


def numbers(values: Any) -> Any:
    return relay.const(values)


def conv(a: Any, b: Any) -> Any:
    return relay.nn.conv2d(a, numbers(WEIGHTS), padding=(1, 1), channels=4, kernel_size=(3, 3))


def of_weights(a: Any, b: Any) -> Any:
    """Weights that are computed, of one channel each."""
    weights = relay.strided_slice(b, [0, 0, 0, 0], [1, 4, 3, 3])
    return relay.nn.conv2d(a, relay.transpose(weights, [1, 0, 2, 3]), padding=(1, 1), groups=4, channels=4, kernel_size=(3, 3))


STEPS: dict[str, Any] = {
    "conv": conv,
    "of_weights": of_weights,
    "scaled": lambda a, b: a * numbers(CHANNELS),
    "scaled_down": lambda a, b: numbers(-CHANNELS) * a,
    "halved": lambda a, b: a * relay.const(0.5),
    "scaled_conv": lambda a, b: conv(relay.nn.relu(a * numbers(CHANNELS)) - numbers(CHANNELS - 1), b),
    "conv_scaled": lambda a, b: relay.nn.leaky_relu(relay.nn.bias_add(conv(a, b), numbers(CHANNELS.reshape(4))), 0.1) * numbers(CHANNELS),
    "shifted": lambda a, b: a + numbers(CHANNELS),
    "both": lambda a, b: a + b,
    "joined_sums": lambda a, b: (conv(a, b) + relay.nn.relu(conv(b, a))) * numbers(CHANNELS),
    "twice": lambda a, b: a + a,
    "chain": lambda a, b: (a + relay.const(1.0)) * relay.const(0.5) + relay.const(2.0),
    "fills": lambda a, b: a * relay.ones_like(b) + relay.zeros(SHAPE, "float32") - relay.full(relay.const(1.0), (5,)),
    "roots": lambda a, b: a / relay.sqrt(relay.abs(b) + relay.const(1.0)),
    "turned": lambda a, b: relay.transpose(relay.layout_transform(relay.transpose(a, [0, 2, 3, 1]), "NHWC", "HWCN"), [3, 2, 0, 1]),
    "blocks": lambda a, b: relay.layout_transform(relay.layout_transform(a, "NCHW", "NCHW2c"), "NCHW2c", "NCHW"),
    "reshaped": lambda a, b: relay.reshape_like(relay.reshape(relay.reshape(a, (4, -1)), (2, 50)), b),
    "casts": lambda a, b: relay.cast(relay.cast(relay.cast(relay.clip(a, -8.0, 8.0), "int8"), "int32"), "float32"),
    "pool": lambda a, b: relay.nn.max_pool2d(relay.nn.pad(a, [[0, 0], [0, 0], [1, 1], [1, 1]], -np.inf), (3, 3)),
    "mean_pool": lambda a, b: relay.nn.avg_pool2d(relay.nn.pad(a, [[0, 0], [0, 0], [2, 1], [0, 1]]), (4, 2)),
    "padded_conv": lambda a, b: relay.nn.conv2d(relay.nn.pad(a, [[0, 0], [0, 0], [1, 0], [0, 1]]), numbers(WEIGHTS), padding=(0, 1, 1, 0)),
    "softmax": lambda a, b: relay.nn.softmax(a, 1),
    "norm": lambda a, b: relay.nn.batch_norm(a, *(numbers(CHANNELS.reshape(4) + n) for n in range(4)))[0],
    "reduced": lambda a, b: a - relay.mean(b, 1, keepdims=True) * relay.sum(b, [2, 3], keepdims=True),
    "less": lambda a, b: a + relay.expand_dims(relay.max(relay.squeeze(b, [0]), [1]), -1),
    "split": lambda a, b: relay.concatenate(list(relay.split(a, 2, 1))[::-1], 1),
    "part": lambda a, b: relay.concatenate([relay.strided_slice(a, [0, 1], [1, 3]), relay.strided_slice(b, [2], [4], axes=[1])], 1),
    "siblings": lambda a, b: conv(a, b) * conv(a, b) - relay.nn.relu(conv(a, a)),
    "branch": lambda a, b: relay.If(relay.any(relay.less(a, b)), a + relay.exp(-relay.abs(b)), conv(b, a)),
    "called": lambda a, b: relay.Function((x := relay.var("x", shape=SHAPE),), conv(x * numbers(CHANNELS), b))(a),
    "bound": lambda a, b: relay.Let(v := relay.var("v"), a * numbers(CHANNELS), conv(v, b) + v),
    "columns": lambda a, b: a * numbers(np.arange(5, dtype="float32")),
}  # fmt: skip


@st.composite
def functions(draw: st.DrawFn) -> relay.Function:
    x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)
    values: list[Any] = [x, y]
    for _ in range(draw(st.integers(1, 6))):
        # What was made last is used again and again, so that steps meet.
        first = draw(st.sampled_from([*values, *[values[-1]] * 3]))
        values.append(STEPS[draw(st.sampled_from(sorted(STEPS)))](first, draw(st.sampled_from(values))))
    return relay.Function((x, y), values[-1])


def evaluated(mod: tvm.IRModule) -> Any:
    rng = np.random.default_rng(1)
    return Evaluator(to_graph(mod))("main", *(rng.uniform(-1, 1, SHAPE).astype("float32") for _ in range(2)))


PASSES: dict[str, Any] = {
    "SimplifyExpr": transform.SimplifyExpr,
    "FoldScaleAxis": transform.FoldScaleAxis,
    "ForwardFoldScaleAxis": transform.ForwardFoldScaleAxis,
    "BackwardFoldScaleAxis": transform.BackwardFoldScaleAxis,
    "FoldExplicitPadding": transform.FoldExplicitPadding,
    "CombineParallelConv2D": lambda: transform.CombineParallelConv2D(2),
    "channels last": lambda: transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}),
    "rows last": lambda: transform.ConvertLayout({"nn.conv2d": ["HWNC", "default"], "nn.max_pool2d": ["NHWC"]}),
    "blocks": lambda: transform.ConvertLayout({"nn.conv2d": ["NCHW2c", "OIHW"]}),
    "FuseOps": lambda: transform.FuseOps(2),
    "each operator": lambda: transform.FuseOps(0),
    "all": lambda: tvm.transform.Sequential([
        transform.SimplifyExpr(), transform.FoldScaleAxis(), transform.CombineParallelConv2D(2),
        transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]}), transform.FuseOps(),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", PASSES)
@settings(max_examples=share_of(15), deadline=None)
@given(functions())
def test_a_pass_keeps_the_meaning_and_relays_operators(name: str, func: relay.Function) -> None:
    mod = tvm.IRModule.from_expr(func)
    with tvm.transform.PassContext(opt_level=4):
        made = PASSES[name]()(mod)
    np.testing.assert_allclose(evaluated(made), evaluated(mod), 2e-3, 2e-3)
    assert not [op for op in list_op_freqs(made) if str(op).startswith("relax.")]


@pytest.mark.parametrize("keeps", [False, True])
@settings(max_examples=share_of(15), deadline=None)
@given(functions())
def test_half_precision_means_the_same_but_for_rounding(keeps: bool, func: relay.Function) -> None:
    mod = tvm.IRModule.from_expr(func)
    with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": keeps}):
        made = transform.ToMixedPrecision()(mod)
    wanted, found = evaluated(mod), evaluated(made)
    main: Any = made["main"]
    assert str(main.ret_type.dtype) == str(found.dtype) and (found.dtype == np.float32 or not keeps)
    if np.abs(wanted).max() < 1e3:
        np.testing.assert_allclose(found, wanted, rtol=0.05, atol=0.05 * (1 + np.abs(wanted).max()))


@settings(max_examples=share_of(15), deadline=None)
@given(functions())
def test_kernels_hold_all_operators_once(func: relay.Function) -> None:
    """Taken out of their kernels again, values are what they were, as often as they were."""
    mod = transform.InferType()(tvm.IRModule.from_expr(func))
    fused = transform.FuseOps(2)(mod)
    assert list_op_freqs(fused) == list_op_freqs(mod)
    kernels: list[Any] = []
    relay.analysis.post_order_visit(
        fused["main"], lambda node: kernels.append(node) if isinstance(node, relay.Function) and "Primitive" in node.attrs else None
    )
    assert all(not relay.analysis.free_vars(one) for one in kernels)
    assert transform.FuseOps(2)(fused)["main"].params == fused["main"].params
