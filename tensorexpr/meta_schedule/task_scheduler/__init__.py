"""Which task to work on next.

task_scheduler    the protocol, and the rounds of all
round_robin       one after the other
gradient_based    where most is to be won
task_record       where a task stands, and the table of tasks
"""

from __future__ import annotations

from .gradient_based import GradientBased
from .round_robin import RoundRobin
from .task_record import TaskRecord
from .task_scheduler import PyTaskScheduler, TaskScheduler, create

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler", "create"]
