"""Vectors in memory: lanes side by side are looked at together, those under a mask one by one, and what is refused is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.tir.interpreter import interpret

from .test_interpreter import PARALLEL, TRUE, allocated, fails, func, i, loop, n, ramp, store


def lanes_at(form: str, buffer: tir.Buffer, at: Any) -> tuple[tir.Buffer, tuple[tir.PrimExpr], tir.PrimExpr | None]:
    """The buffer, the indices and the predicate by which a form of access reaches the four elements from `at` on."""
    if form == "element":
        return tir.decl_buffer((2,), "float32x4", buffer.name, data=buffer.data), (tir.convert(at) // 4,), None
    return buffer, (ramp(at, 4),), tir.Broadcast(TRUE, 4) if form == "masked" else None


def load_lanes(form: str, buffer: tir.Buffer, at: Any) -> tir.PrimExpr:
    return tir.BufferLoad(*lanes_at(form, buffer, at))


def store_lanes(form: str, buffer: tir.Buffer, value: tir.PrimExpr | float, at: Any) -> tir.Stmt:
    view, indices, mask = lanes_at(form, buffer, at)
    lanes = value if isinstance(value, tir.PrimExpr) else tir.Broadcast(tir.const(value), 4)
    return tir.BufferStore(view, lanes, indices, mask)


FORMS = pytest.mark.parametrize("form", ["ramp", "element", "masked"])


@FORMS
def test_lanes_keep_their_values_when_memory_changes(form: str) -> None:
    c, v = tir.decl_buffer((8,), name="C"), tir.Var("v", "float32x4")
    body = tir.LetStmt(v, load_lanes(form, c, 4), tir.stmt_seq(store(c, 9.0, 5), store_lanes(form, c, v + v, 0)))
    z = np.arange(8, dtype=np.float32)
    interpret(func([c], body), [z])
    assert z.tolist() == [8, 10, 12, 14, 4, 9, 6, 7]


@pytest.mark.parametrize(
    ("form", "at"), [(form, at) for form in ("ramp", "masked") for at in (-4, -1, 5, 8)] + [("element", -4), ("element", 8)]
)
def test_lanes_outside_are_refused(form: str, at: int) -> None:
    a, c = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="C")
    x, z = np.ones(8, np.float32), np.ones(8, np.float32)
    fails(func([a, c], tir.BufferStore(c, load_lanes(form, a, n), (ramp(0, 4),)), n), [x, z, at], r"A\[.*out of bounds")
    fails(func([c], store_lanes(form, c, 2.0, n), n), [z, at], r"C\[.*out of bounds")
    assert z.tolist() == [1] * 8


@FORMS
def test_lanes_that_nobody_wrote_are_refused(form: str) -> None:
    c = tir.decl_buffer((4,), name="C")
    z = np.zeros(4, np.float32)

    def program(first: tir.Stmt, t: tir.Buffer) -> tir.Stmt:
        return tir.stmt_seq(first, tir.BufferStore(c, load_lanes(form, t, 4), (ramp(0, 4),)))

    interpret(func([c], allocated("t", 8, lambda t: program(store_lanes(form, t, 2.0, 4), t))), [z])
    assert z.tolist() == [2] * 4
    missing = allocated("t", 8, lambda t: program(loop(i, 7, store(t, 1.0, i)), t))
    fails(func([c], missing), [z], r"t\[7\] is read, but nothing was written there")


@FORMS
def test_races_of_lanes_are_refused(form: str) -> None:
    c = tir.decl_buffer((8,), name="C")
    z = np.zeros(8, np.float32)
    interpret(func([c], loop(i, 2, store_lanes(form, c, load_lanes(form, c, i * 4) + 1.0, i * 4), PARALLEL)), [z])
    assert z.tolist() == [1] * 8
    fails(func([c], loop(i, 2, store_lanes(form, c, 2.0, 4), PARALLEL)), [z], r"iteration 0 writes C\[4\] and iteration 1 writes it")
    reads = tir.IfThenElse(i < 1, store(c, 1.0, 6), store_lanes(form, c, load_lanes(form, c, 4), 0))
    fails(func([c], loop(i, 2, reads, PARALLEL)), [z], r"iteration 0 writes C\[6\] and iteration 1 reads it")


def test_an_element_of_lanes_needs_no_index() -> None:
    a, b = tir.decl_buffer((), "float32x4", "A"), tir.decl_buffer((), "float32x4", "B")
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    interpret(func([a, b], store(b, tir.BufferLoad(a, ()))), [x, y])
    assert y.tolist() == [0, 1, 2, 3]


def test_lanes_that_lie_apart_are_refused() -> None:
    a, b = tir.decl_buffer((1,), "float32x4", "A"), tir.decl_buffer((1,), "float32x4", "B")
    column = np.arange(12, dtype=np.float32).reshape(4, 3)[:, :1].T
    y = np.zeros((1, 4), np.float32)
    fails(func([a, b], store(b, a[0], 0)), [column, y], "lanes of an element don't lie side by side")
    interpret(func([a, b], store(b, a[0], 0)), [column.copy(), y])
    assert y.tolist() == [[0, 3, 6, 9]]


def test_strides_of_elements_of_lanes_count_elements() -> None:
    stride = tir.Var("s")
    a, b = tir.decl_buffer((3,), "float32x4", "A", strides=[stride]), tir.decl_buffer((1,), "int32", "B")
    x, y = np.zeros((6, 4), np.float32)[::2], np.zeros(1, np.int32)
    interpret(func([a, b], store(b, stride, 0)), [x, y])
    assert y.tolist() == [2]
