"""`build` with a schedule that it finds itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError
from ..runtime.build import build as build_scheduled
from ..runtime.module import Module
from ..target import Target, TargetLike
from ..te.tensor import Tensor

_SCHEDULES = ("auto",)


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    runtime: Any = None,
    name: str | None = "default_function",
    binds: Mapping[Any, Any] | None = None,
    schedule: str | None = None,
) -> Module:
    """Compile to machine code.

    Args:
        inputs: a te.Schedule, a PrimFunc, an IRModule, or a mapping from one target to an IRModule; with `schedule="auto"`
            the tensors of a computation, or a ComputeDAG.
        args: for a schedule: tensors, variables and buffers, in the order of the function's parameters. With
            `schedule="auto"` the tensors of `inputs` are what they are by default.
        target: what to compile for; the current target, or this machine.
        target_host: the same as the target's host.
        runtime: kept for programs that pass one; there is one runtime.
        name: the name of the function that a schedule or a PrimFunc without `global_symbol` becomes.
        binds: for a schedule: buffers to use for tensors.
        schedule: "auto" takes the best that `auto_scheduler.ApplyHistoryBest` knows, within such a context; else the analytic model of
            the auto-scheduler chooses one, in less than a second; what isn't searched, open sizes and scans, has the one by rules.

    Raises:
        ArgumentError: for inputs of another kind.
        LoweringError, ScheduleError, CodegenError, TargetError: from the steps.
    """
    if schedule is None:
        if isinstance(inputs, (list, tuple)):
            raise ArgumentError('build: tensors have no schedule; give te.create_schedule(...), or say schedule="auto"')
        return build_scheduled(inputs, args, target, target_host, runtime, name, binds)
    # The search is not loaded for a program that comes with its schedule.
    from ..auto_scheduler import ComputeDAG, best_schedule, default_schedule

    if schedule not in _SCHEDULES:
        raise ArgumentError(f'build: schedule is {schedule!r}; it is "auto", or left out where the inputs are scheduled')
    tensors = inputs.tensors if isinstance(inputs, ComputeDAG) else inputs
    if not isinstance(tensors, (list, tuple)) or not tensors or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise ArgumentError(f'build(schedule="auto") takes the tensors of a computation or a ComputeDAG, not {type(inputs).__name__}')
    chosen = Target.target_or_current(target)
    chosen = Target(chosen, target_host) if target_host is not None else chosen
    recorded = best_schedule(inputs, chosen)
    made = default_schedule(inputs, chosen) if recorded is None else recorded[0]
    return build_scheduled(made, list(tensors) if args is None else args, target, target_host, runtime, name, binds)
