"""Axes of two widths: a symbol of 64 bits beside constants, which are 32 bits wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.spaces import default_schedule
from tensorexpr.te.from_prim_func import tensors_of
from tensorexpr.te.to_prim_func import create_prim_func
from tensorexpr.tir.structural import structural_equal


@pytest.mark.parametrize(
    ("compute", "numpy"),
    [
        (lambda x: topi.split(x, 2, 1)[1], lambda x: x[:, 4:]),
        (lambda x: topi.concatenate([x, x], 1), lambda x: np.concatenate([x, x], 1)),
        (lambda x: topi.expand_dims(x, 0), lambda x: x[None]),
        (lambda x: topi.transpose(x), lambda x: x.T),
    ],
)
def test_axes_of_two_widths_are_fused_into_the_wider_one(compute: Callable[[Any], Any], numpy: Callable[[Any], Any]) -> None:
    x = te.placeholder((te.var("n", "int64"), 8), name="x")
    tensors = [x, compute(x)]
    s = te.create_schedule(tensors[1].op)
    fused = s[tensors[1]].fuse(*tensors[1].op.axis)
    assert fused.var.dtype == "int64"
    array = np.arange(24, dtype="float32").reshape(3, 8)
    expected = numpy(array)
    for schedule in (s, default_schedule(tensors)):
        out = tvm.nd.empty(expected.shape, "float32")
        tvm.build(schedule, tensors)(array, out)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_a_reduction_to_a_symbol_begins_in_its_width() -> None:
    n = te.var("n", "int64")
    axis = te.reduce_axis((0, n), name="k")
    assert axis.dom is not None and axis.dom.min.dtype == "int64"
    x = te.placeholder((4, n), name="x")
    tensors = [x, te.compute((4,), lambda i: te.sum(x[i, axis], axis=axis), name="y")]
    assert [tensor.op.name for tensor in tensors_of(create_prim_func(tensors))] == ["x", "y"]  # its loops are seen to cover it


def test_attributes_of_blocks_are_those_of_operations() -> None:
    x = te.placeholder((3, 6), name="x")
    made = create_prim_func([x, topi.nn.softmax(x)])
    assert structural_equal(create_prim_func(tensors_of(made)), made)
