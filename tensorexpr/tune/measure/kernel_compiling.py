"""The compiler of candidates for kernels of networks: as `relax.build` makes a kernel of a record, with what asks for lines ahead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...lower.plain_context import context_from_json
from ...schedule.te_schedule import Schedule
from ...schedule.trace import Trace
from ...target import Target
from ...te.serialize import dag_from_json
from ..streaming import ask_ahead
from .compiled import Compiler
from .compiling import CandidateCompiler
from .object_code import warm_up


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """See `tune.measure.compiling.make_compiler`."""
    target, context = Target(task["target"]), context_from_json(task.get("pass_options", {}))
    warm_up(target)
    return KernelCompiler(dag_from_json(task["dag"]), target, context)


class KernelCompiler(CandidateCompiler):
    """Compiles schedules as kernels of a network."""

    def schedule(self, trace: Trace) -> Schedule:
        """The schedule of a trace, which asks ahead for what other kernels put out of the caches."""
        made = super().schedule(trace)
        ask_ahead(made, self._target)
        return made
