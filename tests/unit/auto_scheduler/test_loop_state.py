"""States by hand: what they say of their iterators before and after bounds are inferred, and as whom they come back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest

from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler.loop_state import State
from tensorexpr.errors import ScheduleError, WorkloadError
from tensorexpr.te.tensor import Tensor


def product(size: int = 64) -> list[Tensor]:
    """A matrix product: A, B, C."""
    a, b = (te.placeholder((size, size), name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return [a, b, c]


def extents(state: State, stage: object) -> list[int | None]:
    """How far the iterators of a stage go."""
    return [None if it.range is None else int(it.range.extent.value) for it in state[stage].iters]  # type: ignore[attr-defined,index]


def test_splits_and_fusions_say_how_far_they_go() -> None:
    args = product()
    state = auto_scheduler.ComputeDAG(args).get_init_state()
    i, j, _ = state[args[2]].iters
    outer, inner = state.split(args[2], i, [6])
    assert [it.name for it in (outer, inner)] == ["i.0", "i.1"]
    assert extents(state, args[2]) == [11, 6, 64, 64]
    parts = state.split(args[2], j, [2, 4], False)
    assert extents(state, args[2]) == [11, 6, 2, 4, 8, 64]
    state.reorder(args[2], [outer, parts[0], inner, *parts[1:], state[args[2]].iters[-1]])
    assert state.fuse(args[2], [outer, parts[0]]).name == "i.0@j.0@"
    assert extents(state, args[2])[0] == 22
    state.split(args[2], state[args[2]].iters[-1], [None, None])
    assert extents(state, args[2])[4:] == [None, None, None]
    with pytest.raises(ScheduleError, match="sizes the search finds"):
        auto_scheduler.ComputeDAG(args).infer_bound_from_state(state)


def test_what_a_moved_stage_computes_is_known_when_bounds_are_inferred() -> None:
    args = product()
    dag = auto_scheduler.ComputeDAG(args)
    state = dag.init_state
    local = state.cache_write(args[2], "local")
    i, j = state[args[2]].iters
    state.compute_at(local, args[2], j)
    assert state[local].compute_at == 2 and extents(state, local) == [None, None, None]
    outer, inner = state.split(args[2], j, [8])  # the stage stays where the inner part is
    made = dag.infer_bound_from_state(state)
    assert extents(made, local) == [1, 1, 64]
    assert str(made).splitlines()[1:] == [
        "for i (0,64)",
        "  for j.0 (0,8)",
        "    for j.1 (0,8)",
        "      for k (0,64)",
        "        C.local = ...",
        "      C = ...",
    ]
    assert [type(step).__name__ for step in state.transform_steps] == ["CacheWrite", "ComputeAt", "Split"]
    assert made == dag.infer_bound_from_state(state.trace) and made != state
    state.compute_root(local)
    assert state[local].compute_at == 0
    assert extents(dag.infer_bound_from_state(state), local) == [64, 64, 64]
    assert (i, outer.name, inner.name) == (state[args[2]].iters[0], "j.0", "j.1")


def test_loops_are_marked_and_the_marks_are_numbers() -> None:
    args = product()
    state = auto_scheduler.ComputeDAG(args).init_state
    table = State.ANNOTATION_TRANS_TABLE
    i, j, k = state[args[2]].iters
    parts = [*state.split(args[2], i, [8, 2]), *state.split(args[2], j, [4])]
    words = ["blockIdx.x", "vthread", "threadIdx.y"]
    for it, word in zip(parts, words, strict=False):
        assert state.bind(args[2], it, word).annotation == table[word]
    assert state.vectorize(args[2], parts[4]).annotation == table["vectorize"]
    assert state.unroll(args[2], k, max_unroll=16).annotation == table["none"]  # it runs 64 times
    assert state.unroll(args[2], k, max_unroll=64).annotation == table["unroll"]
    assert "blockIdx.x i.0 (0,4)" in str(state)
    with pytest.raises(ValueError, match="no threads 'lane'"):
        state.bind(args[2], parts[3], "lane")


def test_splits_that_follow_others() -> None:
    args = product()
    state = auto_scheduler.ComputeDAG(args).init_state
    local = state.cache_write(args[2], "local")
    i, j = state[args[2]].iters
    rows = state.split(args[2], i, [4, 2])
    first = len(state.transform_steps) - 1
    columns = state.split(args[2], j, [8, 2])
    second = len(state.transform_steps) - 1
    one = state.copy()
    one.follow_split(local, one[local].iters[0], first, 1)
    assert extents(one, local)[:2] == [8, 8]
    one.follow_split(local, one[local].iters[2], second, 2)
    assert extents(one, local)[2:5] == [4, 8, 2]
    state.reorder(args[2], [rows[0], columns[0], rows[1], columns[1], rows[2], columns[2]])
    fused = state.fuse(args[2], [rows[0], columns[0]])
    both = state.copy()
    both.follow_fused_split(local, both[local].iters[0], [first, second], 0, False)
    assert fused.range is not None and extents(both, local)[0] == 32
    with pytest.raises(ScheduleError, match="step 0 is no split"):
        both.follow_split(local, both[local].iters[1], 0, 1)
    with pytest.raises(ScheduleError, match="have no level 2"):
        both.follow_fused_split(local, both[local].iters[1], [first], 2, True)


def test_a_refused_step_leaves_the_state_as_it_was() -> None:
    a = te.placeholder((8, 8, 8), name="A")
    b = te.compute((8, 8, 8), lambda i, j, k: a[i, j, k] + 1, name="B")
    c = te.compute((8, 8, 8), lambda i, j, k: b[i, j, k] * 2, name="C")
    state = State(auto_scheduler.ComputeDAG([a, c]))
    i, _, k = state[c].iters
    state.compute_at(b, c, i)
    before, steps = str(state), state.transform_steps
    for refused in (
        lambda: state.fuse(c, [i, k]),
        lambda: state.split(c, i, [0]),
        lambda: state.follow_fused_split(c, i, [0], 0, True),
    ):
        with pytest.raises(ScheduleError):
            refused()
        assert str(state) == before and state.transform_steps == steps and len(state.trace) == 1


def test_partial_results_have_iterators_of_their_own() -> None:
    args = product()
    dag = auto_scheduler.ComputeDAG(args)
    state = dag.init_state
    _, inner = state.split(args[2], state[args[2]].iters[2], [16])
    partial = state.rfactor(args[2], inner, 2)
    assert extents(state, partial) == [64, 64, 16, 4]
    assert extents(state, args[2]) == [64, 64, 16]
    assert state[args[2]].iters[2].name == "k_i_v"
    assert state[partial].op_type == 1 and state[args[0]].op_type == 0


@pytest.mark.parametrize("again", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))], ids=["copied", "pickled"])
def test_computations_and_tasks_come_back(again: object) -> None:
    dag = auto_scheduler.ComputeDAG(product(16))
    made = again(dag)  # type: ignore[operator]
    assert str(made) == str(dag) and made.hash_key() == dag.hash_key()
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key='["mine", 16]', target="llvm -num-cores=2", desc="a product")
    other = again(task)  # type: ignore[operator]
    assert (other.workload_key, str(other.target), other.desc) == ('["mine", 16]', str(task.target), "a product")
    assert other.hardware_params == task.hardware_params and other.compute_dag.hash_key() == dag.hash_key()
    state = dag.init_state
    state.split(dag.tensors[2], state[dag.tensors[2]].iters[0], [4])
    program = again(auto_scheduler.MeasureInput(task, state))  # type: ignore[operator]
    assert program.trace == state.trace and str(program.state) == str(dag.infer_bound_from_state(state))
    result = auto_scheduler.MeasureResult([0.5], 0, "", 0.2, 1)  # type: ignore[arg-type]
    assert again(result) == result and result.costs[0].value == 0.5  # type: ignore[operator,attr-defined]


def test_a_schedule_is_a_computation_with_the_stages_that_it_made() -> None:
    a, b, c = product()
    schedule = te.create_schedule(c.op)
    local = schedule.cache_write(c, "local")
    schedule.cache_read(a, "global", [local])
    names = [op.name for op in auto_scheduler.ComputeDAG(schedule).get_init_state().stage_ops]
    assert names == ["A", "A.global", "B", "C.local", "C"]
    assert b.op.name in names


def test_facts_about_accesses_can_be_read() -> None:
    dag = auto_scheduler.ComputeDAG(product())
    lines = str(dag.access_analyzer).splitlines()
    assert lines[8:] == [
        "C",
        "  needs_multi_level_tiling: 1  is_strictly_inlineable: 0  is_output: 1",
        "  reads: A, B",
        "  read by: ",
    ]


def _names(states: Sequence[State]) -> set[str]:
    return {str(state) for state in states}


def test_a_policy_samples_and_evolves_programs() -> None:
    class LikesFours(auto_scheduler.PythonBasedModel):
        def predict(self, task: object, states: Sequence[State]) -> list[float]:
            return [float(str(state).count("(0,4)")) for state in states]

    task = auto_scheduler.SearchTask(compute_dag=product(16), target="llvm")
    params = {"evolutionary_search_population": 64, "evolutionary_search_num_iters": 1, "sample_init_min_population": 20}
    policy = auto_scheduler.SketchPolicy(task, LikesFours(), params, seed=0, verbose=0)
    first = policy.sample_initial_population()
    assert len(first) >= 20 and all(state.compute_dag is task.compute_dag for state in first)
    best = policy.evolutionary_search(first[:10], 5)
    counts = [str(state).count("(0,4)") for state in best]
    assert 0 < len(best) <= 5 and counts == sorted(counts, reverse=True)
    assert counts[0] >= max(str(state).count("(0,4)") for state in first[:10])
    assert len(_names(best)) == len(best)


def test_what_a_log_holds_is_replayed_on_the_computation_that_is_given(tmp_path: Path) -> None:
    args = product(16)
    dag = auto_scheduler.ComputeDAG(args)
    state = dag.init_state
    state.split(args[2], state[args[2]].iters[0], [4])
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="no key of anything", target="llvm")
    result = auto_scheduler.MeasureResult((0.5,), auto_scheduler.MeasureErrorNo(0), "", 0.2, 1.0)
    auto_scheduler.save_records(tmp_path / "log.json", [auto_scheduler.MeasureInput(task, state)], [result])
    (found,), _ = auto_scheduler.RecordReader(tmp_path / "log.json").read_lines()
    assert not found.state.is_replayed
    assert dag.infer_bound_from_state(found.state) == dag.infer_bound_from_state(state) != dag.init_state
    with pytest.raises(WorkloadError):
        str(found.state)
