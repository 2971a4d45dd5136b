"""Networks of graphs: their tasks, a search over all of them, and a build with what it found.

    database = ms.relax_integration.tune_relax(mod, params, "llvm -num-cores 2", "./tune_tmp", max_trials_global=256)
    executable = ms.relax_integration.compile_relax(database, mod, "llvm -num-cores 2", params)

One database for one task scheduler; `relax.tune_network(by="meta_schedule")` searches within seconds, and with packed weights beside it.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..errors import TuningError
from ..target import Target, TargetLike
from ..tir.function import IRModule
from .database.database import Database
from .tir_integration import adapt, contexts_of, usual_space
from .tune import tune_tasks
from .tune_config import TuneConfig
from .tune_context import TuneContext

# Graphs know the search, and not the other way round: loaded when tasks of one are asked for.
_GRAPHS = "tensorexpr.relax.tir_tasks"


@dataclass(frozen=True, eq=False)
class ExtractedTask:
    """A tensor function of a network.

    Args:
        task_name: its name there.
        mod: the network behind the passes on graphs.
        target: what to tune for.
        dispatched: modules with the function as "main", of which there is one.
        weight: how often it is called.
    """

    task_name: str
    mod: IRModule
    target: Target
    dispatched: Sequence[IRModule]
    weight: int


def extract_tasks(
    mod: Any, target: TargetLike, params: Mapping[Any, Any] | None = None, *, module_equality: str = "structural"
) -> list[ExtractedTask]:
    """The distinct tensor functions of a network that have known sizes, behind the passes on graphs.

    Args:
        mod: a module of graphs or of Relay's functions, or one function.
        target: what to tune for.
        params: values of parameters of "main".
        module_equality: accepted; functions are told apart by structure.

    Raises:
        TypeMismatchError: for something else than a network.
    """
    found: list[ExtractedTask] = importlib.import_module(_GRAPHS).tasks_of_network(mod, params, Target.target_or_current(target))
    return found


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str,
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_threads: int | str = "physical",
    seed: int | None = None,
) -> tuple[list[TuneContext], list[float]]:
    """Tasks for `tune_tasks`, and their weights.

    Args:
        extracted_tasks: of `extract_tasks`.
        work_dir: accepted; messages go where those of the library go.
        space, strategy, num_threads, seed: see `tune_tir`, whose spaces these are.
    """
    functions = [(one.task_name, one.dispatched[0], one.target) for one in extracted_tasks]
    spaces = [usual_space(space, strategy)] * len(functions)
    return contexts_of(functions, spaces, strategy, num_threads, seed), [float(one.weight) for one in extracted_tasks]


def tune_extracted_tasks(
    extracted_tasks: Sequence[ExtractedTask],
    target: Any = None,
    config: Any = None,
    work_dir: str | None = None,
    *,
    space: Any = "post-order-apply",
    sch_rules: Any = None,
    postprocs: Any = None,
    mutator_probs: Any = None,
    num_threads: int | str = "physical",
    seed: int | None = None,
    **options: Any,
) -> Database:
    """Search the functions of a network, as releases of 2022 do: `tune_extracted_tasks(tasks, ms.TuneConfig(64), "./tune_tmp")`.

    Args:
        extracted_tasks: of `extract_tasks`.
        target: accepted where the first of these releases have it, before the others; tasks know theirs.
        config: how much to search, as a TuneConfig.
        work_dir: the folder of the database and the cost model.
        space, sch_rules, postprocs, mutator_probs, num_threads, seed: see `tune_tir`.
        options: builder, runner, database, cost_model, measure_callbacks and module_equality of `tune_tasks`; None is its default.

    Raises:
        TuningError: without a configuration, for names that aren't known, and from the search.
    """
    if isinstance(target, TuneConfig):
        config, work_dir = target, work_dir if config is None else config
    if not isinstance(config, TuneConfig):
        raise TuningError("tune_extracted_tasks needs to know how much to search: pass config=ms.TuneConfig(...)")
    limits = config.options()
    contexts, weights = extracted_tasks_to_tune_contexts(extracted_tasks, "", space, limits.pop("strategy"), num_threads, seed)
    adapt(contexts, sch_rules, postprocs, mutator_probs)
    folder = str(work_dir) if work_dir is not None else tempfile.mkdtemp(prefix="tensorexpr-tune-")
    given = {name: value for name, value in options.items() if value is not None}
    return tune_tasks(tasks=contexts, task_weights=weights, work_dir=folder, **limits, **given)


def tune_relax(
    mod: Any,
    params: Mapping[Any, Any] | None,
    target: TargetLike,
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
    *,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    seed: int | None = None,
    module_equality: str = "structural",
    num_tuning_cores: int | str = "physical",
) -> Database:
    """Search the tensor functions of a network, by the time that each contributes.

    Args:
        mod, params, target: see `extract_tasks`.
        work_dir: the folder of the database and the cost model.
        max_trials_global: programs to measure.
        max_trials_per_task: of each function, at most; all if None.
        op_names: parts of the names of functions; others aren't tuned.
        num_trials_per_iter, builder, runner, database, cost_model, measure_callbacks, task_scheduler, space, strategy, seed,
            module_equality, num_tuning_cores: see `tune_tir`.

    Returns:
        the database.

    Raises:
        TuningError: without functions to tune, and from the search.
    """
    tasks = extract_tasks(mod, target, params)
    chosen = [one for one in tasks if op_names is None or any(name in one.task_name for name in op_names)]
    if not chosen:
        raise TuningError(
            f"there is nothing to tune: of functions of known sizes there are {', '.join(o.task_name for o in tasks) or 'none'}"
        )
    contexts, weights = extracted_tasks_to_tune_contexts(chosen, work_dir, space, strategy, num_tuning_cores, seed)
    return tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
    )


def compile_relax(
    database: Database, mod: Any, target: TargetLike, params: Mapping[Any, Any] | None = None, enable_warning: bool = False
) -> Any:
    """Build a network with the schedules of a database, as a `relax.Executable`; what has no record there is scheduled by rules.

    Args:
        database: of `tune_relax`.
        mod, params, target: see `extract_tasks`.
        enable_warning: warn of each function without a record.
    """
    return importlib.import_module(_GRAPHS).built_with(database, mod, params, Target.target_or_current(target), enable_warning)
