"""Databases of results: of one process, by the key of an input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TuningError
from .logs import decode, encode, measure_str_key
from .measure.measure import MeasureInput, MeasureResult


class Database:
    """Base of databases that users write."""

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The last result of an input, all of them if `get_all`; None if there is none."""
        raise NotImplementedError

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result; in place of what is there, unless `extend`."""
        raise NotImplementedError


def filter_inputs(db: Database, measure_inputs: Sequence[MeasureInput], retry: bool = False) -> list[MeasureInput]:
    """The inputs that a database has no result for.

    Args:
        retry: those that failed too.
    """

    def is_wanted(made: MeasureInput) -> bool:
        known = db.load(made)
        return known is None or (retry and bool(known.error_no))

    return [made for made in measure_inputs if is_wanted(made)]


class DummyDatabase(Database):
    """A database in memory, of lines as logs hold them."""

    REDIS_PROD, REDIS_LOCA, REDIS_TEST, REDIS_NIGHT_TEMP = 15, 14, 13, 12
    MAGIC_SPLIT = "\n"

    def __init__(self) -> None:
        self.db: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        """Keep text under a key."""
        self.db[key] = value

    def get(self, key: str) -> str | None:
        """The text of a key."""
        return self.db.get(key)

    def flush(self) -> None:
        """Forget everything."""
        self.db.clear()

    def load(self, inp: MeasureInput, get_all: bool = False) -> Any:
        """The last result of an input, all of them if `get_all`; None if there is none."""
        text = self.get(measure_str_key(inp))
        if text is None:
            return None
        results = [decode(row)[1] for row in text.split(self.MAGIC_SPLIT)]
        return results if get_all else max(results, key=lambda result: result.timestamp)

    def save(self, inp: MeasureInput, res: MeasureResult, extend: bool = False) -> None:
        """Keep a result; in place of what is there, unless `extend`."""
        key, row = measure_str_key(inp), encode(inp, res)
        known = self.get(key) if extend else None
        self.set(key, row if known is None else f"{known}{self.MAGIC_SPLIT}{row}")

    def filter(self, func: Callable[[MeasureInput, list[MeasureResult]], bool]) -> list[tuple[MeasureInput, list[MeasureResult]]]:
        """The inputs with all their results that a function accepts."""
        found = []
        for text in self.db.values():
            rows = [decode(row) for row in text.split(self.MAGIC_SPLIT)]
            inp, results = rows[0][0], [result for _, result in rows]
            if func(inp, results):
                found.append((inp, results))
        return found


class RedisDatabase(DummyDatabase):
    """A database in a Redis server: refused; there is no client of one here.

    Raises:
        TuningError: always.
    """

    def __init__(self, db_index: int = DummyDatabase.REDIS_PROD) -> None:
        raise TuningError("results are kept in logs (callback.log_to_file) or in memory (DummyDatabase); there is no client of Redis here")
