"""What happens with results: `callback(tuner, inputs, results)`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...errors import RecordError
from ...tune.records.log import append_lines
from ..database import Database
from ..logs import encode
from ..measure.measure import MeasureInput, MeasureResult
from ..utils import format_si_prefix
from .tuner import least_cost

Callback = Callable[[Any, Sequence[MeasureInput], Sequence[MeasureResult]], None]


def log_to_file(file_out: str | os.PathLike[str] | IO[str], protocol: str = "json") -> Callback:
    """Append each result to a log, a line each, flushed at once; several processes may write to one file.

    The best few are timed again at the end of a search; these lines say so, and count for what was timed before.

    Args:
        file_out: its path, or an open text file.
        protocol: "json".

    Raises:
        RecordError: for another protocol, and a path where no file can be; when called, for what a log can't hold, or can't be written.
    """
    if protocol != "json":
        encode(None, None, protocol)  # type: ignore[arg-type]  # refuses it, with the reason
    if isinstance(file_out, (str, os.PathLike)) and (Path(file_out).is_dir() or not Path(file_out).absolute().parent.is_dir()):
        why = "it is a folder" if Path(file_out).is_dir() else f"there is no folder {Path(file_out).parent}"
        raise RecordError(f"the log {file_out} can't be written: {why}")

    def log(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        lines = [encode(made, result, protocol) for made, result in zip(inputs, results, strict=True) if made.config._entity_map]
        if isinstance(file_out, (str, os.PathLike)):
            try:
                append_lines(Path(file_out), lines)
            except OSError as error:
                raise RecordError(f"the log {file_out} can't be written: {error.strerror or error}") from error
            return
        file_out.write("".join(f"{line}\n" for line in lines))
        file_out.flush()

    log.takes_repeats = True  # type: ignore[attr-defined]
    return log


def log_to_database(db: Database) -> Callback:
    """Keep each result in a database."""

    def log(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for made, result in zip(inputs, results, strict=True):
            db.save(made, result)

    log.takes_repeats = True  # type: ignore[attr-defined]
    return log


class Monitor:
    """Keeps operations a second, and the time, of each trial, to draw curves of: `monitor.trial_scores()`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all trials."""
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take note."""
        for made, result in zip(inputs, results, strict=True):
            self.timestamps.append(result.timestamp)
            self.scores.append((made.task.flop or 0.0) / least_cost(result))

    def trial_scores(self) -> Any:
        """Operations a second of each trial; 0 for a failure."""
        return np.array(self.scores)

    def trial_timestamps(self) -> Any:
        """When each was measured, in seconds since 1970."""
        return np.array(self.timestamps)


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Print how far the search is, and how fast the last and the best configuration are.

    Args:
        total: trials.
        prefix: stands before the line.
        si_prefix: of operations a second.
    """
    format_si_prefix(0, si_prefix)
    state = {"done": 0, "current": 0.0, "best": 0.0}
    start = time.monotonic()

    def show(tuner: Any, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for made, result in zip(inputs, results, strict=True):
            state["current"] = (made.task.flop or 0.0) / least_cost(result)
            state["best"] = max(state["best"], state["current"])
            state["done"] += 1
        current, best = (format_si_prefix(state[name], si_prefix) for name in ("current", "best"))
        line = f"\r{prefix} Current/Best: {current:7.2f}/{best:7.2f} {si_prefix}FLOPS | Progress: ({state['done']:.0f}/{total}) | "
        end = " Done.\n" if state["done"] >= total else ""
        sys.stdout.write(f"{line}{time.monotonic() - start:.2f} s{end}")
        sys.stdout.flush()

    return show
