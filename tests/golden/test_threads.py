"""Virtual threads, double buffers and aligned storage as text: schedules, the module before and after their passes, explanations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.transform import InjectDoubleBuffer
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tests.conftest import Golden
from tests.programs import matmul
from tests.unit.lower.builder import pipeline_pass

Program = tuple[Schedule, list[Tensor]]


def elementwise() -> Program:
    """Two virtual threads, each with its part of a stage inside."""
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((64,), lambda i: b[i] * 2.0, name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], nparts=2)
    s[c].bind(outer, te.thread_axis((0, 2), "vthread", name="vx"))
    block, _ = s[c].split(inner, factor=8)
    s[b].compute_at(s[c], block)
    return s, [a, c]


def threaded_matmul() -> Program:
    """2 x 2 virtual threads that share what they read of A and B along the other dimension; A double buffered, its rows 9 apart."""
    args = matmul(16, 16, 16)
    a, _, c = args
    s = create_schedule(c.op)
    local = s.cache_write(c, "local")
    i, j = s[c].op.axis
    iv, ii = s[c].split(i, nparts=2)
    jv, ji = s[c].split(j, nparts=2)
    s[c].reorder(iv, jv, ii, ji)
    s[c].bind(iv, te.thread_axis((0, 2), "vthread", name="vy"))
    s[c].bind(jv, te.thread_axis((0, 2), "vthread", name="vx"))
    s[local].compute_at(s[c], jv)
    ro, ri = s[local].split(s[local].op.reduce_axis[0], factor=4)
    s[local].reorder(ro, ri, *local.op.axis)
    copy = s.cache_read(a, "local", [local])
    s[copy].compute_at(s[local], ro)
    s[copy].double_buffer()
    s[copy].storage_align(copy.op.axis[0], 8, 1)
    return s, args


def coprocessor() -> Program:
    """Threads of "cthread" share nothing, not even what is the same for all."""
    a = te.placeholder((4, 8), name="A")
    scale = te.compute((8,), lambda j: a[0, j] * 2.0, name="scale")
    c = te.compute((4, 8), lambda i, j: a[i, j] * scale[j], name="C")
    s = create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("cthread"))
    s[scale].compute_at(s[c], c.op.axis[0])
    return s, [a, c]


def shared() -> Program:
    """Threads of "vthread" share what is the same for all."""
    s, args = coprocessor()
    c = args[-1]
    s = create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("vthread"))
    scale = next(t for t in c.op.input_tensors if t.op.name == "scale")
    s[scale].compute_at(s[c], c.op.axis[0])
    return s, args


def many() -> Program:
    """More threads than are written out: a loop over them moves inwards."""
    a = te.placeholder((32, 4), name="A")
    b = te.compute((32, 4), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((32, 4), lambda i, j: b[i, j] * 2.0, name="C")
    s = create_schedule(c.op)
    s[c].bind(c.op.axis[0], te.thread_axis("vthread"))
    s[b].compute_at(s[c], c.op.axis[0])
    return s, [a, c]


def grid() -> Program:
    """Blocks and threads of a device."""
    a = te.placeholder((30,), name="A")
    b = te.compute((30,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis((0, 8), "threadIdx.x"))
    return s, [a, b]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "elementwise": elementwise, "matmul": threaded_matmul, "cthread": coprocessor, "shared": shared, "many": many, "grid": grid
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered(golden: Golden, name: str) -> None:
    s, args = PROGRAMS[name]()
    before = tvm.lower(s, args, upto=1)
    after = pipeline_pass("InjectVirtualThread")(InjectDoubleBuffer()(before))
    parts = [str(s), s.as_python(), tvm.lower(s, args, upto=0).script(), before.script(), after.script(), tvm.lower(s, args).script()]
    golden(f"threads/{name}.txt", "\n\n".join(parts))


@pytest.mark.parametrize("split_loop", [0, 1, 2])
def test_split_loop(golden: Golden, split_loop: int) -> None:
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 8), lambda i, j: b[i, j] * 2.0, name="C")
    s = create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].double_buffer()
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split_loop}}):
        golden(f"threads/split_loop_{split_loop}.py", InjectDoubleBuffer()(tvm.lower(s, [a, c], upto=1)).script())


def test_explain(golden: Golden) -> None:
    golden("threads/explain.txt", threaded_matmul()[0].explain())
