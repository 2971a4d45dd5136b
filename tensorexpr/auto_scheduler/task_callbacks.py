"""What a task scheduler does before and after each round: print its table, log the estimated latency, or what you like."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from .console import NARROW, WIDE

if TYPE_CHECKING:
    from .task_scheduler import TaskScheduler

_HEADER = "|  ID  |                       Task Description                        | Latency (ms) | Speed (GFLOPS) | Trials |"
_RULE = "-" * len(_HEADER)
_UNTUNED = 1e9


class TaskSchedulerCallback:
    """Base of callbacks; both methods do nothing."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called before a task is tuned for a round."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Called after it."""


class PrintTableInfo(TaskSchedulerCallback):
    """A table of all tasks before each round."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        if task_scheduler.tune_option.verbose >= 1:
            print(self.text(task_scheduler, task_id), flush=True)

    def text(self, task_scheduler: TaskScheduler, task_id: int) -> str:
        """The table, with the task that comes next."""
        lines = [WIDE, f"{NARROW}  [ Task Scheduler ]", WIDE, _HEADER, _RULE]
        for number, task in enumerate(task_scheduler.tasks):
            cost, flops = float(task_scheduler.best_costs[number]), task.compute_dag.flop_ct
            known = cost < _UNTUNED
            latency = f"{cost * 1e3:.3f}" if known else "-"
            speed = f"{flops / cost / 1e9:.2f}" if known else "-"
            fields = (number, (task.desc or task.workload_key)[:61], latency, speed, task_scheduler.task_trials[number])
            lines.append("| %4s | %61s | %12s | % 14s | %6s |" % fields)  # noqa: UP031 (the published layout)
        lines.append(_RULE)
        used = time.time() - task_scheduler.tic
        lines.append(
            f"Estimated total latency: {total_latency(task_scheduler)} ms\tTrials: {task_scheduler.ct}\tUsed time : {used:.0f} s\t"
            f"Next ID: {task_id}\t"
        )
        return "\n".join(lines)


class LogEstimatedLatency(TaskSchedulerCallback):
    """Append the estimated latency of all tasks to a file after each round.

    Args:
        log_file: the file; a former one is replaced.
    """

    def __init__(self, log_file: str | Path) -> None:
        self.log_file = Path(log_file)
        self.log_file.unlink(missing_ok=True)

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        used = time.time() - task_scheduler.tic
        line = f"ElapsedTime(s)\t{used:.0f}\tEstimatedLatency(ms)\t{total_latency(task_scheduler)}\tTrials\t{task_scheduler.ct}\n"
        with self.log_file.open("a") as file:
            file.write(line)


def total_latency(task_scheduler: TaskScheduler) -> str:
    """The objective in milliseconds; "-" while a task has no program that ran."""
    if all(cost < _UNTUNED for cost in task_scheduler.best_costs):
        return f"{task_scheduler.cur_score * 1e3:.3f}"
    return "-"
