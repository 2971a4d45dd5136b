"""`build` with a schedule that it finds itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.errors import ArgumentError
from tests.programs import conv_relu, matmul, softmax


def test_a_product_of_awkward_sizes() -> None:
    args = matmul(19, 45, 23)
    x, y = (np.random.default_rng(n).standard_normal(shape, np.float32) for n, shape in enumerate([(19, 23), (23, 45)]))
    for inputs in (args, ComputeDAG(args)):
        out = np.empty((19, 45), np.float32)
        tvm.build(inputs, schedule="auto")(x, y, out)
        np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


def test_rows_and_windows_get_more_than_their_plain_loops() -> None:
    for args in (softmax(64, 128), conv_relu(8, 14, 32)):
        plain = tvm.lower(te.create_schedule(args[-1].op), args).script()
        found = tvm.auto_scheduler.default_schedule(args, "llvm")
        assert "T.parallel" in tvm.lower(found, args).script()
        assert "T.parallel" not in plain


def test_a_symbolic_shape_keeps_its_loops() -> None:
    n = te.var("n")
    x = te.placeholder((n,), name="X")
    out = te.compute((n,), lambda i: x[i] + 1.0, name="out")
    given, got = np.arange(5, dtype=np.float32), np.empty(5, np.float32)
    tvm.build([x, out], schedule="auto")(given, got)
    assert got.tolist() == [1, 2, 3, 4, 5]


def test_without_a_name_the_schedule_is_yours() -> None:
    args = matmul(4, 4, 4)
    tvm.build(te.create_schedule(args[-1].op), args)
    with pytest.raises(ArgumentError, match="tensors have no schedule"):
        tvm.build(args, args)


@pytest.mark.parametrize(
    ("inputs", "schedule", "message"),
    [
        (matmul(4, 4, 4), "best", "schedule is 'best'; it is \"auto\""),
        (te.create_schedule(matmul(4, 4, 4)[-1].op), "auto", "takes the tensors of a computation or a ComputeDAG, not Schedule"),
        ([], "auto", "takes the tensors"),
    ],
    ids=["name", "scheduled", "nothing"],
)
def test_refused(inputs: Any, schedule: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tvm.build(inputs, schedule=schedule)


def test_a_result_that_another_one_reads_is_written() -> None:
    x, rate = te.placeholder((70,), name="X"), te.placeholder((70,), name="R")
    mean = te.compute((70,), lambda i: x[i] * 0.9 + rate[i], name="mean")
    out = te.compute((70,), lambda i: x[i] - mean[i] * 0.5, name="out")
    assert ComputeDAG([x, rate, mean, out]).outputs == (mean.op, out.op)
    given = np.random.default_rng(0).standard_normal((2, 70), np.float32)
    found = np.zeros((2, 70), np.float32)
    tvm.build([x, rate, mean, out], schedule="auto")(*given, *found)
    expected = given[0] * np.float32(0.9) + given[1]
    np.testing.assert_allclose(found, [expected, given[0] - expected * 0.5], rtol=1e-5, atol=1e-6)
