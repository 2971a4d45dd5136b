"""Property 19: guards hold for every lane, no lane reads out of bounds, and what has no vector form keeps its dtype."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime.build import build
from tensorexpr.schedule import create_schedule
from tensorexpr.te.reference import evaluate
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import BufferLoad, Call
from tensorexpr.tir.intrin import select
from tensorexpr.tir.rewriting import walk
from tests.effort import share_of

DTYPES = st.sampled_from(("float32", "float64", "int8", "int32", "int64", "uint8", "float16"))


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(
    n=st.integers(1, 19),
    before=st.integers(0, 5),
    after=st.integers(0, 5),
    stride=st.integers(1, 3),
    factor=st.sampled_from((2, 3, 4, 5, 8, 16, 32)),
    dtype=DTYPES,
    lazy=st.booleans(),
)
@example(n=17, before=3, after=4, stride=1, factor=8, dtype="float32", lazy=True)
@example(n=1, before=0, after=1, stride=3, factor=2, dtype="int8", lazy=False)
def test_19_padding_on_vectors(n: int, before: int, after: int, stride: int, factor: int, dtype: str, lazy: bool) -> None:
    a = te.placeholder((n,), dtype, name="A")
    size = (n + before + after + stride - 1) // stride
    choose: Callable[..., Any] = te.if_then_else if lazy else select

    def padded(i: Any) -> Any:
        at = i * stride - before
        return choose(te.all(at >= 0, at < n), a[at], te.const(3, dtype))

    b = te.compute((size,), padded, name="B")
    s = create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=factor)[1])
    assert_schedule_correct(s, [a, b], phases=(0, 2, 3))


def at_the_edges_of_pages(shape: tuple[int, ...], dtype: str) -> tuple[mmap.mmap, np.ndarray[Any, Any]]:
    """An array that ends where its pages do, so that reading on ends the process or meets memory of others."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    return pages, np.frombuffer(pages, dtype, offset=len(pages) - size).reshape(shape)


@pytest.mark.parametrize("n", [7, 13, 16, 31])
def test_19_the_machine_reads_nothing_past_an_array(n: int) -> None:
    """Lanes whose guard fails must not load: the interpreter would see it, and here the machine code runs at the end of a page."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n + 6,), lambda i: te.if_then_else(te.all(i >= 3, i < n + 3), a[i - 3] * 2.0, 1.0), name="B")
    s = create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=16)[1])
    pages, x = at_the_edges_of_pages((n,), "float32")
    x[:] = np.arange(n)
    y = np.full(n + 6, 7, "float32")
    build(s, [a, b])(x, y)
    np.testing.assert_array_equal(y, evaluate([b], {a: x})[0])
    assert len(pages) == mmap.PAGESIZE


@pytest.mark.parametrize("n", [5, 16, 20])
def test_19_a_condition_on_data_guards_the_index_it_protects(n: int) -> None:
    """Lanes choose where to read by what was read; those whose condition fails have no legal index."""
    index = te.placeholder((n,), "int32", name="index")
    a = te.placeholder((4,), name="A")
    b = te.compute((n,), lambda i: te.if_then_else(te.all(index[i] >= 0, index[i] < 4), a[index[i]], -1.0), name="B")
    s = create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=8)[1])
    given_index = np.array([0, -1 << 31, 3, (1 << 31) - 1, 4] * n, "int32")[:n]
    x, y = np.arange(4, dtype="float32"), np.zeros(n, "float32")
    build(s, [index, a, b])(given_index, x, y)
    np.testing.assert_array_equal(y, evaluate([b], {index: given_index, a: x})[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("operation", [te.floordiv, te.floormod, te.truncdiv, te.truncmod])
def test_19_division_keeps_its_dtype_in_lanes(operation: Callable[..., Any], dtype: str) -> None:
    a, b = te.placeholder((13,), dtype, name="A"), te.placeholder((13,), dtype, name="B")
    c = te.compute((13,), lambda i: operation(a[i], te.max(b[i], te.const(1, dtype))), name="C")
    s = create_schedule(c.op)
    s[c].vectorize(s[c].split(c.op.axis[0], factor=8)[1])
    assert c.dtype == dtype
    assert_schedule_correct(s, [a, b, c], phases=(2, 3))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(te, name)
    for name in ("exp", "log", "tanh", "erf", "sin", "cos", "atan", "floor", "round", "sqrt", "popcount", "clz")
    if hasattr(te, name)
}


_OF_INTEGERS = ("popcount", "clz")
_TYPED = [(name, dtype) for name in FUNCTIONS for dtype in (("int32",) if name in _OF_INTEGERS else ("float32", "float64", "float16"))]


@pytest.mark.parametrize("name, dtype", _TYPED)
def test_19_calls_keep_their_dtype_in_lanes(name: str, dtype: str) -> None:
    """In vectors or lane by lane, a call's lanes have the dtype that the call has alone."""
    a = te.placeholder((11,), dtype, name="A")
    b = te.compute((11,), lambda i: FUNCTIONS[name](te.max(a[i], te.const(1, dtype))), name="B")
    s = create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=4)[1])
    func = lower(s, [a, b], upto=2)["main"]
    elements = {
        n.dtype.split("x")[0] for n in walk(func.body) if isinstance(n, (Call, BufferLoad)) and not n.dtype.startswith(("bool", "handle"))
    }
    assert elements <= {dtype, b.dtype, "int32"}
    assert_schedule_correct(s, [a, b], phases=(2,))
