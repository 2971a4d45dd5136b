"""Externs among computes: every phase and the compiled code agree with the reference, and JSON keeps them as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import register_func, te, tir
from tensorexpr.runtime.ndarray import NDArray
from tensorexpr.schedule.te_schedule import create_schedule
from tensorexpr.te.identity import dag_equal, dag_key
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.stmt import Stmt
from tests.effort import share_of

Body = Callable[[list[Buffer], list[Buffer]], Any]


@register_func("tests.extern.halve", override=True)
def halve(source: NDArray, target: NDArray, offset: int) -> None:
    target[...] = (source[...] // 2 if source.dtype.startswith(("int", "uint")) else source[...] / 2) + offset


def nest(draw: st.DrawFn, shape: tuple[int, ...]) -> Body:
    """Loops over the outer dimensions, with a condition, a binding and a workspace on the way."""
    kind = draw(st.sampled_from(["serial", "parallel", "unroll"]))
    flat, bound, begin = draw(st.booleans()), draw(st.integers(0, 3)), draw(st.integers(0, 1))

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(begin, shape[0] + begin, "i", kind=kind) as shifted:
            i = shifted - begin
            row = prod(shape[1:])
            kept = ib.allocate(x.dtype, (1,), "kept", scope="local")
            corner: list[Any] = [i, *[0] * len(shape[1:])]
            kept[0] = x[i * row] if flat else x[corner]
            with ib.for_range(0, row, "j") as j:
                value = ib.let("value", x[i * row + j])
                with ib.if_scope(i < bound):
                    y[i * row + j] = value + kept[0]
                with ib.else_scope():
                    y[i * row + j] = value
        return ib.get()

    return body


def packed(draw: st.DrawFn, shape: tuple[int, ...]) -> Body:
    offset = draw(st.integers(0, 3))
    return lambda ins, outs: tir.call_packed("tests.extern.halve", ins[0], outs[0], offset)


@st.composite
def extern_dags(draw: st.DrawFn) -> tuple[Tensor, ...]:
    """The tensors of a random DAG, with an extern that reads one of its results, and what reads that."""
    dag = draw(compute_dags())
    source = next((t for t in dag.results if t.ndim and t.dtype not in ("bool", "float16", "bfloat16")), None)
    if source is None:
        source = te.compute((5,), lambda i: i * 2, name="steps")
    shape = tuple(extent.value for extent in source.shape if isinstance(extent, tir.IntImm))
    body = draw(st.sampled_from([nest, packed]))(draw, shape)
    strided = draw(st.booleans())
    given_buffers = None
    if strided:
        strides = [te.var(f"s{n}") for n in range(len(shape))]
        given_buffers = [tir.decl_buffer(shape, source.dtype, "view", strides=strides, elem_offset=te.var("offset"))]
    made = te.extern(shape, [source], body, name="made", dtype=source.dtype, in_buffers=given_buffers)
    last = te.compute(shape, lambda *i: made(*i) + source(*i), name="last")
    return (*dag.inputs, last)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_externs_among_scheduled_computes(data: st.DataObject) -> None:
    tensors = data.draw(extern_dags())
    used = set(te.create_schedule(tensors[-1].op).tree.index)
    args = [t for t in tensors if t.op in used]
    schedule = data.draw(schedules([tensors[-1].op], max_steps=6))
    assert_schedule_correct(schedule, args, seed=data.draw(st.integers(0, 99)))


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(extern_dags())
def test_json_keeps_externs(tensors: tuple[Tensor, ...]) -> None:
    text = json.dumps(dag_to_json([tensors[-1]]))
    (again,) = dag_from_json(json.loads(text))
    assert json.dumps(dag_to_json([again])) == text
    assert dag_equal([tensors[-1]], [again])
    assert dag_key([tensors[-1]]) == dag_key([again])
    inputs = [op.output(0) for op in create_schedule(again.op).tree.index if isinstance(op, PlaceholderOp)]
    assert_schedule_correct(create_schedule(again.op), [*inputs, again], phases=(0, 3), compiled=False)
