"""One test per thing the auto-scheduler refuses, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import auto_scheduler as ans
from tensorexpr import te
from tensorexpr.errors import RecordError, TuningError, WorkloadError
from tensorexpr.te.tensor import Tensor


@ans.register_workload("err_copy")
def err_copy(n: int) -> list[Tensor]:
    """B = A."""
    a = te.placeholder((n,), name="A")
    return [a, te.compute((n,), lambda i: a[i] + 0.0, name="B")]


@ans.register_workload("err_nothing")
def err_nothing() -> str:
    """Returns no tensors."""
    return "nothing"


def task() -> ans.SearchTask:
    """A task of the workload above."""
    return ans.SearchTask(func="err_copy", args=(8,), target="llvm")


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown workload": (
        lambda: ans.SearchTask(func="err_copi", args=(8,)),
        WorkloadError,
        "'err_copi' is not registered; did you mean 'err_copy'?",
    ),
    "unregistered function": (
        lambda: ans.SearchTask(func=lambda n: [], args=(8,)),
        WorkloadError,
        "decorate its function with @auto_scheduler.register_workload",
    ),
    "registered twice": (
        lambda: ans.register_workload("err_copy", lambda n: []),
        WorkloadError,
        "is registered already; pass override=True",
    ),
    "no tensors": (lambda: ans.SearchTask(func="err_nothing"), WorkloadError, "must return the list of its tensors"),
    "wrong arguments": (lambda: ans.SearchTask(func="err_copy", args=(1, 2)), WorkloadError, "does not take the arguments [1, 2]"),
    "argument without JSON": (
        lambda: ans.SearchTask(func="err_copy", args=(object(),)),
        WorkloadError,
        "is no number, string, sequence or tensor",
    ),
    "nothing given": (lambda: ans.SearchTask(), WorkloadError, "give exactly one of them, not none"),
    "key": (lambda: ans.workload_key_to_tensors("{"), WorkloadError, "is no workload key"),
    "key without name": (lambda: ans.workload_key_to_tensors("[1]"), WorkloadError, "starts with the workload's name"),
    "dag": (lambda: ans.ComputeDAG([1]), WorkloadError, "made of tensors, a workload key or a schedule"),  # type: ignore[list-item]
    "options": (lambda: task().tune(8), TuningError, "takes auto_scheduler.TuningOptions"),  # type: ignore[arg-type]
    "negative trials": (lambda: ans.TuningOptions(-1), TuningError, "num_measure_trials is -1; it takes an integer of at least 0"),
    "builder": (lambda: ans.TuningOptions(1, builder="rpc"), TuningError, "builder is 'rpc'; it takes \"local\", a LocalBuilder or what"),
    "runner": (lambda: ans.TuningOptions(1, runner=3), TuningError, "runner is 3; it takes"),  # type: ignore[arg-type]
    "parameter": (lambda: ans.SketchPolicy(task(), params={"eps": 1}), TuningError, "has no parameter eps; it takes eps_greedy"),
    "missing log": (lambda: task().apply_best("/nowhere/log.json"), RecordError, "/nowhere/log.json"),
    "print mode": (lambda: task().print_best("log", print_mode="c"), TuningError, 'knows the modes "schedule" and "cuda"'),
    "print mode of another target": (
        lambda: task().print_best("log", print_mode="cuda"),
        TuningError,
        "shows kernels for cuda, and this task",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    request, kind, message = REFUSED[name]
    with pytest.raises(kind) as caught:
        request()
    assert message in str(caught.value)


def test_an_empty_log(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text("")
    with pytest.raises(RecordError, match="it holds no records at all"):
        task().apply_best(log)


def test_a_log_of_another_workload_and_target(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    task().tune(ans.TuningOptions(1, measure_callbacks=[ans.RecordToFile(log)], verbose=0))
    other = ans.SearchTask(func="err_copy", args=(9,), target="llvm")
    with pytest.raises(RecordError, match=r'it holds 1 others: 1 of workload \["err_copy", 8\]'):
        other.apply_best(log)
    elsewhere = ans.SearchTask(func="err_copy", args=(8,), target="llvm -num-cores=7")
    with pytest.raises(RecordError, match="1 for target"):
        elsewhere.apply_best(log)


def test_a_torn_last_line_is_skipped(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    task().tune(ans.TuningOptions(1, measure_callbacks=[ans.RecordToFile(log)], verbose=0))
    whole = log.read_text()
    log.write_text(whole + whole[: len(whole) // 2])
    assert len(ans.load_records(log)) == 1
    assert task().apply_best(log)[1][0].name == "A"


def test_an_unschedulable_symbolic_shape() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    dag = ans.ComputeDAG([a, te.compute((n,), lambda i: a[i] + 1.0, name="B")])
    with pytest.raises(TuningError, match="constant"):
        ans.SearchTask(compute_dag=dag, target="llvm").tune(ans.TuningOptions(1, verbose=0))
