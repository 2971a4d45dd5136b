"""Types of weights that aren't stated: they follow from the operators, which take them then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import TypeMismatchError
from tensorexpr.relay import testing, transform
from tests.effort import share_of

X = relay.var("x", shape=(2, 6, 8, 8), dtype="float32")
ROWS = relay.var("rows", shape=(4, 8), dtype="float16")
INSIDE = relay.var("inside", shape=(4, 8), dtype="float16")
W, V = relay.var("w"), relay.var("v", relay.IncompleteType())


def typed(expr: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters of an expression, as InferType finds them."""
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function(tuple(relay.analysis.free_vars(expr)), expr)))
    main: Any = mod["main"]
    return {param.name_hint: param.checked_type.concrete_shape for param in main.params}


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (relay.nn.conv2d(X, W, channels=5, kernel_size=(3, 2)), {"w": (5, 6, 3, 2)}),
        (relay.nn.conv2d(X, W, groups=3, channels=9, kernel_size=(1, 1)), {"w": (9, 2, 1, 1)}),
        (relay.nn.conv2d(X, W, groups=6, channels=6, kernel_size=(3, 3)), {"w": (6, 1, 3, 3)}),
        (relay.nn.conv2d_transpose(X, W, channels=5, kernel_size=(3, 2)), {"w": (6, 5, 3, 2)}),
        (relay.nn.dense(ROWS, W, units=3), {"w": (3, 8)}),
        (relay.nn.matmul(ROWS, W, units=3), {"w": (8, 3)}),
        (relay.nn.matmul(ROWS, W, units=3, transpose_b=True), {"w": (3, 8)}),
        (relay.nn.bias_add(relay.nn.dense(ROWS, W, units=3), V, axis=-1), {"w": (3, 8), "v": (3,)}),
        (relay.nn.prelu(X, W), {"w": (6,)}),
        (
            relay.nn.deformable_conv2d(X, V, W, strides=(2, 1), padding=(1, 1), deformable_groups=2, channels=5, kernel_size=(3, 2)),
            {"w": (5, 6, 3, 2), "v": (2, 24, 4, 9)},
        ),
        (relay.nn.layer_norm(ROWS, W, V), {"w": (8,), "v": (8,)}),
        # Of a function that is called, whose own weights follow from its operators.
        (relay.Function((INSIDE, V), relay.nn.dense(INSIDE, V, units=3))(relay.nn.relu(ROWS), W), {"w": (3, 8)}),
        # What the weights are used for first says nothing of their type.
        (relay.add(relay.exp(W), relay.nn.dense(ROWS, W, units=1)), {"w": (1, 8)}),
    ],
)  # fmt: skip
def test_weights(expr: Any, wanted: dict[str, tuple[int, ...]]) -> None:
    found = typed(expr)
    assert {name: found[name] for name in wanted} == wanted


@settings(max_examples=share_of(30), deadline=None)
@given(st.data())
def test_a_convolution_takes_the_weights_that_it_asks_for(data: st.DataObject) -> None:
    groups, each, outs = (data.draw(st.integers(1, 4), name) for name in ("groups", "channels of each", "results of each"))
    if each == 1 and groups > 1:
        outs = 1
    layout, kernel = data.draw(st.sampled_from([("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OHWI")]), "layouts")
    window = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)), "window")
    extents = {"N": 1, "C": groups * each, "H": 5, "W": 4}
    x = relay.var("x", shape=tuple(extents[one] for one in layout))
    made = relay.nn.conv2d(
        x, W, groups=groups, channels=groups * outs, kernel_size=window, data_layout=layout, kernel_layout=kernel
    )  # fmt: skip
    letters = {"O": groups * outs, "I": each, "H": window[0], "W": window[1]}
    assert typed(made)["w"] == tuple(letters[one] for one in kernel)
    main: Any = transform.InferType()(tvm.IRModule.from_expr(relay.Function((x, W), made)))["main"]
    result = {"N": 1, "C": groups * outs, "H": 6 - window[0], "W": 5 - window[1]}
    assert main.ret_type.concrete_shape == tuple(result[one] for one in layout)


def test_a_network_of_untyped_weights_is_built() -> None:
    names = ("gamma", "beta", "mean", "var")
    conv = relay.nn.conv2d(X, relay.var("weight"), channels=4, kernel_size=(3, 3), padding=(1, 1))
    net = relay.nn.relu(relay.nn.batch_norm(conv, *(relay.var(f"bn_{one}") for one in names))[0])
    mod, params = testing.create_workload(relay.Function(tuple(relay.analysis.free_vars(net)), net))
    assert set(params) == {"x", "weight", *(f"bn_{one}" for one in names)} and (params["bn_var"].numpy() == 1).all()
    weights = {name: value for name, value in params.items() if name != "x"}
    module = graph_executor.GraphModule(relay.build(mod, "llvm -num-cores 1", params=weights)["default"](tvm.cpu()))
    value = np.random.default_rng(0).standard_normal((2, 6, 8, 8)).astype("float32")
    module.run(x=value)
    wide = np.pad(value, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, params["weight"].numpy()) / np.sqrt(1 + 1e-5)
    np.testing.assert_allclose(module.get_output(0).numpy(), np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


def test_what_no_operator_tells_has_to_be_stated() -> None:
    for expr in (relay.add(X, W), relay.nn.conv2d(X, W), relay.nn.dense(relay.tanh(V), W, units=3)):
        with pytest.raises(TypeMismatchError, match="has no type"):
            typed(expr)


def test_extents_of_numpy() -> None:
    assert relay.broadcast_to(ROWS, np.array([3, 4, 8])).checked_type.concrete_shape == (3, 4, 8)
    assert relay.TensorType(tuple(np.array([2, 3])), "int8") == relay.TensorType((2, 3), "int8")
