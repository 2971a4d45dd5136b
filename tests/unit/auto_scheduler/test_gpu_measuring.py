"""Programs for GPUs in a measuring process of their own, whose driver is a stand-in; and what is said where there is none."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import auto_scheduler, te, tir, topi
from tensorexpr import meta_schedule as ms
from tensorexpr.errors import TargetError, TuningError
from tensorexpr.runtime import cuda_driver
from tensorexpr.spaces.default import default_schedule
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureTask

from ..runtime.driver_stand_in import Library, installed

TARGET = "cuda -arch=sm_80"


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A driver, here and in processes that are started meanwhile."""
    with installed(tmp_path, monkeypatch):
        yield


def program() -> list[Tensor]:
    a, b = te.placeholder((4, 64), name="A"), te.placeholder((64,), name="B")
    return [a, b, topi.nn.relu(topi.add(a, b))]


def tuned(log: Path, trials: int, **options: Any) -> list[Any]:
    task = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET)
    runner, builder = auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0), auto_scheduler.LocalBuilder(n_parallel=1)
    task.tune(
        auto_scheduler.TuningOptions(
            trials, verbose=0, builder=builder, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(str(log))], **options
        )
    )
    return list(auto_scheduler.load_records(str(log)))


@pytest.mark.usefixtures("driver")
def test_programs_run_in_a_process_that_is_replaced_when_its_context_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKS_AT", "4")  # in each process, after the first program, which is called three times
    results = [result for _, result in tuned(tmp_path / "log.json", 3)]
    failed = [result for result in results if not result.is_success]
    assert len(failed) <= 2 and len(results) > len(failed)
    assert all(result.error_no == MeasureErrorNo.RUNTIME_DEVICE and "700" in result.error_msg for result in failed)
    assert all(result.verified for result in results if result.is_success)
    schedule, _ = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET).apply_best(tmp_path / "log.json")
    assert "threadIdx.x" in schedule.as_python()


@pytest.mark.usefixtures("driver")
def test_programs_of_blocks_are_measured_on_the_device(tmp_path: Path) -> None:
    a = te.placeholder((4, 64), name="A")
    mod = tir.IRModule({"main": te.create_prim_func([a, te.compute((4, 64), lambda i, j: a[i, j] * 2.0, name="B")])})
    runner = ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=1, min_repeat_ms=0))
    options: dict[str, Any] = {
        "max_trials_global": 2,
        "num_trials_per_iter": 2,
        "cost_model": "random",
        "runner": runner,
        "builder": ms.builder.LocalBuilder(max_workers=1),
    }
    database: Any = ms.tune_tir(mod, "cuda -arch=sm_80 -max_threads_per_block=1024", str(tmp_path / "work"), **options)
    records = database.get_all_tuning_records()
    # what takes 8 ms by the stand-in's clock, not 1e10 s as a failure does
    assert records and all(0 < float(second) < 1 for record in records for second in record.run_secs or (1e10,))


@pytest.mark.skipif(cuda_driver.has_device(0), reason="this machine has a driver")
def test_without_a_device_there_are_other_ways(tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET)
    with pytest.raises(TuningError, match=r"libcuda.so.1 not found.*0 trials.*evolutionary_search.*Fleet") as raised:
        task.tune(auto_scheduler.TuningOptions(4, verbose=0))
    assert "3 trials" not in str(raised.value)
    task.tune(auto_scheduler.TuningOptions(0, verbose=0))
    schedule, _ = task.apply_best(tmp_path / "none.json")
    assert schedule.as_python() == default_schedule(task.compute_dag.tensors, TARGET).as_python()
    assert task.print_best(tmp_path / "none.json") == schedule.as_python()
    assert ".visible .entry default_function_kernel" in task.print_best(tmp_path / "none.json", print_mode="cuda")


def test_a_device_of_another_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    cuda_driver.check_device("sm_80")
    with pytest.raises(TargetError, match=r"sm_100 can't run on cuda\(0\), which is sm_90; build for -arch=sm_90"):
        cuda_driver.check_device("sm_100")
    with pytest.raises(TargetError, match=r"no cuda\(1\)"):
        cuda_driver.check_device("sm_80", 1)


def test_a_cpu_is_one_device() -> None:
    a = te.placeholder((4,), name="A")
    task = MeasureTask((a, te.compute((4,), lambda i: a[i] + 1, name="B")), Target("llvm"))
    with pytest.raises(TuningError, match="device 1; a CPU is device 0"):
        Measurer(task, MeasureOptions(device=1))
