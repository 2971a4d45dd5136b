"""What bad logs, missing inputs and searches that can't be made get; and what is kept whatever happens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.auto_scheduler import callbacks
from tensorexpr.auto_scheduler.console import Console
from tensorexpr.auto_scheduler.measure_record import load_records
from tensorexpr.errors import RecordError, TuningError, WorkloadError
from tensorexpr.te.tensor import Tensor


def double(size: int = 16) -> list[Tensor]:
    """B = 2 A."""
    a = te.placeholder((size,), name="A")
    return [a, te.compute((size,), lambda i: a[i] * 2.0, name="B")]


def task() -> auto_scheduler.SearchTask:
    """The task of it."""
    return auto_scheduler.SearchTask(compute_dag=double(), target="llvm")


def result(cost: float, again: bool = False) -> auto_scheduler.MeasureResult:
    """A result that was made up."""
    policy = {"again": True} if again else {}
    return auto_scheduler.MeasureResult((cost,), auto_scheduler.MeasureErrorNo(0), "", 0.1, 1.0, True, policy)


def test_a_log_that_cannot_be_written_is_said_before_the_first_trial(tmp_path: Path) -> None:
    options = auto_scheduler.TuningOptions(4, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(tmp_path)])
    with pytest.raises(TuningError, match=r"can't be written: Is a directory; nothing was measured"):
        task().tune(options)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(TuningError, match=r"the folder of the log .* can't be made"):
        auto_scheduler.RecordToFile(file / "log.json")


def test_what_a_full_disk_refuses_is_written_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, log = task(), tmp_path / "log.json"
    made = auto_scheduler.MeasureInput(of, of.compute_dag.init_state)
    record = auto_scheduler.RecordToFile(log)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28), str(log))

    monkeypatch.setattr(callbacks, "save_records", full)
    policy = auto_scheduler.SketchPolicy(of, verbose=0)
    record.callback(policy, [made], [result(0.5)])
    record.callback(policy, [made], [result(0.4)])
    with pytest.raises(TuningError, match=r"log\.json can't be written: No space left on device; 2 results are kept"):
        record.finish()
    monkeypatch.setattr(callbacks, "save_records", auto_scheduler.save_records)
    record.finish()
    assert [found.costs for found in load_records(log)] == [(0.5,), (0.4,)]


def test_what_was_timed_again_stands_in_place_of_its_trial(tmp_path: Path) -> None:
    of, log = task(), tmp_path / "log.json"
    made = auto_scheduler.MeasureInput(of, of.compute_dag.init_state)
    auto_scheduler.save_records(log, [made, made], [result(0.5), result(0.7, again=True)])
    assert [found.costs for found in load_records(log)] == [(0.7,)]
    assert [found.is_timed_again for found in load_records(log, repeats=True)] == [False, True]
    assert auto_scheduler.load_best_record(log).costs == (0.7,)


def test_without_trials_the_program_that_promises_most_is_taken(tmp_path: Path) -> None:
    of = task()
    with pytest.raises(RecordError):
        of.apply_best(tmp_path / "none.json")
    of.tune(auto_scheduler.TuningOptions(num_measure_trials=0))
    schedule, args = of.apply_best(tmp_path / "none.json")
    assert len(schedule.trace) and [arg.op.name for arg in args] == ["A", "B"]
    schedule, args = auto_scheduler.auto_schedule(task())
    assert len(schedule.trace)


def test_a_computation_that_forgets_its_inputs_is_told_what_to_return() -> None:
    with pytest.raises(WorkloadError, match=r"reads A, but lists only B; .* return \[A, B\]"):
        auto_scheduler.SearchTask(compute_dag=double()[1:])


def test_a_computation_with_code_written_by_hand_has_no_rules() -> None:
    a = te.placeholder((16,), name="A")
    e = te.extern((16,), [a], lambda ins, outs: tvm.tir.call_packed("made_up", ins[0], outs[0]), name="E")
    of = auto_scheduler.SearchTask(compute_dag=[a, e])
    with pytest.raises(WorkloadError, match=r"written by hand \(E\)"):
        of.tune(auto_scheduler.TuningOptions(2, verbose=0))


def test_the_best_that_was_loaded_counts() -> None:
    console = Console(0, flop_ct=1e9)
    console.known(0.5)
    assert console.best_words() == "Best: 2.00 GFLOPS"


def test_one_round_with_a_measurer_counts_and_calls_back(tmp_path: Path) -> None:
    of, log = task(), tmp_path / "log.json"
    runner = auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0)
    measurer = auto_scheduler.measure.ProgramMeasurer("local", runner, [auto_scheduler.RecordToFile(log)], verbose=0)
    policy = auto_scheduler.SketchPolicy(of, verbose=0)
    try:
        inputs, results = policy.continue_search_one_round(2, measurer)
    finally:
        policy.close()
    assert len(inputs) == len(results) == measurer.ct == len(load_records(log)) == 2
    assert measurer.best_cost[of.workload_key] < 1.0


def test_single_programs_are_built_and_run() -> None:
    of = task()
    made = auto_scheduler.MeasureInput(of, of.compute_dag.init_state)
    builds = auto_scheduler.LocalBuilder(n_parallel=1).build([made], verbose=0)
    assert [build.error_no for build in builds] == [0]
    (found,) = auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0).run([made], builds, verbose=0)
    assert found.is_success and found.verified and found.costs[0].value > 0  # type: ignore[attr-defined]
    with pytest.raises(TuningError, match="a build result for each input"):
        auto_scheduler.LocalRunner().run([made], [])


def test_workloads_travel_as_text() -> None:
    registry = auto_scheduler.workload_registry
    key = registry.register_workload_tensors('["travels", 16]', double())
    entry = registry.serialize_workload_registry_entry(key)
    del registry.WORKLOAD_FUNC_REGISTRY[key]
    registry.deserialize_workload_registry_entry(entry)
    assert [tensor.op.name for tensor in registry.workload_key_to_tensors(key)] == ["A", "B"]
    del registry.WORKLOAD_FUNC_REGISTRY[key]
    with pytest.raises(RecordError, match="a name, a kind and a text"):
        registry.deserialize_workload_registry_entry(["x"])
    with pytest.raises(WorkloadError, match="isn't there"):
        registry.deserialize_workload_registry_entry(("gone", "function", "no_such_module:f"))


def test_a_workload_that_is_defined_again_replaces_itself() -> None:
    def declare(size: int) -> None:
        @auto_scheduler.register_workload
        def defined_twice() -> list[Tensor]:
            return double(size)

    declare(4)
    declare(8)
    (a, _) = auto_scheduler.workload_key_to_tensors('["defined_twice"]')
    assert auto_scheduler.utils.get_const_tuple(a.shape) == (8,)


def test_the_target_follows_hardware_params() -> None:
    numbers = auto_scheduler.HardwareParams(num_cores=3, vector_unit_bytes=16, cache_line_bytes=64, warp_size=0)
    task = auto_scheduler.SearchTask(compute_dag=double(), target="llvm -mcpu=haswell", hardware_params=numbers)
    assert (task.target.num_cores, task.target.vector_bits) == (3, 128)
    same = auto_scheduler.HardwareParams(num_cores=3, vector_unit_bytes=32)
    of = tvm.target.Target("llvm -mcpu=haswell -num-cores=3")
    assert same.apply_to(of) is of


def test_what_a_task_says_travels_with_its_records() -> None:
    a = te.placeholder((4,), name="A")
    of = auto_scheduler.SearchTask(
        compute_dag=[a, te.compute((4,), lambda i: a[i] + 1.0, name="B")],
        workload_key='["with_inputs"]',
        target=tvm.target.Target("llvm -num-cores=2", "llvm -mcpu=core2"),
        layout_rewrite_option=0,
        task_inputs=["A"],
    )
    made = auto_scheduler.MeasureInput(of, of.compute_dag.init_state)
    record = auto_scheduler.measure_record.load_record_from_string(auto_scheduler.measure_record.dump_record_to_string(made, result(0.5)))
    found = record.input.task
    assert (found.task_input_names, found.layout_rewrite_option) == (("A",), 0)
    assert (str(found.target), str(found.target.host)) == (str(of.target), str(of.target.host))
    assert of.hardware_params.num_cores == 2
