"""Programs that look odd and are legal: what nobody asks for, parts of arguments, sizes as factors, threads that share a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError, DeclarationError, LoweringError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct


def early_reader() -> tuple[Tensor, Tensor, Tensor]:
    """An input of seven rows, a stage whose row 0 would read before the first of them, a scan that starts at row 1."""
    x = te.placeholder((7, 5), name="X")
    y = te.compute((8, 5), lambda t, i: x[t - 1, i] * 2.0, name="Y")
    state = te.placeholder((8, 5), name="state")
    first = te.compute((1, 5), lambda _, i: te.const(0.0), name="first")
    update = te.compute((8, 5), lambda t, i: state[t - 1, i] + y[t, i], name="update")
    return x, y, te.scan(first, update, state, inputs=[x], name="total")


@pytest.mark.parametrize("place", ["root", "inline", "time loop"])
def test_rows_that_nobody_asks_for_may_read_outside(place: str) -> None:
    x, y, total = early_reader()
    s = create_schedule(total.op)
    if place == "inline":
        s[y].compute_inline()
    if place == "time loop":
        assert isinstance(total.op, te.ScanOp)
        s[y].compute_at(s[total], total.op.scan_axis)
    assert_schedule_correct(s, [x, total])


def test_rows_that_somebody_asks_for_may_not() -> None:
    x, y, total = early_reader()
    message = "compute Y: .* reads index -1 of dimension 0 of X"
    for ops in (y.op, [y.op, total.op]):
        with pytest.raises(DeclarationError, match=message):
            create_schedule(ops)
    with pytest.raises(DeclarationError, match=message):
        tvm.lower(create_schedule(total.op), [x, y, total])
    with pytest.raises(DeclarationError, match=message):
        te.create_prim_func([x, y])
    s = create_schedule(total.op)
    s.cache_write(y, "global")  # whose copy asks for every row
    with pytest.raises(DeclarationError, match="reads index -1 of dimension 0 of X"):
        tvm.lower(s, [x, total])


def chain(rows: Any = 20) -> tuple[Tensor, Tensor, Tensor]:
    """C = 2 (A + 1)."""
    a = te.placeholder((rows, 12), name="A")
    b = te.compute((rows, 12), lambda i, j: a[i, j] + 1.0, name="B")
    return a, b, te.compute((rows, 12), lambda i, j: b[i, j] * 2.0, name="C")


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_an_argument_is_computed_in_parts(output: bool, parallel: bool) -> None:
    a, b, c = chain()
    s = create_schedule([b.op, c.op] if output else c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], outer)
    if parallel:
        s[c].parallel(outer)
    assert_schedule_correct(s, [a, b, c])


def test_an_argument_of_unknown_size_is_computed_in_parts() -> None:
    n = te.var("n")
    a, b, c = chain(n)
    s = create_schedule([b.op, c.op])
    outer, _ = s[c].split(c.op.axis[0], factor=8)
    s[b].compute_at(s[c], outer)
    assert_schedule_correct(s, [a, b, c], sizes=({n: 13}, {n: 1}))


def test_parts_of_an_argument_must_be_all_of_it() -> None:
    a, b, _ = chain()
    every_other = te.compute((10, 12), lambda i, j: b[2 * i, j], name="D")
    s = create_schedule(every_other.op)
    s[b].compute_at(s[every_other], every_other.op.axis[0])
    assert_schedule_correct(s, [a, every_other])
    with pytest.raises(ScheduleError, match=r"In schedule for B: it is an argument, .* these parts are all of its axis 'i'"):
        tvm.lower(s, [a, b, every_other])
    with tvm.transform.PassContext(config={"tir.unsafe": True}):
        assert "B: T.Buffer((20, 12)" in str(tvm.lower(s, [a, b, every_other]))


def test_two_threads_do_not_compute_one_part_of_an_argument() -> None:
    a, b, _ = chain()
    pairs = te.compute((19, 12), lambda i, j: b[i, j] + b[i + 1, j], name="D")
    s = create_schedule(pairs.op)
    s[b].compute_at(s[pairs], pairs.op.axis[0])
    assert_schedule_correct(s, [a, b, pairs])
    s[pairs].parallel(pairs.op.axis[0])
    assert_schedule_correct(s, [a, pairs])
    with pytest.raises(ScheduleError, match="In schedule for B: it is an argument"):
        tvm.lower(s, [a, b, pairs])


def test_an_argument_is_computed_in_parts_of_a_loop_over_several_axes() -> None:
    a = te.placeholder((3, 8, 12), name="A")
    b = te.compute(a.shape, lambda i, j, k: a[i, j, k] + 1.0, name="B")
    c = te.compute(a.shape, lambda i, j, k: b[i, j, k] * 2.0, name="C")
    s = create_schedule([b.op, c.op])
    outer, _ = s[c].split(c.op.axis[1], factor=4)
    whole = s[c].fuse(c.op.axis[0], outer)
    s[b].compute_at(s[c], whole)
    s[c].parallel(whole)
    assert_schedule_correct(s, [a, b, c])


def test_an_argument_is_not_computed_again_by_each_value_of_a_digit() -> None:
    a = te.placeholder((3, 12), name="A")
    b = te.compute(a.shape, lambda i, k: a[i, k] + 1.0, name="B")
    c = te.compute((3, 8, 12), lambda i, j, k: b[i, k] * 2.0, name="C")
    s = create_schedule([b.op, c.op])
    whole = s[c].fuse(c.op.axis[0], c.op.axis[1])
    s[b].compute_at(s[c], whole)
    assert_schedule_correct(s, [a, b, c])
    s[c].parallel(whole)
    with pytest.raises(ScheduleError, match="several iterations of a parallel loop compute the same part"):
        tvm.lower(s, [a, b, c])


def test_arguments_that_nothing_reads_and_results_that_nobody_takes() -> None:
    a, b, c = chain()
    unused = te.placeholder((3,), name="U")
    s = create_schedule(c.op)
    out = np.zeros((20, 12), "float32")
    tvm.build(s, [unused, a, c])(np.zeros(3, "float32"), np.ones((20, 12), "float32"), out)
    assert (out == 4).all()
    assert "C = T.allocate([240]" in str(tvm.lower(s, [a]))
    tvm.build(s, [a])(np.ones((20, 12), "float32"))
    with pytest.raises(LoweringError, match="argument 2, D, is no part of the schedule, which doesn't compute it"):
        tvm.lower(s, [a, c, te.compute((3,), lambda i: b[i, 0], name="D")])


@pytest.mark.parametrize("kind", ["rolling_buffer", "double_buffer"])
def test_an_argument_keeps_all_of_its_elements(kind: str) -> None:
    a, b, _ = chain()
    d = te.compute((19, 12), lambda i, j: b[i, j] + b[i + 1, j], name="D")
    s = create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    getattr(s[b], kind)()
    with pytest.raises(LoweringError, match=f"B is an argument, which keeps all of its elements: leave {kind} out"):
        tvm.lower(s, [a, b, d])


def test_sizes_as_factors() -> None:
    m, f, p = te.var("m"), te.var("f"), te.var("p")
    a = te.placeholder((m,), name="A")
    b = te.compute((m,), lambda i: a[i] + 1.0, name="B")
    s = create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=f * 2)
    s[b].parallel(s[b].split(outer, nparts=p)[0])
    s[b].unroll(s[b].split(inner, nparts=m)[1])
    function = tvm.build(s, [f, p, a, b])
    for size in (37, 1, 4):
        out = np.zeros(size, "float32")
        function(5, 3, np.arange(size, dtype="float32"), out)
        np.testing.assert_array_equal(out, np.arange(1, size + 1))
    for wrong in ((0, 3), (5, 0)):
        with pytest.raises(ArgumentError, match="which is at least 1"):
            function(*wrong, np.zeros(4, "float32"), np.zeros(4, "float32"))
    again = create_schedule(b.op)
    exec(s.as_python(), {"s": again, "B": b, "f": f, "p": p, "m": m})
    assert again.trace == s.trace
    assert "'f'" in str(s.trace.to_json())


def test_sizes_of_a_trace_are_found_by_their_names() -> None:
    m = te.var("m")
    b = te.compute((m,), lambda i: i * 2, name="B")
    s = create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=m)
    assert Schedule(s.outputs, Trace.from_json(s.trace.to_json())).trace == s.trace
    with pytest.raises(ScheduleError, match=r"a factor can't be .*sizes of the program: m"):
        Schedule(s.outputs, Trace.from_json([["split", 0, 0, [None, ["axis", "k"]]]]))
    with pytest.raises(ScheduleError, match="the program has another size of that name"):
        s[b].split(s[b].leaf_iter_vars[0], factor=te.var("m"))
    # Two that only the factor has: a trace would make one of them.
    with pytest.raises(ScheduleError, match="the program has another size of that name"):
        s[b].split(s[b].leaf_iter_vars[0], factor=te.var("k") + te.var("k") * 2)


def test_fuse_of_no_axes_makes_a_loop_for_a_scalar() -> None:
    a = te.placeholder((), name="A")
    b = te.compute((), lambda: a() + 1.0, name="B")
    s = create_schedule(b.op)
    axis = s[b].fuse()
    assert type(s[b].relations[0]) is te.schedule.Singleton and s[b].leaf_iter_vars == [axis]
    s[b].bind(axis, te.thread_axis("threadIdx.x"))
    assert "T.thread_binding(1" in str(tvm.lower(s, [a, b], upto=0))
    assert_schedule_correct(s, [a, b], compiled=False)
    again = create_schedule(b.op)
    exec(s.as_python(), {"s": again, "B": b, "te": te})
    assert again.trace == s.trace


def test_a_fused_loop_has_the_pragmas_of_all_its_parts() -> None:
    *_, c = chain()
    s = create_schedule(c.op)
    i, j, *_ = s[c].leaf_iter_vars
    s[c].pragma(i, "auto_unroll_max_step", 4)
    s[c].pragma(j, "auto_unroll_max_step", 8)
    s[c].pragma(j, "loop_partition_hint", True)
    s[c].fuse(i, j)
    fused = s.tree[s[c].id].leaf[0]
    assert dict(s.tree[s[c].id].mark(fused).pragmas) == {"auto_unroll_max_step": 4, "loop_partition_hint": True}


def test_pragmas_of_others_are_kept_and_printed() -> None:
    a, b, c = chain()
    s = create_schedule(c.op)
    s[c].pragma(c.op.axis[0], "mine", "some words")
    s[c].pragma(c.op.axis[1], "count", 3)
    text = str(tvm.lower(s, [a, b, c]))
    assert '"pragma_mine": "some words"' in text and '"pragma_count": 3' in text
    assert Trace.from_json(s.trace.to_json()) == s.trace
    assert_schedule_correct(s, [a, b, c])


def test_whole_floats_are_extents() -> None:
    k = te.reduce_axis((0, 12 / 3), "k")
    a = te.placeholder((8 / 2, 4.0), name="A")
    b = te.compute((8 / 2,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=6 / 3)
    assert_schedule_correct(s, [a, b])
    with pytest.raises(DeclarationError, match=r"the extent 2\.5 is no integer"):
        te.placeholder((2.5,))


def test_threads_share_a_reduction() -> None:
    a = te.placeholder((6, 32), name="A")
    k = te.reduce_axis((0, 32), "k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    thread = te.thread_axis("threadIdx.x")
    partial = s.rfactor(b, s[b].split(b.op.reduce_axis[0], factor=8)[1])
    s[b].bind(b.op.axis[0], te.thread_axis("blockIdx.x"))
    s[b].bind(s[b].op.reduce_axis[0], thread)
    s[partial].compute_at(s[b], s[b].op.reduce_axis[0])
    s[b].set_store_predicate(thread.var.equal(0))
    assert 'T.launch_thread("threadIdx.x", 8)' in str(tvm.lower(s, [a, b]))
    assert_schedule_correct(s, [a, b])


def test_the_steps_of_a_scan_run_on_threads() -> None:
    x, state = te.placeholder((8, 16), name="X"), te.placeholder((8, 16), name="state")
    first = te.compute((1, 16), lambda _, i: x[0, i], name="first")
    update = te.compute((8, 16), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    total = te.scan(first, update, state, inputs=[x], name="total")
    s = create_schedule(total.op)
    threads = [te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")]
    s[total].env_threads(threads)
    for stage in (first, update):
        for axis, thread in zip(s[stage].split(stage.op.axis[1], factor=4), threads, strict=True):
            s[stage].bind(axis, thread)
    assert str(tvm.lower(s, [x, total])).count("T.launch_thread") == 4
    assert_schedule_correct(s, [x, total])
    with pytest.raises(ScheduleError, match="can't be split, fused or run at once"):
        s[update].bind(update.op.axis[0], te.thread_axis("blockIdx.y"))
        tvm.lower(s, [x, total])


@pytest.mark.parametrize("scope", ["shared", "shared.dyn", "warp", "texture", "global.texture", "wmma.accumulator", "local"])
def test_scopes_of_devices_are_memory(scope: str) -> None:
    a, b, c = chain()
    s = create_schedule(c.op)
    s[b].set_scope(scope)
    copy = s.cache_read(a, scope, [b])
    s[copy].compute_at(s[b], b.op.axis[0])
    s.cache_write(c, scope)
    assert f'"{scope}"' in str(tvm.lower(s, [a, c], upto=1))
    assert_schedule_correct(s, [a, c])


def test_a_stage_that_is_inlined_is_inlined_into_its_copy() -> None:
    a = te.placeholder((8,), name="A")
    padded = te.compute((10,), lambda i: te.if_then_else(te.all(i > 0, i < 9), a[i - 1], 0.0), name="padded")
    k = te.reduce_axis((0, 3), name="k")
    out = te.compute((8,), lambda i: te.sum(padded[i + k], axis=k), name="out")
    s = create_schedule(out.op)
    s[padded].compute_inline()
    copy = s.cache_read(padded, "local", [out])
    s[copy].compute_at(s[out], s[out].split(out.op.axis[0], factor=4)[0])
    text = str(tvm.lower(s, [a, out], upto=0))
    assert "padded.local" in str(s)
    assert text.count("T.allocate") + text.count("alloc_buffer") + text.count("T.realize") == 1
    assert_schedule_correct(s, [a, out])


def test_an_inlined_stage_is_read_at_indices_of_another_dtype() -> None:
    a, where = te.placeholder((4, 3), name="A"), te.placeholder((3,), "int64", name="where")
    shifted = te.compute((5, 3), lambda i, j: te.if_then_else(i < 1, a[i, j], a[i - 1, j]), name="shifted")
    one, other = te.const(1, "int64"), te.min(te.max(where[0], te.const(0, "int64")), te.const(4, "int64"))
    out = te.compute((3,), lambda j: shifted[one, j] + shifted[other, j], name="out")
    s = create_schedule(out.op)
    s[shifted].compute_inline()
    assert_schedule_correct(s, [a, where, out])
