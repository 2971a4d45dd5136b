"""The protocol of databases: workloads, records, and the best schedule for a program."""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar

from ...errors import TensorExprError, TuningError
from ...schedule.blocks import Schedule
from ...target import Target, TargetLike
from ...target.machine import without_caches
from ...tir.function import IRModule, PrimFunc
from ..utils import Extensible, chosen
from .records import TuningRecord, Workload

_active: ContextVar[tuple[Database, ...]] = ContextVar("active databases", default=())


class Database(Extensible, what="database", default="json"):
    """Workloads and tuning records.

    Within `with database:` it is what `Database.current()` gives.
    """

    DatabaseType: ClassVar[Any] = "Database | str"

    def has_workload(self, mod: IRModule) -> bool:
        """Whether a program is known."""
        raise NotImplementedError

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a program, which is added if it isn't known."""
        raise NotImplementedError

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        raise NotImplementedError

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, the best first; those that failed are never among them."""
        raise NotImplementedError

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of records."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """True: an empty database is one too."""
        return True

    def query_tuning_record(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> TuningRecord | None:
        """The best record of a program for a target: of this very target, else of any of its kind.

        Args:
            workload_name: for messages.
        """
        if not self.has_workload(mod):
            return None
        wanted = Target(target)
        exact = without_caches(str(wanted.resolved()))
        fitting = [r for r in self.get_top_k(self.commit_workload(mod), len(self)) if r.target is None or r.target.kind == wanted.kind]
        same = (record for record in fitting if record.target is not None and without_caches(str(record.target.resolved())) == exact)
        return next(same, fitting[0] if fitting else None)

    def query_schedule(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> Schedule | None:
        """The schedule of the best record of a program.

        Raises:
            TuningError: if its trace is illegal for the program.
        """
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        sch = Schedule(mod)
        try:
            record.trace.apply_to_schedule(sch, remove_postproc=False)
        except TensorExprError as error:
            raise TuningError(f"the best record of {workload_name} can't be applied to it: {error}") from error
        return sch

    def query_ir_module(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> IRModule | None:
        """The scheduled program of the best record."""
        sch = self.query_schedule(mod, target, workload_name)
        return None if sch is None else sch.mod

    def query(self, mod: IRModule | PrimFunc, target: TargetLike, *, workload_name: str = "main", kind: str = "schedule") -> Any:
        """What is known best about a program; None if nothing is.

        Args:
            kind: "schedule", "record" or "ir_module".
        """
        ways = {"schedule": self.query_schedule, "record": self.query_tuning_record, "ir_module": self.query_ir_module}
        return chosen(kind, ways, "kind of answer of a database")(IRModule.from_expr(mod), target, workload_name)

    def dump_pruned(self, destination: Database) -> None:
        """Add the best record of every workload to another database."""
        best: dict[int, TuningRecord] = {}
        for record in self.get_all_tuning_records():
            # by identity: the records of one workload share it
            known = best.get(id(record.workload))
            if record.is_valid and (known is None or record.mean < known.mean):
                best[id(record.workload)] = record
        for record in best.values():
            workload = destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(TuningRecord(record.trace, workload, record.run_secs, record.target, record.args_info))

    def __enter__(self) -> Database:
        _active.set((*_active.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _active.set(_active.get()[:-1])

    @staticmethod
    def current() -> Database | None:
        """The database of the innermost `with database:` around the caller."""
        stack = _active.get()
        return stack[-1] if stack else None


class PyDatabase(Database):
    """Base of databases that users write."""


create = Database.create
