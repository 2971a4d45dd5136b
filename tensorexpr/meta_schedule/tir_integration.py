"""`tune_tir`: search the schedules of a function. `compile_tir`: take the best that a database knows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TuningError
from ..schedule.blocks import Schedule, Trace
from ..target import Target, TargetLike
from ..te.tensor import Tensor
from ..te.to_prim_func import create_prim_func
from ..tir.function import IRModule, PrimFunc
from .database.database import Database
from .search_strategy.evolutionary_search import EvolutionarySearch
from .search_strategy.search_strategy import SearchStrategy
from .space_generator.post_order_apply import PostOrderApply
from .space_generator.space_generator import SpaceGenerator
from .space_generator.space_generator_union import SpaceGeneratorUnion
from .space_generator.tensor_sketches import TensorSketchSpace
from .tune import tune_tasks
from .tune_config import TuneConfig
from .tune_context import TuneContext, normalize_mod
from .utils import fork_seed


def tune_tir(
    mod: PrimFunc | IRModule,
    target: TargetLike,
    work_dir: str | TuneConfig | None = None,
    max_trials_global: int | str | None = None,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Any = "local",
    runner: Any = "local",
    database: Any = "json",
    cost_model: Any = "xgb",
    measure_callbacks: Any = "default",
    task_scheduler: Any = "gradient",
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Mapping[str, Any] | None = None,
    task_name: str | None = None,
    task_weights: Mapping[str, float] | None = None,
    config: TuneConfig | None = None,
    sch_rules: Any = None,
    postprocs: Any = None,
    mutator_probs: Any = None,
) -> Any:
    """Search the schedules of the functions of a module.

        database = ms.tune_tir(mod, target="llvm", work_dir="./tune_tmp", max_trials_global=64, space=ms.space_generator.ScheduleFn(fn))
        sch = ms.tir_integration.compile_tir(database, mod, "llvm")

    With `config=ms.TuneConfig(...)`, as releases of 2022 have it, the best schedule is given instead of the database.

    Args:
        mod: a function, or a module; each of its functions is a task.
        target: what to build for.
        work_dir: the folder of the database and the cost model.
        max_trials_global: programs to measure.
        max_trials_per_task: programs of each function, at most; all if None.
        num_trials_per_iter: programs of a round.
        builder, runner, database, cost_model, measure_callbacks, task_scheduler, strategy: objects, or names of ours.
        space: a SpaceGenerator, its name, or a function of a schedule.
        num_tuning_cores, seed: a number, "physical" or "logical"; of all random choices.
        module_equality: when two programs are the same workload.
        special_space: spaces of some functions, by name; None leaves a function out.
        task_name, task_weights: for messages, if there is one function; how much the time of each counts, by name, 1 if it isn't named.
        config: how much to search, as a TuneConfig.
        sch_rules, postprocs, mutator_probs: of the space, in place of its own.

    Returns:
        the database; with `config` the best schedule, or None if no program ran.

    Raises:
        TuningError: for names that aren't known, and functions that can't be measured.
    """
    if isinstance(work_dir, TuneConfig):
        # releases of 2022 take (mod, target, config, work_dir)
        config, work_dir, max_trials_global = work_dir, max_trials_global, None  # type: ignore[assignment]
    if config is not None:
        max_trials_global, num_trials_per_iter, max_trials_per_task, task_scheduler, strategy = config.options().values()
    if not isinstance(max_trials_global, int):
        given = "" if max_trials_global is None else f", and {max_trials_global!r} is no number of programs"
        raise TuningError(f"tune_tir needs to know how much to search: pass max_trials_global=, or config=ms.TuneConfig(...){given}")
    tasks = _tasks(normalize_mod(mod), target, space, strategy, num_tuning_cores, seed, special_space or {}, task_name)
    adapt(tasks, sch_rules, postprocs, mutator_probs)
    found = tune_tasks(
        tasks=tasks, task_weights=[(task_weights or {}).get(str(task.task_name), 1.0) for task in tasks],
        work_dir=str(work_dir) if work_dir is not None else tempfile.mkdtemp(prefix="tensorexpr-tune-"),
        max_trials_global=max_trials_global, max_trials_per_task=max_trials_per_task, num_trials_per_iter=num_trials_per_iter,
        builder=builder, runner=runner, database=database, cost_model=cost_model, measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler, module_equality=module_equality,
    )  # fmt: skip
    return found if config is None else compile_tir(found, mod, target)


def tune_te(
    tensors: Sequence[Tensor],
    target: TargetLike,
    config: TuneConfig,
    work_dir: str | None = None,
    *,
    task_name: str = "main",
    **options: Any,
) -> Schedule | None:
    """Search the schedules of tensors, as releases of 2022 do: the best one, or None if no program ran.

    Args:
        tensors: inputs and outputs, as of `te.create_prim_func`.
        target, config, work_dir, task_name, options: see `tune_tir`.
    """
    found: Schedule | None = tune_tir(create_prim_func(tensors), target, work_dir, task_name=task_name, config=config, **options)
    return found


def usual_space(space: Any, strategy: Any) -> Any:
    """The default space: what the rules make, and sketches of the tensors that programs compute, for the strategy that knows both."""
    evolves = strategy == "evolutionary" or isinstance(strategy, EvolutionarySearch)
    return SpaceGeneratorUnion([PostOrderApply(), TensorSketchSpace()]) if space == "post-order-apply" and evolves else space


def _tasks(
    mod: IRModule,
    target: TargetLike,
    space: Any,
    strategy: Any,
    cores: int | str,
    seed: int | None,
    special: Mapping[str, Any],
    task_name: str | None,
) -> list[TuneContext]:
    """A task for each function, in the order of their names."""
    functions = sorted((var.name_hint, func) for var, func in mod.functions_items() if isinstance(func, PrimFunc))
    shown = task_name if len(functions) == 1 else None
    named = [(shown or name, _alone(mod, func), target) for name, func in functions]
    spaces = [special.get(name, usual_space(space, strategy)) for name, _ in functions]
    found = contexts_of(named, spaces, strategy, cores, seed)
    if not found:
        raise TuningError("the module has no function of loops (PrimFunc) to tune")
    return found


def contexts_of(
    programs: Sequence[tuple[str, IRModule, TargetLike]], spaces: Sequence[Any], strategy: Any, cores: int | str, seed: int | None
) -> list[TuneContext]:
    """Tasks of programs, each with parts of its own.

    Args:
        programs: names, modules of one function, and targets.
        spaces: a space for each; None leaves a program out.
        strategy, cores, seed: see `tune_tir`.
    """
    found = []
    for (name, mod, target), own, state in zip(programs, spaces, fork_seed(seed, len(programs)), strict=True):
        if own is not None:
            context = TuneContext(
                mod,
                target=target,
                space_generator=own.clone() if isinstance(own, SpaceGenerator) else own,
                search_strategy=strategy.clone() if isinstance(strategy, SearchStrategy) else strategy,
                task_name=name,
                rand_state=state,
                num_threads=cores,
            )
            found.append(context)
    return found


def _alone(mod: IRModule, func: PrimFunc) -> IRModule:
    """A function of a module as a program of its own; as it is, so that databases know it again."""
    return mod if len(mod.functions) == 1 else IRModule({"main": func})


def adapt(tasks: Sequence[TuneContext], sch_rules: Any, postprocs: Any, mutator_probs: Any) -> None:
    """Let the spaces of tasks use other rules, postprocessors and mutators than their own."""
    given = {"sch_rules": sch_rules, "postprocs": postprocs, "mutator_probs": mutator_probs}
    asked = {name: value for name, value in given.items() if value is not None}
    for task in tasks if asked else ():
        if task.space_generator is not None:
            for name, value in asked.items():
                setattr(task.space_generator, name, value() if callable(value) else value)
            task.space_generator.adopt(task)


def compile_tir(database: Database, mod: PrimFunc | IRModule, target: TargetLike) -> Schedule | None:
    """The schedule of the best record of a program; None if there is none.

    Of a module with several functions each is scheduled that a record is known of.

    Args:
        database: the records.
        mod: the program, unscheduled.
        target: what to build for.
    """
    module, wanted = normalize_mod(mod), Target(target)
    if len(module.functions) <= 1:
        return database.query_schedule(module, wanted, "main")
    sch, found = Schedule(module), False
    for var, func in module.functions_items():
        record = database.query_tuning_record(_alone(module, func), wanted, var.name_hint) if isinstance(func, PrimFunc) else None
        if record is not None:
            _of_function(record.trace, var.name_hint).apply_to_schedule(sch, remove_postproc=False)
            found = True
    return sch if found else None


def _of_function(trace: Trace, name: str) -> Trace:
    """A trace of "main" for another function of a module."""
    insts, decisions = trace.as_json()
    # only GetBlock names the function: its attributes are the block and that
    changed = [[kind, inputs, [attrs[0], name] if kind == "GetBlock" else attrs, outputs] for kind, inputs, attrs, outputs in insts]
    return Trace.from_json([changed, decisions])
