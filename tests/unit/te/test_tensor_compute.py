"""Computes over slices by tensor intrinsics: what they compute, their loops, and what doesn't fit."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, ScheduleError
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tests.intrinsics import loop_intrin


def adder(width: int = 4) -> te.TensorIntrin:
    x, y = (te.placeholder((width,), name=name) for name in "xy")
    return loop_intrin(te.compute((width,), lambda i: x[i] + y[i], name="z"), f"adder{width}")


def small_matmul() -> te.TensorIntrin:
    x, y = te.placeholder((4, 2), name="x"), te.placeholder((3, 2), name="y")
    k = te.reduce_axis((0, 2), "kk")
    return loop_intrin(te.compute((4, 3), lambda i, j: te.sum(x[i, k] * y[j, k], axis=k), name="z"), "small_matmul")


def tiled_matmul() -> tuple[Tensor, Tensor, Tensor]:
    a, b = te.placeholder((2, 3, 4, 2), name="a"), te.placeholder((2, 3, 3, 2), name="b")
    k, intrin = te.reduce_axis((0, 3), "k"), small_matmul()
    return a, b, te.compute((2, 2, 4, 3), lambda i, j: intrin(a[i, k, 0:4, 0:2], b[j, k, 0:3, 0:2], reduce_axis=k), name="c")


def test_slices_of_rows_are_added_by_the_intrinsic() -> None:
    a, b, add = te.placeholder((3, 8), name="a"), te.placeholder((3, 8), name="b"), adder()
    c = te.compute((3, 4), lambda i: add(a[i, 4:8], b[i, 0:4]), name="c")
    assert isinstance(c.op, te.TensorComputeOp) and c.op.intrin is add and c.op.schedulable_ndim == 1
    s = te.create_schedule(c.op)
    assert "for ax0 (0, 4) tensorize" in str(s)
    assert_schedule_correct(s, [a, b, c])


def test_a_reduction_around_an_intrinsic_starts_once() -> None:
    a, b, c = tiled_matmul()
    s = te.create_schedule(c.op)
    assert_schedule_correct(s, [a, b, c])
    outer, _ = s[c].split(c.op.axis[0], factor=1)
    s[c].parallel(outer)
    assert_schedule_correct(s, [a, b, c])


def test_a_consumer_and_a_cache_of_it() -> None:
    a, b, c = tiled_matmul()
    d = te.compute(c.shape, lambda *i: c(*i) + 1.0, name="d")
    s = te.create_schedule(d.op)
    s[c].compute_at(s[d], d.op.axis[1])
    assert_schedule_correct(s, [a, b, d])
    s = te.create_schedule(c.op)
    cached = s.cache_write(c, "local")
    assert "tensorize" in str(s).split("c.local")[1].split("c [")[0]
    assert isinstance(cached.op, te.TensorComputeOp) and not isinstance(s[c].op, te.TensorComputeOp)
    assert_schedule_correct(s, [a, b, c])


def test_scalars_and_whole_tensors_are_given_too() -> None:
    x, factor = te.placeholder((4,), name="x"), te.var("factor")
    scaled = loop_intrin(te.compute((4,), lambda i: x[i] * factor.astype("float32"), name="z"), "scaled", scalars=[factor])
    a = te.placeholder((4,), name="a")
    c = te.compute((2, 4), lambda i: scaled(a, i + 2), name="c")
    assert str(c.op.body[0]) == 'a[ax0] * T.Cast("float32", i + 2)'
    assert_schedule_correct(te.create_schedule(c.op), [a, c])


def test_functions_of_blocks_have_the_description() -> None:
    a, b, c = tiled_matmul()
    func = te.create_prim_func([a, b, c])
    left, right = (np.arange(np.prod(shape), dtype="float32").reshape(shape) for shape in ((2, 3, 4, 2), (2, 3, 3, 2)))
    out = tvm.nd.empty((2, 2, 4, 3))
    tvm.build(func)(tvm.nd.array(left), tvm.nd.array(right), out)
    np.testing.assert_array_equal(out.numpy(), np.einsum("ikpx,jkqx->ijpq", left, right))


def test_what_does_not_fit_is_refused() -> None:
    a, b, add = te.placeholder((3, 8), name="a"), te.placeholder((3, 8), name="b"), adder()
    wide = te.placeholder((3, 8), "float64", name="w")
    with pytest.raises(DeclarationError, match=r"the slice of b is \[3\] of float32; its input y is \[4\] of float32"):
        te.compute((3, 4), lambda i: add(a[i, 0:4], b[i, 1:4]))
    with pytest.raises(DeclarationError, match=r"the slice of w is \[4\] of float64"):
        te.compute((3, 4), lambda i: add(wide[i, 0:4], b[i, 0:4]))
    with pytest.raises(DeclarationError, match=r"takes 2 slices such as A.* and 0 scalars, not 1 and 1"):
        te.compute((3, 4), lambda i: add(a[i, 0:4], i))
    with pytest.raises(DeclarationError, match="has a step"):
        te.compute((3, 4), lambda i: add(a[i, 0:8:2], b[i, 0:4]))
    with pytest.raises(DeclarationError, match="z is no reduction, so nothing is added up over reduce_axis"):
        te.compute((3, 4), lambda i: add(a[i, 0:4], b[i, 0:4], reduce_axis=te.reduce_axis((0, 2))))
    with pytest.raises(DeclarationError, match=r"the shape has \[5\]; the intrinsic adder4 computes \[4\]"):
        te.compute((3, 5), lambda i: add(a[i, 0:4], b[i, 0:4]))
    with pytest.raises(DeclarationError, match="the shape has 2 dimensions, the function takes 1 indices"):
        te.compute((3, 4), lambda i: a[i, 0])
    with pytest.raises(DeclarationError, match="by a Python slice where an element is meant"):
        te.compute((3,), lambda i: a[i, 0:4] + 1.0)
    c = te.compute((3, 4), lambda i: add(a[i, 0:4], b[i, 0:4]), name="c")
    with pytest.raises(ScheduleError, match="its inner loops are the intrinsic adder4"):
        te.create_schedule(c.op)[c].transform_layout(lambda i, j: [j, i])


def test_pointers_are_declared_and_refused_when_built() -> None:
    a = te.placeholder((4,), name="a")
    call = te.extern((4,), [a], lambda ins, outs: tir.call_packed("f", ins[0].access_ptr("r"), outs[0].access_ptr("w")), name="c")
    with pytest.raises(tvm.TVMError, match=r"the Python function f can't take .*pass buffers, numbers and strings"):
        tvm.build(te.create_schedule(call.op), [a, call])
