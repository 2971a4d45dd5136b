"""Logs that others tuned, by the names of TVM's TopHub: read from a folder, never downloaded.

A log is called after what it was tuned for and its version, such as "llvm_v0.04.log".
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..target import Target
from .logs import load_from_file
from .task.dispatcher import ApplyHistoryBest

logger = logging.getLogger(__name__)
AUTOTVM_TOPHUB_ROOT_PATH = Path.home() / ".tvm" / "tophub"
AUTOTVM_TOPHUB_NONE_LOC = "NONE"


def _log_of(backend: str) -> Path | None:
    """The newest version of a log, if there is one; none at all where $TOPHUB_LOCATION is "NONE"."""
    if os.environ.get("TOPHUB_LOCATION") == AUTOTVM_TOPHUB_NONE_LOC:
        return None
    wanted = re.compile(rf"{re.escape(backend)}_v(\d+(?:\.\d+)*)\.log")
    there = AUTOTVM_TOPHUB_ROOT_PATH.iterdir() if AUTOTVM_TOPHUB_ROOT_PATH.is_dir() else ()
    found = {tuple(map(int, match[1].split("."))): path for path in there if (match := wanted.fullmatch(path.name))}
    return found[max(found)] if found else None


def check_backend(tophub_location: str, backend: str) -> bool:
    """Whether the folder holds a log for a backend; `tophub_location`, an address, is for programs that pass it."""
    return _log_of(backend) is not None


def context(target: Any, extra_files: Iterable[str | Path] | None = None) -> ApplyHistoryBest:
    """Let templates run with the best configurations that the folder's logs have, for use by `with`.

    Args:
        target: a target, its text, or a list of these. Of each one log is taken: the first that there is for its device, keys or kind.
        extra_files: further logs.

    Raises:
        RecordError: for a file that can't be read.
    """
    best = ApplyHistoryBest([])
    for one in target if isinstance(target, (list, tuple)) else [target]:
        chosen = Target.target_or_current(one)
        names = [str(chosen.attrs.get("device", "")), *chosen.keys, chosen.kind.name]
        log = next((path for path in map(_log_of, filter(None, names)) if path is not None), None)
        if log is None:
            logger.info("no log of %s in %s; templates run with what they fall back on", chosen, AUTOTVM_TOPHUB_ROOT_PATH)
        else:
            best.load(log)
    for extra in extra_files or ():
        best.load(extra)
    return best


def load_reference_log(backend: str, model: str, workload_name: str) -> list[tuple[Any, Any]]:
    """The records of one task among the folder's log of a backend, for `fallback_with_reference_log`; none if there is no log.

    Args:
        backend: such as "llvm".
        model: of the device they were measured on; "" for the one that the most records name.
        workload_name: of the task.
    """
    log = _log_of(backend)
    records = [] if log is None else [one for one in load_from_file(log) if one[0].task.workload[0] == workload_name]
    models = [str(one[0].target.model) for one in records]
    wanted = model if model in models or not models else max(models, key=models.count)
    return [one for one, name in zip(records, models, strict=True) if name == wanted]
