"""The suites declare what they say: every case can be made, and every workload computes its operator on a small case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr.errors import WorkloadError
from tensorexpr.target import Target
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.te.reference import evaluate
from tensorexpr.topi import testing
from tensorexpr.workloads import SUITES, Case, suite
from tests.operators import Array, assert_same, values


@pytest.mark.parametrize("name", SUITES)
def test_cases_of_a_suite(name: str) -> None:
    cases = suite(name)
    assert len({case.name for case in cases}) == len(cases) == len({case.key for case in cases})
    for case in cases:
        tensors = case.tensors()
        inputs = [isinstance(tensor.op, PlaceholderOp) for tensor in tensors]
        assert inputs == sorted(inputs, reverse=True) and not inputs[-1], "inputs first, then outputs"
        assert all(inputs[number] for number in case.constants)
        assert case.bytes_touched() > 0
        # Of single operators some only move elements, some are functions that aren't counted, some have loops of their own.
        assert case.flops() > 0 or "transpose" in case.name or name == "topi"


def test_the_suites_have_the_sizes_of_their_papers() -> None:
    assert [len(suite(name)) for name in ("ansor", "resnet50", "bert")] == [96, 23, 8]
    assert suite("gemm")[4].flops() == 2 * 1024**3
    convolution = next(case for case in suite("resnet50") if case.name == "conv3x3-64-56-64-s1")
    assert convolution.flops() == 64 * 56 * 56 * (2 * 64 * 9 + 2)


def test_weights_are_packed_for_the_target() -> None:
    for cpu, panel in (("haswell", 16), ("znver5", 32)):
        cases = suite("resnet50_packed", Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"))
        assert {case.args[-1] for case in cases} == {panel}
        assert [case.name for case in cases] == [case.name for case in suite("resnet50_packed")]


def test_an_unknown_suite_is_named() -> None:
    with pytest.raises(WorkloadError, match="there is no suite 'vgg'; suites: ansor, resnet50"):
        suite("vgg")


def results(workload: str, *args: Any) -> tuple[list[Array], Array]:
    """Random inputs of a workload, and its output on them."""
    tensors = Case("small", workload, args).tensors()
    inputs = tensors[:-1]
    arrays = [values(*(int(str(extent)) for extent in tensor.shape)) for tensor in inputs]
    return arrays, evaluate(tensors[-1:], dict(zip(inputs, arrays, strict=True)))[0]


def last(array: Array) -> Array:
    return np.moveaxis(array, 1, -1)


def first(array: Array) -> Array:
    return np.moveaxis(array, -1, 1)


@pytest.mark.parametrize("groups, dilation", [(1, 1), (2, 1), (1, 2)])
def test_convolutions_with_channels_last(groups: int, dilation: int) -> None:
    (x, w), found = results("suite.conv2d", 2, 7, 6, 4, 6, 3, 2, 1, dilation, groups)
    wanted = testing.conv_python(first(x), w.transpose(3, 2, 0, 1), (2, 2), [(1, 1), (1, 1)], (dilation, dilation), groups)
    assert_same(found, last(wanted), 1e-4)
    (x, w), found = results("suite.conv1d", 2, 7, 4, 6, 3, 2, 1, dilation, groups)
    assert_same(found, last(testing.conv_python(first(x), w.transpose(2, 1, 0), (2,), [(1, 1)], (dilation,), groups)), 1e-4)


def test_convolutions_over_volumes_and_of_single_channels() -> None:
    (x, w), found = results("suite.conv3d", 1, 4, 5, 6, 2, 3, 3, 2, 1)
    assert_same(found, last(testing.conv_python(first(x), w.transpose(4, 3, 0, 1, 2), (2, 2, 2), [(1, 1)] * 3, (1, 1, 1))), 1e-4)
    (x, w), found = results("suite.depthwise", 1, 6, 7, 4, 3, 2, 1)
    assert_same(found, last(testing.conv_python(first(x), w.transpose(2, 3, 0, 1), (2, 2), [(1, 1)] * 2, (1, 1), 4)), 1e-4)
    (x, w, b), found = results("suite.depthwise_nchw", 1, 4, 6, 7, 3, 1, 1, True)
    plain = testing.conv_python(x, w, (1, 1), [(1, 1)] * 2, (1, 1), 4) + b[:, None, None]
    assert_same(found, np.clip(plain, 0, 6), 1e-4)


@pytest.mark.parametrize("kernel, stride, padding", [(4, 2, 1), (3, 1, 0), (3, 2, 1), (5, 3, 2)])
def test_transposed_convolution(kernel: int, stride: int, padding: int) -> None:
    (x, w), found = results("suite.conv2d_transpose", 1, 4, 5, 3, 2, kernel, stride, padding)
    wanted = testing.conv_transpose_python(first(x), w.transpose(2, 3, 0, 1), (stride, stride), [(padding, padding)] * 2, (0, 0))
    assert_same(found, last(wanted), 1e-4)


def test_layers() -> None:
    (x, w, bias, offset, scale), found = results("suite.conv_layer", 1, 6, 6, 3, 4, 3, 1, 1)
    conv = last(testing.conv_python(first(x), w.transpose(3, 2, 0, 1), (1, 1), [(1, 1)] * 2, (1, 1)))
    assert_same(found, np.maximum((conv + bias) * scale + offset, 0), 1e-4)
    (x, w, bias), found = results("suite.conv2d_bias_relu", 1, 3, 6, 6, 4, 3, 2, 1)
    assert_same(found, np.maximum(testing.conv_python(x, w, (2, 2), [(1, 1)] * 2, (1, 1)) + bias[:, None, None], 0), 1e-4)


def test_packed_weights() -> None:
    (x, w, bias), found = results("suite.conv2d_bias_relu_packed", 1, 3, 6, 6, 5, 3, 2, 1, 4)
    weights = w.transpose(0, 4, 3, 1, 2).reshape(8, 3, 3, 3)[:5]
    assert_same(found, np.maximum(testing.conv_python(x, weights, (2, 2), [(1, 1)] * 2, (1, 1)) + bias[:, None, None], 0), 1e-4)


def test_capsules() -> None:
    (x, w), found = results("suite.capsule", 1, 5, 5, 2, 3, 3, 2, 1)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0)))
    wanted = np.zeros((1, 3, 3, 4, 4, 3))
    for y in range(3):
        for z in range(3):
            wanted[0, y, z] = np.einsum("rsikc,rskjco->ijo", padded[0, 2 * y : 2 * y + 3, 2 * z : 2 * z + 3], w)
    assert_same(found, wanted, 1e-4)


def test_products_and_attention() -> None:
    (a, b), found = results("suite.gemm", 3, 4, 5)
    assert_same(found, a @ b)
    (a, b), found = results("suite.batch_gemm", 2, 3, 4, 5, True)
    assert_same(found, a @ b.transpose(0, 2, 1))
    (a, b, bias), found = results("suite.dense", 3, 4, 5, "relu")
    assert_same(found, np.maximum(a @ b.T + bias, 0))
    (q, k), found = results("suite.transpose_batch_gemm", 2, 3, 4, 5)
    assert_same(found, np.einsum("bihd,bjhd->bhij", q, k))
    (q, k), found = results("suite.attention_scores", 2, 3, 5)
    assert_same(found, testing.softmax_python(q @ k.transpose(0, 2, 1) / np.sqrt(5), -1))


def test_memory_operators() -> None:
    (a,), found = results("suite.norm", 2, 3, 4)
    assert_same(found, np.sqrt((a**2).sum((1, 2))))
    (a, b, c), found = results("suite.elementwise", 9)
    assert_same(found, np.maximum(a * b + c, 0))
    (a, b), found = results("suite.elementwise_chain", 9)
    assert_same(found, np.tanh(b / (1 + np.exp(-a))) + np.exp(-a * a))
    (a,), found = results("suite.reduce", 3, 4, 0)
    assert_same(found, a.sum(0))
    (a,), found = results("suite.transpose", 3, 4)
    assert_same(found, a.T)
    (a, g, b), found = results("suite.layer_norm", 3, 8)
    assert_same(found, testing.norm_python(a, (1,), 1e-5) * g + b, 1e-4)


def test_every_operator_of_the_suite_topi_has_a_peer_and_inputs_that_it_can_read() -> None:
    torch_operators = pytest.importorskip("tensorexpr.driver.bench.peers.torch_operators")
    from tensorexpr.driver.bench.ours import random_inputs

    cases = suite("topi")
    assert len(cases) >= 60
    assert {case.args[0] for case in cases} == set(torch_operators.OPERATORS)
    embedding = next(case for case in cases if case.name == "take-embedding")
    table, places = random_inputs(embedding)
    assert places.min() >= 0 and places.max() < len(table)
    rows = random_inputs(next(case for case in cases if case.args[0] == "sparse.csrmm"))[2]
    assert rows[0] == 0 and rows[-1] == 32768 and (np.diff(rows) >= 0).all()
    with pytest.raises(WorkloadError, match=r"suite\.topi has no operator 'nobody'"):
        Case("x", "suite.topi", ("nobody", (("float32", 3),))).tensors()
