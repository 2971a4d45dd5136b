"""`ScheduleFnDatabase`: schedules that a function makes when it is asked."""

from __future__ import annotations

from collections.abc import Callable

from ...schedule.blocks import Schedule, Trace
from ...target import Target, TargetLike
from ...tir.function import IRModule
from .memory_database import MemoryDatabase
from .records import TuningRecord


class ScheduleFnDatabase(MemoryDatabase, kind="schedule-fn"):
    """Asks a function for the schedule of a program.

    Args:
        schedule_fn: takes a Schedule of the program and transforms it; True if it knows the program.
        module_equality: as for every database.
    """

    def __init__(self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._schedule_fn = schedule_fn

    def query_tuning_record(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> TuningRecord | None:
        """The function's schedule as a record, without times; None if it doesn't know the program."""
        sch = Schedule(mod)
        sch.work_on(workload_name if workload_name in mod else next(iter(mod.functions)).name_hint)
        if not self._schedule_fn(sch):
            return None
        return TuningRecord(sch.trace or Trace(), self.commit_workload(mod), None, Target(target))
