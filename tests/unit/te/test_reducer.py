"""Reducers."""

from __future__ import annotations

from typing import Any

from tensorexpr import te
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import Add, FloatImm, IntImm, Max, Mul, Reduce, Var

A = te.placeholder((4, 9), name="A")
i = te.var("i")
k = te.reduce_axis((0, 9), name="k")


def test_sum_over_an_axis() -> None:
    total = te.sum(A[i, k], axis=k)
    assert isinstance(total, Reduce) and total.axis[0] is k and total.init == ()
    assert isinstance(total.combiner.result[0], Add)
    assert total.combiner.identity_element[0] is FloatImm("float32", 0.0)
    assert isinstance(total.condition, IntImm) and total.condition.value == 1


def test_equal_reductions_are_one_node() -> None:
    assert te.sum(A[i, k], axis=k) is te.sum(A[i, k], axis=[k])


def test_extremes_start_at_the_dtype_s_limits() -> None:
    assert te.max(A[i, k], axis=k).combiner.identity_element[0] is te.min_value("float32")
    assert te.min(A[i, k].astype("int8"), axis=k).combiner.identity_element[0] is IntImm("int8", 127)


def test_where_and_init_are_kept() -> None:
    total = te.sum(A[i, k], axis=k, where=k < 4, init=5)
    assert str(total.condition) == "k < 4" and total.init[0] is FloatImm("float32", 5.0)
    assert te.sum(A[i, k], axis=k, init=A[i, 0]).init[0] is A[i, 0]


def test_values_are_combined_directly() -> None:
    x, y, z = (Var(name, "float32") for name in "xyz")
    assert te.max(x, 0.0) is Max(x, FloatImm("float32", 0.0))
    assert te.sum(x, y) is Add(x, y)
    assert te.sum(x, y, z) is Add(Add(x, y), z)


def test_a_tuple_reducer_gives_one_reduce_for_each_value() -> None:
    def pick(a: Any, b: Any) -> tuple[Any, Any]:
        return a[0] + b[0], a[1] * b[1]

    both = te.comm_reducer(pick, lambda t0, t1: (const(0, t0), const(1, t1)), name="both")
    first, second = both((A[i, k], A[i, k].astype("float64")), axis=k)
    assert (first.value_index, second.value_index) == (0, 1) and first.combiner is second.combiner
    assert (first.dtype, second.dtype) == ("float32", "float64")
    assert [v.name for v in first.combiner.lhs + first.combiner.rhs] == ["a_0", "a_1", "b_0", "b_1"]
    assert isinstance(second.combiner.result[1], Mul) and both.__name__ == "both"
