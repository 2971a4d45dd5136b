"""What runs after every batch of measurements."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TuningError
from ..log import once
from .records import save_records

if TYPE_CHECKING:
    from ..tune.measure import MeasureResult
    from .measure_input import MeasureInput
    from .policy import SketchPolicy


logger = logging.getLogger(__name__)


class MeasureCallback(ABC):
    """Base of callbacks: give `callback(policy, inputs, results)`."""

    @abstractmethod
    def callback(self, policy: SketchPolicy, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Called with one batch of programs and what measuring them gave."""


PythonBasedMeasureCallback = MeasureCallback


class RecordToFile(MeasureCallback):
    """Append every result to a log file, one JSON line each, flushed at once.

    What can't be written, on a full disk say, stays in memory and is tried again with every later result, and in the end.

    Args:
        filename: the log; made if it isn't there. Several processes may write to one.

    Raises:
        TuningError: for what is no path, or if its folder can't be made.
    """

    def __init__(self, filename: str | Path) -> None:
        if not isinstance(filename, (str, Path)):
            raise TuningError(f'RecordToFile takes the path of a log, such as "log.json", not {filename!r}')
        self.filename = str(filename)
        self._waiting: list[tuple[MeasureInput, MeasureResult]] = []
        try:
            Path(self.filename).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TuningError(f"the folder of the log {self.filename} can't be made: {error.strerror or error}") from error

    def prepare(self) -> None:
        """Check that the log can be written, before anything is measured for it.

        Raises:
            TuningError: if it can't: a folder, or a file or folder without the right to write.
        """
        try:
            # opening to append changes nothing of a log that is there
            with open(self.filename, "ab"):
                pass
        except OSError as error:
            raise TuningError(f"the log {self.filename} can't be written: {error.strerror or error}; nothing was measured") from error

    def callback(self, policy: SketchPolicy, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Write a round, and what waits of earlier ones; where there is no room, all of it waits and the log says so once."""
        # earlier results first: the order of a log is that of the trials
        self._waiting += zip(inputs, results, strict=True)
        try:
            self._write()
        except OSError as error:
            message = f"the log {self.filename} can't be written ({error.strerror or error}); what was measured is kept in memory"
            once(logger, message)

    def finish(self) -> None:
        """Write what waits for room. Call it again when there is some.

        Raises:
            TuningError: if that isn't possible.
        """
        try:
            self._write()
        except OSError as error:
            raise TuningError(
                f"the log {self.filename} can't be written: {error.strerror or error}; {len(self._waiting)} results are kept in this "
                "RecordToFile, whose finish() writes them when there is room"
            ) from error

    def _write(self) -> None:
        if self._waiting:
            save_records(self.filename, [made for made, _ in self._waiting], [result for _, result in self._waiting])
            self._waiting = []


def prepare(callback: object) -> None:
    """Let a callback check that it can do its work, if it has `prepare`.

    Raises:
        TuningError: if it can't.
    """
    if isinstance(callback, RecordToFile):
        callback.prepare()


def finish(callback: object) -> None:
    """Let a callback end its work, if it has `finish`.

    Raises:
        TuningError: if it can't.
    """
    if isinstance(callback, RecordToFile):
        callback.finish()
