"""`JSONDatabase`: two files of JSON lines, in the layout of TVM's databases.

    database_workload.json         ["<hash>", "<module in base 64>"]
    database_tuning_record.json    [<line of the workload, from 0>, [trace, seconds, target, arguments]]

Lines are appended, never rewritten: what can't be read (a torn line, a primitive or a target that isn't known here) is skipped
with its reason and stays in the file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import RecordError, TensorExprError, TuningError
from ...tune.records.log import append_lines
from .memory_database import MemoryDatabase
from .records import TuningRecord, Workload

logger = logging.getLogger(__name__)
WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
_REPORTED = 5
_MAX_LINE_BYTES = 256 << 20


class JSONDatabase(MemoryDatabase, kind="json"):
    """Workloads and records in files.

    Args:
        path_workload: the file of workloads; in `work_dir` if None.
        path_tuning_record: the file of records; in `work_dir` if None.
        work_dir: the folder of both, which is made.
        allow_missing: begin new files where there are none.
        module_equality: when two programs are the same workload: "structural", "ignore-ndarray" or "anchor-block".

    Raises:
        TuningError: without places for the files, or if one is missing that must be there.
        RecordError: if a file can't be read.
    """

    def __init__(
        self,
        path_workload: str | None = None,
        path_tuning_record: str | None = None,
        *,
        work_dir: str | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        if work_dir is None and (path_workload is None or path_tuning_record is None):
            raise TuningError("a JSONDatabase needs a work_dir, or both path_workload and path_tuning_record")
        folder = Path(work_dir or ".")
        self.path_workload = Path(path_workload) if path_workload is not None else folder / WORKLOADS
        self.path_tuning_record = Path(path_tuning_record) if path_tuning_record is not None else folder / RECORDS
        self._lines: list[Workload | None] = []
        self._skipped = 0
        for path in (self.path_workload, self.path_tuning_record):
            if not path.exists() and not allow_missing:
                raise TuningError(f"there is no {path}; pass allow_missing=True to begin it")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError as error:
                raise TuningError(f"the database {path} can't be made: {error.strerror or error}") from error
        for line in _lines(self.path_workload):
            self._load_workload(line)
        for line in _lines(self.path_tuning_record):
            self._load_record(line)
        if self._skipped > _REPORTED:
            logger.warning("%s and %s: %d lines were skipped in all", self.path_workload, self.path_tuning_record, self._skipped)

    def _load_workload(self, line: bytes) -> None:
        try:
            found = Workload.from_json(_parsed(line))
        except RecordError as error:
            self._skip(self.path_workload, f"workload {len(self._lines)}", error)
            # its number stays taken: records name workloads by their line
            self._lines.append(None)
            return
        found.shash = self._equality.hash(found.mod)
        known = self._find(found.mod, found.shash)
        if known is None:
            super()._add_workload(found)
        self._lines.append(known or found)

    def _load_record(self, line: bytes) -> None:
        try:
            data = _parsed(line)
            if not isinstance(data, list) or len(data) != 2 or type(data[0]) is not int or not 0 <= data[0] < len(self._lines):
                raise RecordError(f"a line is [number of one of {len(self._lines)} workloads, record]")
            workload = self._lines[data[0]]
            if workload is None:
                raise RecordError(f"its workload, {data[0]}, was skipped")
            super().commit_tuning_record(TuningRecord.from_json(data[1], workload))
        except TensorExprError as error:
            self._skip(self.path_tuning_record, "record", error)

    def _skip(self, path: Path, what: str, error: TensorExprError) -> None:
        self._skipped += 1
        if self._skipped <= _REPORTED:
            logger.warning("%s: skipped a %s: %s", path, what, str(error)[:300])

    def _add_workload(self, workload: Workload) -> None:
        # the file first: a workload that can't be written gets no number
        append_lines(self.path_workload, [_line(workload.as_json())])
        super()._add_workload(workload)
        self._lines.append(workload)

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record, in the file too.

        Raises:
            TuningError: if its workload is of another database.
        """
        # by identity: an equal program of another database has another number, or none
        number = next((n for n, workload in enumerate(self._lines) if workload is record.workload), None)
        if number is None:
            raise TuningError("the record's workload is not of this database; make it with commit_workload")
        append_lines(self.path_tuning_record, [_line([number, record.as_json()])])
        super().commit_tuning_record(record)


def _line(data: Any) -> str:
    return json.dumps(data, allow_nan=False)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that aren't blank; of one over the limit only the start."""
    try:
        with path.open("rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                rest = line
                # the rest of a line over the limit, so that the next one is read from its start
                while not rest.endswith(b"\n") and (rest := file.readline(_MAX_LINE_BYTES)):
                    pass
                if line.strip():
                    yield line
    except OSError as error:
        raise RecordError(f"the database {path} can't be read: {error.strerror or error}") from error


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        torn = "" if line.endswith(b"\n") else " (torn at the end of the file)"
        raise RecordError(f"it is no JSON{torn}: {str(error)[:80]}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
