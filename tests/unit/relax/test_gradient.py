"""Derivatives of functions of graphs, by differences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax, tir
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import const, op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.transform.gradient_rows import TABLE

from .test_simplify import graph

A, B = (3, 4), (4,)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _stepped(make: Any, a: Any) -> Any:
    """What has no derivative by itself, beside what has one."""
    return make(a) * const(0.0, "float64") + a * a


def _compared(make: Any, a: Any) -> Any:
    return _stepped(lambda a: op.astype(make(a, a * a), "float64"), a)


CASES: dict[str, Any] = {
    "add": (lambda a, b: a + b, A, B),
    "subtract": (lambda a, b: b - a, A, B),
    "multiply": (lambda a, b: a * b, A, (3, 1)),
    "divide": (lambda a, b: a / b, A, B),
    "maximum": (op.maximum, A, B),
    "minimum": (op.minimum, A, A),
    "negative": (op.negative, A),
    "exp": (op.exp, A),
    "log": (lambda a: op.log(a * a), A),
    "sqrt": (lambda a: op.sqrt(a * a + const(1.0, "float64")), A),
    "rsqrt": (lambda a: op.rsqrt(a * a + const(1.0, "float64")), A),
    "square": (op.square, A),
    "sin": (op.sin, A),
    "cos": (op.cos, A),
    "tanh": (op.tanh, A),
    "sigmoid": (op.sigmoid, A),
    "abs": (op.abs, A),
    "nn.relu": (op.nn.relu, A),
    "nn.silu": (op.nn.silu, A),
    "nn.softmax": (lambda a: op.nn.softmax(a, 0) * a, A),
    "nn.log_softmax": (lambda a: op.nn.log_softmax(a) * a, A),
    "where": (lambda a, b: op.where(op.greater(a, b), a * a, b), A, B),
    "matmul": (lambda a, b: op.matmul(a, b) * op.matmul(a, b), (2, 3, 4), (4, 5)),
    "sum": (lambda a: op.sum(a * a, 1), A),
    "mean": (lambda a: op.mean(a * a, (0,), True), A),
    "max": (lambda a: op.max(a, 1), A),
    "min": (lambda a: op.min(a), A),
    "permute_dims": (lambda a: op.permute_dims(a * a, (2, 0, 1)) * op.permute_dims(a, (2, 0, 1)), (2, 3, 4)),
    "reshape": (lambda a: op.reshape(a * a, (2, 6)), A),
    "expand_dims": (lambda a: op.expand_dims(a * a, 1), A),
    "squeeze": (lambda a: op.squeeze(a * a), (3, 1)),
    "flatten": (lambda a: op.flatten(a * a), A),
    "broadcast_to": (lambda a: op.broadcast_to(a * a, (2, 3, 4)), (3, 1)),
    "concat": (lambda a, b: op.concat([a * a, b], 1), A, (3, 2)),
    "tan": (op.tan, A),
    "asin": (lambda a: op.asin(op.tanh(a) * const(0.5, "float64")), A),
    "acos": (lambda a: op.acos(op.tanh(a) * const(0.5, "float64")), A),
    "atan": (op.atan, A),
    "asinh": (op.asinh, A),
    "acosh": (lambda x: op.acosh(op.add(op.square(x), relax.const(1.5, "float64"))), A),
    "atanh": (lambda x: op.atanh(op.multiply(x, relax.const(0.1, "float64"))), A),
    "sinh": (op.sinh, A),
    "cosh": (op.cosh, A),
    "erf": (op.erf, A),
    "power": (lambda a, b: op.power(op.exp(a), b), A, B),
    "clip": (lambda a: op.clip(a * a, 0.25, 1.0), A),
    "nn.leakyrelu": (lambda a: op.nn.leakyrelu(a, 0.2), A),
    "take": (lambda a: op.take(a * a, const(np.array([[0, 2, 9], [2, -5, 1]])), 1), (2, 4, 3)),
    "gather_nd": (lambda a: op.gather_nd(a * a, const(np.array([[0, 1], [2, 3], [0, 1]]))), (3, 4, 2)),
    "strided_slice": (lambda a: op.strided_slice(op.strided_slice(a * a, [0, -1], [-1, 1], [-9, 8], [-2, 3]), [1], [0], [1]), (4, 6)),
    "nn.conv2d": (lambda a, b: op.nn.conv2d(a, b, 2, (1, 0, 2, 1)) * op.nn.conv2d(a, b, 2, (1, 0, 2, 1)), (2, 2, 6, 5), (3, 2, 3, 2)),
    "nn.avg_pool2d": (lambda a: op.nn.avg_pool2d(a * a, (2, 3), 2, (1, 0, 0, 1), ceil_mode=True), (1, 2, 5, 4)),
    "nn.max_pool2d": (lambda a: op.nn.max_pool2d(a * a, 3, 2, 1), (1, 2, 5, 4)),
    **{name: (partial(_stepped, getattr(op, name)), A) for name in ("ceil", "floor", "round", "sign")},
    "ones_like": (lambda a: op.ones_like(a) * a, A),
    "zeros_like": (lambda a: op.zeros_like(a) * a, A),
    "nn.gelu": (op.nn.gelu, A),
    "variance": (lambda a: op.variance(a, [1]) * op.variance(a, [0, 1], True), A),
    "cumsum": (lambda a: op.cumsum(a * a, 1, exclusive=True) * op.cumsum(a, 1) * op.reshape(op.cumsum(a), (3, 4)), A),
    "split": (lambda a: op.split(a * a, 2, 1)[0] * op.split(a, [1, 3], 1)[1], A),
    "triu": (lambda a: op.triu(a * a, 1), A),
    "tril": (lambda a: op.tril(a * a), A),
    "nn.cross_entropy_with_logits": (lambda a, b: op.nn.cross_entropy_with_logits(a * a, b), A, A),
    "nn.nll_loss": (lambda a: op.nn.nll_loss(a * a, const(np.array([1, 3, 2])), const(np.array([1.0, 2, 3, 4])), ignore_index=3), A),
    **{name: (partial(_compared, getattr(op, name)), A) for name in COMPARISONS},
    "full_like": (partial(_stepped, lambda a: op.full_like(a, const(2.0, "float64"))), A),
    "astype": (lambda a: op.astype(op.astype(a, "float32") * op.astype(a, "float32"), "float64"), A),
}  # fmt: skip


def test_every_derivative_has_a_case() -> None:
    assert CASES.keys() == TABLE.keys()


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    make, *shapes = CASES[name]
    _beside_differences(make, shapes, 1e-3 if name == "astype" else 1e-6)


def _beside_differences(make: Any, shapes: Any, step: float = 1e-6) -> None:
    mod = graph(lambda *xs: op.sum(make(*xs)), *shapes, dtype="float64")
    made: Any = transform.Gradient("main")(mod)
    rng = np.random.default_rng(7)
    args = [rng.uniform(0.2, 1.2, shape) * rng.choice([-1, 1], shape) for shape in shapes]
    evaluate = Evaluator(made)
    value, found = evaluate("main_adjoint", *args)
    np.testing.assert_allclose(value, evaluate("main", *args))
    for n, arg in enumerate(args):
        expected = np.empty(arg.shape)
        for place in np.ndindex(*arg.shape):
            ends = []
            for sign in (1, -1):
                moved = [one.copy() for one in args]
                moved[n][place] += sign * step
                ends.append(evaluate("main", *moved))
            expected[place] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[n], expected, rtol=1e-3, atol=max(step, 1e-6))


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (op.matmul, ((4,), (4,))),
        (op.matmul, ((4,), (2, 4, 3))),
        (op.matmul, ((2, 3, 4), (4,))),
        (lambda p: op.nn.nll_loss(p, const(np.array(2)), reduction="sum"), ((4,),)),
        (lambda p: op.nn.nll_loss(p * p, const(np.array([[0, 1], [2, 2]])), reduction="none"), ((2, 3, 2),)),
    ],
)
def test_derivatives_of_other_forms(make: Any, shapes: Any) -> None:
    _beside_differences(make, shapes)


def test_which_derivatives() -> None:
    mod: Any = graph(lambda x, y: op.sum(op.matmul(x, y)), (2, 3), (3, 4))
    made: Any = transform.Gradient("main", require_grads=mod["main"].params[1])(mod)
    info = made["main_adjoint"].ret_struct_info
    assert [one.extents[0].value for one in info.fields[1].fields] == [3]
    assert "x0_adjoint" not in made.script()
    ex = relax.build(made)
    x, y = (np.ones(shape, "float32") for shape in ((2, 3), (3, 4)))
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main_adjoint"](x, y)[1][0].numpy(), np.full((3, 4), 2.0))


@pytest.mark.parametrize(
    ("make", "message", "given"),
    [
        (lambda x: op.sum(op.sort(x)), "no derivative is known of R.sort", {}),
        (lambda x: op.exp(x), "what is derived is a number", {}),
        (lambda x: op.sum(x), "result 1 of main", {"target_index": 1}),
        (lambda x: op.sum(x), "no function 'f'", {"func_name": "f"}),
        (lambda x: op.sum(x), "is no parameter of main, which has x0", {"require_grads": relax.Var("y")}),
    ],
)
def test_what_has_no_derivative(make: Any, message: str, given: Any) -> None:
    with pytest.raises(DeclarationError, match=message):
        transform.Gradient(**{"func_name": "main", **given})(graph(make, (2,)))


def test_parts_of_a_join_may_have_symbolic_extents() -> None:
    n, bb = tir.Var("n", "int64"), relax.BlockBuilder()
    a, b = (relax.Var(name, relax.TensorStructInfo(shape, "float64")) for name, shape in (("a", (n, 3)), ("b", (2, 3))))
    with bb.function("main", [a, b]):
        with bb.dataflow():
            out = bb.emit_output(op.sum(op.concat([a * a, b * b], 0) * op.concat([a, b], 0)))
        bb.emit_func_output(out)
    made: Any = transform.Gradient("main")(bb.get())
    x, y = np.random.default_rng(3).random((4, 3)), np.random.default_rng(4).random((2, 3))
    _, found = Evaluator(made)("main_adjoint", x, y)
    np.testing.assert_allclose(found[0], 3 * x * x)
    np.testing.assert_allclose(found[1], 3 * y * y)
    assert relax.VirtualMachine(relax.build(made, "llvm"))["main_adjoint"](x, y)[1][0].shape == (4, 3)
