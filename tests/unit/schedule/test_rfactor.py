"""The rfactor primitive: the stages it makes, what of the loops goes where, and that the parts add up to the whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.phase0 import schedule_to_func
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.steps import Annotate, RFactor, SamplePerfectTile, Split
from tensorexpr.script import from_source
from tensorexpr.te.combiner_laws import refuted_law
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import Reduce, Var
from tensorexpr.tir.intrin import select
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import For, ForKind


def column_sums(rows: int = 17, columns: int = 6, reducer: Any = te.sum, **given: Any) -> tuple[Tensor, Tensor]:
    """B[i] = sum over k of A[k, i]."""
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, rows), name="k")
    return a, te.compute((columns,), lambda i: reducer(a[k, i], axis=k, **given), name="B")


def two_axes(rows: int = 7, depth: int = 5) -> tuple[Tensor, Tensor]:
    """B[i] = sum over k and q of A[k, q, i]."""
    a = te.placeholder((rows, depth, 4), name="A")
    k, q = te.reduce_axis((0, rows), name="k"), te.reduce_axis((0, depth), name="q")
    return a, te.compute((4,), lambda i: te.sum(a[k, q, i], axis=[k, q]), name="B")


def argmax_of(strict: bool) -> Any:
    """argmax as programs write it; ties go either way, or to the first."""

    def combine(x: tuple[Var, Var], y: tuple[Var, Var]) -> Any:
        keep = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0])) if strict else x[1] >= y[1]
        return select(keep, x[0], y[0]), select(keep, x[1], y[1])

    return te.comm_reducer(combine, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")


def names(axes: Any) -> list[str]:
    return [axis.name for axis in axes]


def test_the_stages_have_the_form_of_te() -> None:
    _, b = column_sums(16)
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=4)
    factored = s.rfactor(b, inner)
    assert factored.op.name == "B.rf"
    assert [int(extent) for extent in factored.shape] == [4, 6]
    assert names(factored.op.axis) == ["k.inner", "i"]
    assert names(factored.op.reduce_axis) == ["k.outer"]
    assert names(s[b].op.axis) == ["i"]
    assert names(s[b].op.reduce_axis) == ["k.inner.v"]
    assert [stage.op.name for stage in s.stages] == ["A", "B.rf", "B"]
    assert s[b].op.axis[0] is b.op.axis[0]
    assert "reduce k.outer (0, 4)" in str(s)


@pytest.mark.parametrize(("place", "axes"), [(0, "k i j"), (1, "i k j"), (2, "i j k"), (-1, "i j k"), (-3, "k i j")])
def test_where_the_factored_axis_stands(place: int, axes: str) -> None:
    a = te.placeholder((3, 4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((3, 4), lambda i, j: te.max(a[i, j, k], axis=k), name="B")
    s = create_schedule(b.op)
    factored = s.rfactor(b, k, place)
    assert names(factored.op.axis) == axes.split()
    assert_schedule_correct(s, [a, b])


def test_a_sole_axis_leaves_a_stage_that_reduces_nothing() -> None:
    a, b = column_sums(5, where=None)
    s = create_schedule(b.op)
    factored = s.rfactor(b, b.op.reduce_axis[0])
    assert not factored.op.reduce_axis
    assert not any(isinstance(body, Reduce) for body in s[factored].op.body)  # type: ignore[attr-defined]
    assert_schedule_correct(s, [a, b])


@pytest.mark.parametrize("part", ["outer", "inner"])
@pytest.mark.parametrize(("rows", "factor"), [(17, 4), (16, 4), (5, 7), (1, 3), (13, 13)])
def test_splits_that_do_not_divide(part: str, rows: int, factor: int) -> None:
    a, b = column_sums(rows)
    s = create_schedule(b.op)
    outer, inner = s[b].split(b.op.reduce_axis[0], factor=factor)
    s.rfactor(b, outer if part == "outer" else inner)
    assert_schedule_correct(s, [a, b])


def test_points_past_the_end_are_guarded_not_summed() -> None:
    a, b = column_sums(17)
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=4)
    s.rfactor(b, inner)
    assert "T.likely(k_outer * 4 + k_inner < 17)" in schedule_to_func(s, [a, b]).script()


@pytest.mark.parametrize("reducer", [te.sum, te.max, te.min], ids=["sum", "max", "min"])
@pytest.mark.parametrize("rows", [11, 12])
def test_conditions_and_starting_values_count_once(reducer: Any, rows: int) -> None:
    a = te.placeholder((rows, 4), name="A")
    start = te.placeholder((4,), name="start")
    k = te.reduce_axis((0, rows), name="k")
    b = te.compute((4,), lambda i: reducer(a[k, i], axis=k, where=te.any(k % 3 != i, a[k, i] > 0.5), init=start[i]), name="B")
    s = create_schedule(b.op)
    _, inner = s[b].split(k, factor=5)
    s.rfactor(b, inner)
    assert_schedule_correct(s, [a, start, b])


@pytest.mark.parametrize("sole", [True, False])
def test_conditions_that_read_memory_are_not_asked_past_the_end(sole: bool) -> None:
    a = te.placeholder((5, 8), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((8,), lambda i: te.sum(a[k, i], axis=k, where=a[k, i] > 0.5), name="B")
    s = create_schedule(b.op)
    outer, inner = s[b].split(k, factor=4)
    factored = s.rfactor(b, s[b].fuse(outer, inner) if sole else inner)
    s[factored].vectorize(factored.op.axis[1])
    assert_schedule_correct(s, [a, b])


@pytest.mark.parametrize("vector", [True, False])
def test_a_condition_may_rely_on_what_comes_before_it(vector: bool) -> None:
    a = te.placeholder((5, 8), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((8,), lambda i: te.sum(a[k, i], axis=k, where=te.all(k >= 1, a[k - 1, i] > 0.5)), name="B")
    s = create_schedule(b.op)
    if vector:
        s[b].reorder(k, b.op.axis[0])
        s[b].vectorize(b.op.axis[0])
    assert_schedule_correct(s, [a, b])


def test_a_domain_that_does_not_begin_at_0() -> None:
    a = te.placeholder((20,), name="A")
    k = te.reduce_axis((3, 16), name="k")
    b = te.compute((), lambda: te.sum(a[k] * k, axis=k), name="B")
    s = create_schedule(b.op)
    outer, _ = s[b].split(k, nparts=3)
    s.rfactor(b, outer)
    assert_schedule_correct(s, [a, b])


@pytest.mark.parametrize("strict", [True, False])
def test_several_results(strict: bool) -> None:
    a = te.placeholder((6, 17), name="A")
    k = te.reduce_axis((0, 17), name="k")
    index, value = te.compute((6,), lambda i: argmax_of(strict)((k.var, a[i, k]), axis=k), name="best")
    s = create_schedule(index.op)
    _, inner = s[index].split(k, factor=4)
    first, second = s.rfactor(index, inner, 1)
    assert (first.dtype, second.dtype) == ("int32", "float32")
    s[first].parallel(first.op.axis[0])
    assert_schedule_correct(s, [a, index, value])


def test_several_results_of_a_sole_axis() -> None:
    a = te.placeholder((6, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    index, value = te.compute((6,), lambda i: argmax_of(True)((k.var, a[i, k]), axis=k, where=k > i), name="best")
    s = create_schedule(index.op)
    s.rfactor(index, k)
    assert_schedule_correct(s, [a, index, value])


def test_user_reducers() -> None:
    product = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name="product")
    a, b = column_sums(9, 4, product)
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=2)
    s.rfactor(b, inner)
    assert_schedule_correct(s, [a, b])


def test_splits_of_the_other_reduction_axes_move_along() -> None:
    a, b = two_axes()
    k, q = b.op.reduce_axis
    s = create_schedule(b.op)
    q_outer, q_inner = s[b].split(q, factor=2)
    k_outer, k_inner = s[b].split(k, factor=3)
    s[b].unroll(q_inner)
    s[b].reorder(q_outer, k_outer, k_inner, q_inner)
    factored = s.rfactor(b, k_inner)
    assert names(factored.op.reduce_axis) == ["q", "k.outer"]
    assert names(s[factored].leaf_iter_vars) == ["k.inner", "i", "q.outer", "k.outer", "q.inner"]
    assert "reduce q.inner (0, 2) unroll" in str(s)
    s[factored].split(q_outer, factor=2)  # the axes in hand are those of the new stage
    assert_schedule_correct(s, [a, b])


def test_the_loops_in_hand_are_those_of_the_new_stage() -> None:
    a, b = column_sums(16)
    s = create_schedule(b.op)
    outer, inner = s[b].split(b.op.reduce_axis[0], factor=4)
    factored = s.rfactor(b, inner)
    s[factored].reorder(inner, outer, factored.op.axis[1])
    s[factored].parallel(inner)
    assert "for k.inner (0, 4) parallel" in str(s)
    with pytest.raises(ScheduleError, match=r"no axis 'k.outer' to unroll"):
        s[b].unroll(outer)
    assert_schedule_correct(s, [a, b])


def test_fused_reductions() -> None:
    a, b = two_axes()
    s = create_schedule(b.op)
    fused = s[b].fuse(*b.op.reduce_axis)
    _, inner = s[b].split(fused, factor=4)
    factored = s.rfactor(b, inner, 1)
    assert names(factored.op.reduce_axis) == ["k.q.fused.outer"]
    s[factored].vectorize(factored.op.axis[1])
    assert_schedule_correct(s, [a, b])


def test_parts_of_one_axis_of_several() -> None:
    a, b = two_axes()
    s = create_schedule(b.op)
    _, inner = s[b].split(b.op.reduce_axis[0], factor=4)
    middle, _ = s[b].split(inner, factor=3)
    factored = s.rfactor(b, middle)
    assert names(factored.op.reduce_axis) == ["q", "k.outer", "k.inner.inner"]
    assert_schedule_correct(s, [a, b])


def test_spatial_loops_stay_with_the_stage() -> None:
    a, b = column_sums(16)
    s = create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    _, k_inner = s[b].split(b.op.reduce_axis[0], factor=4)
    s[b].parallel(outer)
    s[b].reorder(outer, k_inner, inner)
    factored = s.rfactor(b, k_inner)
    assert names(s[b].leaf_iter_vars) == ["i.outer", "k.inner.v", "i.inner"]
    s[b].vectorize(inner)
    s[factored].compute_at(s[b], outer)
    assert_schedule_correct(s, [a, b])


def test_threads_on_partial_results() -> None:
    a, b = column_sums(37)
    s = create_schedule(b.op)
    outer, _ = s[b].split(b.op.reduce_axis[0], nparts=4)
    factored = s.rfactor(b, outer)
    part, column = factored.op.axis
    s[factored].parallel(part)
    s[factored].reorder(part, factored.op.reduce_axis[0], column)
    s[factored].vectorize(column)
    loops = [node for node in walk(schedule_to_func(s, [a, b]).body) if isinstance(node, For)]
    assert [loop.loop_var.name for loop in loops if loop.kind is ForKind.PARALLEL] == ["k.outer"]
    assert_schedule_correct(s, [a, b])


def test_vector_accumulators() -> None:
    a = te.placeholder((5, 67), name="A")
    k = te.reduce_axis((0, 67), name="k")
    b = te.compute((5,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    _, inner = s[b].split(k, factor=16)
    factored = s.rfactor(b, inner, -1)
    row, lane = factored.op.axis
    s[factored].reorder(row, factored.op.reduce_axis[0], lane)
    s[factored].vectorize(lane)
    s[factored].compute_at(s[b], s[b].op.axis[0])
    s[factored].set_scope("local")
    assert_schedule_correct(s, [a, b])


def test_factors_of_factors() -> None:
    """Threads outside, vector lanes inside: rfactor of what rfactor made, with two outputs of the same source."""
    a, b = column_sums(61)
    s = create_schedule(b.op)
    outer, _ = s[b].split(b.op.reduce_axis[0], nparts=3)
    threads = s.rfactor(b, outer)
    _, lane = s[threads].split(threads.op.reduce_axis[0], factor=4)
    lanes = s.rfactor(threads, lane, -1)
    assert lanes.op.name == "B.rf.rf"
    s[lanes].parallel(lanes.op.axis[0])
    s[lanes].vectorize(lanes.op.axis[2])
    s[threads].compute_at(s[b], s[b].op.reduce_axis[0])
    assert_schedule_correct(s, [a, b])


def test_of_a_cached_stage_inside_its_consumer() -> None:
    a, b = column_sums(19)
    out = te.compute((6,), lambda i: b[i] * 2.0, name="out")
    s = create_schedule(out.op)
    cached = s.cache_write(b, "local")
    s[b].compute_at(s[out], out.op.axis[0])
    s[cached].compute_at(s[b], s[b].op.axis[0])
    _, inner = s[cached].split(cached.op.reduce_axis[0], factor=5)
    factored = s.rfactor(cached, inner)
    copied = s.cache_read(a, "local", [factored])
    s[copied].compute_at(s[factored], factored.op.axis[0])
    assert factored.op.name == "B.local.rf"
    assert_schedule_correct(s, [a, out])


def test_a_size_that_is_known_at_run_time() -> None:
    n = te.size_var("n")
    a = te.placeholder((n,), name="A")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    s = create_schedule(b.op)
    _, inner = s[b].split(k, factor=8)
    factored = s.rfactor(b, inner)
    s[factored].vectorize(factored.op.axis[0])
    assert "T.likely(k_outer * 8 + k_inner < n)" in schedule_to_func(s, [a, b]).script()


def test_a_tile_size_that_is_still_open() -> None:
    a, b = column_sums(24)
    steps = [Split(1, 1, (None, (0, 1))), RFactor(1, 3, 0), Annotate(2, 0, "vectorize")]
    sketch = Schedule((b.op,), Trace((SamplePerfectTile(1, 1, 2, 64), *steps)))
    assert sketch.trace.open_decisions == (0,)
    for decision in ((24, 1), (3, 8), (1, 24)):
        decided = Schedule((b.op,), Trace((SamplePerfectTile(1, 1, 2, 64, decision), *steps)))
        assert f"for k.inner (0, {decision[1]}) vectorize" in str(decided)
        assert_schedule_correct(decided, [a, b], phases=(0,))


def scheduled() -> tuple[Tensor, Tensor, Schedule]:
    """A trace with axes that move, axes that stay and axes that are made."""
    a, b = two_axes()
    s = create_schedule(b.op)
    k, q = b.op.reduce_axis
    q_outer, q_inner = s[b].split(q, factor=2)
    _, k_inner = s[b].split(k, factor=3)
    i_outer, _ = s[b].split(b.op.axis[0], factor=2)
    factored = s.rfactor(b, k_inner, -1)
    s[factored].unroll(q_inner)
    s[factored].reorder(factored.op.reduce_axis[1], q_outer)
    s[factored].parallel(factored.op.axis[1])
    s[b].unroll(s[b].op.reduce_axis[0])
    s[b].parallel(i_outer)
    return a, b, s


def test_replay_of_json() -> None:
    _, _, s = scheduled()
    assert RFactor(1, 6, -1) in tuple(s.trace)
    trace = Trace.from_json(json.loads(json.dumps(s.trace.to_json())))
    other, fresh = two_axes()
    again = Schedule((fresh.op,), trace)
    assert str(again) == str(s)
    assert_schedule_correct(again, [other, fresh], compiled=False)


def test_printed_python_makes_the_same_trace() -> None:
    _, _, s = scheduled()
    a, b = two_axes()
    again = create_schedule(b.op)
    exec(s.as_python(), {"A": a, "B": b, "s": again})
    assert again.trace == s.trace


def test_printed_python_of_several_results() -> None:
    def program() -> tuple[Tensor, Schedule]:
        a = te.placeholder((6, 17), name="A")
        k = te.reduce_axis((0, 17), name="k")
        index, _ = te.compute((6,), lambda i: argmax_of(True)((k.var, a[i, k]), axis=k), name="best")
        return index, create_schedule(index.op)

    index, s = program()
    _, inner = s[index].split(index.op.reduce_axis[0], factor=4)
    first, _ = s.rfactor(index, inner)
    s[first].parallel(first.op.axis[0])
    other, again = program()
    exec(s.as_python(), {"best": other, "s": again})
    assert again.trace == s.trace


@pytest.mark.parametrize(
    ("combine", "identity"),
    [
        (lambda x, y: x + y, 0),
        (lambda x, y: x * y, 1),
        (lambda x, y: x + y - x * y, 0),
        (lambda x, y: x + te.abs(y), 0),
        (lambda x, y: te.sqrt(x * x + y * y), 0),
        (lambda x, y: te.max(x, y), 5),  # of which the reduction is max(5, ...), in parts as well
    ],
)
def test_combiners_that_may_be_regrouped(combine: Any, identity: int) -> None:
    _, b = column_sums(4, 2, te.comm_reducer(combine, lambda dtype: te.const(identity, dtype)))
    (body,) = b.op.body  # type: ignore[attr-defined]
    assert refuted_law(body.combiner) is None


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float64"])
def test_reducers_of_every_dtype_may_be_regrouped(dtype: str) -> None:
    a = te.placeholder((3,), dtype, name="A")
    for reducer in (te.max, te.min) if dtype == "bool" else (te.sum, te.max, te.min):
        k = te.reduce_axis((0, 3), "k")
        b = te.compute((), lambda reducer=reducer, k=k: reducer(a[k], axis=k), name="B")
        assert refuted_law(b.op.body[0].combiner) is None


READS_ITSELF = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * C[vi]
"""


def test_a_sum_whose_terms_read_it_is_none() -> None:
    """C[i] = C[i] + A[i, k] * C[i] is a product of 1 + A[i, k]: each step needs the one before."""
    sch = tir.Schedule(from_source(READS_ITSELF))
    with pytest.raises(ScheduleError, match="associative"):
        sch.rfactor(sch.get_loops(sch.get_block("C"))[1], 0)
