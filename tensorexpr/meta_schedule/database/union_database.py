"""`UnionDatabase`: the best of several databases. `OrderedUnionDatabase`: the first of them that knows a program."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import TuningError
from ...target import TargetLike
from ...tir.function import IRModule
from .database import Database
from .records import TuningRecord, Workload


class UnionDatabase(Database, kind="union"):
    """Answers questions with the fastest record that any of its databases has. Records are added to those, not to this.

    Args:
        databases: the databases.
    """

    def __init__(self, *databases: Database) -> None:
        self.databases = list(databases)

    def _answers(self, mod: IRModule, target: TargetLike, workload_name: str) -> Iterable[TuningRecord]:
        for database in self.databases:
            record = database.query_tuning_record(mod, target, workload_name)
            if record is not None:
                yield record

    def query_tuning_record(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> TuningRecord | None:
        """The fastest of the databases' best records."""
        return min(self._answers(mod, target, workload_name), key=lambda record: record.mean, default=None)

    def has_workload(self, mod: IRModule) -> bool:
        """Whether any database knows a program."""
        return any(database.has_workload(mod) for database in self.databases)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records of all databases."""
        return [record for database in self.databases for record in database.get_all_tuning_records()]

    def __len__(self) -> int:
        return sum(len(database) for database in self.databases)

    def commit_workload(self, mod: IRModule) -> Workload:
        """Refused: nobody could say which database is meant."""
        raise TuningError(f"a {type(self).__name__} only answers questions; add to one of its databases")

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Refused: nobody could say which database is meant."""
        raise TuningError(f"a {type(self).__name__} only answers questions; add to one of its databases")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload in all databases, those in unions among them too."""
        found: list[TuningRecord] = []
        for database in self.databases:
            if isinstance(database, UnionDatabase):
                found += database.get_top_k(workload, top_k)
            elif database.has_workload(workload.mod):
                # each database knows a program by a workload of its own; nothing is added, as it is known
                found += database.get_top_k(database.commit_workload(workload.mod), top_k)
        return sorted(found, key=lambda record: record.mean)[: max(0, top_k)]


class OrderedUnionDatabase(UnionDatabase, kind="ordered_union"):
    """Answers questions with the best record of the first of its databases that has one."""

    def query_tuning_record(self, mod: IRModule, target: TargetLike, workload_name: str = "main") -> TuningRecord | None:
        """The best record of the first database that has one."""
        return next(iter(self._answers(mod, target, workload_name)), None)
