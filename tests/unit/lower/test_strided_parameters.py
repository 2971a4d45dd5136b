"""Arrays whose elements are apart: buffers with strides stand for tensors, and views are passed as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.module import Module
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of

Array = Any


def scaled(as_args: bool = False) -> tuple[te.Schedule, list[Any], dict[Any, Any]]:
    """B = A * 2 + 1 over n x m with a symbol for every stride, vectorised with a tail."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[1], factor=8)
    s[b].vectorize(inner)
    s[b].parallel(b.op.axis[0])
    binds = {t: tir.decl_buffer((n, m), name=t.name, strides=[te.var(f"{t.name}_s0"), te.var(f"{t.name}_s1")]) for t in (a, b)}
    assert outer is not None
    return s, list(binds.values()) if as_args else [a, b], binds


@pytest.fixture(scope="module")
def kernel() -> Module:
    s, args, binds = scaled()
    return tvm.build(s, args, binds=binds)


BASE = np.arange(40 * 50, dtype=np.float32).reshape(40, 50)
VIEWS: dict[str, Array] = {
    "steps": BASE[::2, ::3],
    "transposed": BASE.T,
    "reversed": BASE[::-1, ::-2],
    "repeated": np.broadcast_to(BASE[0], (7, 50)),
    "inside": BASE[3:30, 5:18],
    "one column": BASE[:, 4:5],
    "one row": BASE[4:5, ::7],
    "one element": BASE[9:10, 9:10],
    "no rows": BASE[:0],
    "no columns": BASE[:, :0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_read_without_a_copy(name: str, kernel: Module) -> None:
    view = VIEWS[name]
    out = np.full(view.shape, -1, np.float32)
    kernel(view, out)
    np.testing.assert_array_equal(out, view * 2 + 1)


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_written_in_place_and_nothing_beside_them(name: str, kernel: Module) -> None:
    values = np.ascontiguousarray(VIEWS[name])
    rows, columns = values.shape
    frame = np.full((columns * 3 + 2, rows * 2 + 1), -7, np.float32)
    target = frame.T[1 : 1 + 2 * rows : 2, 2 : 2 + 3 * columns : 3]
    kernel(values, target)
    wanted = np.full_like(frame, -7)
    wanted.T[1 : 1 + 2 * rows : 2, 2 : 2 + 3 * columns : 3] = values * 2 + 1
    np.testing.assert_array_equal(frame, wanted)


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(
    sizes=st.tuples(st.integers(0, 12), st.integers(0, 19)),
    steps=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    swapped=st.booleans(),
    upto=st.integers(0, 3),
)
def test_every_phase_agrees_on_random_views(sizes: tuple[int, int], steps: tuple[int, int], swapped: bool, upto: int) -> None:
    s, args, binds = scaled()
    view = BASE[: sizes[0] * steps[0] : steps[0], : sizes[1] * steps[1] : steps[1]]
    view = view.T if swapped else view
    out = np.zeros((view.shape[0], view.shape[1] * 2 + 1), np.float32)[:, 1::2]
    interpret(lower(s, args, binds=binds, upto=upto)["main"], [view, out])
    np.testing.assert_array_equal(out, view * 2 + 1)


def test_buffers_may_be_the_arguments_themselves() -> None:
    s, args, binds = scaled(as_args=True)
    out = np.zeros((50, 40), np.float32)
    tvm.build(s, args, binds=binds)(BASE.T, out)
    np.testing.assert_array_equal(out, BASE.T * 2 + 1)


def test_matmul_reads_transposed_operands() -> None:
    n = te.var("n")
    a, b = te.placeholder((n, 8), name="A"), te.placeholder((8, n), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(s[c].split(c.op.axis[1], factor=4)[1])
    column_major = tir.decl_buffer((8, n), name="B", strides=[1, 8])
    f = tvm.build(s, [a, b, c], binds={b: column_major})
    x, y = BASE[:5, :8].copy() / 100, BASE[:5, 8:16].copy() / 100
    out = np.zeros((5, 5), np.float32)
    f(x, y.T, out)
    np.testing.assert_allclose(out, x @ y.T, rtol=1e-5)


def test_strides_computed_from_the_shape() -> None:
    n = te.var("n")
    a = te.placeholder((n, n), name="A")
    b = te.compute((n, n), lambda i, j: a[i, j] + 1.0, name="B")
    f = tvm.build(te.create_schedule(b.op), [a, b], binds={a: tir.decl_buffer((n, n), name="A", strides=[n * 2, 2])})
    out = np.zeros((4, 4), np.float32)
    every_second = np.arange(32, dtype=np.float32).reshape(4, 8)[:, ::2]
    f(every_second, out)
    np.testing.assert_array_equal(out, every_second + 1)
    with pytest.raises(tvm.errors.ArgumentError, match=r"argument A \(1 of 2\) has stride 0 12, needs \(n \* 2\) = 8"):
        f(np.zeros((4, 12), np.float32)[:, :8:2], out)


def test_symbolic_offset_is_that_of_the_first_element() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    binds = {a: tir.decl_buffer((n,), name="A", strides=[te.var("step")], elem_offset=te.var("offset"))}
    out = np.zeros(8, np.float32)
    tvm.build(te.create_schedule(b.op), [a, b], binds=binds)(BASE[3, 4:20:2], out)
    np.testing.assert_array_equal(out, BASE[3, 4:20:2] + 1)
