"""The tensor functions of a network as tasks of meta_schedule, and the network built with the schedules of its database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..lower.context import PassContext
from ..meta_schedule.database.database import Database
from ..meta_schedule.relax_integration import ExtractedTask
from ..target import Target
from ..tir.function import IRModule
from ..tir.structural_digest import structural_hash
from .build import build
from .network_tasks import fused_graph
from .runtime.executable import Executable
from .transform.meta_schedule import applied, calls_of, tunable


def tasks_of_network(mod: Any, params: Mapping[Any, Any] | None, target: Target) -> list[ExtractedTask]:
    """The distinct tensor functions of a network behind the passes on graphs that have known sizes, and how often each is called.

    Args:
        mod: a module of graphs or of Relay's functions, or one function.
        params: values of parameters of "main".
        target: what to tune for.
    """
    graph = fused_graph(mod, params)
    calls, found = calls_of(graph), dict[int, list[str]]()
    functions = {name: func for name, func in tunable(graph).items() if calls[name]}
    for name, func in functions.items():
        found.setdefault(structural_hash(func), []).append(name)
    made = []
    for names in found.values():
        program = IRModule({"main": functions[names[0]]})
        made.append(ExtractedTask(names[0], graph, target, [program], sum(calls[name] for name in names)))
    return made


def built_with(database: Database, mod: Any, params: Mapping[Any, Any] | None, target: Target, enable_warning: bool = False) -> Executable:
    """A network whose tensor functions have the schedules of the best records of a database; those without one get theirs by rules."""
    with target, PassContext.current():
        graph = applied(fused_graph(mod, params), database, enable_warning)
        made: Executable = build(graph, target, relax_pipeline=None)
    return made
