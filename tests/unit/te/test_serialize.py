"""Computations to JSON and back."""

from __future__ import annotations

import json

import pytest

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.te.dag_text import format_dag
from tensorexpr.te.identity import dag_equal
from tensorexpr.te.serialize import dag_from_json, dag_to_json, dumps, loads

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
