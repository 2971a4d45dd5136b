"""Networks of Relay by the names of its time: `relax_integration`, as Relay's modules are graphs here.

database = ms.relay_integration.tune_relay(mod, params, "llvm -num-cores 2", "./tune_tmp", max_trials_global=256)
lib = ms.relay_integration.compile_relay(database, mod, "llvm -num-cores 2", params)
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TuningError
from ..lower.context import PassContext
from ..target import Target, TargetLike
from . import relax_integration
from .database.database import Database
from .integration import is_meta_schedule_dispatch_enabled as is_meta_schedule_dispatch_enabled
from .integration import is_meta_schedule_enabled as is_meta_schedule_enabled
from .relax_integration import ExtractedTask
from .tune_config import TuneConfig
from .tune_context import TuneContext

# As for `relax_integration`: Relay knows the search, and not the other way round.
_RELAY = "tensorexpr.relay.backend.executor_factory"
_MODULES = "tensorexpr.relay.build_module"


def extract_tasks(
    mod: Any,
    target: TargetLike,
    params: Mapping[str, Any] | None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    executor: Any = None,
    runtime: Any = None,
    module_equality: str = "structural",
    disabled_pass: Sequence[str] | None = None,
    instruments: Sequence[Any] | None = None,
) -> list[ExtractedTask]:
    """The distinct tensor functions of a network; see `relax_integration.extract_tasks`.

    Args:
        mod: a module of Relay, or a function.
        target, params: what to tune for; values of parameters of "main".
        opt_level, pass_config, disabled_pass, instruments: of the PassContext in which the passes on graphs run.
        executor, runtime, module_equality: accepted.
    """
    with _context(opt_level, pass_config, disabled_pass, instruments):
        return relax_integration.extract_tasks(mod, target, params)


extract_task_from_relay = extract_tasks  # the name of 2022


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str,
    space: Any = "post-order-apply",
    strategy: Any = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
) -> tuple[list[TuneContext], list[float]]:
    """Tasks for `tune_tasks`, and their weights; see `relax_integration`."""
    return relax_integration.extracted_tasks_to_tune_contexts(extracted_tasks, work_dir, space, strategy, num_tuning_cores, seed)


def tune_relay(
    mod: Any,
    params: Mapping[str, Any] | None,
    target: TargetLike,
    work_dir: str | None = None,
    max_trials_global: int | None = None,
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
    seed: int | None = None,
    module_equality: str = "structural",
    num_tuning_cores: int | str = "physical",
    opt_level: int = 3,
    disabled_pass: Sequence[str] | None = None,
    instruments: Sequence[Any] | None = None,
    config: TuneConfig | None = None,
    sch_rules: Any = None,
    postprocs: Any = None,
    mutator_probs: Any = None,
) -> Any:
    """Search the tensor functions of a network; see `relax_integration.tune_relax`.

    With `config=ms.TuneConfig(...)`, as releases of 2022 have it, the network's library is given instead of the database.

    Args:
        opt_level, disabled_pass, instruments: of the PassContext in which the passes on graphs run.
        config: how much to search, as a TuneConfig.
        sch_rules, postprocs, mutator_probs: of the space, in place of its own, where there is a `config`.

    Raises:
        TuningError: without functions to tune, or a number of programs to measure; and from the search.
    """
    if config is not None:
        with _context(opt_level, None, disabled_pass, instruments):
            tasks = extract_tasks(mod, target, params, opt_level=opt_level)
        found = relax_integration.tune_extracted_tasks(
            tasks, config, work_dir, space=space, sch_rules=sch_rules, postprocs=postprocs, mutator_probs=mutator_probs,
            num_threads=num_tuning_cores, seed=seed, builder=builder, runner=runner, database=database, cost_model=cost_model,
            measure_callbacks=measure_callbacks, module_equality=module_equality,
        )  # fmt: skip
        return compile_relay(found, mod, target, params, opt_level=opt_level, disabled_pass=disabled_pass, instruments=instruments)
    if work_dir is None or max_trials_global is None:
        raise TuningError("tune_relay needs work_dir and max_trials_global, or config=ms.TuneConfig(...)")
    with _context(opt_level, None, disabled_pass, instruments):
        return relax_integration.tune_relax(
            mod,
            params,
            target,
            work_dir,
            max_trials_global,
            max_trials_per_task,
            num_trials_per_iter=num_trials_per_iter,
            builder=builder,
            runner=runner,
            database=database,
            cost_model=cost_model,
            measure_callbacks=measure_callbacks,
            task_scheduler=task_scheduler,
            space=space,
            strategy=strategy,
            seed=seed,
            module_equality=module_equality,
            num_tuning_cores=num_tuning_cores,
        )


def compile_relay(
    database: Database,
    mod: Any,
    target: TargetLike,
    params: Mapping[str, Any] | None,
    *,
    backend: str = "graph",
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    executor: Any = None,
    disabled_pass: Sequence[str] | None = None,
    runtime: Any = None,
    instruments: Sequence[Any] | None = None,
) -> Any:
    """Build a network with the schedules of a database; what has no record there is scheduled by rules.

    Args:
        database: of `tune_relay`.
        mod, target, params: see `extract_tasks`.
        backend: "graph", for what `relay.build` returns, or "vm", for an executable of the virtual machine.
        opt_level, pass_config, disabled_pass, instruments: of the PassContext.
        executor, runtime: accepted.

    Raises:
        TuningError: for another backend.
    """
    if backend not in ("graph", "vm"):
        raise TuningError(f'compile_relay: backend is {backend!r}; it is "graph" or "vm"')
    chosen = Target.target_or_current(target)
    with _context(opt_level, pass_config, disabled_pass, instruments):
        made = relax_integration.compile_relax(database, mod, chosen, params)
    if backend == "vm":
        return made
    whole = importlib.import_module(_MODULES).as_module(mod)
    return importlib.import_module(_RELAY).ExecutorFactoryModule(whole, chosen, made, "default")


def _context(
    opt_level: int, config: Mapping[str, Any] | None, disabled: Sequence[str] | None, instruments: Sequence[Any] | None
) -> PassContext:
    return PassContext(
        opt_level=opt_level, config=dict(config or {}), disabled_pass=list(disabled or []), instruments=list(instruments or [])
    )
