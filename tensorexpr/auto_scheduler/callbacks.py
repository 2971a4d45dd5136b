"""What runs after every batch of measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .records import save_records

if TYPE_CHECKING:
    from ..tune.measure import MeasureResult
    from .measure_input import MeasureInput
    from .policy import SketchPolicy


class MeasureCallback(ABC):
    """Base of callbacks: give `callback(policy, inputs, results)`."""

    @abstractmethod
    def callback(self, policy: SketchPolicy, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Called with one batch of programs and what measuring them gave."""


PythonBasedMeasureCallback = MeasureCallback


class RecordToFile(MeasureCallback):
    """Append every result to a log file, one JSON line each, flushed at once.

    Args:
        filename: the log; made if it isn't there. Several processes may write to one.
    """

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)
        Path(self.filename).parent.mkdir(parents=True, exist_ok=True)

    def callback(self, policy: SketchPolicy, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        save_records(self.filename, inputs, results)
