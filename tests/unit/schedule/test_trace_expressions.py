"""Expressions of sampled numbers in traces, loops of one iteration, and partial results of axes that share loops."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule.blocks import Trace
from tensorexpr.schedule.blocks.trace_expressions import expression_from_json, expression_to_json
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.structural import structural_equal
from tests.meta_schedule_programs import matmul


def split_by_expressions() -> tir.Schedule:
    """A matmul whose rows are split by expressions of two sampled numbers, under two conditions."""
    sch = tir.Schedule(matmul(32))
    i, _, _ = sch.get_loops(sch.get_block("C"))
    v, w = sch.sample_perfect_tile(i, 2, decision=[8, 4])
    sch.assert_(v * w == 32)
    sch.assert_(tir.all(v <= 16, tir.Not(w > 9)))
    sch.split(i, [v // 2, w * 2])
    return sch


def test_expressions_print_by_the_names_of_their_numbers() -> None:
    text = str(split_by_expressions().trace)
    assert "sch.assert_(condition=v4 * v5 == 32)" in text
    assert "factors=[v4 // 2, v5 * 2]" in text


def test_expressions_are_replayed_from_trace_json_and_python() -> None:
    sch = split_by_expressions()
    assert sch.trace is not None
    data = json.loads(json.dumps(sch.trace.as_json()))
    replays = [tir.Schedule(matmul(32)) for _ in range(4)]
    sch.trace.apply_to_schedule(replays[0], False)
    Trace.apply_json_to_schedule(data, replays[1])
    Trace.from_json(data).apply_to_schedule(replays[2], False)
    names: dict[str, object] = {"tir": tir}
    exec(str(sch.trace), names)
    names["apply_trace"](replays[3])  # type: ignore[operator]
    assert all(structural_equal(replay.mod, sch.mod) for replay in replays)
    assert all(str(replay.trace) == str(sch.trace) for replay in replays)


def test_numbers_that_only_an_expression_uses_stay_in_a_simplified_trace() -> None:
    sch = split_by_expressions()
    assert sch.trace is not None
    assert any(inst.kind == "SamplePerfectTile" for inst in sch.trace.simplified(False).insts)


def test_another_decision_gives_other_values() -> None:
    sch = split_by_expressions()
    assert sch.trace is not None
    sample = next(inst for inst in sch.trace.insts if inst.kind == "SamplePerfectTile")
    other = tir.Schedule(matmul(32))
    sch.trace.with_decision(sample, [16, 2], False).apply_to_schedule(other, False)
    assert [int(other.get(loop).extent.value) for loop in other.get_loops("C")][:2] == [8, 4]
    with pytest.raises(ScheduleError, match="the condition doesn't hold"):
        sch.trace.with_decision(sample, [32, 1], False).apply_to_schedule(tir.Schedule(matmul(32)), False)


@pytest.mark.parametrize("given", [["Foo", 1, 2], ["Mul", 1], ["And", 1, 2], "v99", ["Not", 1], None, ["Mul", 1 << 40, 2], {}])
def test_what_is_no_expression_is_refused(given: object) -> None:
    insts = [["Assert", [{"expression": given}], [], []]]
    with pytest.raises(RecordError, match="no expression of sampled numbers"):
        Trace.from_json([insts, []])


def test_a_condition_on_anything_else_is_refused() -> None:
    sch = tir.Schedule(matmul(32))
    with pytest.raises(ScheduleError, match="takes a condition on sampled numbers"):
        sch.assert_(tir.Var("n", "int32") > 3)


def test_lists_of_one_are_unpacked() -> None:
    sch = tir.Schedule(te.create_prim_func([a := te.placeholder((8,), name="A"), te.compute((8,), lambda i: a[i], name="B")]))
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.vectorize(i)
    assert "l1, = sch.get_loops(block=b0)" in str(sch.trace)


def test_loops_of_one_iteration_stay_loops_of_their_axis() -> None:
    sch = tir.Schedule(matmul(32))
    block = sch.get_block("C")
    _, _, k = sch.get_loops(block)
    outer, _ = sch.split(k, [1, 32])
    sch.rfactor(outer, 0)
    assert "k_0" in str(sch.realization(sch.get_block("C_rf")).iter_values[0])
    other = tir.Schedule(matmul(32))
    _, _, k = other.get_loops(other.get_block("C"))
    other.split(k, [1, 32], preserve_unit_iters=False)
    assert [str(value) for value in other.realization(other.get_block("C")).iter_values] == ["i", "j", "k_1"]


def test_partial_results_of_axes_that_share_a_loop_count_each_term_once() -> None:
    x = te.placeholder((2, 8, 8), name="X")
    k, m = te.reduce_axis((0, 8), name="k"), te.reduce_axis((0, 8), name="m")
    func = te.create_prim_func([x, te.compute((2,), lambda i: te.sum(x[i, k, m], axis=[k, m]), name="S")])
    sch = tir.Schedule(func)
    _, k0, m0 = sch.get_loops(sch.get_block("S"))
    _, inner = sch.split(sch.fuse(k0, m0), [32, 2])  # axis k is only of the outer loop, axis m of both
    partial = sch.rfactor(inner, 1)
    sch.compute_at(partial, sch.get_loops(sch.get_block("S"))[0], preserve_unit_loops=True)
    values, result = np.arange(128, dtype="float32").reshape(2, 8, 8), np.zeros(2, "float32")
    interpret(sch.mod["main"], [values, result])
    np.testing.assert_allclose(result, values.sum(axis=(1, 2)))


def test_a_replay_that_finds_other_loops_is_refused_with_the_reason() -> None:
    def tiled(sch: tir.Schedule) -> None:
        i, _, _ = sch.get_loops(sch.get_block("C"))
        sch.split(i, sch.sample_perfect_tile(i, 2, decision=[4, 8]))
        sch.get_loops(sch.get_block("C"))

    small = te.placeholder((4,), name="A")
    other = tir.Schedule(te.create_prim_func([small, te.compute((4,), lambda i: small[i], name="C")]))
    sch = tir.Schedule(matmul(32))
    tiled(sch)
    assert sch.trace is not None
    with pytest.raises(ScheduleError, match="get_loops gives 1 values here and 3 in the trace"):
        sch.trace.apply_to_schedule(other, False)


def test_depth_has_an_end() -> None:
    v = tir.Var("v", "int32")
    value: Any = v
    for step in range(120):
        value = tir.Min(value, v) if step % 2 else tir.Max(value + 1, v)
    with pytest.raises(RecordError, match="at most 100 levels"):
        expression_to_json(value, {v: "v0"})
    nested: Any = 1
    for _ in range(990):
        nested = ["Not", nested]
    with pytest.raises(RecordError, match="no expression"):
        expression_from_json(nested, {})
