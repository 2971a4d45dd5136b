"""`PostgresDatabase`: one database for many machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ...errors import RecordError, TuningError
from .sql_database import SQLDatabase

# Tables may stand beside others' in a database, so their names say whose they are.
_TABLES = """
create table if not exists tensorexpr_workload (id bigserial primary key, hash text not null, data text not null);
create index if not exists tensorexpr_workload_hash on tensorexpr_workload (hash);
create table if not exists tensorexpr_record
  (id bigserial primary key, workload bigint not null references tensorexpr_workload (id), seconds double precision, data text not null);
create index if not exists tensorexpr_record_best on tensorexpr_record (workload, seconds);
"""
# Any number does that all of our processes agree on.
_LOCK = 0x7E250


class PostgresDatabase(SQLDatabase, kind="postgres"):
    """Workloads and records in a PostgreSQL database, which any number of machines write to.

    Args:
        url: "postgresql://user@host:port/database", or another connection string of libpq.
        module_equality: as for every database.

    Raises:
        TuningError: without a url, or if psycopg isn't installed.
        RecordError: if the server can't be reached, or refuses.
    """

    workloads = "tensorexpr_workload"
    records = "tensorexpr_record"

    def __init__(self, url: str | None = None, *, module_equality: str = "structural") -> None:
        if url is None:
            raise TuningError("a PostgresDatabase needs a url: PostgresDatabase('postgresql://user@host/database')")
        super().__init__(_without_password(url), module_equality)
        try:
            import psycopg
        except ImportError as error:
            raise TuningError(f'PostgreSQL needs psycopg: pip install "tensorexpr[postgres]" ({error})') from error
        self._error = psycopg.Error
        try:
            self._connection: Any = psycopg.connect(url, autocommit=True, connect_timeout=10)
            # two processes that make the tables at once would be in each other's way
            with self._alone():
                self._connection.execute(_TABLES)
        except self._error as error:
            raise RecordError(f"the database at {self.place} can't be used: {str(error).strip()[:300]}") from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        made: list[tuple[Any, ...]] = self._ask(query, values).fetchall()
        return made

    def _add(self, table: str, columns: str, *values: Any) -> int:
        query = f"insert into {table} ({columns}) values ({', '.join('?' * len(values))}) returning id"
        return int(self._ask(query, values).fetchone()[0])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            yield

    def _ask(self, query: str, values: tuple[Any, ...]) -> Any:
        try:
            return self._connection.execute(query.replace("?", "%s"), values)
        except self._error as error:
            raise RecordError(f"the database at {self.place} can't be used any more: {str(error).strip()[:300]}") from None


def _without_password(url: str) -> str:
    """A connection string as it may stand in messages and logs."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}" if parts.scheme else "a PostgreSQL server"
