"""Computations to JSON and back."""

from __future__ import annotations

import json

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import RecordError
from tensorexpr.te import Tensor
from tensorexpr.te.dag_text import format_dag
from tensorexpr.te.identity import dag_equal
from tensorexpr.te.serialize import dag_from_json, dag_to_json, dumps, loads
from tensorexpr.testing.strategies import intrinsics  # noqa: F401, declares some

from .programs import argmax, conv2d, diamond, matmul_add, softmax


def special_numbers() -> tuple[Tensor, ...]:
    A = te.placeholder((8,), name="A")
    return A, te.compute((8,), lambda i: te.max(te.min(A[i], float("inf")), float("nan")) * -0.0)


def symbolic() -> tuple[Tensor, ...]:
    n, m, alpha = te.var("n"), te.size_var("n", "int64"), te.var("alpha", "float32")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((1, m), "k")
    return A, te.compute((n,), lambda i: te.sum(A[i, k] * alpha, axis=k, where=k < n, init=A[i, 0]))


@pytest.mark.parametrize(
    "tensors", [matmul_add(), conv2d(), softmax(), argmax(), diamond(), special_numbers(), symbolic(), (te.placeholder((), name="s"),)]
)
def test_round_trip(tensors: tuple[Tensor, ...]) -> None:
    text = dumps(tensors)
    again = loads(text)
    assert dag_equal(tensors, again) and dumps(again) == text
    assert format_dag(tensors) == format_dag(again)
    assert [(t.name, t.dtype, t.value_index) for t in tensors] == [(t.name, t.dtype, t.value_index) for t in again]
    assert "\n" not in text and json.loads(text) == dag_to_json(tensors)


def test_attributes_and_tags_travel() -> None:
    A = te.placeholder((8,), name="A")
    attrs = {"layout_free_placeholders": [A], "FLOP": 7, "scale": 0.5, "names": ["i", "j"], "none": None, "flag": True}
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B", tag="t", attrs=attrs)
    again = loads(dumps([A, B]))
    assert again[1].op.tag == "t"
    assert dict(again[1].op.attrs) == {**attrs, "layout_free_placeholders": (again[0],), "names": ("i", "j")}
    assert again[1].op.attrs["layout_free_placeholders"][0] is again[0]


def test_shared_operations_stay_shared() -> None:
    _, a, b, c, _ = diamond()
    again = dag_from_json(dag_to_json([b, c, a]))
    assert again[0].op.input_tensors == again[1].op.input_tensors == (again[2],)


def test_large_integer_attributes_and_bool_extremes() -> None:
    A = te.placeholder((8,), "bool", name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((), lambda: te.max(A[k], axis=k), attrs={"FLOP": 1 << 60})
    assert loads(dumps([B]))[0].op.attrs["FLOP"] == 1 << 60


def over_slices() -> Tensor:
    a, k = te.placeholder((3, 8), name="A"), te.reduce_axis((0, 4), name="k")
    dot = te.TensorIntrin.get("testing.dot.float32")
    made: Tensor = te.compute((3,), lambda i: dot(a[i, k * 2 : k * 2 + 2], a[2 - i, 0:2], reduce_axis=k), "C")
    return made


def test_computes_over_slices_keep_their_intrinsic() -> None:
    made = over_slices()
    (again,) = loads(dumps([made]))
    assert isinstance(again.op, te.TensorComputeOp) and again.op.intrin is te.TensorIntrin.get("testing.dot.float32")
    assert again.op.schedulable_ndim == 1 and [axis.name for axis in again.op.loop_order] == ["i", "k", "k"]
    assert dag_equal([again], [made]) and dumps([again]) == dumps([made])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("intrin", ["testing.dot.float32", "0" * 16], "the tensor intrinsic 'testing.dot.float32' that is declared is another one"),
        ("intrin", "testing.dot.float32", "a call of an intrinsic has the fields"),
        ("outer", -1, "a call of an intrinsic has the fields"),
        ("outer", 2, "stands in 2 axes, the operation has 1"),
        ("slices", [[[0, 0], [[0]]]], "a slice is"),
        ("slices", [], "takes 2 slices"),
        ("summed", [99], "99"),
    ],
)
def test_records_of_calls_that_nobody_wrote(field: str, value: object, message: str) -> None:
    data = dag_to_json([over_slices()])
    data["ops"][-1]["call"][field] = value
    with pytest.raises(RecordError, match=message):
        dag_from_json(data)


def test_a_combiner_calls_no_foreign_function_either() -> None:
    a, k = te.placeholder((8, 4), name="A"), te.reduce_axis((0, 4), name="k")
    through = te.comm_reducer(lambda x, y: tir.call_extern("float32", "system", x + y), lambda dtype: tir.const(0, dtype), "through")
    b = te.compute((8,), lambda i: through(a[i, k], axis=k), name="B")
    with pytest.raises(RecordError, match="'system'"):
        loads(dumps([a, b]))


def test_a_variable_is_bound_within_its_let_only() -> None:
    a, x = te.placeholder((8,), name="A"), te.var("x", "float32")
    b = te.compute((8,), lambda i: tir.Let(x, a[i] + 1.0, x * 2.0) + x, name="B")
    text = dumps([a, b])
    assert json.loads(text)["symbols"] == [["Var", "x", "float32"]] and dumps(loads(text)) == text
