"""Reads whose place only the data says: the explanation names them and the checked build, which finds them."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.testing.check import assert_schedule_correct


def test_data_dependent_indices_are_named_and_the_checked_build_finds_them() -> None:
    a, at = te.placeholder((4,), name="a"), te.placeholder((3,), "int32", name="at")
    b = te.compute((3,), lambda i: a[at[i]], name="b")
    s = te.create_schedule(b.op)
    text = s.explain()
    assert "indices: where a[at[i]] reads, the data says, so nothing proves that it is inside of a" in text
    assert "instrument_bound_checkers" not in te.create_schedule(te.compute((3,), lambda i: a[i] + 1.0).op).explain()
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        checked = tvm.build(s, [a, at, b])
    out = tvm.nd.empty((3,))
    checked(tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.array([3, 0, 1], "int32")), out)
    np.testing.assert_array_equal(out.numpy(), [3, 0, 1])
    with pytest.raises(tvm.TVMError):
        checked(tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.array([3, 9, 1], "int32")), out)


def test_a_loop_of_no_axes_is_one_iteration() -> None:
    """Of a tensor without axes nothing is fused to a loop of one iteration, beside which reductions stay as declared."""
    x, k = te.placeholder((5,), name="X"), te.reduce_axis((0, 5), "k")
    total = te.compute((), lambda: te.sum(x[k], axis=k), name="total")
    s = te.create_schedule(total.op)
    s[total].fuse()
    s[total].split(k, factor=2)
    assert "k.outer" in s.explain() and "singleton: serial" in s.explain()
    assert_schedule_correct(s, [x, total])
