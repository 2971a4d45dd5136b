"""A whole tuning run in which candidates misbehave: records say how, and the healthy ones are what they are without the others."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tensorexpr
import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler.failures import failures_of
from tensorexpr.auto_scheduler.loaded import LoadedRecord
from tensorexpr.auto_scheduler.measure import measure_options, measure_task
from tensorexpr.tune.measure import MeasureErrorNo, Measurer, Program

from . import chaos_compilers
from .kill_tuner import MARK, left_behind

pytestmark = pytest.mark.slow
TRIALS = 20
RUNNER = auto_scheduler.LocalRunner(timeout=4.0, number=1, repeat=1, min_repeat_ms=0)
BUILDER = auto_scheduler.LocalBuilder(timeout=5.0, n_parallel=2, build_func="chaos_compilers:make_fickle_compiler")


@pytest.fixture(scope="module")
def task() -> auto_scheduler.SearchTask:
    """A small product, of whose candidates half misbehave."""
    return auto_scheduler.SearchTask(func="v06_matmul", args=(32, 32, 32), target="llvm -num-cores=1")


@pytest.fixture(scope="module")
def log(task: auto_scheduler.SearchTask, tmp_path_factory: pytest.TempPathFactory, _compilers_importable: None) -> Path:
    """The log of the run, after which no process is left."""
    path = tmp_path_factory.mktemp("fickle") / "log.json"
    options = auto_scheduler.TuningOptions(
        TRIALS, verbose=0, builder=BUILDER, runner=RUNNER, measure_callbacks=[auto_scheduler.RecordToFile(path)]
    )
    mark = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        task.tune(options)
    assert left_behind(mark) == []
    return path


def first_records(log: Path) -> list[LoadedRecord]:
    """The records of a log, without those of the best few that were measured again."""
    return [record for record in auto_scheduler.load_records(log, repeats=True) if not record.is_timed_again]


def mishap(record: LoadedRecord) -> str:
    """What the program of a record did wrong."""
    return chaos_compilers.fickleness(record.trace.to_json())


def test_every_record_says_what_its_candidate_did(log: Path) -> None:
    records = first_records(log)
    assert len(records) == TRIALS
    for record in records:
        name = mishap(record)
        assert record.error_no in chaos_compilers.FICKLE.get(name, (MeasureErrorNo.NO_ERROR,)), f"{name}: {record.error_msg}"
        assert record.verified == (not name)
        assert record.policy["racing_factor"] == 3.0
    assert len({mishap(record) for record in records}) > 3, "too little went wrong to test anything"


def test_healthy_candidates_are_what_they_are_alone(log: Path, task: auto_scheduler.SearchTask) -> None:
    healthy = [record for record in first_records(log) if not mishap(record)][:12]
    options = measure_options(auto_scheduler.LocalBuilder(), RUNNER)
    with Measurer(measure_task(task, 0), options) as measurer:
        alone = list(measurer.measure([Program(number, record.trace) for number, record in enumerate(healthy)]))
    for record, result in zip(healthy, alone, strict=True):
        assert (record.ir_lines, record.spills, record.verified) == (result.ir_lines, result.spills, result.verified)
        assert all(0 < cost < 1 for cost in record.costs)


def test_failures_are_counted_by_kind(log: Path) -> None:
    records = first_records(log)
    failures = failures_of([(record.trace, record) for record in records])
    expected = Counter(record.error_no.error_type for record in records if mishap(record))
    assert dict(failures.kinds) == dict(expected)
    assert str(failures).startswith(f"{expected.total()} of {TRIALS}: ")


def test_the_best_of_them_is_right(log: Path, task: auto_scheduler.SearchTask) -> None:
    schedule, args = task.apply_best(log)
    product = tensorexpr.build(schedule, args)
    draw = np.random.default_rng(0)
    a, b = (draw.random((32, 32), np.float32) for _ in range(2))
    c = np.empty((32, 32), np.float32)
    product(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
