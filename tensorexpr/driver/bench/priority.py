"""Real-time priority: with it, other processes don't take the cores from a measurement.

Niceness doesn't help where the kernel groups processes by session (`sched_autogroup_enabled`): it counts within a group only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import TensorExprError

PRIORITIES = ("auto", "realtime", "normal")
# Above ordinary processes, below the kernel's own real-time threads.
_LEVEL = 5
_THREADS = Path("/proc/self/task")


@contextmanager
def raised(wanted: str) -> Iterator[str]:
    """Inside, all threads of this process, and those that they start, run first in, first out before ordinary ones, if that is allowed.

    Args:
        wanted: "realtime", "normal", or "auto" for real-time priority where it is permitted.

    Returns:
        what was taken, in words.

    Raises:
        TensorExprError: if "realtime" is asked for and not permitted.
    """
    if wanted == "normal" or not hasattr(os, "SCHED_FIFO"):
        if wanted == "realtime":
            raise TensorExprError("--priority realtime: this system has no SCHED_FIFO")
        yield "normal priority"
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    if before[0] in (os.SCHED_FIFO, os.SCHED_RR):
        yield f"real-time priority {before[1].sched_priority}, as started"
        return
    try:
        _set_all(os.SCHED_FIFO, os.sched_param(_LEVEL))
    except PermissionError as error:
        if wanted == "realtime":
            raise TensorExprError("--priority realtime: not permitted; `ulimit -r` or CAP_SYS_NICE allows it") from error
        yield "normal priority (real-time priority isn't permitted)"
        return
    try:
        yield f"real-time priority {_LEVEL}"
    finally:
        _set_all(*before)


def _set_all(policy: int, parameter: os.sched_param) -> None:
    """Libraries that are loaded have threads already: those of NumPy's OpenBLAS wait since it was imported."""
    numbers = [int(path.name) for path in _THREADS.iterdir()] if _THREADS.is_dir() else [0]
    for number in numbers:
        try:
            os.sched_setscheduler(number, policy, parameter)
        except ProcessLookupError:  # ended since
            continue
