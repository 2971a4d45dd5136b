"""Hybrid functions: what they mean as tensors and for arrays, what they refuse, and schedules as their text."""

# ruff: noqa: F821
# mypy: ignore-errors
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import LoweringError, ParseError, ScheduleError

WEIGHTS = (3.0, 0.5)


@te.hybrid.script
def smooth(a, width):
    """Means of windows, weighted by their place."""
    b = output_tensor((a.shape[0] - width + 1,), a.dtype)
    for i in parallel(a.shape[0] - width + 1):
        total = 0.0
        for j in const_range(width):
            total += a[i + j] * WEIGHTS[j % len(WEIGHTS)]
        b[i] = total / width
    return b


@te.hybrid.script
def halves(a):
    low = output_tensor((4,), "float32")
    high = output_tensor((2, 2), "float32")
    held = allocate((8,), "float32", "local")
    for i in range(8):
        held[i] = sqrt(abs(a[i])) if 1 <= i < 7 and i != 3 else max(a[i], 0.0)
    for i, j in grid(2, 2):
        if i == 0:
            low[i * 2 + j] = held[i * 2 + j]
        else:
            low[i * 2 + j] = -held[i * 2 + j]
        high[i, j] = float32(int32(held[4 + i * 2 + j]))
    return low, high


@te.hybrid.script
def twice(a):
    low, high = halves(a)
    c = output_tensor((4,), "float32")
    for i in vectorize(4):
        c[i] = low[i]
    for i in range(1, 4):
        assert i < 4, "inside"
        c[i] += high[i // 2, i % 2]
    return c


def arrays(size: int = 8) -> np.ndarray:
    return np.random.default_rng(0).uniform(-9, 9, size).astype("float32")


def test_a_tensor_and_an_array_have_one_meaning() -> None:
    a = te.placeholder((10,), name="A")
    b = smooth(a, 3)
    assert isinstance(b.op, te.HybridOp) and b.op.name == "smooth" and int(b.shape[0]) == 8
    data, out = arrays(10), np.zeros(8, "float32")
    tvm.build(te.create_schedule(b.op), [a, b])(data, out)
    wanted = (data[:-2] * 3 + data[1:-1] * 0.5 + data[2:] * 3) / 3
    np.testing.assert_allclose(out, wanted, rtol=1e-5)
    np.testing.assert_allclose(smooth(data, 3), wanted, rtol=1e-5)


def test_several_outputs_and_calls() -> None:
    a = te.placeholder((8,), name="A")
    low, high = halves(a)
    c = twice(te.compute((8,), lambda i: a[i] * 2.0, name="B"))
    data = arrays()
    made = [np.zeros(4, "float32"), np.zeros((2, 2), "float32"), np.zeros(4, "float32")]
    tvm.build(te.create_schedule([low.op, c.op]), [a, low, high, c])(data, *made)
    for found, wanted in zip(made, [*halves(data), twice(data * 2)], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    held = [np.sqrt(abs(x)) if 1 <= i < 7 and i != 3 else max(x, 0) for i, x in enumerate(data)]
    np.testing.assert_allclose(made[0], [held[0], held[1], -held[2], -held[3]], rtol=1e-5)


def test_readers_of_hybrid_tensors_are_scheduled_as_ever() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = smooth(a, 2)
    c = te.compute(b.shape, lambda i: b[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(s[c].split(c.op.axis[0], factor=4)[1])
    out = np.zeros(5, "float32")
    tvm.build(s, [a, c])(arrays(6), out)
    np.testing.assert_allclose(out, smooth(arrays(6), 2) + 1, rtol=1e-5)


def test_a_schedule_as_text_computes_the_same(tmp_path: Path) -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: te.if_then_else(i < 5, te.exp(a[i]), a[i] / 2), name="B")
    c = te.compute((8,), lambda i: b[7 - i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=3)
    s[c].parallel(outer)
    s[c].unroll(inner)
    module = te.hybrid.build(s, [a], [c], "reversed")
    assert module.name == "reversed" and "in parallel(3)" in module.get_source() and "in unroll(3)" in module.get_source()
    module.save(str(tmp_path / "kept"))
    loaded = te.hybrid.HybridModule()
    loaded.load(str(tmp_path / "kept.py"))
    data, out = arrays(), np.zeros(8, "float32")
    tvm.build(s, [a, c])(data, out)
    np.testing.assert_allclose(loaded(data), out, rtol=1e-5)
    s[b].compute_at(s[c], outer)
    with pytest.raises(LoweringError, match="B is computed in parts"):
        te.hybrid.build(s, [a], [c])


def test_text_is_read_and_never_run() -> None:
    text = "def f(a):\n    b = output_tensor((2,), 'float32')\n    b[0] = a[1]\n    b[1] = SHIFT\n    return b\n"
    b = te.hybrid.source_to_op(text, [te.placeholder((2,), name="A")], {"SHIFT": 2.0})
    assert b.op.name == "f"
    with pytest.raises(ParseError, match="__import__"):
        te.hybrid.parse(text.replace("SHIFT", "__import__('os').getpid()"), [te.placeholder((2,))])


WRONG = {
    "b[0] = sin_h(a[0])": "can't call sin_h",
    "b[0] = missing": "missing has no value here",
    "b[0] = a": "a number is wanted here",
    "b[0, 1] = 1.0": "is no element of a tensor",
    "while True:\n        pass": "a hybrid function is made of for, if",
    "for i in a:\n        pass": "a loop runs over range",
    "for i in const_range(n):\n        pass": "const_range takes constants",
    "for i in bind('laneId', 4):\n        pass": "bind takes a tag of threads",
    "c = allocate((2,), 'float32', 'attic')": "'attic' is no storage scope",
    "c = output_tensor((2,))": "the output_tensor c is not returned",
    "b[0] = a.sum": "a tensor has .shape and .dtype",
    "b[0] = 1.0 / 0": "ZeroDivisionError",
}


@pytest.mark.parametrize("statement", WRONG)
def test_what_it_can_not_say_is_refused_at_its_place(statement: str) -> None:
    text = f"def f(a, n):\n    b = output_tensor((2,), 'float32')\n    {statement}\n    return b\n"
    with pytest.raises(ParseError) as caught:
        te.hybrid.source_to_op(text, [te.placeholder((2,), name="A"), te.var("n")])
    assert WRONG[statement] in str(caught.value)


def test_the_body_of_the_operation_speaks_of_tensors() -> None:
    a = te.placeholder((6,), name="A")
    (out,) = [smooth(a, 3)]
    body = out.op.body
    assert isinstance(body, tvm.tir.For) and isinstance(body.body, tvm.tir.ProducerRealize)
    total = body.body.producer
    first, *_, last = body.body.body.seq
    assert isinstance(first, tvm.tir.ProducerStore) and first.producer is total and total.op.name == "total"
    assert last.producer.op.name == "b" and last.value.a.producer is total
    assert {n.producer for n in tvm.tir.rewriting.walk(body) if isinstance(n, tvm.tir.ProducerLoad)} == {a, total}
    assert isinstance(out.op.statement.body, tvm.tir.Allocate)  # what is lowered


def test_constants_divide_as_te_s_parser_lets_them() -> None:
    text = "def f(a):\n    b = output_tensor((2,), 'float32')\n    b[0] = a[0] / 3.0\n    b[1] = a[1] / a[0]\n    return b\n"
    first, second = te.hybrid.source_to_op(text, [te.placeholder((2,), name="A")]).op.body
    assert isinstance(first.value, tvm.tir.Mul) and first.value.b.value == pytest.approx(1 / 3)
    assert isinstance(second.value, tvm.tir.Div)


@te.hybrid.script
def sums_and_products(a, b):
    c = output_tensor((6, 8), a.dtype)
    d = output_tensor((6, 8), a.dtype)
    for i in range(6):
        for j in range(8):
            c[i, j] = a[i] + b[j]
            d[i, j] = a[i] * b[j]
    return c, d


def test_elementwise_functions_are_scheduled_like_computes() -> None:
    a, b = te.placeholder((6,), name="A"), te.placeholder((8,), name="B")
    c, d = sums_and_products(a, b)
    i, j = c.op.axis
    s = te.create_schedule(c.op)
    outer_i, inner_i = s[c].split(i, 4)
    s[c].reorder(j, outer_i, inner_i)
    s[c].parallel(j)
    s[c].unroll(inner_i)
    lowered = tvm.lower(s, [a, b, c, d])["main"]
    assert isinstance(lowered.body, tvm.tir.AttrStmt) and lowered.body.body.kind == tvm.tir.ForKind.PARALLEL
    left, right = np.arange(6, dtype="float32"), np.arange(8, dtype="float32") + 1
    made = [np.zeros((6, 8), "float32") for _ in range(2)]
    tvm.tir.interpreter.interpret(lowered, [left, right, *made])
    np.testing.assert_array_equal(made, [np.add.outer(left, right), np.multiply.outer(left, right)])


NOT_ELEMENTWISE = {
    "reads what it writes": "for i in range(4):\n        c[i] = a[i] + c[i]",
    "another order": "for i in range(4):\n        c[3 - i] = a[i]",
    "not all of it": "for i in range(1, 4):\n        c[i] = a[i]",
    "two stores": "for i in range(4):\n        c[i] = a[i]\n        c[i] = a[i] * 2.0",
    "one by one": "c[0] = a[0]",
}


@pytest.mark.parametrize("body", NOT_ELEMENTWISE.values(), ids=NOT_ELEMENTWISE)
def test_other_functions_keep_their_loops(body: str) -> None:
    text = f"def f(a):\n    c = output_tensor((4,), 'float32')\n    {body}\n    return c\n"
    c = te.hybrid.source_to_op(text, [te.placeholder((4,), name="A")])
    assert c.op.compute is None and c.op.axis == ()
    with pytest.raises(ScheduleError, match="whose statement is taken as it is"):
        te.create_schedule(c.op)[c].split(te.reduce_axis((0, 4)), 2)
