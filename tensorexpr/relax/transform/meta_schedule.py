"""Schedules of tensor functions by search and by records, and FewShotTuning.

    with target, PassContext():
        mod = relax.transform.MetaScheduleTuneTIR(work_dir, max_trials_global=64)(mod)
        mod = relax.transform.MetaScheduleApplyDatabase(work_dir)(mod)

A function that found a record has the attributes "tir.is_scheduled" and "schedule.origin".
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...meta_schedule.database.database import Database
from ...meta_schedule.database.json_database import JSONDatabase
from ...meta_schedule.tir_integration import tune_tir
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..expr import Call, Function
from ..visitor import walk
from .bind import BindParams
from .passes import graph_pass

SCHEDULED, ORIGIN = "tir.is_scheduled", "schedule.origin"


def calls_of(mod: IRModule) -> Counter[str]:
    """How often each tensor function is called in the text of the module's graphs."""
    nodes = (node for _, func in mod.functions_items() if isinstance(func, Function) for node in walk(func))
    callees = (node.args[0] for node in nodes if isinstance(node, Call) and node.op in ("relax.call_tir", "relax.call_tir_inplace"))
    return Counter(callee.name_hint for callee in callees if isinstance(callee, GlobalVar))


def tunable(mod: IRModule, names: Sequence[str] | None = None) -> dict[str, PrimFunc]:
    """The tensor functions of known shapes that have no schedule, those whose names have one of `names` in them."""
    found: dict[str, PrimFunc] = {}
    for var, func in mod.functions_items():
        if not isinstance(func, PrimFunc) or func.attrs.get(SCHEDULED):
            continue
        buffers = [func.buffer_map.get(param) for param in func.params]
        is_known = all(buffer is not None and all(as_int(extent) is not None for extent in buffer.shape) for buffer in buffers)
        if is_known and (names is None or any(name in var.name_hint for name in names)):
            found[var.name_hint] = func
    return found


def _tuned(functions: Mapping[str, PrimFunc], weights: Mapping[str, int], work_dir: str, trials: int, each: int | None) -> Database:
    """Search the schedules of functions, by the time that each contributes; the records."""
    single = IRModule({"main": next(iter(functions.values()))})
    mod = single if len(functions) == 1 else IRModule(dict(functions.items()))
    shown = next(iter(functions)) if len(functions) == 1 else None
    found: Database = tune_tir(
        mod,
        target=Target.target_or_current(None),
        work_dir=work_dir,
        max_trials_global=trials,
        max_trials_per_task=each,
        task_name=shown,
        task_weights={name: float(max(weights.get(name, 1), 1)) for name in functions},
    )
    return found


def applied(mod: IRModule, database: Database, enable_warning: bool = False) -> IRModule:
    """A module whose tensor functions have the schedules of the best records of them."""
    target, made = Target.target_or_current(None), mod.clone()
    for name, func in tunable(mod).items():
        # Attributes are part of what is looked up: as the function is, then without those that passes have added since.
        plain = func.with_attrs({key: value for key, value in func.attrs.items() if key == "tir.noalias"})
        scheduled = next(
            (
                found
                for one in (func, plain)
                if (found := database.query_ir_module(IRModule({"main": one}), target, name)) is not None
            ),
            None,
        )  # fmt: skip
        if scheduled is None:
            if enable_warning:
                warnings.warn(f"MetaScheduleApplyDatabase: no record of {name} for {target.kind.name}", stacklevel=2)
            continue
        body: Any = next(iter(scheduled.functions.values()))
        kept = {key: value for key, value in func.attrs.items() if key not in body.attrs}
        made.update_func(name, body.with_attr({**kept, SCHEDULED: True, ORIGIN: "record"}))
    return made


def _checked(max_trials_global: Any) -> int:
    if not isinstance(max_trials_global, int) or max_trials_global < 1:
        raise DeclarationError(f"max_trials_global is how many programs are measured, at least 1, not {max_trials_global!r}")
    return max_trials_global


def MetaScheduleTuneIRMod(
    params: Mapping[str, Any],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
) -> ModulePass:
    """A pass that searches the schedules of a module's tensor functions for the current target, and leaves records in a folder.

    The module stays as it is, but for parameters that are bound: `MetaScheduleApplyDatabase` puts the schedules in.

    Args:
        params: values of parameters of "main".
        work_dir: the folder.
        max_trials_global: programs to measure, of all functions together.
        max_trials_per_task: of each function, at most.
        op_names: parts of the names of functions; others aren't tuned.

    Raises:
        DeclarationError: for fewer trials than one.
        TuningError: from the search.
    """
    trials = _checked(max_trials_global)

    def run(mod: IRModule) -> IRModule:
        bound = BindParams("main", dict(params.items()))(mod) if params else mod
        functions = tunable(bound, op_names)
        if functions:
            _tuned(functions, calls_of(bound), work_dir, trials, max_trials_per_task)
        return bound

    return graph_pass("MetaScheduleTuneIRMod", run)


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int) -> ModulePass:
    """A pass as `MetaScheduleTuneIRMod`, of all tensor functions."""
    trials = _checked(max_trials_global)

    def run(mod: IRModule) -> IRModule:
        functions = tunable(mod)
        if functions:
            _tuned(functions, calls_of(mod), work_dir, trials, None)
        return mod

    return graph_pass("MetaScheduleTuneTIR", run)


def MetaScheduleApplyDatabase(work_dir: str | None = None, enable_warning: bool = False) -> ModulePass:
    """A pass: tensor functions get the schedules of their best records for the current target.

    Args:
        work_dir: the folder of the records; the database of `with database:` if None.
        enable_warning: warn of each function without a record.

    Raises:
        DeclarationError: with neither.
    """

    def run(mod: IRModule) -> IRModule:
        database = Database.current() if work_dir is None else JSONDatabase(work_dir=work_dir)
        if database is None:
            raise DeclarationError("MetaScheduleApplyDatabase: which records? Pass work_dir=, or stand in `with database:`")
        return applied(mod, database, enable_warning)

    return graph_pass("MetaScheduleApplyDatabase", run)


def FewShotTuning(valid_count: int = 1, benchmark: bool = False) -> ModulePass:
    """A pass: each tensor function without a schedule gets the best of a few that are measured.

    Args:
        valid_count: how many.
        benchmark: accepted; what is measured is compared in any case.
    """
    count = _checked(valid_count)

    def run(mod: IRModule) -> IRModule:
        functions = tunable(mod)
        if not functions:
            return mod
        with tempfile.TemporaryDirectory(prefix="tensorexpr-tune-") as folder:
            return applied(mod, _tuned(functions, calls_of(mod), folder, count * len(functions), count))

    return graph_pass("FewShotTuning", run)
