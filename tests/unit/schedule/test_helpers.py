"""te.schedule's helpers: inlining by kind, inferred bounds, the loops of phase 0."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.schedule.tree import Inline
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.programs import matmul_add


def program() -> list[Tensor]:
    """An elementwise stage, a broadcast, a transpose, a reduction and an output, one after the other."""
    a = te.placeholder((6, 5), name="A")
    row = te.placeholder((5,), name="row")
    elementwise = te.compute((6, 5), lambda i, j: a[i, j] * 2.0, name="elementwise")
    broadcast = te.compute((6, 5), lambda i, j: elementwise[i, j] + row[j], name="broadcast")
    transpose = te.compute((5, 6), lambda i, j: broadcast[j, i], name="transpose")
    k = te.reduce_axis((0, 6), name="k")
    total = te.compute((5,), lambda i: te.sum(transpose[i, k], axis=k), name="total")
    return [a, row, te.compute((5,), lambda i: total[i] + 1.0, name="out")]


def inlined(s: te.Schedule) -> list[str]:
    """The names of the inlined stages."""
    return [stage.name for stage in s.tree.in_order() if isinstance(stage.attach, Inline)]


def test_each_kind_inlines_what_it_names() -> None:
    for helper, wanted in (
        (te.schedule.AutoInlineElemWise, ["elementwise"]),
        (te.schedule.AutoInlineBroadcast, ["elementwise", "broadcast"]),
        (te.schedule.AutoInlineInjective, ["elementwise", "broadcast", "transpose"]),
    ):
        args = program()
        s = te.create_schedule(args[-1].op)
        helper(s)
        assert inlined(s) == wanted
        assert_schedule_correct(s, args)


def test_a_scheduled_stage_is_left_alone() -> None:
    args = program()
    s = te.create_schedule(args[-1].op)
    stage = next(st for st in s.stages if st.op.name == "elementwise")
    stage.split(stage.op.axis[0], factor=2)
    te.schedule.AutoInlineInjective(s)
    assert inlined(s) == ["broadcast", "transpose"]


def test_inferred_bounds() -> None:
    args = matmul_add(16, 16, 16)
    out = args[-1]
    matmul = out.op.input_tensors[0]
    s = te.create_schedule(out.op)
    outer, inner = s[out].split(out.op.axis[0], factor=4)
    s[matmul].compute_at(s[out], outer)
    bounds = te.schedule.InferBound(s)
    assert str(bounds[matmul.op.axis[0]].min) == "i_outer * 4"
    assert (int(bounds[matmul.op.axis[0]].extent), int(bounds[matmul.op.axis[1]].extent)) == (4, 16)
    assert (int(bounds[outer].extent), int(bounds[inner].extent)) == (4, 4)


def test_schedule_ops_keeps_trivial_loops_if_asked() -> None:
    a = te.placeholder((1, 4), name="A")
    b = te.compute((1, 4), lambda i, j: a[i, j] + 1.0, name="B")
    s = te.create_schedule(b.op)
    assert "for j in range(4)" in str(te.schedule.ScheduleOps(s))
    assert "T.grid(1, 4)" in str(te.schedule.ScheduleOps(s, te.schedule.InferBound(s), debug_keep_trivial_loop=True))
