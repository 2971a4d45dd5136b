"""bind, double_buffer, storage_align and exact splits: what they say about a tree, and that other steps keep it."""

from __future__ import annotations

import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.steps import Annotate
from tensorexpr.schedule.tree import LoopKind, LoopMark, ThreadAxis
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.structural import structural_equal, structural_hash
from tests.programs import matmul_add


def chain() -> tuple[Schedule, list[Tensor], Tensor]:
    """C = 2 (A + 1), 24 elements."""
    a = te.placeholder((24,), name="A")
    b = te.compute((24,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((24,), lambda i: b[i] * 2.0, name="C")
    return create_schedule(c.op), [a, c], b


@pytest.mark.parametrize(
    ("axis", "wanted"),
    [
        (te.thread_axis("vthread"), ThreadAxis("vthread", "vthread", None)),
        (te.thread_axis((0, 24), "vthread", name="t"), ThreadAxis("vthread", "t", 24)),
        (te.thread_axis(24, tag="threadIdx.x"), ThreadAxis("threadIdx.x", "threadIdx.x", 24)),
        (te.thread_axis(tir.Range.from_min_extent(0, 24), "blockIdx.z", "b"), ThreadAxis("blockIdx.z", "b", 24)),
    ],
)
def test_a_loop_is_bound_to_a_thread_axis(axis: tir.IterVar, wanted: ThreadAxis) -> None:
    s, args, _ = chain()
    c = args[-1]
    s[c].bind(c.op.axis[0], axis)
    mark = s.tree[s[c].id].mark(0)
    assert (mark.kind, mark.thread) == (LoopKind.BIND, wanted)
    assert f"for i (0, 24) {wanted.tag}" in str(s)
    tvm.lower(s, args)


def test_thread_axes_are_like_tvms() -> None:
    axis = te.thread_axis((0, 4), "vthread", name="vx")
    assert (axis.name, axis.thread_tag, axis.iter_type, axis.dtype) == ("vx", "vthread", tir.IterVar.THREAD_INDEX, "int32")
    assert te.thread_axis("cthread").dom is None


def test_pragmas_stay_on_a_bound_loop() -> None:
    s, args, _ = chain()
    c = args[-1]
    s[c].pragma(c.op.axis[0], "auto_unroll_max_step", 4)
    s[c].bind(c.op.axis[0], te.thread_axis("vthread"))
    assert s.tree[s[c].id].mark(0).pragmas == (("auto_unroll_max_step", 4),)


def test_programs_with_other_tags_differ() -> None:
    lowered = []
    for tag in ("threadIdx.x", "threadIdx.y", "threadIdx.x"):
        s, args, _ = chain()
        s[args[-1]].bind(args[-1].op.axis[0], te.thread_axis(tag))
        lowered.append(tvm.lower(s, args, upto=0)["main"])
    assert structural_equal(lowered[0], lowered[2])
    assert structural_hash(lowered[0]) == structural_hash(lowered[2])
    assert not structural_equal(lowered[0], lowered[1])
    assert structural_hash(lowered[0]) != structural_hash(lowered[1])


def test_programs_with_other_layouts_differ() -> None:
    lowered = []
    for factor in (0, 8, 16, 8):
        s, args, b = chain()
        if factor:
            s[b].storage_align(b.op.axis[0], factor)
        lowered.append(tvm.lower(s, args, upto=0)["main"])
    assert structural_equal(lowered[1], lowered[3])
    assert structural_hash(lowered[1]) == structural_hash(lowered[3])
    assert not structural_equal(lowered[0], lowered[1])
    assert not structural_equal(lowered[1], lowered[2])


def test_cache_write_keeps_what_was_said_about_storage() -> None:
    s, args, b = chain()
    c = args[-1]
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    s[b].double_buffer()
    s[b].storage_align(b.op.axis[0], 2)
    s.cache_write(b, "local")
    node = s.tree[s[b].id]
    assert (node.double_buffer, node.aligns) == (True, ((0, 2, 0),))


def test_double_buffer_of_a_loop_with_one_iteration() -> None:
    s, args, b = chain()
    c = args[-1]
    outer, _ = s[c].split(c.op.axis[0], factor=24)
    s[b].compute_at(s[c], outer)
    s[b].double_buffer()
    assert "T.allocate([24]" in tvm.lower(s, args, upto=1).script()
    assert_schedule_correct(s, args)


def test_double_buffers_in_a_parallel_loop() -> None:
    args = matmul_add(8, 8, 8)
    out = args[-1]
    product = out.op.input_tensors[0]
    s = create_schedule(out.op)
    block, row = s[out].split(out.op.axis[0], factor=4)
    s[out].parallel(block)
    s[product].compute_at(s[out], row)
    s[product].double_buffer()
    assert_schedule_correct(s, args)


def test_exact_splits_have_no_guard() -> None:
    n = te.var("n")
    a = te.placeholder((n * 8,), name="A")
    b = te.compute((n * 8,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=8, disable_predication=True)
    s[b].vectorize(inner)
    assert "likely" not in tvm.lower(s, [a, b], upto=0).script()
    assert_schedule_correct(s, [a, b], sizes=[{n: 1}, {n: 3}])


def test_exact_splits_of_the_part_that_a_visit_computes() -> None:
    s, args, b = chain()
    c = args[-1]
    outer, _ = s[c].split(c.op.axis[0], factor=6)
    s[b].compute_at(s[c], outer)
    s[b].split(b.op.axis[0], factor=3, disable_predication=True)
    assert "likely" not in tvm.lower(s, args, upto=0).script()
    s, args, b = chain()
    c = args[-1]
    outer, _ = s[c].split(c.op.axis[0], factor=6)
    s[b].compute_at(s[c], outer)
    s[b].split(b.op.axis[0], factor=4, disable_predication=True)  # divides all 24, but not the 6 of a visit
    with pytest.raises(ScheduleError, match="would run 2 x 4 iterations"):
        tvm.lower(s, args)


def test_a_loop_can_be_serial_again() -> None:
    s, args, _ = chain()
    stage = s[args[-1]].id
    s[args[-1]].bind(args[-1].op.axis[0], te.thread_axis("vthread"))
    s.apply_step(Annotate(stage, 0, "serial"))
    assert s.tree[stage].mark(0) == LoopMark()
    assert "thread_binding" not in tvm.lower(s, args, upto=0).script()
