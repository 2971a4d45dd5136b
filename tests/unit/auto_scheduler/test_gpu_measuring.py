"""Programs for GPUs in a measuring process of their own, whose driver is a stand-in; and what is said where there is none."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import auto_scheduler, te, topi
from tensorexpr.errors import TargetError, TuningError
from tensorexpr.runtime import cuda_driver
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure import MeasureErrorNo

from ..runtime.driver_stand_in import Library

TARGET = "cuda -arch=sm_80"
# A process that loads the driver by its name gets the stand-in. Of the launches in it the one with the number given fails, as after an
# access beside an array, and all that follow.
_SITE = """
import ctypes, importlib.util, os
load = ctypes.CDLL
spec = importlib.util.spec_from_file_location("driver_stand_in", {path!r})
made = []
def stand_in(name, *args, **options):
    if name != "libcuda.so.1":
        return load(name, *args, **options)
    if not made:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made.append(module.Library(breaks_at=int(os.environ.get("BREAKS_AT", "0"))))
    return made[0]
ctypes.CDLL = stand_in
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A driver, here and in processes that are started meanwhile."""
    path = Path(__file__).parents[1] / "runtime" / "driver_stand_in.py"
    (tmp_path / "sitecustomize.py").write_text(_SITE.format(path=str(path)))
    monkeypatch.syspath_prepend(tmp_path)  # processes get it too
    library = Library()
    monkeypatch.setattr(cuda_driver, "_library", lambda: library)
    yield
    cuda_driver.driver.cache_clear()


def program() -> list[Tensor]:
    a, b = te.placeholder((4, 64), name="A"), te.placeholder((64,), name="B")
    return [a, b, topi.nn.relu(topi.add(a, b))]


def tuned(log: Path, trials: int, **options: Any) -> list[Any]:
    task = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET)
    runner = auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0)
    task.tune(
        auto_scheduler.TuningOptions(trials, verbose=0, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(str(log))], **options)
    )
    return list(auto_scheduler.load_records(str(log)))


@pytest.mark.usefixtures("driver")
def test_programs_are_measured_on_the_device(tmp_path: Path) -> None:
    results = [result for _, result in tuned(tmp_path / "log.json", 2)]
    assert {result.error_no for result in results} == {MeasureErrorNo.NO_ERROR}
    task = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET)
    schedule, _ = task.apply_best(tmp_path / "log.json")
    assert "threadIdx.x" in schedule.as_python()


@pytest.mark.usefixtures("driver")
def test_a_process_whose_context_is_lost_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKS_AT", "4")  # after the first program, which is called three times
    results = [result for _, result in tuned(tmp_path / "log.json", 3)]
    assert [result.is_success for result in results].count(False) <= 2
    failed = next(result for result in results if not result.is_success)
    assert failed.error_no == MeasureErrorNo.RUNTIME_DEVICE and "700" in failed.error_msg
    assert results[-1].is_success or results[0].is_success


@pytest.mark.skipif(cuda_driver.has_device(0), reason="this machine has a driver")
def test_without_a_device_there_are_other_ways(tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(compute_dag=program(), target=TARGET)
    with pytest.raises(TuningError, match=r"libcuda.so.1 not found.*0 trials.*evolutionary_search.*Fleet") as raised:
        task.tune(auto_scheduler.TuningOptions(4, verbose=0))
    assert "3 trials" not in str(raised.value)
    task.tune(auto_scheduler.TuningOptions(0, verbose=0))
    schedule, _ = task.apply_best(tmp_path / "none.json")
    assert schedule.as_python() == default_schedule(task.compute_dag.tensors, TARGET).as_python()


def test_a_device_of_another_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    cuda_driver.check_device("sm_80")
    with pytest.raises(TargetError, match=r"sm_100 can't run on cuda\(0\), which is sm_90; build for -arch=sm_90"):
        cuda_driver.check_device("sm_100")
    with pytest.raises(TargetError, match=r"no cuda\(1\)"):
        cuda_driver.check_device("sm_80", 1)
