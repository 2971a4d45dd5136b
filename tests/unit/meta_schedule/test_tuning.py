"""`tune_tir` and `compile_tir` from end to end, on small programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.database import JSONDatabase, MemoryDatabase
from tensorexpr.meta_schedule.runner import (
    EvaluatorConfig,
    LocalRunner,
    LocalRunnerFuture,
    PyRunner,
    PyRunnerFuture,
    RunnerFuture,
    RunnerInput,
)
from tensorexpr.meta_schedule.schedule_rule import PyScheduleRule
from tensorexpr.meta_schedule.search_strategy import MeasureCandidate
from tests.meta_schedule_programs import NoBuild, Pretended, matmul, scaled, tiles, tuned


def test_a_function_is_tuned_end_to_end(tmp_path: Path) -> None:
    mod = matmul(32)
    runner = LocalRunner(evaluator_config=EvaluatorConfig(number=1, repeat=1, min_repeat_ms=0))
    space = ms.space_generator.ScheduleFn(tiles)
    database = ms.tune_tir(mod, "llvm", str(tmp_path), 3, num_trials_per_iter=3, space=space, runner=runner, seed=1, num_tuning_cores=1)
    runner.close()
    assert isinstance(database, JSONDatabase) and len(database) == 3
    assert all(record.is_valid for record in database.get_all_tuning_records())
    sch = ms.tir_integration.compile_tir(database, mod, "llvm")
    assert sch is not None
    a, b = (np.random.default_rng(seed).random((32, 32), np.float32) for seed in range(2))
    c = np.empty((32, 32), np.float32)
    tvm.build(sch.mod, target="llvm")["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    assert (tmp_path / "database_workload.json").exists() and (tmp_path / "cost_model.xgb").exists()


def test_a_config_gives_a_schedule(tmp_path: Path) -> None:
    config = ms.TuneConfig(max_trials_global=4, num_trials_per_iter=2, strategy="replay-trace")
    options: dict[str, Any] = {"builder": NoBuild(), "runner": Pretended(), "space": tiles, "seed": 1}
    sch = ms.tune_tir(matmul(), target="llvm", config=config, work_dir=str(tmp_path), **options)
    positional = ms.tune_tir(matmul(), "llvm", config, str(tmp_path / "other"), **options)
    assert isinstance(sch, tir.Schedule) and "vectorize" in str(sch.trace)
    assert positional.trace.as_json() == sch.trace.as_json()
    a, b = te.placeholder((32, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    of_tensors = ms.tune_te([a, b, c], "llvm", config, str(tmp_path / "tensors"), **options)
    assert of_tensors.trace.as_json() == sch.trace.as_json()


def test_every_function_of_a_module_is_a_task(tmp_path: Path) -> None:
    mod = tvm.IRModule({"one": matmul()["main"], "two": matmul(64)["main"]})
    database = tuned(mod, tiles, 6, str(tmp_path), database="memory", num_trials_per_iter=3, cost_model="random")
    assert isinstance(database, MemoryDatabase) and len({id(r.workload) for r in database.get_all_tuning_records()}) == 2
    sch = ms.tir_integration.compile_tir(database, mod, "llvm")
    assert sch is not None and sch.trace is not None
    assert {"one", "two"} <= {inst.attrs[1] for inst in sch.trace.insts if inst.kind == "GetBlock"}
    only = tuned(mod, tiles, 2, str(tmp_path), database="memory", special_space={"two": None}, cost_model="random")
    assert {str(record.args_info[0].as_json()) for record in only.get_all_tuning_records()} == {"['TENSOR', 'float32', [32, 32]]"}


def test_nothing_is_compiled_of_what_is_not_known() -> None:
    assert ms.tir_integration.compile_tir(MemoryDatabase(), matmul(), "llvm") is None
    assert ms.compile_tir(MemoryDatabase(), tvm.IRModule({"a": matmul()["main"], "b": scaled()["main"]}), "llvm") is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ms.tune_tir(matmul(), "llvm", "."), "how much to search"),
        (lambda: ms.tune_tir(tvm.IRModule({}), "llvm", ".", 1, space=tiles), "no function of loops"),
        (lambda: ms.tune_tir(matmul(), "llvm", ".", 1, space="wide"), "no space generator is called 'wide'"),
        (lambda: ms.tune_tir(matmul(), "llvm", ".", 1, space=tiles, strategy="luck"), "no search strategy is called 'luck'"),
        (lambda: ms.TuneContext("mod"), "a PrimFunc or an IRModule is tuned"),  # type: ignore[arg-type]
        (lambda: ms.TuneContext(matmul(), num_threads=0), "at least 1"),
        (lambda: ms.TuneContext(matmul()).generate_design_space(), "no space generator"),
        (lambda: ms.TuneContext(matmul()).generate_measure_candidates(), "no search strategy"),
        (lambda: ms.TuneContext(space_generator=tiles).generate_design_space(), "has no program"),
        (lambda: ms.TuneContext(matmul(), space_generator=lambda sch: 3).generate_design_space(), "not a int"),
        (lambda: ms.derived_object(int), "decorates a class that derives from"),
        (lambda: ms.schedule_rule.create("abacus"), "no list of schedule rules is called 'abacus'"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(TuningError, match=message):
        call()


@ms.derived_object
class Later(PyRunnerFuture):
    """A result that comes when it is asked for."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return LocalRunnerFuture([self.seconds]).result()


@ms.derived_object
class Slow(PyRunner):
    """A runner of a user."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [Later(2.0) for _ in runner_inputs]


@ms.derived_object
class Flat(ms.cost_model.PyCostModel):
    """A cost model of a user."""

    learned = 0

    def predict(self, context: ms.TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        return np.ones(len(candidates))

    def update(self, context: ms.TuneContext, candidates: Sequence[MeasureCandidate], results: Sequence[Any]) -> None:
        self.learned += len(results)


@ms.derived_object
class Nothing(PyScheduleRule):
    """A rule of a user, which hears of its task by the older name."""

    def initialize_with_tune_context(self, context: ms.TuneContext) -> None:
        self.name = context.task_name

    def apply(self, sch: tir.Schedule, block: Any) -> list[tir.Schedule]:
        return [sch]


def test_users_parts_take_part(tmp_path: Path) -> None:
    rule, model = Nothing(), Flat()
    space = ms.space_generator.ScheduleFn(tiles, sch_rules=[rule])
    database = tuned(
        matmul(), space, 3, str(tmp_path), runner=Slow(), cost_model=model, measure_callbacks=ms.MeasureCallback.create("default")
    )
    assert [record.run_secs for record in database.get_all_tuning_records()] == [[2.0]] * 3
    assert model.learned == 3
    context = ms.TuneContext(matmul(), space_generator=space, task_name="mine")
    assert context.space_generator is space and rule.name == "mine"


def test_names_of_the_proposal() -> None:
    @ms.as_composite_schedule(name="cut")
    def cut(sch: tir.Schedule, block: Any) -> None:
        sch.split(sch.get_loops(block)[0], [None, 4])

    sch = tir.Schedule(matmul())
    assert tir.as_composite_schedule is ms.as_composite_schedule
    assert cut.name == "cut" and cut.apply(sch, sch.get_block("C")) == [sch] and "split" in str(sch.trace)

    class Mine(ms.PyCompositeSchedule):
        def initialize(self, context: ms.TuneContext) -> None:
            self.target = context.target

        def apply(self, sch: tir.Schedule, block: Any) -> list[tir.Schedule]:
            return [sch]

    mine = Mine()
    ms.TuneContext(matmul(), target="llvm", space_generator=ms.space_generator.ScheduleFn(tiles, sch_rules=[mine]))
    assert mine.target.kind.name == "llvm"
    assert issubclass(ms.PySearchPolicy, ms.SearchStrategy) and ms.EvolutionarySearch is ms.search_strategy.EvolutionarySearch


def test_the_profiler_adds_up_seconds_by_name() -> None:
    with ms.Profiler() as profiler:
        assert ms.Profiler.current() is profiler
        for _ in range(2):
            with ms.Profiler.timeit("work"):
                pass
    assert set(profiler.get()) == {"work", "Total"} and "work" in profiler.table() and ms.Profiler.current() is None


def test_arguments_are_described() -> None:
    infos = ms.ArgInfo.from_entry_func(matmul(8, "int32"))
    assert [info.as_json() for info in infos] == [["TENSOR", "int32", [8, 8]]] * 3
    assert ms.ArgInfo.from_json(["TENSOR", "int32", [8, 8]]) == infos[0] == ms.TensorInfo("int32", (8, 8))
    assert ms.default_config.database is not None and len(ms.default_config.callbacks()) == 3
