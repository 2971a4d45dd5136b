"""Inputs that the caller packs: in sketches, while a task is measured, in logs, and where records are applied."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.auto_scheduler import (
    ApplyHistoryBest,
    ComputeDAG,
    LayoutRewriteOption,
    RecordToFile,
    SearchTask,
    SketchPolicy,
    State,
    TuningOptions,
    best_schedule,
    load_records,
)
from tensorexpr.auto_scheduler.preload import CandidateIndex, PreloadMeasuredStates, recall
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps import PreTransformed
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure.compiled import ArrayArgument

PACKED = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
INSERT = LayoutRewriteOption.INSERT_TRANSFORM_STAGE


def dense(rows: int = 16, columns: int = 64, depth: int = 32) -> list[Tensor]:
    """A product with a transposed weight that may be packed."""
    a, w, k = te.placeholder((rows, depth), name="A"), te.placeholder((columns, depth), name="W"), te.reduce_axis((0, depth), name="k")
    body = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * w[j, k], axis=k), name="C", attrs={"layout_free_placeholders": [w]})
    return [a, w, body]


def tiled(tensors: list[Tensor]) -> State:
    """A program of tiles by hand."""
    state = ComputeDAG(tensors).get_init_state()
    i, j, k = state[tensors[-1]].iters
    i0, i1 = state.split(tensors[-1], i, [4])
    j0, j1, j2 = state.split(tensors[-1], j, [4, 8])
    k0, k1 = state.split(tensors[-1], k, [16])
    state.reorder(tensors[-1], [i0, j0, k0, j1, k1, i1, j2])
    return state


def test_the_layout_has_an_index_for_each_loop() -> None:
    tensors = dense()
    schedule, args = ComputeDAG(tensors).apply_steps_from_state(tiled(tensors), layout_rewrite=PACKED)
    assert [int(str(extent)) for extent in args[1].shape] == [2, 2, 4, 16, 8]
    assert str(schedule.layout_of(tensors[1])) == "(ax0, ax1) -> (ax0 // 32, ax1 // 16, ax0 // 8 % 4, ax1 % 16, ax0 % 8)"
    assert args[0] is tensors[0] and args[2] is tensors[2]


def test_without_a_rewrite_arguments_are_as_they_were_declared() -> None:
    tensors = dense()
    dag = ComputeDAG(tensors)
    for option in (LayoutRewriteOption.NO_REWRITE, INSERT):
        schedule, args = dag.apply_steps_from_state(tiled(tensors), layout_rewrite=option)
        assert args == tensors
        assert len(schedule.stages) == (3 if option is LayoutRewriteOption.NO_REWRITE else 4)
        assert str(schedule.layout_of(tensors[1])) == "(i0, i1) -> (i0, i1)"


def test_a_program_without_tiles_keeps_its_inputs() -> None:
    tensors = dense()
    dag = ComputeDAG(tensors)
    _, args = dag.apply_steps_from_state(State(dag), layout_rewrite=PACKED)
    assert args == tensors


def test_an_input_that_several_stages_read_keeps_its_layout() -> None:
    a, w, c = dense()
    d = te.compute((16, 64), lambda i, j: c[i, j] + w[j, 0], name="D")
    dag = ComputeDAG([a, w, d])
    state = State(dag)
    state.split(c, state[c].iters[1], [8])
    _, args = dag.apply_steps_from_state(state, layout_rewrite=PACKED)
    assert args == [a, w, d]


def test_the_lines_of_a_state_make_its_program() -> None:
    tensors = dense()
    dag, state = ComputeDAG(tensors), tiled(tensors)
    again = create_schedule(tensors[-1].op)
    exec(dag.print_python_code_from_state(state), {"s": again, "C": tensors[-1]})
    assert str(again) == str(dag.apply_steps_from_state(state)[0])


def test_padding_of_a_layout_is_zero_and_changes_nothing() -> None:
    a, w, c = dense(columns=50)
    s = create_schedule(c.op)
    copy = s.cache_read(w, "global", [c])
    s[copy].transform_layout(lambda j, k: [j // 16, k, j % 16])
    s[copy].pre_transformed()
    args = s.arguments([a, w, c])
    rng = np.random.default_rng(0)
    left, weight = rng.random((16, 32), np.float32), rng.random((50, 32), np.float32)
    packed = s.layout_of(w).map_ndarray(weight)
    assert packed.shape == (4, 32, 16) and not packed[3, :, 2:].any()
    out = np.empty((16, 50), np.float32)
    tvm.build(s, args)(left, packed, out)
    np.testing.assert_allclose(out, left @ weight.T, rtol=1e-5)
    assert "W.global: passed by the caller, with the layout" in s.explain()
    assert str(s).startswith("inputs: A [16, 32], W.global [4, 32, 16]\n")


def test_packing_is_charged_unless_the_caller_packs() -> None:
    dag = ComputeDAG(dense())
    for option in LayoutRewriteOption:
        sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target("llvm -mcpu=znver5"), layout_rewrite=option))
        tiles = [sketch for sketch in sketches if "Tile(j" in sketch.name]
        free = [any(isinstance(step, PreTransformed) for step in sketch.trace) for sketch in tiles]
        assert free and all(given is (option is PACKED) for given in free)
        assert all((sketch.finish is not None) is (option is PACKED) for sketch in sketches)


def test_ansors_rules_copy_what_tiles_read() -> None:
    dag = ComputeDAG(dense())
    sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target("llvm"), only_ansor=True))
    traces = [sketch.trace_of([decision.count // 2 for decision in sketch.decisions]) for sketch in sketches]
    assert any(len(trace) > len(sketch.trace) for sketch, trace in zip(sketches, traces, strict=True))


@pytest.mark.parametrize("rules", ["all", "ansor"])
def test_a_search_with_packed_inputs(rules: str, tmp_path: Path) -> None:
    tensors, log = dense(), tmp_path / "log.json"
    task = SearchTask(compute_dag=tensors, target="llvm -num-cores=1", layout_rewrite_option=PACKED)
    policy = SketchPolicy(task, params={"rules": rules})
    policy.search(TuningOptions(6, verbose=0, measure_callbacks=[RecordToFile(log)]))
    records = load_records(log)
    assert all(record.is_success and record.verified and record.layout_rewrite_option is PACKED for record in records)
    assert any(any(isinstance(step, PreTransformed) for step in record.trace) for record in records)
    programs = {record.trace for record in records if len(record.trace)}
    assert len(recall(records, CandidateIndex(policy.generate_sketches()).find).candidates) == len(programs)
    assert PreloadMeasuredStates(log).records(task)
    assert not PreloadMeasuredStates(log).records(SearchTask(compute_dag=tensors, target="llvm -num-cores=1"))
    rng = np.random.default_rng(0)
    left, weight = rng.random((16, 32), np.float32), rng.random((64, 32), np.float32)
    for option in (None, *LayoutRewriteOption):
        schedule, args = task.apply_best(log, layout_rewrite_option=option)
        out = np.empty((16, 64), np.float32)
        tvm.build(schedule, args, task.target)(left, schedule.layout_of(tensors[1]).map_ndarray(weight), out)
        np.testing.assert_allclose(out, left @ weight.T, rtol=1e-5)
        assert option in (None, PACKED) or args == tensors
    with ApplyHistoryBest(log):
        found = best_schedule(tensors, task.target)
    assert found is not None and found[1] == tensors


def test_the_default_is_that_of_the_target() -> None:
    assert LayoutRewriteOption.get_target_default("llvm") is INSERT
    assert LayoutRewriteOption.get_target_default("llvm", in_relay_integration=True) is PACKED
    assert SearchTask(compute_dag=dense()).layout_rewrite_option is INSERT
    assert SearchTask(compute_dag=dense(), layout_rewrite_option=0).layout_rewrite_option is LayoutRewriteOption.NO_REWRITE


def test_arguments_of_workers_carry_their_layout() -> None:
    argument = ArrayArgument("W", "float32", (2, 4, 3), (("//", ("axis", 0), 3), ("axis", 1), ("%", ("axis", 0), 3)))
    assert ArrayArgument.from_json([*argument.to_json()]) == argument
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(argument.packed(array), array.reshape(2, 3, 4).transpose(0, 2, 1))
