"""What computations mean. 24 programs were compared with TVM 0.19's compiled code when this was written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.te import ComputeOp, Tensor, contraction, reference
from tensorexpr.te.reference import evaluate, evaluate_points
from tensorexpr.testing import random_array, random_inputs
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.expr import Reduce, Var

from .programs import argmax, conv2d, matmul_add, softmax

k = te.reduce_axis((0, 9), "k")


def value(tensor: Tensor, array: Any) -> Any:
    """The value of `tensor`, which reads one placeholder."""
    return evaluate([tensor], {tensor.op.input_tensors[0]: array})[0]


def test_matmul_add() -> None:
    tensors = matmul_add(17)
    a, b, c = (random_array((17, 17), "float32", seed) for seed in range(3))
    result = evaluate(tensors, dict(zip(tensors, (a, b, c), strict=False)))
    assert result[0] is not None and result[3].dtype == np.float32
    np.testing.assert_allclose(result[3], a.astype(np.float64) @ b + c, rtol=1e-6, atol=1e-6)


def test_conv2d_with_padding() -> None:
    data, kernel, relu = conv2d(6, 3)
    d, w = random_array((1, 6, 6, 3), "float32", 1), random_array((3, 3, 3, 3), "float32", 2)
    padded = np.pad(d, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
    expected = sum(np.einsum("byxc,cf->byxf", padded[:, y : y + 6, x : x + 6], w[y, x]) for y in range(3) for x in range(3))
    np.testing.assert_allclose(evaluate([relu], {data: d, kernel: w})[0], np.maximum(expected, 0), rtol=1e-5, atol=1e-6)


def test_softmax() -> None:
    A, norm = softmax(5, 7)
    a = random_array((5, 7), "float32")
    e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(evaluate([norm], {A: a})[0], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


def test_argmax_pairs() -> None:
    A, index, largest = argmax(6, 40)
    a = random_array((6, 40), "float32")
    indices, values = evaluate([index, largest], {A: a})
    np.testing.assert_array_equal(indices, a.argmax(axis=1))
    np.testing.assert_array_equal(values, a.max(axis=1))
    assert indices.dtype == np.int32


def test_sums_of_halves_are_accumulated_in_float64() -> None:
    for dtype in ("float16", "bfloat16"):
        A = te.placeholder((4096,), dtype, name="A")
        r = te.reduce_axis((0, 4096), "r")
        ones = np.ones(4096, to_numpy(dtype))
        assert float(value(te.compute((), lambda A=A, r=r: te.sum(A[r], axis=r)), ones)) == 4096


def test_integers_wrap_in_their_dtype() -> None:
    A = te.placeholder((9,), "int8", name="A")
    a = np.full(9, 100, np.int8)
    assert value(te.compute((), lambda: te.sum(A[k], axis=k)), a) == (900 + 128) % 256 - 128
    assert value(te.compute((), lambda: te.sum(A[k] * A[k], axis=k)), a) == ((10000 % 256) * 9 + 128) % 256 - 128
    big = te.placeholder((9,), "int64", name="B")
    huge = np.full(9, (1 << 62) + 1, np.int64)
    assert value(te.compute((), lambda: te.sum(big[k] * big[k], axis=k)), huge) == ((((1 << 62) + 1) ** 2 * 9 + (1 << 63)) % (1 << 64)) - (
        1 << 63
    )


def test_where_init_and_offset_domains() -> None:
    A = te.placeholder((4, 9), name="A")
    a = random_array((4, 9), "float32")
    r = te.reduce_axis((2, 7), "r")
    total = te.compute((4,), lambda i: te.sum(A[i, r], axis=r, where=te.all(r < 6, A[i, r] > 0.0), init=A[i, 0]))
    np.testing.assert_allclose(value(total, a), np.where(a > 0, a, 0)[:, 2:6].sum(axis=1) + a[:, 0], rtol=1e-6)
    lowest = te.compute((4,), lambda i: te.max(A[i, r], axis=r, where=r > 99, init=-float("inf")))
    assert (value(lowest, a) == -np.inf).all()


def test_maximum_follows_its_definition_on_nan() -> None:
    A = te.placeholder((9,), name="A")
    a = np.array([1, np.nan, 3, 2, np.nan, 0, 0, 0, 0], np.float32)
    assert value(te.compute((), lambda: te.max(A[k], axis=k)), a) == 0  # each NaN wins, then loses to the next value
    assert value(te.compute((), lambda: te.max(A[k], axis=k)), np.full(9, -np.inf, np.float32)) == np.finfo(np.float32).min


def test_general_combiners_fold_in_order() -> None:
    A = te.placeholder((5, 9), name="A")
    affine = te.comm_reducer(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), lambda a, b: (const(1, a), const(0, b)), "affine")
    a = random_array((5, 9), "float32")
    first, second = te.compute((5,), lambda i: affine((A[i, k] * 0.5, A[i, k]), axis=k))
    got = evaluate([first, second], {A: a})
    one, zero = np.ones(5), np.zeros(5)
    for column in a.T.astype(np.float64):
        one, zero = one * column * 0.5, zero * column * 0.5 + column
    np.testing.assert_allclose(got[0], one, rtol=1e-4)
    np.testing.assert_allclose(got[1], zero, rtol=1e-4, atol=1e-6)


def test_products_and_logical_reductions() -> None:
    A = te.placeholder((4, 9), name="A")
    a = random_array((4, 9), "float32") + np.float32(2)
    product = te.comm_reducer(lambda x, y: x * y, lambda t: const(1, t), "prod")
    np.testing.assert_allclose(value(te.compute((4,), lambda i: product(A[i, k], axis=k)), a), a.prod(axis=1), rtol=1e-5)
    every = te.comm_reducer(lambda x, y: te.all(x, y), lambda t: const(True, t), "every")
    np.testing.assert_array_equal(value(te.compute((4,), lambda i: every(A[i, k] > 1.2, axis=k)), a), (a > 1.2).all(axis=1))


def test_empty_extents() -> None:
    A = te.placeholder((0, 9), name="A")
    a = np.zeros((0, 9), np.float32)
    assert value(te.compute((0,), lambda i: te.sum(A[i, k], axis=k)), a).shape == (0,)
    r = te.reduce_axis((0, 0), "r")
    np.testing.assert_array_equal(value(te.compute((9,), lambda j: te.sum(A[r, j], axis=r)), a), np.zeros(9))
    np.testing.assert_array_equal(value(te.compute((9,), lambda j: te.sum(A[r, j], axis=r, init=3.0)), a), np.full(9, 3))
    np.testing.assert_array_equal(value(te.compute((3,), lambda j: te.if_then_else(j > 5, A[0, j], 7.0)), a), np.full(3, 7))


def test_symbols_are_bound_from_arrays() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    r = te.reduce_axis((0, m), "r")
    alpha = te.var("alpha", "float32")
    a = random_array((3, 5), "float32")
    scaled = te.compute((n + 1,), lambda i: te.if_then_else(i < n, A[te.min(i, n - 1), 0] * alpha, -1.0))
    got = evaluate([te.compute((n,), lambda i: te.sum(A[i, r], axis=r)), scaled], {A: a, alpha: np.float32(2)})
    np.testing.assert_allclose(got[0], a.sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(got[1], [*(a[:, 0] * 2), -1])


def test_points_are_what_the_whole_has_there() -> None:
    *_, relu = conv2d(20, 4)
    inputs = random_inputs([relu])
    points = np.array([[0, 0, 0, 0], [0, 19, 19, 3], [0, 7, 0, 2], [0, 7, 0, 2]])
    whole = evaluate([relu], inputs)[0]
    np.testing.assert_allclose(evaluate_points(relu, inputs, points), whole[tuple(points.T)], rtol=1e-6, atol=1e-7)
    assert evaluate_points(relu, inputs, np.zeros((0, 4), int)).shape == (0,)


def test_points_compute_only_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    A = te.placeholder((2000,), name="A")
    doubled = te.compute((2000,), lambda i: A[i] * 2.0, name="doubled")
    window = te.compute((1992,), lambda i: te.sum(doubled[i + k], axis=k), name="window")
    a = random_array((2000,), "float32")
    monkeypatch.setattr(reference._Evaluation, "_fill", lambda *_: pytest.fail("a whole tensor was computed"))
    np.testing.assert_allclose(evaluate_points(window, {A: a}, np.array([[5], [1991]])), [a[5:14].sum() * 2, a[1991:].sum() * 2], rtol=1e-5)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for tensors in (matmul_add(13), conv2d(5, 3), softmax(6, 11), argmax(4, 9)):
        inputs = random_inputs(tensors)
        whole = evaluate(tensors, inputs)
        with monkeypatch.context() as patch:
            patch.setattr(reference, "BLOCK_BYTES", 1 << 9)
            for a, b in zip(whole, evaluate(tensors, inputs), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def recognised(tensor: Tensor) -> contraction.Contraction | None:
    assert isinstance(tensor.op, ComputeOp) and isinstance(tensor.op.body[0], Reduce)
    return contraction.recognise(tensor.op.body[0])


def test_sums_of_products_are_recognised_and_nothing_else() -> None:
    A, B = te.placeholder((9, 9), name="A"), te.placeholder((9, 9), "int8", name="B")
    i = Var("i", "int32")
    assert recognised(matmul_add()[3].op.input_tensors[0]) is not None
    assert recognised(conv2d()[2].op.input_tensors[0]) is not None
    found = contraction.recognise(te.sum(A[i, k] * 2.0 * B[k, i].astype("float32"), axis=k))
    assert found is not None and found.scale == 2.0 and [f.casts for f in found.factors] == [(), ("float32",)]
    for other in (
        te.sum(A[i, k] + 1.0, axis=k),
        te.max(A[i, k], axis=k),
        te.sum(A[i, k], axis=k, where=k < 3),
        te.sum(A[i, te.floormod(k, 3)], axis=k),
        te.sum(te.exp(A[i, k]), axis=k),
        te.sum(A[B[i, k].astype("int32"), 0], axis=k),
    ):
        assert contraction.recognise(other) is None


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint8"])
def test_contractions_agree_with_the_plain_way(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A, B, C = te.placeholder((4, 9, 9), dtype, name="A"), te.placeholder((9, 5), dtype, name="B"), te.placeholder((9,), dtype, name="C")
    r = te.reduce_axis((1, 4), "r")
    unused = te.reduce_axis((0, 3), "unused")
    tensors = [
        te.compute((4, 5), lambda i, j: te.sum(A[i, k, 8 - k] * B[k, j], axis=k)),  # a reversed diagonal
        te.compute((5, 4), lambda j, i: te.sum(B[r * 2, j] * A[i, r + 1, r], axis=r)),  # strides and offsets
        te.compute((4, 9), lambda i, j: te.sum(A[i, j, k] * C[k] * C[j], axis=k)),  # three factors
        te.compute((4, 6), lambda i, j: te.sum(C[k], axis=[k, unused])),  # axes nobody uses
        te.compute((9,), lambda i: te.sum(A[3, k, i] * 3, axis=k, init=C[i])),
        te.compute((4, 9, 5), lambda b, i, j: te.sum(A[b, i, k] * A[b, k, j], axis=k)),  # batched
    ]
    inputs = random_inputs(tensors)
    fast = evaluate(tensors, inputs)
    monkeypatch.setattr(reference, "recognise", lambda _: None)
    for a, b in zip(fast, evaluate(tensors, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_factor_of_a_sum_is_that_of_its_dtype() -> None:
    a, k = te.placeholder((4,), "float16", name="A"), te.reduce_axis((0, 4), name="k")
    found = recognised(te.compute((1,), lambda i: te.sum(a[k] * tir.const(0.1, "float16"), axis=k)))
    assert found is not None and found.scale == float(np.float16(0.1))
