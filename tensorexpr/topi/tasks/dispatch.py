"""Operators of `topi.x86` as tasks: they carry their workload, and where a log knows it they are scheduled as the log says."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ...autotvm.env import GLOBAL_SCOPE
from ...autotvm.errors import InstantiationError
from ...autotvm.task.dispatcher import current_query
from ...autotvm.task.task import TASK_TABLE, TaskTemplate
from ...autotvm.task.topi_integration import get_workload
from ...errors import ScheduleError
from ...schedule.te_schedule import Schedule
from ...te.tensor import Tensor
from ..schedules import default_schedule

logger = logging.getLogger(__name__)


def declare(name: str, args: Sequence[Any]) -> Tensor:
    """An operator with the configuration that the contexts in force have for it."""
    made = _task(name).fcompute
    assert made is not None
    # the default schedules do without configurations, so that a missing one is nothing to warn of
    silent, GLOBAL_SCOPE.silent = GLOBAL_SCOPE.silent, True
    try:
        out: Tensor = made(*args)
    finally:
        GLOBAL_SCOPE.silent = silent
    return out


def schedule(name: str, outs: Sequence[Tensor]) -> Schedule:
    """The schedule that a log has for an operator, else the default one.

    Args:
        name: of the operator, such as "dense_pack".
        outs: results of it, or what is computed of them.
    """
    workload = get_workload(outs, f"{name}.x86")
    if workload is None:
        return default_schedule(outs)
    silent, GLOBAL_SCOPE.silent = GLOBAL_SCOPE.silent, True
    try:
        known = not current_query(workload).is_fallback
        made = _task(name).fschedule
        if known and made is not None:
            found: Schedule = made(outs)
            return found
    except (ScheduleError, InstantiationError) as error:
        # such as a softmax behind a dense layer: a template finishes tiles by what is elementwise only; or a log of other knobs
        logger.warning("the default schedule is used for %s: %s", name, error)
    finally:
        GLOBAL_SCOPE.silent = silent
    return default_schedule(outs)


def _task(name: str) -> TaskTemplate:
    found = TASK_TABLE[f"{name}.x86"]
    assert isinstance(found, TaskTemplate)
    return found
