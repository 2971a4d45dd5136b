"""Jobs to the workers that hold a resource, and their answers: each job is answered once, whatever is lost on the way.

Dask gives the jobs of a lost worker to others. What is here is for the rest: jobs that lost several workers, stragglers, a scheduler that
restarts and forgets everything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ..dataclass import dataclass, field
from ..errors import TuningError
from ..support import give_back_memory
from ..tune.measure.protocol import Frame
from . import calls
from .messages import digest_of, frame_of

if TYPE_CHECKING:
    from .fleet import Fleet

logger = logging.getLogger(__name__)
# Jobs under way for each place: one that is worked on, and one that waits there, so that nobody rests while an answer travels.
_AHEAD = 2
# A worker that dies took no job along on purpose; a job that takes down so many of them did.
_MOST_LOST = 10
_LOOK_SECONDS = 1.0
# Messages of half a megabyte, each of another length, leave holes that glibc keeps: 100,000 candidates made them 60 MiB more. They are
# given back after so much was sent; once in 10 s was too seldom.
_TRIM_BYTES = 100 << 20
# Whoever makes jobs is asked so soon again if there was none.
_SOON_SECONDS = 0.02
# A job that takes this many times its limit is on a worker that hangs: the limit holds for what the worker's own processes do.
_STRAGGLES = 2.0
_MOST_COPIES = 3
# Dask warns of larger messages.
_MESSAGE_BYTES = 4 << 20


@dataclass(frozen=True)
class Job:
    """A call of a worker.

    Args:
        number: comes back with the answer.
        data: what is called with.
        limit_s: seconds after which the worker itself gives it up.
    """

    number: int
    data: bytes
    limit_s: float


@dataclass(eq=False)
class _Pending:
    """A job without an answer: the calls for it, where it was last seen, how many workers it lost."""

    job: Job
    since: float
    futures: list[Any] = field(default_factory=list)
    lost: int = 0


class Dispatcher:
    """Calls one function of `calls` for one subject.

    Args:
        fleet: whose workers.
        function: of `calls`.
        subject: its first argument.
        resource: that workers must hold.
        priority: of the calls, as of Dask.
    """

    def __init__(self, fleet: Fleet, function: Callable[[bytes, bytes], bytes], subject: bytes, resource: str, priority: int = 0) -> None:
        self._fleet, self._function, self._subject, self._resource = fleet, function, subject, resource
        self._priority = priority
        self._known: Any = None
        self._places, self._looked = 0, 0.0

    def places(self) -> int:
        """How many jobs can be worked on at the same time now; looked up once a second."""
        now = time.monotonic()
        if now - self._looked > _LOOK_SECONDS or not self._looked:
            self._places = self._fleet.count(self._resource)
            self._looked = now
        return self._places

    def start(self) -> None:
        """Let the workers get ready, without waiting."""
        workers = self._fleet.holders(self._resource)
        if workers:
            self._fleet.client.run(calls.start, self._subject, workers=workers, wait=False, on_error="ignore")

    def close(self) -> None:
        """Let the workers forget the subject, without waiting."""
        self._known = None
        self._fleet.tell(calls.release, digest_of(self._subject))

    def answers(self, jobs: Iterable[Job | None]) -> Iterator[tuple[Job, Frame]]:
        """Each job with its answer, in the order in which they come. Jobs are taken as there is room for them; None is none yet.

        Raises:
            TuningError: if there is no worker for them for too long, the scheduler is gone, or a worker refuses the subject.
        """
        return (found for found in self.arriving(jobs, _LOOK_SECONDS / 4) if found is not None)

    def arriving(self, jobs: Iterable[Job | None], wait_s: float) -> Iterator[tuple[Job, Frame] | None]:
        """`answers`, and None each time that there was none for some seconds."""
        pending: dict[int, _Pending] = {}
        owners: dict[Any, _Pending] = {}
        done: SimpleQueue[Any] = SimpleQueue()
        source = _Source(iter(jobs))
        alone_since = looked = time.monotonic()
        sent = 0

        def call(items: Sequence[_Pending], workers: Sequence[str] | None = None) -> None:
            for item, future in zip(items, self._called([item.job for item in items], workers), strict=True):
                item.since = time.monotonic()
                item.futures.append(future)
                owners[future] = item
                future.add_done_callback(done.put)

        try:
            while True:
                room = _AHEAD * self.places()
                # many at once: what a message to the scheduler costs hardly depends on how many jobs it holds
                while fresh := source.taken(room - len(pending)):
                    sent += sum(len(job.data) for job in fresh)
                    items = [pending.setdefault(job.number, _Pending(job, 0.0)) for job in fresh]
                    call(items)
                if not pending and source.is_over:
                    return
                finished = _drained(done, min(wait_s, _SOON_SECONDS) if source.waits else wait_s)
                if not finished:
                    yield None
                for future, answer in self._gathered([future for future in finished if future in owners]):
                    item = owners.pop(future)
                    item.futures.remove(future)
                    if pending.get(item.job.number) is not item:
                        continue
                    if answer is not None:
                        del pending[item.job.number]
                        self._forget(item, owners)
                        yield item.job, answer
                    elif not item.futures:
                        self._note_lost(item)
                        call([item])
                now = time.monotonic()
                alone_since = now if room else alone_since
                if now - alone_since > self._fleet.patience_s:
                    raise TuningError(self._fleet.nobody(self._resource))
                if now - looked > _LOOK_SECONDS:
                    looked = now
                    for item in [item for item in pending.values() if now - item.since > _STRAGGLES * item.job.limit_s]:
                        self._race(item, call)
                if sent > _TRIM_BYTES:
                    sent = 0
                    give_back_memory()
        finally:
            for item in pending.values():
                self._forget(item, owners)

    def _called(self, jobs: Sequence[Job], workers: Sequence[str] | None) -> list[Any]:
        client = self._fleet.client
        if self._known is None or self._known.client is not client or self._known.status in ("cancelled", "lost", "error"):
            key = f"tensorexpr-subject-{digest_of(self._subject)}"
            self._known = client.submit(calls.subject, self._subject, key=key)
        # pure=False: each call has a name of its own, so that a second one is worked on
        options = {"resources": {self._resource: 1}, "priority": self._priority, "workers": list(workers) if workers else None}
        data = [job.data for job in jobs]
        called: list[Any] = client.map(self._function, [self._known] * len(jobs), data, pure=False, **options)
        return called

    def _gathered(self, futures: Sequence[Any]) -> Iterator[tuple[Any, Frame | None]]:
        """The answers of calls that are over; None of those that were lost with their worker or scheduler."""
        sound = [future for future in futures if future.status == "finished"]
        try:
            values = dict(zip(sound, self._fleet.client.gather(sound), strict=True)) if sound else {}
        except Exception as error:  # lost on the way: Dask has many names for that
            logger.debug("answers were lost: %r", error)
            values = {}
        for future in futures:
            if future.status == "error":
                _check_lost(future)
            yield future, self._answer(values[future]) if future in values else None

    def _answer(self, data: bytes) -> Frame:
        frame = frame_of(data)
        if frame.type == "refused":
            raise TuningError(f"a worker of the fleet can't do this: {frame.header.get('message', '')}")
        return frame

    def _note_lost(self, item: _Pending) -> None:
        item.lost += 1
        if item.lost > _MOST_LOST:
            raise TuningError(f"a job was lost {item.lost} times with its worker; see what the workers print")

    def _race(self, item: _Pending, call: Callable[[Sequence[_Pending], Sequence[str]], None]) -> None:
        """Send a job that takes too long to another worker too, if there is one."""
        if len(item.futures) >= _MOST_COPIES:
            return
        busy = self._fleet.processing([future.key for future in item.futures])
        others = [worker for worker in self._fleet.holders(self._resource) if worker not in busy]
        if busy and others:
            logger.info("job %d takes longer than %g s on %s; %s get it too", item.job.number, item.job.limit_s, busy, others)
            call([item], others)

    def _forget(self, item: _Pending, owners: dict[Any, _Pending]) -> None:
        for future in item.futures:
            owners.pop(future, None)
            future.cancel()
        item.futures.clear()


_END = Job(-1, b"", 0.0)


@dataclass
class _Source:
    """Jobs to come; `waits` if there is none yet."""

    jobs: Iterator[Job | None]
    is_over: bool = False
    waits: bool = False

    def taken(self, room: int) -> list[Job]:
        """The next jobs, as many as there is room for and one message may hold."""
        taken: list[Job] = []
        size = 0
        self.waits = False
        while len(taken) < room and size < _MESSAGE_BYTES:
            job = next(self.jobs, _END)
            if job is None or job is _END:
                self.waits, self.is_over = job is None, job is _END
                break
            taken.append(job)
            size += len(job.data)
        return taken


def _drained(done: SimpleQueue[Any], wait_s: float) -> list[Any]:
    """All calls that are over; waits some seconds if there are none."""
    found = []
    try:
        found.append(done.get(timeout=wait_s) if wait_s else done.get_nowait())
        while True:
            found.append(done.get_nowait())
    except Empty:
        return found


def _check_lost(future: Any) -> None:
    """Pass over a call that failed with its worker, and raise what it raised itself."""
    from distributed import KilledWorker
    from distributed.scheduler import NoValidWorkerError

    error = future.exception()
    # a worker that a straggler was sent to may be gone since
    if not isinstance(error, (KilledWorker, NoValidWorkerError, OSError, TimeoutError)):
        raise TuningError(f"a worker of the fleet failed: {type(error).__name__}: {str(error)[:500]}") from error
