"""Property 26: an output that overlaps an input is refused before anything is written, and repeated calls never accumulate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError
from tensorexpr.runtime.build import build
from tensorexpr.schedule import create_schedule
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_close, random_inputs, tolerance_of
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of
from tests.programs import conv_relu, matmul, softmax

N = 8


def reversal() -> Callable[..., object]:
    """B = A reversed plus one: in place it would read what it wrote."""
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[N - 1 - i] + 1.0, name="B")
    return build(create_schedule(b.op), [a, b])


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.integers(0, 24), st.integers(0, 24))
@example(0, 0)
@example(0, N)
@example(N, 0)
@example(0, N - 1)
@example(N - 1, 0)
def test_26_overlapping_arrays_are_refused_and_others_taken(source: int, target: int) -> None:
    memory = np.arange(32, dtype="float32")
    before, x = memory.copy(), memory[source : source + N]
    y = memory[target : target + N]
    if abs(source - target) < N:
        with pytest.raises(
            ArgumentError, match=r"argument B \(2 of 2\) is written and overlaps argument A \(1\) in memory; pass a copy as A"
        ):
            reversal()(x, y)
        np.testing.assert_array_equal(memory, before)
        return
    wanted = x[::-1] + 1
    reversal()(x, y)
    np.testing.assert_array_equal(y, wanted)


def test_26_two_outputs_that_overlap() -> None:
    a = te.placeholder((N,), name="A")
    b, c = te.compute((N,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="B")
    run = build(create_schedule(b.op), [a, b, c])
    memory, x = np.zeros(2 * N, "float32"), np.arange(N, dtype="float32")
    with pytest.raises(ArgumentError, match="overlaps"):
        run(x, memory[:N], memory[N - 1 : -1])
    assert not memory.any()
    run(x, memory[:N], memory[N:])
    np.testing.assert_array_equal(memory, np.concatenate([x + 1, x * 2]))


def test_26_interleaved_views_share_no_element() -> None:
    """Columns that lie between each other's overlap in extent only: taken or refused, never wrong."""
    a = te.placeholder((4, 2), name="A")
    b = te.compute((4, 2), lambda i, j: a[3 - i, j] + 1.0, name="B")
    run = build(create_schedule(b.op), [a, b])
    memory = np.arange(16, dtype="float32").reshape(4, 4)
    before, x, y = memory.copy(), memory[:, :2], memory[:, 2:]
    wanted = x[::-1] + 1
    try:
        run(x, y)
    except ValueError:
        np.testing.assert_array_equal(memory, before)
    else:
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(x, before[:, :2])


def test_26_one_array_as_two_inputs() -> None:
    a, b = te.placeholder((N,), name="A"), te.placeholder((N,), name="B")
    c = te.compute((N,), lambda i: a[i] * b[N - 1 - i], name="C")
    x, y = np.arange(N, dtype="float32"), np.zeros(N, "float32")
    build(create_schedule(c.op), [a, b, c])(x, x, y)
    np.testing.assert_array_equal(y, x * x[::-1])


PROGRAMS: dict[str, Callable[[], list[Tensor]]] = {"matmul": lambda: matmul(5, 7, 6), "convolution": conv_relu, "softmax": softmax}
HOW = ("plain", "split reduction", "factored", "cached", "lanes", "parallel")


@pytest.mark.parametrize(("name", "how"), list(product(PROGRAMS, HOW)))
def test_26_timing_accumulates_nothing(name: str, how: str) -> None:
    """After many timed runs the output holds what one run gives."""
    args = PROGRAMS[name]()
    out = args[-1]
    s = create_schedule(out.op)
    if how == "cached":
        s[s.cache_write(out, "local")].compute_at(s[out], s[out].op.axis[0])
    elif how == "parallel":
        s[out].parallel(s[out].op.axis[0])
    for stage in s.stages if how in ("split reduction", "factored", "lanes") else ():
        if not getattr(stage.op, "reduce_axis", ()):
            continue
        _, inner = stage.split(stage.op.reduce_axis[0], factor=4)
        if how == "lanes":
            stage.vectorize(inner)
        elif how == "factored" and stage.op is not out.op:
            s.rfactor(stage.op.output(0), inner)
    module = build(s, args)
    inputs = random_inputs(args[:-1], 3)
    arrays = [tvm.nd.array(inputs[t]) for t in args[:-1]] + [tvm.nd.array(np.full(evaluate([out], inputs)[0].shape, 9, "float32"))]
    module.time_evaluator(module.entry_name, tvm.cpu(0), number=7, repeat=3)(*arrays)
    assert_close(arrays[-1].numpy(), evaluate([out], inputs)[0], tolerance_of(out), out.name)
    for tensor, array in zip(args[:-1], arrays, strict=False):
        np.testing.assert_array_equal(array.numpy(), inputs[tensor])


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.data())
def test_26_the_second_call_gives_what_the_first_gave(data: st.DataObject) -> None:
    """Whatever an output holds before, and whatever earlier calls left in scratch memory."""
    dag = data.draw(compute_dags())
    run = build(data.draw(schedules(dag.outputs, max_steps=14)), list(dag.tensors))
    inputs = random_inputs(list(dag.inputs), 5)
    shapes = [tuple(int(str(extent)) for extent in t.shape) for t in dag.results]
    first, second = ([np.full(shape, fill, t.dtype) for shape, t in zip(shapes, dag.results, strict=True)] for fill in (0, 77))
    for outputs in (first, second, second):
        run(*(inputs[t] for t in dag.inputs), *outputs)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
