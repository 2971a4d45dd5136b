"""Conditions in front of loads of a vector loop: lanes, or all of them, that don't ask for an element don't read it."""

from __future__ import annotations

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def test_one_number_decides_for_all_lanes_whether_a_row_is_read() -> None:
    A, N = te.placeholder((16,), name="A"), te.placeholder((1,), "int32", name="N")
    one, zero = te.const(1.0, "float32"), te.const(0.0, "float32")
    B = te.compute((16,), lambda i: te.if_then_else(te.all(N[0] > 3, A[i] > 0), one, zero), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    assert "T.if_then_else(N[0] >= 4, A[0:16] > " in str(tvm.lower(s, [A, N, B]))
    function, a = tvm.build(s, [A, N, B]), np.linspace(-1, 1, 16, dtype="float32")
    for number in (3, 4):
        found = np.empty(16, "float32")
        function(a, np.array([number], "int32"), found)
        np.testing.assert_array_equal(found, (a > 0) & (number > 3))
