"""A pool of worker processes that are replaced when they die: jobs in, answers or deaths out.

Each job has a limit in seconds that counts from when a worker gets it. A worker over its limit is killed with everything
it started; so is one that sends garbage. Only the job it had is touched: it is answered with a `Death`.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from signal import SIGKILL

from ...dataclass import dataclass, field
from ...errors import TuningError
from .process import Death, Launch, WorkerProcess, wait
from .protocol import Frame

# Workers that end by themselves before they are ready will go on doing so; those that somebody kills may be luckier next time.
_MAX_FAILED_STARTS = 3
_MAX_KILLED_STARTS = 20
# poll takes milliseconds as a C int: neither infinity nor a month fits
LONGEST_WAIT_SECONDS = 3600.0


@dataclass(frozen=True)
class Job:
    """A request to a worker; `key` comes back with the answer."""

    key: int
    request: Frame
    limit_s: float


@dataclass(frozen=True)
class Answer:
    """What became of a job: the worker's frame or its death; the seconds it took; how many jobs that worker had done before."""

    key: int
    reply: Frame | Death
    seconds: float
    served_before: int


@dataclass
class _Seat:
    """A place for one worker, with the job it works on now (none while it starts or rests), and greetings that it hasn't answered yet."""

    worker: WorkerProcess | None = None
    greetings: int = 0
    job: Job | None = None
    since: float = 0.0
    deadline: float = math.inf
    served: int = field(default=0)

    @property
    def is_starting(self) -> bool:
        """Whether it isn't ready for a job."""
        return self.greetings > 0

    @property
    def is_idle(self) -> bool:
        return self.worker is not None and not self.is_starting and self.job is None


class WorkerPool:
    """`size` workers of one kind. Use as a context manager: leaving it kills them."""

    def __init__(self, launch: Launch, size: int, folder: str, greeting: Frame, startup_limit_s: float = 60.0) -> None:
        """Describe the pool; nothing is started yet.

        Args:
            launch: how to start a worker.
            size: how many there are at most.
            folder: their working directory.
            greeting: the first frame each one gets, with all that is the same for every job; it is answered by "ready".
            startup_limit_s: seconds a worker may take until it is ready.
        """
        self._launch = launch
        self._folder = folder
        self._greeting = greeting
        self._startup_limit_s = startup_limit_s
        self._seats = [_Seat() for _ in range(max(1, size))]
        self._queue: deque[Job] = deque()
        self._failed_starts = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [seat.worker.pid for seat in self._seats if seat.worker is not None]

    def start(self, count: int | None = None) -> None:
        """Start workers now rather than with the first job, without waiting for them."""
        for seat in self._seats[:count]:
            self._fill(seat)

    def greet(self, greeting: Frame) -> None:
        """Let the workers serve another task from now on: those that run are told, those that start later begin with it."""
        if greeting is self._greeting:
            return
        self._greeting = greeting
        # Frames come back in order, but one of another task would be taken for an answer to this one's job of the same number.
        if self.is_busy:  # whoever had these jobs has given up
            self.close()
        self._remove_dead()
        for seat in self._seats:
            if seat.worker is not None:
                self._hand_greeting(seat, seat.worker)

    @property
    def is_busy(self) -> bool:
        """Whether jobs have no answer yet."""
        return bool(self._queue) or any(seat.job is not None for seat in self._seats)

    def submit(self, job: Job) -> None:
        """Queue a job. It is handed out while `answers` is iterated."""
        self._queue.append(job)

    def answers(self) -> Iterator[Answer]:
        """Answers in the order they come, until every job that was submitted, also meanwhile, has one.

        Raises:
            TuningError: if workers can't be started or refuse the greeting.
        """
        return (answer for answer in self.arriving(LONGEST_WAIT_SECONDS) if answer is not None)

    def arriving(self, wait_s: float) -> Iterator[Answer | None]:
        """`answers`, and None each time that there was none for some seconds."""
        # a pipe into a dead worker takes a job without a word, which then would count as the cause of its death
        self._remove_dead()
        while self._queue or any(seat.job is not None for seat in self._seats):
            self._hand_out()
            found = list(self._step(wait_s))
            yield from found or (None,)

    def close(self) -> None:
        """Kill all workers and forget all jobs."""
        self._queue.clear()
        for seat in self._seats:
            if seat.worker is not None:
                seat.worker.kill("the pool was closed")
            self._empty(seat)

    def replace_workers(self) -> None:
        """Kill the workers that have no job; the next jobs get fresh ones."""
        for seat in self._seats:
            if seat.worker is not None and seat.job is None:
                seat.worker.kill("replaced")
                self._empty(seat)

    def _remove_dead(self) -> None:
        """Notice the workers that died while nobody looked, so that no job is given to them."""
        for seat in self._seats:
            if seat.is_idle and seat.worker is not None:
                seat.worker.advance()
                if seat.worker.death is not None:
                    self._empty(seat)

    def _hand_out(self) -> None:
        idle = [seat for seat in self._seats if seat.is_idle]
        while self._queue and idle:
            seat, job = idle.pop(0), self._queue.popleft()
            assert seat.worker is not None
            seat.job, seat.since = job, time.monotonic()
            seat.deadline = seat.since + job.limit_s
            # The key goes along and comes back, so that a late frame of a job that was given up can't answer the next.
            seat.worker.send(Frame({**job.request.header, "key": job.key}, job.request.blobs))
        starting = sum(seat.is_starting for seat in self._seats)
        for seat in self._seats:
            # a worker that starts will take a job: no more of them than jobs that none is ready for
            if seat.worker is None and starting < len(self._queue):
                self._fill(seat)
                starting += 1

    def _step(self, wait_s: float) -> Iterator[Answer]:
        """Wait for the next event or deadline, at most some seconds, and deal with whatever happened."""
        seats = [seat for seat in self._seats if seat.worker is not None]
        # One wait for all workers, until the first of them has something to say or is late.
        deadline = min((seat.deadline for seat in seats), default=math.inf)
        wait([seat.worker for seat in seats if seat.worker is not None], min(deadline - time.monotonic(), wait_s))
        for seat in seats:
            yield from self._advance(seat)

    def _advance(self, seat: _Seat) -> Iterator[Answer]:
        worker = seat.worker
        assert worker is not None
        # answers come first: one that is there counts, though the worker died or ran over its limit after it
        for frame in worker.advance():
            if seat.is_starting:
                self._welcome(seat, frame)
            elif seat.job is not None and frame.header.get("key") == seat.job.key:
                yield self._finish(seat, frame)
            else:
                worker.kill(f"sent {frame.type!r} without being asked")
        if worker.death is None and time.monotonic() > seat.deadline:
            # an idle worker has no deadline, so that without a job this one was starting
            limit = self._startup_limit_s if seat.job is None else seat.job.limit_s
            worker.kill(f"took longer than {limit:g} s", timed_out=True)
        if worker.death is not None:
            if seat.is_starting:
                self._note_failed_start(worker.death)
            elif seat.job is not None:
                yield self._finish(seat, worker.death)
            self._empty(seat)

    def _welcome(self, seat: _Seat, frame: Frame) -> None:
        if frame.type != "ready":
            self.close()  # whoever uses them next gets fresh ones
            raise TuningError(f"{self._launch.module} can't work on this task: {frame.header.get('message', frame.type)}")
        # A worker may be greeted again before it has answered: it is ready when it has answered all of them.
        seat.greetings -= 1
        if not seat.greetings:
            seat.deadline = math.inf
        self._failed_starts = 0

    def _finish(self, seat: _Seat, reply: Frame | Death) -> Answer:
        job = seat.job
        assert job is not None
        answer = Answer(job.key, reply, time.monotonic() - seat.since, seat.served)
        seat.job, seat.deadline, seat.served = None, math.inf, seat.served + 1
        return answer

    def _fill(self, seat: _Seat) -> None:
        if seat.worker is None:
            seat.worker, seat.greetings, seat.served = WorkerProcess(self._launch, self._folder), 0, 0
            self._hand_greeting(seat, seat.worker)

    def _hand_greeting(self, seat: _Seat, worker: WorkerProcess) -> None:
        seat.greetings += 1
        seat.since = time.monotonic()
        seat.deadline = seat.since + self._startup_limit_s
        worker.send(self._greeting)

    def _empty(self, seat: _Seat) -> None:
        seat.worker, seat.job, seat.greetings, seat.deadline = None, None, 0, math.inf

    def _note_failed_start(self, death: Death) -> None:
        # Counted over all workers, and from 0 again once one is ready: a broken installation fails each time, a full machine now and then.
        self._failed_starts += 1
        if self._failed_starts >= (_MAX_KILLED_STARTS if death.signal == SIGKILL else _MAX_FAILED_STARTS):
            raise TuningError(f"{self._launch.module} doesn't start: {death.reason}. It printed: {death.output or 'nothing'}")
