"""Computations of other inputs: tensors, numbers and sizes in place of placeholders."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.te.substitution import substituted
from tensorexpr.tir.arithmetic import as_int, const


def test_a_computation_may_occur_twice_in_one() -> None:
    x, a = te.placeholder((4, 8), name="x"), te.placeholder((4, 8), name="a")
    softmax = topi.nn.softmax(x)
    (once,) = substituted([softmax], {x: topi.nn.relu(a)})
    (twice,) = substituted([softmax], {x: once})
    assert not {axis.var for axis in once.op.axis} & {axis.var for axis in twice.op.axis}
    given, found = np.random.default_rng(0).uniform(-1, 1, (4, 8)).astype("float32"), tvm.nd.empty((4, 8))
    tvm.build(te.create_schedule(twice.op), [a, twice])(tvm.nd.array(given), found)
    expected = np.maximum(given, 0)
    for _ in range(2):
        expected = np.exp(expected) / np.exp(expected).sum(1, keepdims=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_numbers_and_sizes() -> None:
    n = te.var("n", "int64")
    x, c = te.placeholder((n, 8), name="x"), te.placeholder((), name="c")
    a = te.placeholder((4, 8), name="a")
    (made,) = substituted([topi.multiply(x, c)], {x: a, c: const(2.0, "float32")}, {n: const(4, "int64")})
    assert [as_int(extent) for extent in made.shape] == [4, 8] and made.op.input_tensors == (a,)


def test_what_can_not_be_made_again() -> None:
    x = te.placeholder((4, 8), name="x")
    state = te.placeholder((4, 8), name="s")
    scan = te.scan(te.compute((1, 8), lambda t, i: x[0, i]), te.compute((4, 8), lambda t, i: state[t - 1, i] + x[t, i]), state, inputs=[x])
    with pytest.raises(DeclarationError, match="can't be made again"):
        substituted([scan], {x: te.placeholder((4, 8), name="y")})
