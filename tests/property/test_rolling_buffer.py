"""Rolling buffers on stencils: the same results as without, and each element is computed once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.lower.rebuild import map_stmt
from tensorexpr.schedule import Schedule, Stage, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir import intrin
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import BufferStore, Evaluate, Stmt, seq
from tests.effort import share_of


def stores_to(s: Schedule, args: list[Tensor], name: str) -> int:
    """How often the program stores an element of the stage `name`."""
    count = 0

    def note() -> int:
        nonlocal count
        count += 1
        return 0

    def counted(stmt: Stmt) -> Stmt:
        if isinstance(stmt, BufferStore) and stmt.buffer.name == name:
            return seq(Evaluate(intrin.call_extern("int32", "note")), stmt)
        return map_stmt(stmt, counted)

    func = lower(s, args, upto=0)["main"]
    arrays = [np.zeros([as_int(extent) or 0 for extent in t.shape], np.float32) for t in args]
    interpret(func.with_body(counted(func.body)), arrays, externs={"note": note})
    return count


def stencil(size: int, taps: int, stride: int, columns: int) -> tuple[Tensor, Tensor, Tensor]:
    """out[i, j] = sum of B[i * stride + t, j] over taps, B = 2 A + j."""
    a = te.placeholder((size, columns), name="A")
    b = te.compute((size, columns), lambda i, j: a[i, j] * 2.0 + j, name="B")
    t = te.reduce_axis((0, taps), name="t")
    rows = (size - taps) // stride + 1
    return a, b, te.compute((rows, columns), lambda i, j: te.sum(b[i * stride + t, j], axis=t), name="out")


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 9), st.sampled_from((None, 2, 3)), st.booleans(), st.integers(1, 3))
def test_each_row_is_computed_once(taps: int, stride: int, rows: int, tile: int | None, vector: bool, columns: int) -> None:
    stride = min(stride, taps - 1)
    size = (rows - 1) * stride + taps
    a, b, out = stencil(size, taps, stride, columns)
    s = create_schedule(out.op)
    i = out.op.axis[0]
    outer = i if tile is None else s[out].split(i, factor=tile)[0]
    s[b].compute_at(s[out], outer)
    s[b].rolling_buffer()
    if vector:
        s[b].vectorize(s[b].split(b.op.axis[1], factor=2)[1])
    assert_schedule_correct(s, [a, out])
    assert stores_to(s, [a, out], "B") == size * columns


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(2, 3), st.integers(2, 4), st.booleans())
def test_two_chained_stencils_in_two_dimensions(h: int, w: int, first: int, second: int, parallel: bool) -> None:
    height, width = h + first + second - 2, w + first + second - 2
    a = te.placeholder((height, width), name="A")
    b = te.compute((height - first + 1, width - first + 1), lambda i, j: a[i, j] - a[i + first - 1, j + first - 1], name="B")
    ri, rj = te.reduce_axis((0, second), "ri"), te.reduce_axis((0, second), "rj")
    c = te.compute((h, w), lambda i, j: te.sum(b[i + ri, j + rj] * (ri + 1.0), axis=[ri, rj]), name="C")
    out = te.compute((h, w), lambda i, j: c[i, j] + 1.0, name="out")
    s = create_schedule(out.op)
    row = out.op.axis[0]
    s[c].compute_at(s[out], row)
    s[b].compute_at(s[out], row)
    s[b].rolling_buffer()
    assert_schedule_correct(s, [a, out])
    assert stores_to(s, [a, out], "B") == (height - first + 1) * (width - first + 1)
    if parallel and w > 1:  # rows in parallel, the window moves along the columns of each
        s[out].parallel(row)
        s[c].compute_at(s[out], out.op.axis[1])
        s[b].compute_at(s[out], out.op.axis[1])
        assert_schedule_correct(s, [a, out])
        assert stores_to(s, [a, out], "B") == h * second * (width - first + 1)


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.integers(2, 12), st.integers(2, 4), st.integers(2, 4))
def test_a_chain_of_rolling_buffers(rows: int, first: int, second: int) -> None:
    size = rows + first + second - 2
    a = te.placeholder((size,), name="A")
    x = te.compute((size,), lambda i: a[i] * 0.5, name="X")
    y = te.compute((size - first + 1,), lambda i: x[i] + x[i + first - 1], name="Y")
    out = te.compute((rows,), lambda i: y[i] * 3.0 - y[i + second - 1], name="out")
    s = create_schedule(out.op)
    for stage in (y, x):
        s[stage].compute_at(s[out], out.op.axis[0])
        s[stage].rolling_buffer()
    assert_schedule_correct(s, [a, out])
    assert stores_to(s, [a, out], "X") == size
    assert stores_to(s, [a, out], "Y") == size - first + 1


def padded_convolutions(n: int, taps: int) -> list[Tensor]:
    """Two convolutions with padding, one after the other, along the first of two axes."""
    x = te.placeholder((n, 3), name="X")
    edge = taps // 2

    def padded(source: Tensor, name: str) -> Tensor:
        made: Tensor = te.compute(
            (n + 2 * edge, 3),
            lambda i, j: te.if_then_else(te.all(i >= edge, i < n + edge), source[i - edge, j], 0.0),
            name=name,
        )
        return made

    def convolved(source: Tensor, name: str) -> Tensor:
        r = te.reduce_axis((0, taps), name="r")
        made: Tensor = te.compute((n, 3), lambda i, j: te.sum(source[i + r, j] * (r + 1.0), axis=r), name=name)
        return made

    first = convolved(padded(x, "pad1"), "conv1")
    return [x, convolved(padded(first, "pad2"), "conv2")]


@settings(max_examples=share_of(16), deadline=None, derandomize=True)
@given(st.data())
def test_other_steps_before_and_after(data: st.DataObject) -> None:
    """Padded convolutions in a chain at one loop, some of them rolling, some inlined, with random steps around."""
    args = padded_convolutions(data.draw(st.integers(3, 9)), data.draw(st.sampled_from((3, 5))))
    conv2 = args[-1]
    (pad2,) = conv2.op.input_tensors
    (conv1,) = pad2.op.input_tensors
    (pad1,) = conv1.op.input_tensors
    s = create_schedule(conv2.op)
    i, j = conv2.op.axis
    tile = data.draw(st.sampled_from((None, 2, 3)))
    loop = i if tile is None else s[conv2].split(i, factor=tile)[data.draw(st.integers(0, 1))]
    if data.draw(st.booleans()):
        s[conv2].reorder(j, loop)
    for stage in (pad2, conv1, pad1):
        kind = data.draw(st.sampled_from(("roll", "roll", "attach", "inline")))
        if kind == "inline" and stage is not conv1:
            s[stage].compute_inline()
            continue
        s[stage].compute_at(s[conv2], loop)
        if kind == "roll" and data.draw(st.booleans()):
            s[stage].split(stage.op.axis[0], factor=2)
        if kind == "roll":
            s[stage].rolling_buffer()
    for _ in range(data.draw(st.integers(0, 4))):
        trial = s.copy()
        chosen: Stage = data.draw(st.sampled_from([stage for stage in trial.stages if stage.leaf_iter_vars]))
        axis = data.draw(st.sampled_from(chosen.leaf_iter_vars))
        kind = data.draw(st.sampled_from(("vectorize", "unroll", "parallel", "split")))
        try:
            if kind == "split":
                chosen.split(axis, factor=2)
            else:
                getattr(chosen, kind)(axis)
            lower(trial, args, upto=0)
        except ScheduleError:
            continue
        s = trial
    try:
        lower(s, args, upto=0)
    except ScheduleError as error:
        assert "rolling_buffer" in str(error)
        return
    assert_schedule_correct(s, args)
