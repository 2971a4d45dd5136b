"""The compiler of candidates: replay the trace, lower, emit, compile. Runs in compile workers, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...lower.context import PassContext
from ...lower.plain_context import context_from_json
from ...schedule.axis_expression import encode
from ...schedule.given_layouts import given_inputs, relaid
from ...schedule.te_schedule import Schedule
from ...schedule.trace import Trace
from ...target import Target
from ...te.operation import PlaceholderOp
from ...te.serialize import dag_from_json
from ...te.tensor import Tensor
from .compiled import CompiledCandidate, Compiler
from .object_code import Layout, compiled, lowered_for, warm_up


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """A compiler for the candidates of a task, which holds the DAG of its arguments, the target, and options of lowering."""
    target, context = Target(task["target"]), context_from_json(task.get("pass_options", {}))
    warm_up(target)
    return CandidateCompiler(dag_from_json(task["dag"]), target, context)


class CandidateCompiler:
    """Compiles schedules of the computation with the arguments `args`, inputs and outputs, for one target, in one PassContext."""

    def __init__(self, args: Sequence[Tensor], target: Target, context: PassContext | None = None) -> None:
        self._context = context or PassContext()
        self._args = list(args)
        self._target = target
        self._outputs = tuple(tensor.op for tensor in args if not isinstance(tensor.op, PlaceholderOp))

    def of(self, dag: Any) -> Compiler:
        """The compiler of candidates of another computation."""
        return type(self)(dag_from_json(dag), self._target, self._context)

    def schedule(self, trace: Trace) -> Schedule:
        """The schedule of a trace, as it is lowered."""
        return Schedule(self._outputs, trace)

    def __call__(self, trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
        """Object code of the program that a trace makes.

        Raises:
            RecordError, ScheduleError, LoweringError: if it makes none.
            CodegenError: if there is no code for it.
        """
        start = time.perf_counter()
        schedule = self.schedule(Trace.from_json(list(trace)))
        replayed = time.perf_counter()
        with self._target, self._context:
            module = lowered_for(self._target, schedule, schedule.arguments(self._args))
        timings = {"replay": replayed - start, "lower": time.perf_counter() - replayed}
        return compiled(module, self._target, opt_level, timings, [_layout(schedule, arg) for arg in self._args])


def _layout(schedule: Schedule, arg: Tensor) -> Layout | None:
    """The layout in which an argument is passed, if it isn't its own."""
    if arg not in given_inputs(schedule.tree) and relaid(schedule.tree, arg) is arg:
        return None
    layout = schedule.layout_of(arg)
    numbers = {var: axis for axis, var in enumerate(layout.initial_indices)}
    return tuple(encode(index, numbers) for index in layout.final_indices)
