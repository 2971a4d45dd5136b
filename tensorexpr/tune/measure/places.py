"""Where programs of one task are compiled and where they run: the two protocols that `Measurer` measures with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ...dataclass import dataclass
from ...target import Target
from .arrays import StoredArray
from .builder import Build, Builder, Failure
from .compiled import CompiledCandidate
from .protocol import Frame
from .results import MeasureOptions, Program
from .running import RunningHere
from .workers import Workers

Ran = tuple[int, dict[str, Any] | Failure, float]
"""A candidate's position, what the measuring process says of it, and the seconds that it took."""


class Building(Protocol):
    """Compiles programs of one task."""

    @property
    def pids(self) -> list[int]:
        """The processes of this machine that work for it."""

    def start(self) -> None:
        """Get ready, without waiting."""

    def build(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build]]:
        """Compile programs; each comes with its position, in the order in which they are done."""

    def arriving(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build] | None]:
        """`build` that waits for nothing: None each time that none is done."""

    def hosts(self) -> Set[str]:
        """The names of the machines that compile."""

    def close(self) -> None:
        """End all that works for it. Safe to call again."""


class Running(Protocol):
    """Runs compiled candidates of one task."""

    @property
    def pids(self) -> list[int]:
        """The processes of this machine that work for it."""

    def start(self) -> None:
        """Begin to make inputs and the results to expect, without waiting."""

    def prepare(self) -> None:
        """Get ready to run, since candidates will come soon."""

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        """Check and time candidates, each once, in the order in which they are done; `best` says the least cost at any time."""

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]] | Failure:
        """Costs of candidates that ran before, measured in turn; see `runner.Runner.interleave`."""

    def rest(self) -> None:
        """Give back the memory of the arrays, if another task needs it."""

    def close(self) -> None:
        """End all that works for it. Safe to call again."""


@runtime_checkable
class RunningElsewhere(Running, Protocol):
    """A `Running` whose devices may go on while others compile."""

    def run_arriving(self, candidates: Iterator[CompiledCandidate | None], best: Callable[[], float]) -> Iterator[Ran]:
        """`run` of candidates as they come, each known by how many came before it; None where none has come yet."""

    def hosts(self) -> Set[str]:
        """The names of the machines whose cores the devices are."""


class Subject(Protocol):
    """What is measured: what measuring processes need to know of it, here and elsewhere."""

    @property
    def array_bytes(self) -> int:
        """Bytes of all arguments."""

    @property
    def target(self) -> Target:
        """What its programs are compiled for."""

    def spec(self) -> Frame:
        """What another machine needs to make the arrays."""

    def arrays_in(self, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> Arrays:
        """What makes the arrays here, by processes of `workers` if they serve other tasks too."""


class Arrays(Protocol):
    """Makes the arrays of a subject, in files of a folder."""

    @property
    def pids(self) -> list[int]:
        """The process, if it runs."""

    def start(self) -> None:
        """Begin, without waiting."""

    def arrays(self) -> list[StoredArray]:
        """The arguments in order; waits until they are there."""

    def close(self) -> None:
        """End the process."""


OpenBuilding = Callable[[Mapping[str, Any], MeasureOptions, Workers | None], Building]
"""Of a task as JSON, options, and the workers of this machine that go on with other tasks; None for some of its own."""
OpenRunning = Callable[[Subject, MeasureOptions, Path, Workers | None], Running]
"""Of a subject, options, a folder of this machine, and such workers."""


@dataclass(frozen=True)
class Places:
    """Where a task's programs are compiled and run; on this machine unless something else is said."""

    building: OpenBuilding = Builder
    running: OpenRunning = RunningHere
