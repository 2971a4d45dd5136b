"""A log that grows: its records so far, of which each line is read once."""

from __future__ import annotations

import time
from pathlib import Path

from ...auto_scheduler.loaded import LineReader, LoadedRecord
from ...dataclass import dataclass, field
from ...errors import RecordError

# The rate of a search is that of its last trials: it changes from one task to the next.
_RECENT = 64


@dataclass
class Following:
    """The records that a log has so far.

    Args:
        path: of the log, which may not be there yet.
    """

    path: Path
    records: list[LoadedRecord] = field(default_factory=list)
    skipped: int = 0
    _offset: int = 0
    _reader: LineReader = field(default_factory=LineReader)

    def update(self) -> None:
        """Read what was written since the last time; a log that became shorter is another one, and is read from its start.

        Raises:
            RecordError: if it can't be read.
        """
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    self.records, self.skipped, self._offset = [], 0, 0
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise RecordError(f"the log {self.path} can't be read: {error.strerror or error}") from error
        # the last line may be half written
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            if line.strip() and not line.startswith((b"#", b" ")):
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            self.records.append(self._reader(line))
        except RecordError:
            self.skipped += 1

    @property
    def trials(self) -> list[LoadedRecord]:
        """The records of first measurements."""
        return [record for record in self.records if not record.is_timed_again]

    @property
    def rate(self) -> float:
        """Trials a second among the last ones; 0 if there are too few to tell."""
        times = sorted(record.timestamp for record in self.trials[-_RECENT:])
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0.0

    def end(self, total: int) -> float | None:
        """When so many trials will be done at this rate, in seconds since 1970; None if nobody can tell."""
        left, rate = total - len(self.trials), self.rate
        return time.time() + left / rate if left > 0 and rate > 0 else None
