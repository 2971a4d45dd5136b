"""Tasks of networks: `tasks, weights = auto_scheduler.extract_tasks(mod, params, target)`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import TuningError
from ..target import Target, TargetLike
from .options import HardwareParams
from .search_task import SearchTask

# Graphs know the search, and not the other way round: loaded when tasks of one are asked for.
_GRAPHS = "tensorexpr.relax.network_tasks"


def extract_tasks(
    mod: Any,
    params: Mapping[Any, Any] | Sequence[Mapping[Any, Any] | None] | None,
    target: TargetLike,
    target_host: TargetLike | None = None,
    hardware_params: HardwareParams | None = None,
    include_simple_tasks: bool = False,
    dump_workload_to_dag_log: str | Path | None = None,
    opt_level: int = 3,
    other_targets: Sequence[TargetLike] | None = None,
) -> tuple[list[SearchTask], list[int]]:
    """The tasks of a network: its kernels behind the passes on graphs, each computation once, and how often each runs.

    Weights that are constants are passed packed, as a build packs them. A build in the context of `ApplyHistoryBest(log)` runs the programs
    of the log.

    Args:
        mod: a module of Relay or of graphs, or a function; or several modules.
        params: values of parameters of "main"; of several modules a list of them.
        target: what to tune for.
        target_host: its host.
        hardware_params: numbers of the machine that differ from the target's.
        include_simple_tasks: also kernels that sum no products, such as pools.
        dump_workload_to_dag_log: a file to which each task's key and computation are written, as JSON.
        opt_level: accepted; the passes are those of a build.
        other_targets: none; there is one target.

    Raises:
        TypeMismatchError: for something else than networks.
        TuningError: for other targets.
    """
    if other_targets:
        raise TuningError(f"a network is built for one target, here {target}; extract_tasks has no use for other_targets {other_targets!r}")
    graphs: Any = importlib.import_module(_GRAPHS)
    chosen = Target.target_or_current(target)
    chosen = Target(chosen, target_host) if target_host is not None else chosen
    mods, given = (mod, list(params or [])) if isinstance(mod, (list, tuple)) else ([mod], [params])
    tasks, weights = graphs.extracted(mods, given or [None] * len(mods), chosen, hardware_params, include_simple_tasks)
    if dump_workload_to_dag_log is not None:
        lines = [json.dumps({"workload_key": task.workload_key, "dag": json.loads(task.compute_dag.dumps())}) for task in tasks]
        Path(dump_workload_to_dag_log).write_text("\n".join(lines) + "\n")
    return tasks, weights


__all__ = ["extract_tasks"]
