"""`SQLDatabase`: workloads and records in tables that many processes read and add to, with the records of a workload found by an index."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from ...errors import TensorExprError, TuningError
from ...tir.function import IRModule
from .database import Database
from .module_equality import module_equality as equality_of
from .records import TuningRecord, Workload

logger = logging.getLogger(__name__)


class SQLDatabase(Database):
    """What databases of SQL share; the others say how they are asked.

    Args:
        place: where it is, for messages.
        module_equality: as for every database.
    """

    workloads: ClassVar[str] = "workload"
    records: ClassVar[str] = "record"

    def __init__(self, place: str, module_equality: str) -> None:
        self.place = place
        self._equality = equality_of(module_equality)
        self._known: dict[int, Workload] = {}
        self._unreadable: set[int] = set()

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, whose places for values are question marks."""

    @abstractmethod
    def _add(self, table: str, columns: str, *values: Any) -> int:
        """Add a row; its id."""

    @abstractmethod
    def _alone(self) -> AbstractContextManager[Any]:
        """A transaction in which nobody else adds workloads."""

    def _workload(self, number: int) -> Workload | None:
        """The workload of a row; None if it can't be read."""
        if number in self._unreadable:
            return None
        if number not in self._known:
            row = next(iter(self._rows(f"select hash, data from {self.workloads} where id = ?", number)), None)
            try:
                self._known[number] = Workload.from_json([row[0], row[1]] if row else None)
            except TensorExprError as error:
                # once: each of its records asks for it again
                self._unreadable.add(number)
                logger.warning("%s: skipped workload %d: %s", self.place, number, error)
                return None
        return self._known[number]

    def _number(self, mod: IRModule) -> int | None:
        """The row of a program."""
        rows = self._rows(f"select id from {self.workloads} where hash = ? order by id", str(self._equality.hash(mod)))
        for (number,) in rows:
            known = self._workload(number)
            # equal hashes don't prove equal programs
            if known is not None and self._equality.equal(known.mod, mod):
                return int(number)
        return None

    def has_workload(self, mod: IRModule) -> bool:
        """Whether a program is known."""
        return self._number(mod) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a program, which is added if it isn't known."""
        number = self._number(mod)
        if number is None:
            made = Workload(mod, self._equality.hash(mod))
            key, data = made.as_json()
            with self._alone():
                # looked up again within the transaction: a second row, added by another process meanwhile, would hide its records
                number = self._number(mod)
                if number is None:
                    number = self._add(self.workloads, "hash, data", key, data)
                    self._known[number] = made
        return self._known[number]

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record.

        Raises:
            TuningError: if its workload is of another database.
        """
        number = next((n for n, workload in self._known.items() if workload is record.workload), None)
        if number is None:
            raise TuningError("the record's workload is not of this database; make it with commit_workload")
        # null for a failure: the query for the best leaves it out
        seconds = record.mean if record.is_valid else None
        self._add(self.records, "workload, seconds, data", number, seconds, json.dumps(record.as_json()))

    def _records(self, query: str, *values: int) -> list[TuningRecord]:
        found = []
        for number, data in self._rows(query, *values):
            workload = self._workload(number)
            try:
                if workload is not None:
                    found.append(TuningRecord.from_json(json.loads(data), workload))
            except (TensorExprError, ValueError, RecursionError) as error:
                logger.warning("%s: skipped a record: %s", self.place, str(error)[:300])
        return found

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, the best first."""
        number = next((n for n, known in self._known.items() if known is workload), -1)
        query = f"select workload, data from {self.records} where workload = ? and seconds is not null order by seconds, id limit ?"
        return self._records(query, number, max(0, top_k))

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""
        return self._records(f"select workload, data from {self.records} order by id")

    def __len__(self) -> int:
        return int(self._rows(f"select count(*) from {self.records}")[0][0])
