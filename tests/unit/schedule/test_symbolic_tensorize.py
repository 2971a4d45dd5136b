"""Tensor intrinsics whose shapes have variables: which values these take, in tensorized loops and for slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, ScheduleError
from tensorexpr.tir.interpreter import interpret
from tests.intrinsics import gemv, loop_intrin, vector_add


def result(s: te.Schedule, args: list[Any], *inputs: Any, shape: tuple[int, ...]) -> Any:
    """What the lowered schedule makes of arrays."""
    made = np.zeros(shape, "float32")
    interpret(tvm.lower(s, args)["main"], [*inputs, made])
    return made


def sums(extent: Any) -> list[Any]:
    a, b = (te.placeholder((extent,), name=name) for name in "AB")
    return [a, b, te.compute((extent,), lambda i: a[i] + b[i], name="C")]


@pytest.mark.parametrize("extent", [16, te.var("N")])
def test_the_extent_of_the_loop_is_the_intrinsic_s(extent: Any) -> None:
    args = sums(extent)
    axis = args[-1].op.axis[0]
    s = te.create_schedule(args[-1].op)
    if isinstance(extent, int):
        axis = s[args[-1]].split(axis, 4)[1]
    s[args[-1]].tensorize(axis, vector_add(te.size_var("n")))
    a, b = np.arange(16, dtype="float32"), np.ones(16, "float32")
    np.testing.assert_array_equal(result(s, args, a, b, shape=(16,)), a + b)


@pytest.mark.parametrize("inner", [2, None])
@pytest.mark.parametrize("columns", [6, te.var("N")])
def test_sizes_and_strides_of_a_product(columns: Any, inner: int | None) -> None:
    """Rows of B lie apart by what the intrinsic's strides say; parts of the sum are added up."""
    a, b = te.placeholder((3, 4), name="A"), te.placeholder((columns, 4), name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((3, columns), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    if inner is not None:
        outer, rest = s[c].split(k, inner)
        s[c].reorder(outer, c.op.axis[1], rest)
    s[c].tensorize(c.op.axis[1], gemv(te.size_var("m"), te.size_var("l")))
    left, right = np.arange(12, dtype="float32").reshape(3, 4), np.arange(24, dtype="float32").reshape(6, 4)
    np.testing.assert_array_equal(result(s, [a, b, c], left, right, shape=(3, 6)), left @ right.T)


def test_slices_give_the_sizes() -> None:
    n, add = te.var("n"), vector_add(te.size_var("k"))
    a = te.placeholder((3, n), name="A")
    c = te.compute((3, n), lambda i: add(a[i, 0:n], a[2 - i, 0:n]), name="C")
    assert c.op.intrin is add
    given = np.arange(15, dtype="float32").reshape(3, 5)
    np.testing.assert_array_equal(result(te.create_schedule(c.op), [a, c], given, shape=(3, 5)), given + given[::-1])


def test_sizes_that_differ_are_refused() -> None:
    n = te.size_var("n")
    x, y = te.placeholder((n, n), name="x"), te.placeholder((4, 6), name="Y")
    square = loop_intrin(te.compute((n, n), lambda i, j: x[i, j] * 2.0, name="z"), "square")
    c = te.compute((4, 6), lambda i, j: y[i, j] * 2.0, name="C")
    s = te.create_schedule(c.op)
    s[c].tensorize(c.op.axis[0], square)
    with pytest.raises(ScheduleError, match=r"the loop covers \[4, 6\] elements, the intrinsic \[6, 6\]"):
        tvm.lower(s, [y, c])
    with pytest.raises(DeclarationError, match=r"the slice of Y is \[4, 6\] of float32; its input x is \[4, 4\]"):
        square(y[0:4, 0:6])


def test_vectors_over_rows_of_unknown_length_are_refused() -> None:
    n = te.size_var("n")
    x = te.placeholder((n, 4), name="x")
    y = te.compute((n, 4), lambda i, j: x[i, j], name="y")
    with pytest.raises(DeclarationError, match="takes more lanes than a row of x has"):
        te.decl_tensor_intrin(y.op, lambda ins, outs: outs[0].vstore([0, 0], ins[0].vload([0, 0], "float32x8")), "rows")
    assert isinstance(tir.decl_buffer((n, 4)).shape[0], tir.SizeVar)


def test_slices_that_move_give_constant_sizes() -> None:
    add = vector_add(te.size_var("k"))
    a = te.placeholder((8,), name="A")
    c = te.compute((4, 2), lambda i: add(a[i * 2 : i * 2 + 2], a[0:2]), name="C")
    given = np.arange(8, dtype="float32")
    made = result(te.create_schedule(c.op), [a, c], given, shape=(4, 2))
    np.testing.assert_array_equal(made, given.reshape(4, 2) + given[:2])


@pytest.mark.parametrize("length", [1, 4])
def test_parts_of_a_sum_of_one_element(length: int) -> None:
    """An axis of extent 1 is no loop, but still the intrinsic's."""
    size = te.size_var("l")
    x, y, k = te.placeholder((size,), name="x"), te.placeholder((size,), name="y"), te.reduce_axis((0, size), name="k")
    dot = loop_intrin(te.compute((1,), lambda i: te.sum(x[k] * y[k], axis=k), name="z"), "dot_of_any_length")
    a, b = te.placeholder((length,), name="A"), te.placeholder((length,), name="B")
    outer = te.reduce_axis((0, length), name="outer")
    c = te.compute((1,), lambda: dot(a[outer.var : outer.var + 1], b[outer.var : outer.var + 1], reduce_axis=outer), name="C")
    left, right = np.arange(length, dtype="float32") + 1, np.arange(length, dtype="float32") + 2
    np.testing.assert_array_equal(result(te.create_schedule(c.op), [a, b, c], left, right, shape=(1,)), [left @ right])
