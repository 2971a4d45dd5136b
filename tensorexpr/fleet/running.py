"""Compiled candidates run by the devices of a fleet that have one key, and so are equal."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

from ..dataclass import dataclass, field
from ..tune.measure.builder import Failure
from ..tune.measure.compiled import CompiledCandidate
from ..tune.measure.places import Ran, Subject
from ..tune.measure.results import THROTTLED, MeasureOptions
from ..tune.measure.timing import SPEED
from . import calls
from .devices import CPU
from .dispatch import Dispatcher, Job
from .messages import Outcome, interleave_job, outcomes_of, run_job, run_subject
from .resources import run_on

if TYPE_CHECKING:
    from .fleet import Fleet

logger = logging.getLogger(__name__)
# Short candidates go together, so that what a job costs is shared; what a lost worker takes along stays short. Many devices get longer
# jobs, so that their client has no more than so many a second to send.
_JOB_SECONDS = 0.4
_JOBS_A_SECOND = 60
_MOST_OF_A_JOB = 64
# Of object code: jobs that wait are held by the client, the scheduler and a worker.
_BYTES_OF_A_JOB = 1 << 19
# A machine may be throttled for good: then its results are as good as they get.
_MOST_AGAIN = 2


@dataclass
class _Arrivals:
    """Candidates that are there, those that come, and the numbers of those that nobody runs yet."""

    given: Sequence[CompiledCandidate]
    coming: Iterator[CompiledCandidate | None]
    left: deque[int] = field(default_factory=deque)
    came: list[CompiledCandidate] = field(default_factory=list)
    is_over: bool = False

    def __post_init__(self) -> None:
        self.left.extend(range(len(self.given)))

    def __getitem__(self, number: int) -> CompiledCandidate:
        return self.given[number] if number < len(self.given) else self.came[number - len(self.given)]

    def receive(self) -> None:
        """Take what has come since."""
        for candidate in self.coming:
            if candidate is None:
                return
            self.left.append(len(self.given) + len(self.came))
            self.came.append(candidate)
        self.is_over = True


class FleetRunning:
    """A `tune.measure.places.Running` on the devices with a key.

    Args:
        fleet: whose devices.
        key: theirs.
        subject: what is measured.
        options: how.
        priority: of its jobs, among those of other clients.
    """

    def __init__(self, fleet: Fleet, key: str, subject: Subject, options: MeasureOptions, priority: int = 0) -> None:
        self._jobs = Dispatcher(fleet, calls.run, run_subject(subject.spec(), options), run_on(key), priority)
        self._fleet, self._key, self._options = fleet, key, options
        self._spent, self._count = 0.0, 0
        self._fastest: float | None = None

    @property
    def pids(self) -> list[int]:
        """None: all processes are the workers'."""
        return []

    def start(self) -> None:
        """Let the devices make their arrays, without waiting."""
        self._jobs.start()

    def prepare(self) -> None:
        """Nothing: the devices got ready when they started."""

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        """Check and time candidates on as many devices as there are; a throttled one's results are measured again.

        Raises:
            TuningError: if there is no device for too long, or one can't measure the task at all.
        """
        return self._run(_Arrivals(candidates, iter(())), best)

    def run_arriving(self, candidates: Iterator[CompiledCandidate | None], best: Callable[[], float]) -> Iterator[Ran]:
        """`run` of candidates as they come, each known by how many came before it; None where none has come yet."""
        return self._run(_Arrivals((), candidates), best)

    def hosts(self) -> Set[str]:
        """The names of the machines whose cores the devices are; none of devices that aren't CPUs."""
        return {worker.host for worker in self._fleet.workers() if self._key in worker.keys and worker.device == CPU}

    def _run(self, arrivals: _Arrivals, best: Callable[[], float]) -> Iterator[Ran]:
        left = arrivals.left
        tries: dict[int, int] = {}
        again: deque[int] = deque()
        under_way: dict[int, list[int]] = {}

        def jobs() -> Iterator[Job | None]:
            while not arrivals.is_over or left or again:
                arrivals.receive()
                if not (left or again):
                    yield None
                    continue
                size, held = self._size(len(left) + len(again)), 0
                chosen: list[int] = []
                while len(chosen) < size and held < _BYTES_OF_A_JOB and (left or again):
                    chosen.append(left.popleft() if left else again.popleft())
                    held += len(arrivals[chosen[-1]].object_code)
                number = jobs_made[0] = jobs_made[0] + 1
                under_way[number] = chosen
                least = best()
                data = run_job([arrivals[place] for place in chosen], least if math.isfinite(least) else None, self._speed())
                yield Job(number, data, self._limit(len(chosen)))

        jobs_made = [0]
        # results that are to be measured again are known when the others are done only: then there are more jobs
        while not arrivals.is_over or left or again:
            for job, answer in self._jobs.answers(jobs()):
                outcomes = outcomes_of(answer.header["outcomes"])
                for place, (outcome, seconds) in zip(under_way.pop(job.number), outcomes, strict=True):
                    self._spent, self._count = self._spent + seconds, self._count + 1
                    if not isinstance(outcome, Failure):
                        self._fastest = max(self._speed(), float(outcome.get(SPEED, 0.0)))
                    if _is_throttled(outcome) and tries.setdefault(place, 0) < _MOST_AGAIN:
                        tries[place] += 1
                        again.append(place)
                        continue
                    yield place, outcome, seconds

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]] | Failure:
        """Costs of candidates that ran before, measured in turn on one device."""
        job = Job(0, interleave_job(candidates, costs, rounds, offsets), self._limit(len(candidates)))
        ((_, answer),) = self._jobs.answers([job])
        ((outcome, _),) = outcomes_of(answer.header["outcome"])
        return outcome if isinstance(outcome, Failure) else [list(map(float, row)) for row in outcome["costs"]]

    def rest(self) -> None:
        """Nothing: a device holds one subject's arrays at a time."""

    def close(self) -> None:
        """Let the devices end their processes."""
        self._jobs.close()

    def _speed(self) -> float:
        """That of the fastest device, when it started or since."""
        if self._fastest is None:
            self._fastest = max((worker.speed for worker in self._fleet.workers() if self._key in worker.keys), default=0.0)
        return self._fastest

    def _size(self, left: int) -> int:
        """How many candidates the next job takes: as many as last a while, and few enough that all devices have some."""
        if not self._count:
            return 1
        places = max(1, self._jobs.places())
        lasting = int(max(_JOB_SECONDS, places / _JOBS_A_SECOND) / max(self._spent / self._count, 1e-4))
        return max(1, min(lasting, _MOST_OF_A_JOB, -(-left // (2 * places))))

    def _limit(self, candidates: int) -> float:
        """Seconds until a device gives a job up: each candidate gets a second chance, and the arrays are made once."""
        return 2 * candidates * (self._options.run_timeout_s + self._options.timing.cooldown_s) + self._options.reference_timeout_s


def _is_throttled(outcome: Outcome) -> bool:
    return not isinstance(outcome, Failure) and bool(outcome.get(THROTTLED))
