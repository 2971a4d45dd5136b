"""Programs compiled by the workers of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from ..tune.measure.builder import Build
from ..tune.measure.results import MeasureOptions, Program
from . import calls
from .dispatch import Dispatcher, Job
from .messages import build_job, build_of, build_subject
from .resources import BUILD

if TYPE_CHECKING:
    from .fleet import Fleet

# Before its first program a worker starts a process and reads the task.
_START_SECONDS = 60.0


class FleetBuilding:
    """A `tune.measure.places.Building` on any workers of a fleet.

    Args:
        fleet: whose workers.
        task: as JSON.
        options: how programs are compiled.
    """

    def __init__(self, fleet: Fleet, task: Mapping[str, Any], options: MeasureOptions) -> None:
        self._fleet = fleet
        self._jobs = Dispatcher(fleet, calls.build, build_subject(task, options), BUILD)
        self._limit_s = options.build_timeout_s + _START_SECONDS

    @property
    def pids(self) -> list[int]:
        """None: all processes are the workers'."""
        return []

    def start(self) -> None:
        """Let the workers get ready, without waiting."""
        self._jobs.start()

    def build(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build]]:
        """Compile programs; each comes with its position, in the order in which they are done.

        Raises:
            TuningError: if there is no worker for too long.
        """
        return ((job.number, build_of(answer)) for job, answer in self._jobs.answers(self._made(programs, opt_level)))

    def arriving(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build] | None]:
        """`build` that waits for nothing: None each time that none is done."""
        found = self._jobs.arriving(self._made(programs, opt_level), wait_s=0.0)
        return (None if made is None else (made[0].number, build_of(made[1])) for made in found)

    def hosts(self) -> Set[str]:
        """The names of the machines that compile now."""
        return {worker.host for worker in self._fleet.workers()}

    def _made(self, programs: Sequence[Program], opt_level: int) -> Iterator[Job]:
        return (Job(position, build_job(program, opt_level), self._limit_s) for position, program in enumerate(programs))

    def close(self) -> None:
        """Let the workers end their processes."""
        self._jobs.close()
