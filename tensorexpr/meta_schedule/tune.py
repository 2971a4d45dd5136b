"""`tune_tasks`: a search over several tasks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import TuningError
from ..fleet.plugs import FleetBuilder, FleetRunner
from ..later import later
from .builder.builder import Builder
from .builder.local_builder import LocalBuilder
from .cost_model.cost_model import CostModel
from .database.database import Database
from .measure_callback.measure_callback import MeasureCallback
from .runner.local_runner import LocalRunner
from .runner.runner import Runner
from .task_scheduler.task_scheduler import TaskScheduler
from .tune_context import TuneContext

COST_MODEL_FILE = "cost_model.xgb"
# Where the releases of 2022 have them.
__getattr__, __dir__ = later(
    __name__,
    {
        ".default_config": "Parse",
        ".tune_config": "EvolutionarySearchConfig ReplayFuncConfig ReplayTraceConfig TuneConfig",
        ".tir_integration": "tune_te tune_tir",
        ".relax_integration": "tune_extracted_tasks",
        ".relay_integration": "extract_task_from_relay=extract_tasks tune_relay",
    },
)


def tune_tasks(
    *,
    tasks: Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | FleetBuilder | str = "local",
    runner: Runner | FleetRunner | str = "local",
    database: Database | str = "json",
    cost_model: CostModel | str = "xgb",
    measure_callbacks: Sequence[MeasureCallback] | MeasureCallback | str = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    module_equality: str = "structural",
) -> Database:
    """Search several tasks.

    Args:
        tasks: the tasks.
        task_weights: how much the time of each counts.
        work_dir: the folder of the database's files and the cost model.
        max_trials_global: programs to measure.
        max_trials_per_task: programs of each task, at most; all if None.
        num_trials_per_iter: programs of a round.
        builder, runner: objects, names of ours, or what a `Fleet` gives.
        database, cost_model, measure_callbacks, task_scheduler: objects, or names of ours.
        module_equality: when two programs are the same workload.

    Returns:
        the database with all records.

    Raises:
        TuningError: for names that aren't known, without tasks, with other numbers of weights than of tasks, or for a GPU that isn't here.
    """
    if not tasks or len(tasks) != len(task_weights):
        raise TuningError(f"there are {len(tasks)} tasks and {len(task_weights)} weights; each of at least one task has a weight")
    threads = tasks[0].num_threads
    building = LocalBuilder.of(builder) if isinstance(builder, FleetBuilder) else builder
    building = building if isinstance(building, Builder) else Builder.create(building, max_workers=threads)
    running = LocalRunner.of(runner) if isinstance(runner, FleetRunner) else runner
    running = running if isinstance(running, Runner) else Runner.create(running, max_workers=threads)
    if isinstance(running, LocalRunner):
        for target in (task.target for task in tasks if task.target is not None):
            running.check(target)
    known = _database(database, work_dir, module_equality)
    model = cost_model if isinstance(cost_model, CostModel) else CostModel.create(cost_model, num_tuning_cores=threads)
    scheduler = task_scheduler if isinstance(task_scheduler, TaskScheduler) else TaskScheduler.create(task_scheduler)
    options: dict[str, Any] = {
        "tasks": tasks,
        "task_weights": task_weights,
        "max_trials_global": max_trials_global,
        "max_trials_per_task": max_trials_global if max_trials_per_task is None else max_trials_per_task,
        "num_trials_per_iter": num_trials_per_iter,
        "builder": building,
        "runner": running,
        "measure_callbacks": _callbacks(measure_callbacks),
        "database": known,
        "cost_model": model,
    }
    # A scheduler of an older program may not know all of these.
    accepted = inspect.signature(scheduler.tune).parameters
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values())
    try:
        scheduler.tune(**{name: value for name, value in options.items() if takes_all or name in accepted})
    finally:
        # what was made here by its name is closed here, the caller's own stays open
        if building is not builder:
            building.close()
        if running is not runner:
            running.close()
    if model is not None and model is not cost_model:
        model.save(Path(work_dir) / COST_MODEL_FILE)
    return known


def _database(given: Database | str, work_dir: str, module_equality: str) -> Database:
    if isinstance(given, Database):
        return given
    place = {"work_dir": work_dir} if given in ("json", "sqlite") else {}
    made: Database = Database.create(given, module_equality=module_equality, **place)
    return made


def _callbacks(given: Sequence[MeasureCallback] | MeasureCallback | str) -> list[MeasureCallback]:
    if isinstance(given, MeasureCallback):
        return [given]
    made = MeasureCallback.create(given) if isinstance(given, str) else list(given)
    strange = [callback for callback in made if not hasattr(callback, "apply")]
    if strange:
        raise TuningError(f"measure_callbacks takes objects such as ms.measure_callback.AddToDatabase(), not {strange[0]!r}")
    return made
