"""`SQLiteDatabase`: one file that the processes of a machine share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ...errors import RecordError, TuningError
from .sql_database import SQLDatabase

_TABLES = """
create table if not exists workload (id integer primary key, hash text not null, data text not null);
create index if not exists workload_hash on workload (hash);
create table if not exists record
  (id integer primary key, workload integer not null references workload (id), seconds real, data text not null);
create index if not exists record_best on record (workload, seconds);
"""


class SQLiteDatabase(SQLDatabase, kind="sqlite"):
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
        super().__init__(str(self.path), module_equality)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = sqlite3.connect(self.path, timeout=30.0)
            self._file.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise RecordError(f"{self.path} is no database: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._file.execute(query, values).fetchall()

    def _add(self, table: str, columns: str, *values: Any) -> int:
        query = f"insert into {table} ({columns}) values ({', '.join('?' * len(values))})"
        # in the caller's transaction, if there is one, which then says when it ends
        with nullcontext() if self._file.in_transaction else self._file:
            return int(self._file.execute(query, values).lastrowid or 0)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._file:
            self._file.execute("begin immediate")
            yield
