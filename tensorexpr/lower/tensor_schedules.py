"""Schedules of tensors as one instruction of `tir.Schedule`: where the two ways of scheduling meet.

A function of blocks that computes tensors (`te.from_prim_func`) may be scheduled by a trace of te's steps, also by a sketch
of the auto-scheduler, whose open decisions are this instruction's decision. What it gives is the loops of that schedule
with a block around each store (`loop_blocks`), so a trace may go on after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError, RecordError, ScheduleError
from ..schedule.blocks.instruction import Applied, Primitive, State
from ..schedule.blocks.program import BlockProgram
from ..schedule.blocks.schedule import Schedule
from ..schedule.steps import Step
from ..schedule.te_schedule import Schedule as TensorSchedule
from ..schedule.trace import Trace
from ..te.from_prim_func import tensors_of
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..tir.function import PrimFunc
from .loop_blocks import loops_to_blocks
from .phase0.schedule_to_func import schedule_to_func

__all__ = ["Schedule", "ScheduleTensors", "decided", "decisions_of", "schedule_tensors"]


_LOOPS_ALONE = "from_legacy_te_schedule"  # the mark of functions that never have blocks


def schedule_tensors(func: PrimFunc, trace: Trace) -> PrimFunc:
    """A function of blocks that computes tensors, as the loops and blocks of a schedule of these tensors.

    Args:
        trace: the steps, without open decisions, for the operations that compute the function's written parameters, in order.

    Raises:
        ScheduleError: if the function computes no tensors, or a step is illegal.
    """
    try:
        args = tensors_of(func)
    except DeclarationError as error:
        raise ScheduleError(f"schedule_tensors needs a function that computes tensors; {error}") from None
    schedule = TensorSchedule(computed(args), trace)
    made = schedule_to_func(schedule, schedule.arguments(args), str(func.attrs.get("global_symbol", "main")))
    kept = {name: value for name, value in {**func.attrs, **made.attrs}.items() if name != _LOOPS_ALONE}
    return loops_to_blocks(made.with_attrs(kept))


def computed(args: Sequence[Tensor]) -> tuple[Any, ...]:
    """The operations of the computed tensors among arguments."""
    return tuple(tensor.op for tensor in args if not isinstance(tensor.op, PlaceholderOp))


def decided(trace: Trace, decisions: Sequence[Any]) -> Trace:
    """A trace with its open decisions made, in order.

    Raises:
        RecordError: if there are more or fewer decisions than open ones.
    """
    places = trace.open_decisions
    if len(places) != len(decisions):
        raise RecordError(f"the steps leave {len(places)} decisions open, and {len(decisions)} are given")
    steps: list[Step] = list(trace.steps)
    for place, value in zip(places, decisions, strict=True):
        step: Any = steps[place]
        steps[place] = replace(step, decision=tuple(value) if isinstance(value, (list, tuple)) else value)
    return Trace(tuple(steps))


def decisions_of(sketch: Trace, program: Trace) -> list[Any]:
    """What a program of a sketch decided at the decisions that the sketch leaves open, as JSON."""
    found: list[Any] = [program.steps[place] for place in sketch.open_decisions]
    return [list(step.decision) if isinstance(step.decision, tuple) else step.decision for step in found]


class ScheduleTensors(Primitive):
    """The instruction. `steps` is the JSON of a trace of te's steps, `sketch` a name for people, the decision what its samples decide."""

    kind, method = "ScheduleTensors", "schedule_tensors"
    attrs, is_sampling = ("func_name", "sketch", "steps"), True

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        """The function after the steps, their open samples taken from `decision` in order.

        Raises:
            ScheduleError: if the module hasn't the function, or the steps leave samples open and there is no decision.
        """
        func_name, _, steps = attrs
        if func_name not in state.programs:
            raise ScheduleError(f"the module has no function {func_name!r}; functions: {', '.join(state.programs)}")
        trace = Trace.from_json(steps)
        if trace.open_decisions and not isinstance(decision, list):
            raise ScheduleError("schedule_tensors: the steps leave decisions open; give them as a list, one for each sampling step")
        chosen = decided(trace, decision or [])
        func = schedule_tensors(state[func_name].func, chosen)
        return Applied(state.updated(func_name, BlockProgram.of(func)), (), decision or None)
