"""Conditions in front of loads of a vector loop: lanes, or all of them, that don't ask for an element don't read it."""

from __future__ import annotations

import re

import numpy as np

import tensorexpr as tvm
from tensorexpr import te


def test_one_number_decides_for_all_lanes_whether_a_row_is_read() -> None:
    A, N = te.placeholder((3, 16), name="A"), te.placeholder((1,), "int32", name="N")
    one, zero = te.const(1.0, "float32"), te.const(0.0, "float32")
    B = te.compute((16,), lambda i: te.if_then_else(te.all(N[0] < 3, A[N[0], i] > 0), one, zero), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    assert "T.if_then_else(N[0] < 3, A_1[N[0] * 16:" in str(tvm.lower(s, [A, N, B]))
    function, a = tvm.build(s, [A, N, B]), np.linspace(-1, 1, 48, dtype="float32").reshape(3, 16)
    for number in (1, 2, 1 << 24):
        found = np.empty(16, "float32")
        function(a, np.array([number], "int32"), found)
        np.testing.assert_array_equal(found, (a[number] > 0) if number < 3 else 0)


def test_conditions_on_elements_that_are_there_are_computed_in_all_lanes() -> None:
    """A product of 200 x 200 bools took 2.3 ms and takes 0.1: each load asked first whether any lane needs it."""
    A, k = te.placeholder((16, 16), "bool", name="A"), te.reduce_axis((0, 16), "k")
    some = te.comm_reducer(lambda x, y: tvm.tir.Or(x, y), lambda dtype: tvm.tir.const(False, dtype))
    B = te.compute((16, 16), lambda i, j: some(te.all(A[i, k], A[k, j]), axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].reorder(B.op.axis[0], k, B.op.axis[1])
    s[B].vectorize(B.op.axis[1])
    function, a = tvm.build(s, [A, B]), np.random.default_rng(0).integers(0, 6, (16, 16)) == 0
    assert "masked.load" not in function.get_source("ll") and "reduce.or" not in function.get_source("ll")
    found = np.empty((16, 16), "bool")
    function(a, found)
    np.testing.assert_array_equal(found, a.astype(int) @ a.astype(int) > 0)


def test_choices_between_elements_that_are_there_need_no_mask_of_their_own() -> None:
    X = te.placeholder((3, 21), "uint8", name="X")

    def value(y: te.Var, x: te.Var) -> te.PrimExpr:
        around = X[y, x] + X[y, x + 1] + X[y, x + 2]
        return te.if_then_else(te.any(around == 3, te.all(around == 2, X[y, x + 1] > 0)), X[y, x], X[y, x + 2])

    B = te.compute((3, 19), value, name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(s[B].split(B.op.axis[1], factor=16)[1])
    text = str(tvm.lower(s, [X, B]))
    # the lanes at the end of a row have one mask, which no comparison of elements narrows
    assert "not " not in text and set(re.findall(r"predicate=(.*?)\)[,)]", text)) == {"T.Ramp(16, 1, 16) < T.Broadcast(19, 16"}
    x, found = np.random.default_rng(0).integers(0, 3, (3, 21)).astype("uint8"), np.empty((3, 19), "uint8")
    tvm.build(s, [X, B])(x, found)
    around = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    expected = np.where((around == 3) | ((around == 2) & (x[:, 1:-1] > 0)), x[:, :-2], x[:, 2:])
    np.testing.assert_array_equal(found, expected)


def test_arms_that_read_beyond_the_end_keep_their_mask() -> None:
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: te.if_then_else(i < 13, A[i + 3], 0.0), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[0])
    assert "predicate=T.Ramp(0, 1, 16) < T.Broadcast(13, 16)" in str(tvm.lower(s, [A, B]))


def test_arms_that_read_what_may_not_be_written_keep_their_mask() -> None:
    """A tile's own array has no values at the border: the choice says which elements were written."""
    X = te.placeholder((64,), name="X")
    P = te.compute((66,), lambda i: X[te.min(te.max(i - 1, 0), 63)] * 2.0, name="P")
    B = te.compute((64,), lambda i: te.if_then_else(X[i] > 0.5, P[i + 2], 0.0), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=16)
    s[B].vectorize(inner)
    s[P].compute_at(s[B], outer)
    assert "predicate" in str(tvm.lower(s, [X, B]))
    x, found = np.random.default_rng(0).random(64, dtype="float32"), np.empty(64, "float32")
    tvm.build(s, [X, B])(x, found)
    np.testing.assert_allclose(found, np.where(x > 0.5, x[np.minimum(np.arange(64) + 1, 63)] * 2, 0), rtol=1e-6)
