"""Derivatives of Relay's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import transform
from tensorexpr.relay.testing import check_grad, run_infer_type
from tensorexpr.relay.to_graph import to_graph

D = "float64"


def test_what_it_returns() -> None:
    x, n = relay.var("x", shape=(2, 3), dtype=D), relay.var("n", shape=(3,), dtype="int32")
    func = relay.Function((x, n), relay.Tuple([relay.exp(x), n]))
    made = run_infer_type(transform.gradient(func))
    assert made.params == func.params
    array, numbers = np.linspace(-1, 1, 6).reshape(2, 3), np.arange(3, dtype="int32")
    (one, other), derivatives = Evaluator(to_graph(made))("main", array, numbers)
    np.testing.assert_allclose(one, np.exp(array))
    np.testing.assert_array_equal(other, numbers)
    np.testing.assert_allclose(derivatives[0], np.exp(array))
    np.testing.assert_array_equal(derivatives[1], np.zeros(3))


def test_of_several_results() -> None:
    x, y = (relay.var(name, shape=(3,), dtype=D) for name in "xy")
    a, b = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    func = relay.Function((x, y), relay.Tuple([relay.Tuple([x * y, x * x]), x + x]))
    # What TVM 0.19 returns: of x * y alone in the one mode, of the sum of all three in the other.
    for mode, by_x in ("higher_order", b), ("first_order", b + 2 * a + 2):
        derivatives = Evaluator(to_graph(transform.gradient(func, mode=mode)))("main", a, b)[1]
        np.testing.assert_allclose(derivatives, [by_x, a])
    with pytest.raises(TypeMismatchError, match="no floats to derive first; mode="):
        transform.gradient(relay.Function((x,), relay.Tuple([relay.cast(x, "int32"), x])))


def test_of_a_network_beside_differences() -> None:
    x, w, b = (relay.var(name, shape=shape, dtype=D) for name, shape in (("x", (1, 1, 4, 4)), ("w", (2, 1, 3, 3)), ("b", (2,))))
    y = relay.nn.bias_add(relay.nn.conv2d(x, w, strides=(2, 2), padding=(1, 1)), b)
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.avg_pool2d(relay.nn.leaky_relu(y, 0.3), (2, 2))), relay.ones((2, 2), D))
    check_grad(relay.Function((x, w, b), y * y))
    with pytest.raises(AssertionError):
        # Half of the elements of `where` have no derivative that differences could see.
        check_grad(relay.Function((b,), relay.where(relay.greater(b, relay.const(0.0, D)), b, relay.floor(b * relay.const(1e7, D)))))


def test_functions_of_a_module() -> None:
    x, y = relay.var("x", shape=(2,), dtype=D), relay.var("y", shape=(2,), dtype=D)
    mod: Any = tvm.IRModule()
    mod["square"] = relay.Function((x,), x * x)
    mod["main"] = relay.Function((y,), relay.exp(mod.get_global_var("square")(y)))
    made = transform.FirstOrderGradient()(mod)
    value, (derivative,) = Evaluator(to_graph(made))("main", np.array([0.5, -1.0]))
    np.testing.assert_allclose(value, np.exp([0.25, 1.0]))
    np.testing.assert_allclose(derivative, 2 * np.array([0.5, -1.0]) * np.exp([0.25, 1.0]))


def test_what_has_none() -> None:
    x, i = relay.var("x", shape=(2, 3)), relay.var("i", shape=(2,), dtype="int32")
    with pytest.raises(DeclarationError, match="mode 'backward'; there are higher_order, first_order"):
        transform.gradient(relay.Function((x,), x), mode="backward")
    with pytest.raises(TypeMismatchError, match="takes a function, not a Var"):
        transform.gradient(x)
    with pytest.raises(TypeMismatchError, match="no floats to derive"):
        transform.gradient(relay.Function((i,), i + i))
    with pytest.raises(DeclarationError, match="no derivative is known of"):
        transform.gradient(relay.Function((x,), relay.cumprod(x, 1)))
