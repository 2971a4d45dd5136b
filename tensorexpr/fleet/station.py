"""The working side of a fleet: compile workers and devices of one Dask worker, and the jobs that they do."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

from ..dataclass import dataclass, field
from ..errors import TensorExprError
from ..tune.measure.builder import Builder, Failure
from ..tune.measure.child import failure
from ..tune.measure.folder import SharedFolder
from ..tune.measure.places import Running
from ..tune.measure.protocol import Frame, encode
from ..tune.measure.results import THROTTLED
from ..tune.measure.timing import SPEED
from .cores import Cores
from .devices import CPU, device_named
from .loans import Loans
from .messages import Outcome, built, candidates_of, digest_of, frame_of, options_from_json, outcomes_to_json, program_of

# Of a client that is gone without a word, processes and folders stay so long.
_IDLE_SECONDS = 120.0
# A device whose multiply-adds take this many times what they took at best, or take on another one, is throttled, or somebody else's.
_THROTTLED = 1.5


class _Closable(Protocol):
    def start(self) -> None: ...
    def close(self) -> None: ...


Tool = TypeVar("Tool", bound=_Closable)


@dataclass(eq=False)
class _Seat(Generic[Tool]):
    """A compile worker or a device: at most one subject's at a time, since each subject's processes hold its arrays."""

    digest: str = ""
    tool: Tool | None = None
    folder: SharedFolder | None = None
    used: float = 0.0
    is_taken: bool = False
    fastest: float = 0.0

    def empty(self) -> None:
        if self.tool is not None:
            self.tool.close()
        if self.folder is not None:
            self.folder.close()
        self.tool, self.folder, self.digest = None, None, ""


@dataclass(eq=False)
class _Seats(Generic[Tool]):
    """Seats of one kind, and what makes the tool of one: of a subject and a folder."""

    make: Callable[[Frame, Path], Tool]
    seats: Sequence[_Seat[Tool]]
    free: threading.Condition = field(default_factory=threading.Condition)

    @contextlib.contextmanager
    def taken(self, data: bytes, wait: bool = True) -> Iterator[tuple[_Seat[Tool], Tool] | None]:
        """A seat that is ready for a subject; one that is already, if there is one. None if all are taken and nobody waits."""
        digest = digest_of(data)
        with self.free:
            while not (found := self._choice(digest)) and wait:
                self.free.wait()
            if found is not None:
                found.is_taken = True
        if found is None:
            yield None
            return
        try:
            if found.digest != digest or found.tool is None:
                found.empty()
                found.folder = SharedFolder()
                found.tool = self.make(frame_of(data), found.folder.path)
                found.digest = digest
            yield found, found.tool
        except BaseException:
            # whatever state it is in: the next job gets new processes
            found.empty()
            raise
        finally:
            with self.free:
                found.is_taken, found.used = False, time.monotonic()
                self.free.notify()

    def _choice(self, digest: str) -> _Seat[Tool] | None:
        idle = [seat for seat in self.seats if not seat.is_taken]
        return min(idle, key=lambda seat: (seat.digest != digest, seat.used), default=None)

    def empty(self, unwanted: Callable[[_Seat[Tool]], bool]) -> None:
        """End what nobody uses, where it is unwanted."""
        with self.free:
            for seat in self.seats:
                if not seat.is_taken and seat.digest and unwanted(seat):
                    seat.empty()


def _open_builder(subject: Frame, folder: Path) -> Builder:
    options = options_from_json({**subject.header["options"], "n_parallel": 1})
    return Builder(subject.header["task"], options)


class Station:
    """What a worker measures with.

    Args:
        description: `messages.WorkerDescription` without the address, as JSON.
        cores: of this machine, shared with other workers.
    """

    def __init__(self, description: Mapping[str, Any], cores: Cores | None = None) -> None:
        self._description = dict(description)
        device = device_named(description["device"])

        def open_device(subject: Frame, folder: Path) -> Running:
            return device(subject, options_from_json(subject.header["options"]), folder)

        self._builders = _Seats(_open_builder, [_Seat() for _ in range(description["cores"])])
        self._devices = _Seats(open_device, [_Seat(fastest=description["speed"]) for _ in range(description["devices"])])
        # devices that are elsewhere don't use this machine's cores
        self._is_here = description["device"] == CPU
        self._cores = cores or Cores()
        self.loans = Loans(self._alone)
        self._closed = threading.Event()
        threading.Thread(target=self._sweep, name="tensorexpr-station", daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """The description that it was made with."""
        return self._description

    def build(self, data: bytes, job: bytes) -> bytes:
        """Compile a program; the answer is "built", or "refused" if that can't be tried here."""
        try:
            frame = frame_of(job)
            with self._builders.taken(data) as seat, self._cores.to_compile():
                assert seat is not None
                ((_, build),) = seat[1].build([program_of(frame)], int(frame.header["opt_level"]))
            return encode(built(build))
        except (TensorExprError, KeyError, TypeError, ValueError, OSError) as error:
            return _refused(error)

    def run(self, data: bytes, job: bytes) -> bytes:
        """Run candidates; the answer is "ran" or "interleaved", or "refused" if that can't be tried here."""
        try:
            frame = frame_of(job)
            with self._devices.taken(data) as seat, self._alone():
                assert seat is not None
                answer = _interleaved(seat[1], frame) if frame.type == "interleave" else _ran(*seat, frame)
            return encode(answer)
        except (TensorExprError, KeyError, TypeError, ValueError, OSError) as error:
            return _refused(error)

    def start(self, data: bytes) -> None:
        """Begin to get ready for a subject in a thread of its own: what fails will do so again with the first job, and be said then."""

        def begin() -> None:
            kinds: Any = [self._builders] * len(self._builders.seats) if frame_of(data).header["kind"] == "build" else [self._devices]
            with contextlib.suppress(TensorExprError, OSError), contextlib.ExitStack() as stack:
                for seats in kinds:
                    if (seat := stack.enter_context(seats.taken(data, wait=False))) is not None:
                        seat[1].start()

        threading.Thread(target=begin, daemon=True).start()

    def release(self, digest: str) -> None:
        """End the processes of a subject, in a thread of its own: the caller's serves the worker's messages."""
        threading.Thread(target=self._empty, args=(lambda seat: seat.digest == digest,), daemon=True).start()

    def close(self) -> None:
        """End all processes that no job uses, and take back what is lent."""
        self._closed.set()
        self.loans.close()
        self._empty(lambda _: True)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return self._cores.to_measure() if self._is_here else contextlib.nullcontext()

    def _empty(self, unwanted: Callable[[_Seat[Any]], bool]) -> None:
        self._builders.empty(unwanted)
        self._devices.empty(unwanted)

    def _sweep(self) -> None:
        while not self._closed.wait(_IDLE_SECONDS / 8):
            self._empty(lambda seat: time.monotonic() - seat.used > _IDLE_SECONDS)


def _ran(seat: _Seat[Running], running: Running, frame: Frame) -> Frame:
    given = frame.header["best"]
    best = [math.inf if given is None else float(given)]
    outcomes: list[tuple[Outcome, float]] = []
    others = float(frame.header["speed"])
    for _, outcome, seconds in running.run(candidates_of(frame), lambda: best[0]):
        if not isinstance(outcome, Failure):
            best[0] = min(best[0], median(outcome["costs"]))
            seat.fastest = max(seat.fastest, speed := float(outcome.get(SPEED, 0.0)))
            # a task that doesn't wait for quiet cores doesn't probe either
            outcome[THROTTLED] = 0 < _THROTTLED * speed < max(seat.fastest, others)
        outcomes.append((outcome, seconds))
    return Frame({"type": "ran", "outcomes": outcomes_to_json(outcomes)})


def _interleaved(running: Running, frame: Frame) -> Frame:
    header = frame.header
    costs = running.interleave(candidates_of(frame), header["costs"], int(header["rounds"]), header["offsets"])
    made = outcomes_to_json([(costs if isinstance(costs, Failure) else {"costs": costs}, 0.0)])
    return Frame({"type": "interleaved", "outcome": made})


def _refused(error: Exception) -> bytes:
    said = failure(error, type(error).__name__)
    return encode(Frame({**said.header, "type": "refused"}))
