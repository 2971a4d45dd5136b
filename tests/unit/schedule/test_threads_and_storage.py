"""bind, double_buffer, storage_align and exact splits: what they say about a tree, and that other steps keep it."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.steps import Annotate
from tensorexpr.schedule.tree import LoopKind, LoopMark, ThreadAxis
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tir.structural_digest import structural_hash
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
    assert (node.double_buffer, node.aligns) == (2, ((0, 2, 0),))


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


def shared_product(n: int = 12, scope: str = "shared") -> tuple[Schedule, list[Tensor], Tensor]:
    """B = W @ (2 A): the doubled vector is filled by the threads that read it."""
    a, w = te.placeholder((n,), name="A"), te.placeholder((n, n), name="W")
    p = te.compute((n,), lambda i: a[i] * 2.0, name="P")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((n,), lambda i: te.sum(p[k] * w[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    s[p].set_scope(scope)
    block, lane = s[b].split(b.op.axis[0], 4)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(lane, te.thread_axis("threadIdx.x"))
    outer, _ = s[b].split(k, 6)
    s[p].compute_at(s[b], outer)
    _, inner = s[p].split(p.op.axis[0], 4)
    s[p].bind(inner, te.thread_axis("threadIdx.x"))
    return s, [a, w, b], p


def test_threads_fill_together_what_they_share() -> None:
    s, args, _ = shared_product()
    a, w = np.arange(12, dtype=np.float32), np.arange(144, dtype=np.float32).reshape(12, 12)
    for phase in range(4):
        lowered, b = tvm.lower(s, args, upto=phase), np.zeros(12, np.float32)
        interpret(lowered["main"], [a, w, b])
        np.testing.assert_allclose(b, w @ (2 * a))
    # Where loops are cut, no piece has fewer threads than the grid has: they could not be one launch.
    assert 'threadIdx_x = T.launch_thread("threadIdx.x", 4)' in lowered.script()


def test_what_every_thread_reads_is_computed_for_all_of_them() -> None:
    """The threads of a block read neighbouring elements; what they share holds those of all."""
    s, args, b = chain()
    c = args[-1]
    s[b].set_scope("shared")
    _, lane = s[c].split(c.op.axis[0], 8)
    s[c].bind(lane, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], lane)
    assert "T.allocate([8]" in tvm.lower(s, args).script()
    s[b].set_scope("local")
    assert "T.allocate([8]" not in tvm.lower(s, args).script()


@pytest.mark.parametrize("scope", ["local", "global", "warp"])
def test_memory_that_threads_do_not_share_is_not_filled_together(scope: str) -> None:
    s, args, _ = shared_product(scope=scope)
    if scope == "warp":  # which the threads of one warp share
        tvm.lower(s, args)
        return
    with pytest.raises(ScheduleError, match=r'bound to it too; .* let the threads share it: s\[P\]\.set_scope\("shared"\)'):
        tvm.lower(s, args)


@pytest.mark.parametrize("copies", [2, 3, 4, 9])
def test_copies_are_filled_for_later_iterations(copies: int) -> None:
    s, args, b = chain()
    outer, _ = s[args[-1]].split(args[-1].op.axis[0], factor=4)
    s[b].compute_at(s[args[-1]], outer)
    s[b].multi_buffer(copies)
    assert_schedule_correct(s, args)
    assert f"B = T.allocate([{4 * copies}]" in tvm.lower(s, args).script()


@pytest.mark.parametrize("copies", [1, 17])
def test_numbers_of_copies_that_there_are_not(copies: int) -> None:
    s, _, b = chain()
    with pytest.raises(ScheduleError, match="makes 2 to 16 copies, not"):
        s[b].multi_buffer(copies)


def windows() -> tuple[Schedule, list[Tensor]]:
    """Windows of three elements, two apart."""
    a, w = te.placeholder((17,), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), name="r")
    c = te.compute((8,), lambda i: te.sum(a[i * 2 + r] * w[r], axis=r), name="C")
    return create_schedule(c.op), [a, w, c]


@pytest.mark.parametrize("inside", [False, True])
def test_a_copy_by_the_axes_of_its_reader(inside: bool) -> None:
    s, args = windows()
    copy = s.reindex_cache_read(args[0], "shared", args[2])
    assert tuple(map(str, copy.shape)) == ("8", "3")
    if inside:
        outer, _ = s[args[2]].split(args[2].op.axis[0], factor=4)
        s[copy].compute_at(s[args[2]], outer)
    assert_schedule_correct(s, args)
    again = create_schedule(args[2].op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s)


@pytest.mark.parametrize("read", [0, 1])
def test_a_copy_for_one_of_the_reads(read: int) -> None:
    a, k = te.placeholder((5, 7), name="A"), te.reduce_axis((0, 7), name="k")
    c = te.compute((5, 5), lambda i, j: te.sum(a[i, k] * a[j, k], axis=k), name="C")
    s = create_schedule(c.op)
    copy = s.cache_read(a, "local", c, read=read)
    assert [load.producer == copy for load in s.tree.reads(s.tree[s[c].id])] == [read == 0, read == 1]
    assert_schedule_correct(s, [a, c])
    assert s.as_python().splitlines()[1] == f'A_local = s.cache_read(A, "local", [C], read={read})'
    again = create_schedule(c.op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s)
    with pytest.raises(ScheduleError, match="cache_read with read=1 for C, which reads it at 1 places"):
        s.cache_read(a, "local", c, read=1)
    with pytest.raises(ScheduleError, match="takes a dtype for all reads"):
        s.cache_read(a, "local", c, dtype="float64", read=0)


def test_a_copy_by_axes_takes_one_read() -> None:
    a = te.placeholder((9,), name="A")
    c = te.compute((8,), lambda i: a[i] + a[i + 1], name="C")
    with pytest.raises(ScheduleError, match="C reads it at 2; cache_read"):
        create_schedule(c.op).reindex_cache_read(a, "local", c)


def test_a_read_behind_a_condition_is_copied_where_it_is_there_alone() -> None:
    a = te.placeholder((4,), name="A")
    padded = te.compute((6,), lambda i: tir.if_then_else(tir.all(i >= 1, i < 5), a[i - 1], 0.0), name="P")
    with pytest.raises(ScheduleError, match=r"reads A\[i - 1\] under a condition: the copy would read it everywhere"):
        create_schedule(padded.op).reindex_cache_read(a, "local", padded)
    chosen = te.compute((3,), lambda i: tir.if_then_else(i < 2, a[i + 1], 0.0), name="C")
    s = create_schedule(chosen.op)
    s.reindex_cache_read(a, "local", chosen)
    assert_schedule_correct(s, [a, chosen])
