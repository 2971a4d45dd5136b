"""`te.gradient`: against central differences, by its form, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.runtime.build import build
from tensorexpr.te import ComputeOp, Tensor
from tensorexpr.te.dag import post_dfs_order
from tensorexpr.te.derivative import _CALLS, _UNARY
from tensorexpr.te.reference import evaluate
from tensorexpr.testing import random_array, random_inputs
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import Call, IntImm, PrimExpr
from tensorexpr.tir.intrin import INTRINSICS, select
from tests.gradients import contracted, jacobian

Program = tuple[Tensor, list[Tensor]]


def given(*shape: int, name: str = "A", dtype: str = "float64") -> Tensor:
    return te.placeholder(shape, dtype, name)


def matmul() -> Program:
    A, B, k = given(3, 4), given(4, 2, name="B"), te.reduce_axis((0, 4), "k")
    return te.compute((3, 2), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"), [A, B]


def dense_relu_chain() -> Program:
    x, w, b, v = given(2, 3, name="x"), given(4, 3, name="w"), given(4, name="b"), given(2, 4, name="v")
    k, m = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 4), "m")
    dense = te.compute((2, 4), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="dense")
    relu = te.compute((2, 4), lambda i, j: te.max(dense[i, j] + b[j], 0.0), name="relu")
    return te.compute((2, 2), lambda i, j: te.sum(relu[i, m] * v[j, m], axis=m), name="out"), [x, w, b, v]


def conv2d(stride: int = 1) -> Program:
    data, kernel, n = given(1, 4, 4, 2, name="data"), given(3, 3, 2, 2, name="kernel"), 4 // stride
    pad = te.compute(
        (1, 6, 6, 2),
        lambda b, y, x, c: te.if_then_else(te.all(y >= 1, y < 5, x >= 1, x < 5), data[b, y - 1, x - 1, c], 0.0),
        name="pad",
    )
    ry, rx, rc = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx"), te.reduce_axis((0, 2), "rc")
    conv = te.compute(
        (1, n, n, 2),
        lambda b, y, x, f: te.sum(pad[b, y * stride + ry, x * stride + rx, rc] * kernel[ry, rx, rc, f], axis=[ry, rx, rc]),
        name="conv",
    )
    return conv, [data, kernel]


def softmax() -> Program:
    A, k = given(3, 4), te.reduce_axis((0, 4), "k")
    exp = te.compute((3, 4), lambda i, j: te.exp(A[i, j]), name="exp")
    total = te.compute((3,), lambda i: te.sum(exp[i, k], axis=k), name="total")
    return te.compute((3, 4), lambda i, j: exp[i, j] / total[i], name="softmax"), [A]


def stable_softmax() -> Program:
    A, k, k2 = given(3, 4), te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "k2")
    largest = te.compute((3,), lambda i: te.max(A[i, k2], axis=k2), name="largest")
    exp = te.compute((3, 4), lambda i, j: te.exp(A[i, j] - largest[i]), name="exp")
    total = te.compute((3,), lambda i: te.sum(exp[i, k], axis=k), name="total")
    return te.compute((3, 4), lambda i, j: exp[i, j] / total[i], name="softmax"), [A]


def broadcast_add() -> Program:
    A, B, C = given(3, 4), given(4, name="B"), given(3, 1, name="C")
    result: Tensor = A + B + C
    return result, [A, B, C]


def mean() -> Program:
    A, i, j = given(3, 4), te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 4), "j")
    total = te.compute((), lambda: te.sum(A[i, j], axis=[i, j]), name="total")
    return te.compute((), lambda: total() / 12.0, name="mean"), [A]


def max_pool(window: int = 2, stride: int = 2) -> Program:
    A, n = given(2, 8), (8 - window) // stride + 1
    r = te.reduce_axis((0, window), "r")
    return te.compute((2, n), lambda c, x: te.max(A[c, x * stride + r], axis=r), name="pool"), [A]


def transposes() -> Program:
    A = given(2, 3, 4)
    first = te.compute((4, 2, 3), lambda c, a, b: A[a, b, c] * 2.0, name="first")
    return te.compute((3, 4, 2), lambda b, c, a: te.sin(first[c, a, b]), name="second"), [A]


def reshapes() -> Program:
    A = given(3, 4)
    flat = te.compute((12,), lambda f: te.tanh(A[f // 4, f % 4]), name="flat")
    return te.compute((2, 6), lambda i, j: flat[i * 6 + j] * 3.0, name="again"), [A]


def rank_zero() -> Program:
    a, b = given(name="a"), given(name="b")
    return te.compute((), lambda: te.exp(a()) * b(), name="c"), [a, b]


def diamond() -> Program:
    A = given(5)
    left = te.compute((5,), lambda i: A[i] * A[i], name="left")
    right = te.compute((5,), lambda i: te.sin(A[4 - i]), name="right")
    return te.compute((5,), lambda i: left[i] * right[i] + A[i], name="joined"), [A]


def stencil() -> Program:
    A = given(8)
    return te.compute((6,), lambda i: A[i] - 2.0 * A[i + 1] * A[i + 2], name="stencil"), [A]


def diagonal_and_row() -> Program:
    A = given(4, 4)
    return te.compute((4,), lambda i: A[i, i] * A[2, i], name="diagonal"), [A]


def conditional_sum() -> Program:
    A, b, k = given(4, 5), given(4, name="b"), te.reduce_axis((1, 5), "k")
    return te.compute((4,), lambda i: te.sum(A[i, k] * A[i, k - 1], axis=k, where=k <= i, init=b[i] * b[i]), name="partial"), [A, b]


def maximum_from_a_start() -> Program:
    A, b, k = given(6, 3), given(6, name="b"), te.reduce_axis((0, 3), "k")
    return te.compute((6,), lambda i: te.max(A[i, k], axis=k, init=b[i]), name="started"), [A, b]


def two_outputs() -> Program:
    A = given(5)
    first, second = te.compute((5,), lambda i: (A[i] * 2.0, te.exp(A[i])), name="pair")
    return te.compute((5,), lambda i: first[i] * second[4 - i], name="both"), [A]


def in_mixed_precision() -> Program:
    A = given(5)
    return te.compute((5,), lambda i: (A[i] * A[i]).astype("float32").astype("float64") * 3.0, name="mixed"), [A]


def overlapping_windows() -> Program:
    A, r, s = given(9), te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 2), "s")
    return te.compute((3,), lambda x: te.sum(A[x * 2 + r + s] * A[x * 2 + r], axis=[r, s]), name="windows"), [A]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "matmul": matmul,
    "dense_relu_chain": dense_relu_chain,
    "conv2d": conv2d,
    "conv2d_strided": lambda: conv2d(2),
    "softmax": softmax,
    "stable_softmax": stable_softmax,
    "broadcast_add": broadcast_add,
    "mean": mean,
    "max_pool": max_pool,
    "max_pool_overlapping": lambda: max_pool(3, 2),
    "max_pool_with_gaps": lambda: max_pool(2, 3),
    "transposes": transposes,
    "reshapes": reshapes,
    "rank_zero": rank_zero,
    "diamond": diamond,
    "stencil": stencil,
    "diagonal_and_row": diagonal_and_row,
    "conditional_sum": conditional_sum,
    "maximum_from_a_start": maximum_from_a_start,
    "two_outputs": two_outputs,
    "overlapping_windows": overlapping_windows,
}


def extents(tensor: Tensor) -> tuple[int, ...]:
    return tuple(extent.value for extent in tensor.shape if isinstance(extent, IntImm))


@pytest.mark.parametrize("name", PROGRAMS)
def test_central_differences(name: str) -> None:
    output, inputs = PROGRAMS[name]()
    arrays = random_inputs([output], seed=1)
    head = given(2, *extents(output), name="head")
    seed = random_array(extents(head), "float64", 2)
    full, products = te.gradient(output, inputs), te.gradient(output, inputs, head)
    for tensor, whole, product in zip(inputs, evaluate(full, arrays), evaluate(products, {**arrays, head: seed}), strict=True):
        expected = jacobian(output, tensor, arrays)
        np.testing.assert_allclose(whole, expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(product, contracted(seed, expected, output.ndim), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["matmul", "conv2d_strided", "stable_softmax", "max_pool_overlapping", "reshapes", "stencil", "mean"])
def test_lowered_and_compiled(name: str) -> None:
    output, inputs = PROGRAMS[name]()
    head = given(*extents(output), name="head")
    results = te.gradient(output, inputs, head)
    ops = post_dfs_order([result.op for result in results])
    placeholders = [op.output(0) for op in ops if not isinstance(op, ComputeOp)]
    assert_schedule_correct(te.create_schedule([result.op for result in results]), [*placeholders, *results], phases=(0, 3))


def test_training_step_end_to_end() -> None:
    A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 4), name="B")
    k = te.reduce_axis((0, 6), "k")
    C = te.compute((8, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    head = te.placeholder((8, 4), name="head")
    (slope,) = te.gradient(C, [B], head)
    function = build(te.create_schedule(slope.op), [A, head, slope])
    a, h, out = random_array((8, 6), "float32", 1), random_array((8, 4), "float32", 2), np.zeros((6, 4), np.float32)
    function(a, h, out)
    np.testing.assert_allclose(out, a.T @ h, rtol=1e-5, atol=1e-6)


def definition(tensor: Tensor) -> str:
    assert isinstance(tensor.op, ComputeOp)
    return str(tensor.op.body[0])


def reduced(tensor: Tensor) -> list[int]:
    return [axis.dom.extent.value for axis in tensor.op.reduce_axis if axis.dom is not None and isinstance(axis.dom.extent, IntImm)]


def test_the_gradient_of_a_product_is_a_product() -> None:
    C, (A, B) = matmul()
    dA, dB = te.gradient(C, [A, B], given(3, 2, name="H"))
    assert (reduced(dA), reduced(dB)) == ([2], [3])
    assert "where" not in definition(dA) and "if_then_else" not in definition(dB)
    assert dA.name == "C.A.grad"


def test_the_gradient_of_a_convolution_runs_over_the_window_only() -> None:
    output, inputs = conv2d()
    to_data, to_kernel = te.gradient(output, inputs, given(1, 4, 4, 2, name="H"))
    assert not reduced(to_data) and reduced(to_data.op.input_tensors[0]) == [2, 3, 3]  # channels and window
    assert sorted(reduced(to_kernel)) == [4, 4]  # the image


@pytest.mark.parametrize("make", [max_pool, transposes, reshapes])
def test_no_search_where_the_index_can_be_inverted(make: Callable[[], Program]) -> None:
    output, inputs = make()
    results = te.gradient(output, inputs, given(*extents(output), name="H"))
    assert [reduced(result) for result in results] == [[]]


def test_a_jacobian_isnt_multiplied_with_an_identity() -> None:
    output, inputs = matmul()
    assert all(not reduced(result) for result in te.gradient(output, inputs))


def one_input(value: Callable[[PrimExpr], Any], data: Sequence[float]) -> list[float]:
    A = given(len(data))
    output = te.compute((len(data),), lambda i: value(A(i)), name="value")
    (slope,) = te.gradient(output, [A], te.compute((len(data),), lambda i: te.const(1.0, "float64"), name="ones"))
    result: list[float] = evaluate([slope], {A: np.array(data)})[0].tolist()
    return result


def test_corners_as_tvm_has_them() -> None:
    assert one_input(te.abs, [-2.0, 0.0, 3.0]) == [-1.0, 1.0, 1.0]
    assert one_input(lambda x: te.max(x, 0.0), [-1.0, 0.0, 1.0]) == [0.0, 1.0, 1.0]
    assert one_input(lambda x: te.min(x, 1.0), [0.0, 1.0, 2.0]) == [1.0, 1.0, 0.0]
    assert one_input(te.floor, [0.5, 1.0]) == [0.0, 0.0]
    assert one_input(lambda x: select(x > 0.0, x * x, -x), [-1.0, 0.0, 2.0]) == [-1.0, -1.0, 4.0]


@pytest.mark.parametrize("reducer", [te.max, te.min])
def test_the_first_of_equal_elements_gets_it_all(reducer: Callable[..., PrimExpr]) -> None:
    A, k = given(5), te.reduce_axis((0, 5), "k")
    largest = te.compute((), lambda: reducer(A[k], axis=k), name="largest")
    sign = 1.0 if reducer is te.max else -1.0
    (slope,) = evaluate(te.gradient(largest, [A]), {A: sign * np.array([1.0, 3.0, 3.0, 2.0, 3.0])})
    assert slope.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


SMOOTH = sorted({*_UNARY, *_CALLS} - {"if_then_else"})


@pytest.mark.parametrize("name", SMOOTH)
def test_derivative_of_every_intrinsic(name: str) -> None:
    arity = INTRINSICS[f"tir.{name}"].arity
    inputs = [given(4, name=f"x{i}") for i in range(arity)]
    output = te.compute((4,), lambda i: Call("float64", f"tir.{name}", tuple(x(i) for x in inputs)), name="value")
    shift = 1.5 if name == "acosh" else 0.2  # all functions are smooth there
    arrays = {x: shift + 0.15 * (n + np.arange(4.0)) * (1 if n != 1 else 1.7) for n, x in enumerate(inputs)}
    for tensor, found in zip(inputs, evaluate(te.gradient(output, inputs), arrays), strict=True):
        np.testing.assert_allclose(found, jacobian(output, tensor, arrays), rtol=1e-6, atol=1e-8)


def test_integers_have_gradient_zero() -> None:
    A, index = given(4), te.placeholder((4,), "int32", "index")
    output = te.compute((4,), lambda i: A[i].astype("int32").astype("float64") + index[i].astype("float64"), name="steps")
    to_A, to_index = te.gradient(output, [A, index])
    assert (to_A.dtype, to_index.dtype) == ("float64", "int32")
    arrays = {A: np.arange(4.0), index: np.arange(4, dtype=np.int32)}
    assert not any(result.any() for result in evaluate([to_A, to_index], arrays))


def test_gathers_through_data_are_searched() -> None:
    A, index = given(6), te.placeholder((4,), "int32", "index")
    output = te.compute((4,), lambda i: A[index[i]] * A[index[i]], name="gathered")
    (slope,) = te.gradient(output, [A])
    arrays = {A: random_array((6,), "float64", 1), index: np.array([5, 0, 0, 2], np.int32)}
    np.testing.assert_allclose(evaluate([slope], arrays)[0], jacobian(output, A, arrays), rtol=1e-6, atol=1e-8)


def test_casts_between_floats() -> None:
    output, (A,) = in_mixed_precision()
    (slope,) = te.gradient(output, [A])
    x = np.array([1.0, 2.0, -3.0, 0.5, 0.0])
    np.testing.assert_allclose(evaluate([slope], {A: x})[0], np.diag(6 * x), rtol=1e-6)
    assert slope.dtype == "float64"


def test_what_is_independent_has_gradient_zero() -> None:
    output, _ = matmul()
    other = given(7, name="other")
    (slope,) = te.gradient(output, other)
    assert extents(slope) == (3, 2, 7)
    assert not evaluate([slope], {})[0].any()


def test_of_itself_and_of_what_is_on_the_way() -> None:
    A = given(3)
    middle = te.compute((3,), lambda i: A[i] * 2.0, name="middle")
    output = te.compute((3,), lambda i: middle[i] * middle[i], name="output")
    itself, to_middle, to_A = te.gradient(output, [output, middle, A])
    x = np.array([1.0, -2.0, 0.5])
    results = evaluate([itself, to_middle, to_A], {A: x})
    for found, expected in zip(results, (np.eye(3), np.diag(4 * x), np.diag(8 * x)), strict=True):
        np.testing.assert_allclose(found, expected)
    head = given(3, name="head")
    assert te.gradient(output, [output], head) == [head]


def test_symbolic_extents() -> None:
    n = te.size_var("n")
    A, B = te.placeholder((n, 3), "float64", "A"), te.placeholder((3, n), "float64", "B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((3, 3), lambda i, j: te.sum(B[i, k] * A[k, j], axis=k), name="C")
    flat = te.compute((3, n), lambda i, j: te.exp(A[j, i]), name="flat")
    arrays = {A: random_array((5, 3), "float64", 1), B: random_array((3, 5), "float64", 2)}
    for output in (C, flat):
        (slope,) = evaluate(te.gradient(output, [A]), arrays)
        np.testing.assert_allclose(slope, jacobian(output, A, arrays), rtol=1e-6, atol=1e-8)


def test_wide_indices() -> None:
    A, n = te.placeholder((te.const(6, "int64"),), "float64", "A"), te.const(3, "int64")
    output = te.compute((3,), lambda i: A[i.astype("int64") * 2 + 1] * A[n], name="wide")
    (slope,) = te.gradient(output, [A])
    arrays = {A: random_array((6,), "float64", 1)}
    np.testing.assert_allclose(evaluate([slope], arrays)[0], jacobian(output, A, arrays), rtol=1e-6, atol=1e-8)


def test_sums_of_several_values_have_derivatives() -> None:
    a, k = te.placeholder((4,), "float64", "A"), te.reduce_axis((0, 4), "k")
    pair = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda t, u: (te.const(0, t), te.const(0, u)), name="pair")
    total, squares = te.compute((1,), lambda i: pair((a[k], a[k] * a[k]), axis=k), name="C")
    out = te.compute((1,), lambda i: total[i] + squares[i], name="D")
    (slope,) = te.gradient(out, [a], te.placeholder((1,), "float64", "head"))
    head = next(tensor for tensor in post_dfs_order([slope.op]) if tensor.name == "head").output(0)
    values = np.arange(4.0)
    (found,) = evaluate([slope], {a: values, head: np.ones(1)})
    np.testing.assert_allclose(found, 1 + 2 * values)
