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


def _beside_differences(func: Any, *args: Any) -> None:
    """Compare derivatives by all parameters of floats with differences."""
    derivatives = Evaluator(to_graph(transform.gradient(func)))("main", *args)[1]
    for n, given in enumerate(args):
        if given.dtype.kind != "f":
            np.testing.assert_array_equal(derivatives[n], np.zeros(given.shape))
            continue
        for place in np.ndindex(given.shape):
            sides = []
            for sign in (1, -1):
                moved = given.copy()
                moved[place] += sign * 1e-6
                sides.append(np.sum(Evaluator(to_graph(func))("main", *args[:n], moved, *args[n + 1 :])))
            np.testing.assert_allclose(derivatives[n][place], (sides[0] - sides[1]) / 2e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_choices(chosen: bool, sign: float) -> None:
    c, x, y = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(3,), dtype=D), relay.var("y", shape=(3,), dtype=D)
    shared = relay.exp(x)
    inner = relay.If(relay.less(relay.sum(y), relay.const(0.0, D)), shared * x, y)
    func = relay.Function((c, x, y), relay.If(c, relay.log(x) * y, inner) + shared)
    _beside_differences(func, np.array(chosen), np.array([1.0, 2.0, 3.0]), sign * np.array([4.0, 5.0, 6.0]))


def test_a_branch_that_is_not_taken_has_no_part_in_derivatives() -> None:
    x = relay.var("x", shape=(), dtype=D)
    # Where 0 is, sqrt has no derivative, and half of it times 0 were no number.
    func = relay.Function((x,), relay.If(relay.greater(x, relay.const(0.0, D)), relay.sqrt(x), x * relay.const(3.0, D)))
    np.testing.assert_array_equal(Evaluator(to_graph(transform.gradient(func)))("main", np.array(0.0))[1], [3.0])


def test_of_choices_of_several_values() -> None:
    x = relay.var("x", shape=(2,), dtype=D)
    pair = relay.If(relay.less(relay.sum(x), relay.const(9.0, D)), relay.Tuple([x * x, x]), relay.Tuple([x, relay.exp(x)]))
    func = relay.Function((x,), relay.TupleGetItem(pair, 0) * relay.TupleGetItem(pair, 1))
    for factor in (1.0, 4.0):
        _beside_differences(func, factor * np.array([1.0, 2.0]))


def test_of_splits_and_of_sizes_that_are_not_known() -> None:
    z = relay.var("z", shape=(2, 6), dtype=D)
    parts = relay.split(z, 3, axis=1)
    _beside_differences(relay.Function((z,), parts[0] * relay.exp(parts[2])), np.linspace(-1, 1, 12).reshape(2, 6))
    x = relay.var("x", shape=(relay.Any(), 2), dtype=D)
    func = transform.gradient(relay.Function((x,), relay.nn.relu(x) * x))
    (by_x,) = relay.create_executor("vm").evaluate(func)(np.ones((3, 2)))[1]
    np.testing.assert_allclose(by_x.numpy(), np.full((3, 2), 2.0))


def test_of_references_and_functions_that_call_themselves() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
    def @power(%n: int32, %x: float64) -> float64 { if (%n == 0) { 1f64 } else { @power(%n - 1, %x) * %x } }
    def @main(%x: float64) -> float64 {
      let %r = ref(%x);
      let %w = ref_write(%r, ref_read(%r) * @power(2, %x));
      ref_read(%r) + %x
    }
    """)
    (by_x,) = relay.create_executor(mod=mod).evaluate(transform.gradient(mod["main"], mod))(np.array(3.0))[1]
    np.testing.assert_allclose(by_x.numpy(), 3 * 9 + 1)
    open_one = relay.fromtext("""#[version = "0.0.5"]
    def @main(%c: bool, %x: float64) -> float64 {
      let %r = ref(%x);
      let %w = if (%c) { ref_write(%r, %x * 2f64) } else { ref_write(%r, 1f64) };
      ref_read(%r)
    }
    """)
    with pytest.raises(DeclarationError, match="what a reference holds isn't known before the function runs"):
        transform.gradient(open_one["main"])


def test_of_parts() -> None:
    x = relay.var("x", shape=(4, 6), dtype=D)
    places, columns = relay.const(np.array([[0, 3, 0], [1, 2, 1]])), relay.const(np.array([1, 1, 5]))
    parts = relay.strided_slice(x, [3, 1], [0, 6], [-2, 3]), relay.gather_nd(x, places), relay.take(x, columns, 1)
    sums = [relay.sum(y * y * relay.const(n, D)) for n, y in enumerate(parts, 1)]  # one function, which is built once
    check_grad(run_infer_type(relay.Function((x,), sums[0] + sums[1] + sums[2])))


def test_of_operators_without_a_rule() -> None:
    x, g, b = relay.var("x", shape=(4, 6), dtype=D), *(relay.var(name, shape=(6,), dtype=D) for name in "gb")
    func = relay.Function((x, g, b), relay.nn.layer_norm(x, g, b))
    with pytest.raises(DeclarationError, match=r"layer_norm\w* are tensor functions, which stand in a module: pass mod="):
        transform.gradient(func)
    short = relay.var("x", shape=(3, 6), dtype=D)
    functions: dict[Any, Any] = {"main": func, "other": relay.Function((short, g, b), relay.nn.layer_norm(short, g, b))}
    made = transform.FirstOrderGradient()(tvm.IRModule(functions))
    array = np.random.default_rng(0).standard_normal((4, 6))
    _, (_, by_g, by_b) = Evaluator(to_graph(made))("main", array, np.ones(6), np.zeros(6))
    normal = (array - array.mean(1, keepdims=True)) / np.sqrt(array.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(by_g, normal.sum(0), atol=1e-9)
    np.testing.assert_allclose(by_b, np.full(6, 4.0))
    np.testing.assert_allclose(Evaluator(to_graph(made))("other", array[:3], np.ones(6), np.zeros(6))[1][2], np.full(6, 3.0))
