"""What a worker measures on. A device is opened for a subject; what comes is a `tune.measure.places.Running`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import TuningError
from ..tune.measure.places import Running, Subject
from ..tune.measure.protocol import Frame
from ..tune.measure.results import MeasureOptions
from ..tune.measure.running import RunningHere

CPU = "cpu"
# What reads the subjects of each kind. Names: the front doors stand above this package.
_SUBJECTS = {"te": "tensorexpr.tune.measure.task:task_of", "tir": "tensorexpr.meta_schedule.runner.reference:subject_of"}

OpenDevice = Callable[[Frame, MeasureOptions, Path], Running]
"""Of a subject, options, and a private folder."""


def open_cpu(subject: Frame, options: MeasureOptions, folder: Path) -> Running:
    """This machine's CPU: candidates run in a process of their own, as they do without a fleet.

    Raises:
        TargetError: if it can't run code of the subject's target.
        TuningError: for a subject of a kind that is unknown here.
    """
    name = _SUBJECTS.get(str(subject.header.get("kind")))
    if name is None:
        raise TuningError(f"this worker measures subjects of the kinds {', '.join(_SUBJECTS)}, not {subject.header.get('kind')!r:.60}")
    read: Callable[[Frame], Subject] = _named(name)
    return RunningHere(read(subject), options, folder)


def device_named(name: str) -> OpenDevice:
    """What opens a device: "cpu", or `module:function` of a module that the worker can import.

    Raises:
        TuningError: if there is none.
    """
    found: OpenDevice = open_cpu if name == CPU else _named(name)
    return found


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise TuningError(f'no device {name!r}: it is "cpu" or module:function of a module that the worker can import: {error}') from error
    return found
