"""What a user gives to a tuner so that it compiles or measures on a fleet. The three front doors read them as they do their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dataclass import dataclass, field
from ..tune.measure.places import Building, Running, Subject
from ..tune.measure.results import MeasureOptions
from ..tune.measure.workers import Workers
from .building import FleetBuilding
from .running import FleetRunning

if TYPE_CHECKING:
    from .fleet import Fleet


@dataclass(frozen=True)
class FleetBuilder:
    """Programs are compiled by any workers of a fleet; made by `Fleet.builder`.

    Args:
        fleet: whose workers.
        timeout: seconds for one program; None for what the front door's own builder takes.
        build_func: as of auto_scheduler's LocalBuilder; a function of a module that the workers can import.
    """

    fleet: Fleet = field(repr=False)
    timeout: float | None = None
    build_func: Any = "default"

    def open(self, task: Mapping[str, Any], options: MeasureOptions, workers: Workers | None = None) -> Building:
        """The place to compile programs of a task; workers of this machine have no part in it."""
        return FleetBuilding(self.fleet, task, options)

    def given(self) -> dict[str, Any]:
        """What the user said of it, by the names of the front doors."""
        return {} if self.timeout is None else {"timeout": self.timeout}


@dataclass(frozen=True)
class FleetRunner:
    """Programs are measured by the devices of a fleet with one key; made by `Fleet.runner`.

    Args:
        fleet: whose devices.
        key: theirs; None where all devices have one key.
        timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush: as of the front door's LocalRunner; None for
            what that takes.
        priority: jobs of higher ones are begun sooner, if several clients wait.
    """

    fleet: Fleet = field(repr=False)
    key: str | None = None
    timeout: float | None = None
    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: int | None = None
    cooldown_interval: float | None = None
    enable_cpu_cache_flush: bool | None = None
    priority: int = 0

    def open(self, subject: Subject, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> Running:
        """The place to run programs of a subject; workers of this machine have no part in it.

        Raises:
            TuningError: if no device has the key, or the subject's target was left to this machine and the devices' is another one.
        """
        key = self.fleet.key(self.key)
        self.fleet.check_target(key, subject.target)
        return FleetRunning(self.fleet, key, subject, options, self.priority)

    def given(self) -> dict[str, Any]:
        """What the user said of it, by the names of the front doors."""
        names = ("timeout", "number", "repeat", "min_repeat_ms", "cooldown_interval", "enable_cpu_cache_flush")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
