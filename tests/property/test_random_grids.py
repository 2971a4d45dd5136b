"""Random schedules for GPUs mean what their programs mean: as threads of the interpreter, as loops of a CPU, and as PTX on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.te.operation import ComputeOp
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.ptx import OutOfBounds, emulator
from tensorexpr.testing.strategies import compute_dags, grids
from tests.effort import share_of


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.data())
def test_any_grid_means_what_its_program_means(data: st.DataObject) -> None:
    dag = data.draw(compute_dags(max_ops=3))
    s = data.draw(grids(dag.outputs))
    # What has no axes is computed between kernels, by the host, which has no access to a device's memory.
    on_device = all(stage.op.axis for stage in s.tree.stages if isinstance(stage.op, ComputeOp))
    assert_schedule_correct(s, dag.tensors, phases=(1,), emulator=on_device)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.data())
def test_each_stage_with_axes_is_in_a_kernel(data: st.DataObject) -> None:
    dag = data.draw(compute_dags(max_ops=3))
    s = data.draw(grids(dag.outputs))
    for stage in s.tree.stages:
        if stage.is_output and isinstance(stage.op, ComputeOp) and stage.op.axis:
            assert {mark.thread.tag.split(".")[0] for mark in stage.marks.values() if mark.thread} >= {"blockIdx"}


def test_virtual_threads_whose_threads_reduce_together() -> None:
    a, k = te.placeholder((8, 4), name="A"), te.reduce_axis((0, 4), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    block, rest = s[b].split(b.op.axis[0], factor=4)
    virtual, rest = s[b].split(rest, nparts=2)
    _, term = s[b].split(b.op.reduce_axis[0], factor=2)
    for axis, tag in ((block, "blockIdx.x"), (virtual, "vthread"), (rest, "threadIdx.x"), (term, "threadIdx.z")):
        s[b].bind(axis, te.thread_axis(tag))
    assert_schedule_correct(s, [a, b], emulator=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_narrow_loads_keep_their_sign(dtype: str) -> None:
    a = te.placeholder((24,), dtype, name="A")
    b = te.compute((24,), lambda i: te.floordiv(a[i].astype("int32"), 3) + a[i].astype("int64").astype("int32"), name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    assert_schedule_correct(s, [a, b], emulator=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_narrow_conversions_keep_their_sign(dtype: str) -> None:
    """Four neighbours are one load, whose parts are compared as numbers of 16 bits."""
    a, k, r = te.placeholder((7, 3, 8), dtype, name="A"), te.reduce_axis((0, 7), name="k"), te.reduce_axis((0, 8), name="r")
    b = te.compute((3,), lambda i: te.max(a[k, i, r], axis=[k, r]), name="B")
    s = te.create_schedule(b.op)
    local = s.cache_write(b, "local")
    block, thread = s[b].split(b.op.axis[0], factor=1)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[b], thread)
    assert_schedule_correct(s, [a, b], phases=(), compiled=False, emulator=True)


def test_a_row_that_is_read_before_it_is_known_whether_it_is_there() -> None:
    """Of shared memory, which the last block fills in part."""
    a, b = te.placeholder((5, 17), "int32", name="A"), te.placeholder((7, 17), "int32", name="B")
    k = te.reduce_axis((0, 17), name="k")
    c = te.compute((5, 7), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    (by, y), (bx, x) = (s[c].split(axis, factor=2) for axis in c.op.axis)
    ty, y = s[c].split(y, nparts=1)
    tx, x = s[c].split(x, nparts=1)
    s[c].reorder(by, bx, ty, tx, y, x)
    for axis, tag in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        s[c].bind(axis, te.thread_axis(tag))
    s[c].unroll(y)
    s[c].unroll(x)
    s[local].compute_at(s[c], tx)
    outer, inner = s[local].split(s[local].op.reduce_axis[0], factor=4)
    s[local].reorder(outer, inner, *s[local].op.axis)
    shared = s.cache_read(a, "shared", [local])
    s[shared].compute_at(s[local], outer)
    fused = s[shared].fuse(*s[shared].op.axis)
    rest, ty2 = s[shared].split(fused, factor=1)
    rest, tx2 = s[shared].split(rest, factor=1)
    s[shared].bind(ty2, te.thread_axis((0, 1), "threadIdx.y"))
    s[shared].bind(tx2, te.thread_axis((0, 1), "threadIdx.x"))
    s[shared].double_buffer()
    s[s.cache_read(b, "local", [local])].compute_at(s[local], outer)
    assert_schedule_correct(s, [a, b, c], phases=(), compiled=False, emulator=True)


@pytest.mark.parametrize("dtype, count", [("int32", 15), ("int8", 91), ("float32", 7)])
def test_vectors_may_end_behind_an_array(dtype: str, count: int) -> None:
    a = te.placeholder((count,), dtype, name="A")
    b = te.compute((count,), lambda i: a[i], name="B")
    s = te.create_schedule(b.op)
    block, rest = s[b].split(b.op.axis[0], factor=16)
    thread, rest = s[b].split(rest, nparts=1)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].unroll(rest)
    assert_schedule_correct(s, [a, b], emulator=True)


def test_vectors_that_begin_behind_an_array_are_found() -> None:
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i], name="B")
    s = te.create_schedule(b.op)
    thread, rest = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    s[b].vectorize(rest)
    module = tvm.build(s, [a, b], target="cuda -arch=sm_80")
    text = module.imported_modules[0].get_source("ptx")
    assert "ld.global.nc.v4" in text
    device = emulator()
    # Of the operand there are only 12 elements, which the host's checks would have said.
    short = tvm.nd.array(np.zeros(12, "float32"), device)
    with pytest.raises((OutOfBounds, tvm.TVMError)):
        module(short, tvm.nd.empty((16,), "float32", device))
