"""Computations as the text that TVM saves."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import RecordError


def saved(node: Any) -> Any:
    return tvm.ir.load_json(tvm.ir.save_json(node))


def test_tensors_and_what_they_read_are_saved() -> None:
    n = te.size_var("n")
    a, b = te.placeholder((n, 4), name="a"), te.placeholder((n, 4), "int32", name="b")
    k = te.reduce_axis((0, 4), "k")
    c = te.compute((n,), lambda i: te.sum(a[i, k] * b[i, k].astype("float32"), axis=k), name="c", tag="dot", attrs={"x": [1, 2], "s": "t"})
    read = saved(c)
    assert isinstance(read, te.Tensor) and str(read) == str(c) and str(read.op) == str(c.op) and read.op is not c.op
    assert read.op.tag == "dot" and dict(read.op.attrs) == {"x": (1, 2), "s": "t"}
    one, two = saved([c, c.op])
    assert one.op is two  # what is shared stays shared


def test_scans_externs_and_several_outputs() -> None:
    x, state = te.placeholder((5, 3), name="x"), te.placeholder((5, 3), name="state")
    first = te.compute((1, 3), lambda _, i: x[0, i], name="first")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    scan = saved(te.scan(first, update, state, inputs=[x], name="sums").op)
    assert isinstance(scan, te.ScanOp) and str(scan) == "scan(sums, init=[first], update=[update], state_placeholder=[state])"
    pair = te.compute((3,), lambda i: (x[0, i], x[1, i] * 2.0), name="pair")
    assert saved(pair[1]).value_index == 1
    extern = te.extern((5, 3), [x], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), name="e")
    assert isinstance(saved(extern).op, te.ExternOp) and "call_packed" in str(saved(extern).op)


def test_edited_texts_are_refused() -> None:
    a = te.placeholder((4,), name="a")
    text = tvm.ir.save_json(te.compute((4,), lambda i: a[i] + 1.0, name="c"))

    def with_attr(kind: str, key: str, value: str) -> str:
        data = json.loads(text)
        for node in data["nodes"]:
            if node["type_key"] == kind:
                node["attrs"][key] = value
        return json.dumps(data)

    for kind, key, value in (
        ("Tensor", "value_index", "3"),
        ("Tensor", "dtype", "int8"),
        ("ComputeOp", "reduce_axis", "0"),
        ("IntImm", "value", "-4"),
    ):
        with pytest.raises(RecordError):
            tvm.ir.load_json(with_attr(kind, key, value))
