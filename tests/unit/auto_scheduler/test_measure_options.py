"""How users steer measuring: options of builder, runner and PassContext reach the workers, and stand in every record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import LocalBuilder, LocalRunner, SearchTask, TuningOptions, load_records
from tensorexpr.auto_scheduler.measure import measure_options, measure_task
from tensorexpr.errors import LoweringError, TuningError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.instruments import PassTimingInstrument
from tensorexpr.lower.plain_context import context_from_json, context_to_json, options_in_words, words_of_options
from tensorexpr.schedule.trace import Trace
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tune.measure import MeasureErrorNo, Measurer, MeasureTask, Program, TimingPolicy
from tensorexpr.tune.measure.builder import Failure
from tensorexpr.tune.measure.compiling import make_compiler

CONTEXT: dict[str, Any] = {
    "opt_level": 1,
    "disabled_pass": ["tir.StorageRewrite"],
    "config": {"tir.disable_vectorize": True, "tir.UnrollLoop": {"auto_max_step": 4}},
}
WORDS = {
    "opt_level": 1,
    "disabled_pass.tir.StorageRewrite": True,
    "config.tir.disable_vectorize": 1,
    "config.tir.UnrollLoop.auto_max_step": 4,
}


def task() -> SearchTask:
    """A small product."""
    return SearchTask(func="v06_matmul", args=(16, 16, 16), target="llvm -num-cores=1")


def unchanged(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
    """A pass of the user."""
    return func


def broken_compiler(task: Mapping[str, Any]) -> Any:
    """A compiler of the user's own."""
    raise NotImplementedError


def tuned(log: Path, trials: int, context: Mapping[str, Any], resume: bool = False) -> list[Any]:
    """What a log holds after tuning under a context."""
    quick = LocalRunner(number=1, repeat=1, min_repeat_ms=0)
    options = TuningOptions(trials, verbose=0, runner=quick, measure_callbacks=[auto_scheduler.RecordToFile(log)])
    preload = [auto_scheduler.PreloadMeasuredStates(log)] if resume else []
    with PassContext(**context):
        made = task()
        made.tune(options, auto_scheduler.SketchPolicy(made, init_search_callbacks=preload))
    return load_records(log)


def test_options_of_a_context_survive_json_and_words() -> None:
    ctx = PassContext(**CONTEXT)
    data = context_to_json(ctx)
    assert repr(context_from_json(data)) == repr(ctx)
    assert options_in_words(data) == WORDS
    assert words_of_options({**TimingPolicy().to_json(), **WORDS}) == WORDS
    assert options_in_words(context_to_json(PassContext())) == {}
    assert repr(context_from_json({})) == repr(PassContext())


def test_candidates_are_compiled_under_the_options_of_the_context() -> None:
    steps = [["annotate", 2, 1, "vectorize"]]
    lines = {}
    contexts: dict[str, dict[str, Any]] = {"plain": {}, "scalar": {"config": {"tir.disable_vectorize": True}}}
    for name, context in contexts.items():
        with PassContext(**context):
            made = measure_task(task(), 0)
        lines[name] = make_compiler(made.to_json())(steps, 0).ir_lines  # outside of the context, as in a worker
    assert lines["plain"] != lines["scalar"]


@pytest.mark.slow
def test_records_say_under_which_options_they_were_made(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    first = tuned(log, 3, CONTEXT)
    assert [words_of_options(record.policy) for record in first] == [WORDS] * len(first)
    assert all(record.is_success and record.verified for record in first)
    both = tuned(log, 3, {}, resume=True)
    others = both[len(first) :]
    assert others and all(not words_of_options(record.policy) for record in others)
    again = [record for record in others if not len(record.trace)]
    assert len(again) == 1, "records of other options stand for none of these: the unscheduled program is measured anew"


def test_a_failed_record_holds_its_policy_too(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    made = task()
    options = TuningOptions(
        2, verbose=0, builder=LocalBuilder(build_func=f"{__name__}:no_such"), measure_callbacks=[auto_scheduler.RecordToFile(log)]
    )
    with pytest.raises(TuningError, match="no_such"):
        made.tune(options)
    assert log.read_text() == ""  # it was tried before the first trial, and nothing was measured
    with Measurer(measure_task(made, 0), measure_options(LocalBuilder(), LocalRunner(repeat=2))) as measurer:
        failed = measurer._failed(Program(0, Trace()), Failure(MeasureErrorNo.COMPILE_HOST, "broken"), 0.0)
    assert failed.policy["repeat"] == 2


class Deciding:
    """An instrument that leaves passes out."""

    def should_run(self, mod: Any, info: Any) -> bool:
        """Never."""
        return False


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"config": {"tir.add_lower_pass": [(1, unchanged)]}}, "'tir.add_lower_pass' holds Python functions, which can't travel"),
        ({"instruments": [Deciding()]}, "the instrument Deciding decides with should_run"),
    ],
)
def test_functions_do_not_travel(context: Mapping[str, Any], message: str) -> None:
    with PassContext(**context), pytest.raises(TuningError, match="compiled in worker processes") as caught:
        measure_task(task(), 0)
    assert message in str(caught.value)
    with pytest.raises(LoweringError):
        context_to_json(PassContext(**context))


def test_an_instrument_that_only_watches_stays_here() -> None:
    with PassContext(instruments=[PassTimingInstrument()]):
        assert options_in_words(measure_task(task(), 0).pass_options) == {}


def test_options_of_the_runner_are_the_policy() -> None:
    timing = measure_options(LocalBuilder(), LocalRunner(10, 5, 2, 50, 0.5)).timing
    assert (timing.number, timing.repeat, timing.min_repeat_ms, timing.cooldown_s, timing.flush_caches) == (5, 2, 50, 0.5, False)


def test_a_tracker_of_this_machine_is_a_runner() -> None:
    context = auto_scheduler.LocalRPCMeasureContext(repeat=2, min_repeat_ms=300, timeout=7, enable_cpu_cache_flush=True)
    assert isinstance(context.runner, LocalRunner)
    assert vars(LocalRunner(7, 3, 2, 300, 0.0, True, 0)).items() <= vars(context.runner).items()
    assert TuningOptions(runner=context.runner).runner.repeat == 2


def test_more_options_than_a_record_can_say() -> None:
    with PassContext(disabled_pass=[f"tir.Pass{number}" for number in range(50)]), pytest.raises(TuningError, match="up to 40 options"):
        measure_task(task(), 0)


def test_cold_measurements_are_single_calls() -> None:
    timing = measure_options(LocalBuilder(), LocalRunner(number=5, min_repeat_ms=50, enable_cpu_cache_flush=True)).timing
    assert (timing.number, timing.min_repeat_ms, timing.flush_caches) == (1, 0.0, True)


def test_a_rest_after_each_program_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    made = task()
    options = measure_options(LocalBuilder(), LocalRunner(number=1, repeat=1, min_repeat_ms=0, cooldown_interval=0.25))
    sleep = time.sleep
    monkeypatch.setattr("tensorexpr.tune.measure.measurer.time.sleep", lambda s: rests.append(s) if s == 0.25 else sleep(s))
    with Measurer(measure_task(made, 0), options) as measurer:
        (result,) = measurer.measure([Program(0, Trace())])
    assert rests == [0.25]
    assert result.policy["cooldown_s"] == 0.25


@pytest.mark.parametrize("build_func", [make_compiler, "tensorexpr.tune.measure.compiling:make_compiler", "default"])
def test_a_compiler_by_function_or_by_name(build_func: Any) -> None:
    assert LocalBuilder(build_func=build_func).plug == "tensorexpr.tune.measure.compiling:make_compiler"


@pytest.mark.parametrize("build_func", ["ndk", "a:b:c", "no words:f", lambda task: broken_compiler(task)])
def test_what_is_no_compiler(build_func: Any) -> None:
    with pytest.raises(TuningError, match='it takes "default", or a function of a module that workers can import'):
        LocalBuilder(build_func=build_func)


def test_a_task_takes_the_options_of_the_current_context() -> None:
    tensors: Sequence[Any] = task().compute_dag.tensors
    with PassContext(**CONTEXT):
        inside = MeasureTask(tuple(tensors), task().target)
    assert options_in_words(inside.pass_options) == WORDS
    assert MeasureTask(tuple(tensors), task().target).pass_options == context_to_json(PassContext())
