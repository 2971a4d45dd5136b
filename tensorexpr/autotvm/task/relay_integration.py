"""Tasks of graphs: the operators of relax modules that templates are for, by the workloads that TVM extracts from Relay's programs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ...errors import TuningError
from ...target import TargetLike
from ...tir.function import IRModule
from .task import Task, create

# Graphs know templates, and not the other way round: loaded when tasks of one are asked for.
_GRAPHS = "tensorexpr.relax.template_tasks"


def extract_from_program(
    mod: Any, params: Any, target: TargetLike, target_host: TargetLike | None = None, ops: Sequence[Any] | None = None
) -> list[Task]:
    """The tasks of a graph's operators, each once.

    Args:
        mod: a relax module of operators, such as an importer's, or a module or function of Relay.
        params: kept for programs that pass the weights; their shapes are in the module.
        target: what to tune for.
        target_host: where the host's part runs.
        ops: operators or their names, such as "nn.conv2d"; all by default.

    Raises:
        TuningError: for something else than a module.
    """
    return extract_from_multiple_program([mod.as_module() if hasattr(mod, "as_module") else mod], [params], target, target_host, ops)


def extract_from_multiple_program(
    mods: Sequence[Any], params: Any, target: TargetLike, target_host: TargetLike | None = None, ops: Sequence[Any] | None = None
) -> list[Task]:
    """The tasks of several graphs' operators, each once. See `extract_from_program`.

    Raises:
        TuningError: for something else than modules.
    """
    for mod in mods:
        if not isinstance(mod, IRModule):
            raise TuningError(
                f"tasks are extracted from a relax module, not {mod!r:.100}; make tasks of operators with autotvm.task.create"
            )
    found = importlib.import_module(_GRAPHS).tasks_of(mods, ops)
    return [create(name, args, target, target_host) for name, args in found]
