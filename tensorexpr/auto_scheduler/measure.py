"""How a task's programs are measured: what callbacks see, and the options of workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..schedule.trace import Trace
from ..tune.measure import FAILED_COST, MeasureErrorNo, MeasureOptions, MeasureResult, MeasureTask, TimingPolicy
from .options import TuningOptions
from .task_input import inputs_of_task, register_task_input_check_func

if TYPE_CHECKING:
    from .loaded import RecordedTask
    from .search_task import SearchTask

__all__ = [
    "FAILED_COST",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "measure_options",
    "measure_task",
    "register_task_input_check_func",
]


@dataclass(frozen=True, eq=False)
class MeasureInput:
    """A program of a task: its trace with all decisions made. Of a record, the task is what the record knows of it."""

    task: SearchTask | RecordedTask
    trace: Trace

    @property
    def state(self) -> Trace:
        """The program, by the name that it has in TVM."""
        return self.trace


def measure_task(task: SearchTask, seed: int) -> MeasureTask:
    """The task in the form that workers get."""
    tensors = tuple(task.compute_dag.tensors)
    inputs = inputs_of_task(task.workload_key, tensors, task.task_input_names)
    return MeasureTask(tensors, task.target, inputs, seed)


def measure_options(options: TuningOptions) -> MeasureOptions:
    """The options of workers that a user's tuning options ask for."""
    builder, runner = options.builder, options.runner
    usual = TimingPolicy()
    timing = replace(
        usual,
        number=usual.number if runner.number is None else runner.number,
        repeat=usual.repeat if runner.repeat is None else runner.repeat,
        min_repeat_ms=usual.min_repeat_ms if runner.min_repeat_ms is None else runner.min_repeat_ms,
        flush_caches=runner.enable_cpu_cache_flush,
        cooldown_s=runner.cooldown_interval,
    )
    if timing.flush_caches:  # only the first call after a flush is a cold one
        timing = replace(timing, number=1, min_repeat_ms=0.0)
    made = MeasureOptions(timing=timing, build_timeout_s=builder.timeout, run_timeout_s=runner.timeout, compiler=builder.plug)
    return made if builder.n_parallel is None else replace(made, n_parallel=builder.n_parallel)
