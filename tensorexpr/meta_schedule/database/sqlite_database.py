"""`SQLiteDatabase`: one file that many processes may read and add to, with the records of a workload found by an index."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path

from ...errors import RecordError, TensorExprError, TuningError
from ...tir.function import IRModule
from .database import Database
from .module_equality import module_equality as equality_of
from .records import TuningRecord, Workload

logger = logging.getLogger(__name__)
_TABLES = """
create table if not exists workload (id integer primary key, hash text not null, data text not null);
create index if not exists workload_hash on workload (hash);
create table if not exists record
  (id integer primary key, workload integer not null references workload (id), seconds real, data text not null);
create index if not exists record_best on record (workload, seconds);
"""


class SQLiteDatabase(Database, kind="sqlite"):
    """Workloads and records in an SQLite file.

    Args:
        path: the file; `database.sqlite` in `work_dir` if None.
        work_dir: the folder of the file, which is made.
        module_equality: as for every database.

    Raises:
        TuningError: without a place for the file.
        RecordError: if the file is no such database.
    """

    def __init__(self, path: str | None = None, *, work_dir: str | None = None, module_equality: str = "structural") -> None:
        if path is None and work_dir is None:
            raise TuningError("an SQLiteDatabase needs a path or a work_dir")
        self.path = Path(path) if path is not None else Path(work_dir or ".") / "database.sqlite"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._equality = equality_of(module_equality)
        self._known: dict[int, Workload] = {}
        self._unreadable: set[int] = set()
        try:
            self._file = sqlite3.connect(self.path, timeout=30.0)
            self._file.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise RecordError(f"{self.path} is no database: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _workload(self, number: int) -> Workload | None:
        """The workload of a row; None if it can't be read."""
        if number in self._unreadable:
            return None
        if number not in self._known:
            row = self._file.execute("select hash, data from workload where id = ?", (number,)).fetchone()
            try:
                self._known[number] = Workload.from_json([row[0], row[1]] if row else None)
            except TensorExprError as error:
                # once: each of its records asks for it again
                self._unreadable.add(number)
                logger.warning("%s: skipped workload %d: %s", self.path, number, error)
                return None
        return self._known[number]

    def _number(self, mod: IRModule) -> int | None:
        """The row of a program."""
        rows = self._file.execute("select id from workload where hash = ?", (str(self._equality.hash(mod)),)).fetchall()
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
            with self._file:
                # looked up again within the transaction: a second row, added by another process meanwhile, would hide its records
                self._file.execute("begin immediate")
                number = self._number(mod)
                if number is None:
                    added = self._file.execute("insert into workload (hash, data) values (?, ?)", (key, data))
                    number = int(added.lastrowid or 0)
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
        with self._file:
            self._file.execute(
                "insert into record (workload, seconds, data) values (?, ?, ?)", (number, seconds, json.dumps(record.as_json()))
            )

    def _records(self, query: str, *values: int) -> list[TuningRecord]:
        found = []
        for number, data in self._file.execute(query, values).fetchall():
            workload = self._workload(number)
            try:
                if workload is not None:
                    found.append(TuningRecord.from_json(json.loads(data), workload))
            except (TensorExprError, ValueError, RecursionError) as error:
                logger.warning("%s: skipped a record: %s", self.path, str(error)[:300])
        return found

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, the best first."""
        number = next((n for n, known in self._known.items() if known is workload), -1)
        query = "select workload, data from record where workload = ? and seconds is not null order by seconds, id limit ?"
        return self._records(query, number, max(0, top_k))

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records, in the order in which they came."""
        return self._records("select workload, data from record order by id")

    def __len__(self) -> int:
        return int(self._file.execute("select count(*) from record").fetchone()[0])
