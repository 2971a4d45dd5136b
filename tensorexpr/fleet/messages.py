"""What travels between a client and its workers, as frames: JSON and bytes, nothing that runs when it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ..dataclass import asdict, dataclass, fields
from ..errors import TuningError
from ..schedule.trace import Trace
from ..tune.measure.builder import Build, Failure
from ..tune.measure.compiled import CompiledCandidate
from ..tune.measure.errors import MeasureErrorNo
from ..tune.measure.protocol import Frame, FrameDecoder, encode
from ..tune.measure.results import MeasureOptions, Program
from ..tune.measure.timing import TimingPolicy

Outcome = dict[str, Any] | Failure


@dataclass(frozen=True)
class WorkerDescription:
    """A worker, as it describes itself.

    Args:
        address: Dask's.
        keys: of its devices; none if it only compiles.
        devices: how many it has.
        device: what they are: "cpu", or the `module:function` that opens them.
        target: its machine, resolved.
        cores: programs that it compiles at the same time.
        host: the name of its machine.
        versions: of tensorexpr, LLVM and Python.
        speed: of its cores when it started, as `tune.measure.native.calibrated` says it; 0 if nothing was timed.
    """

    address: str
    keys: tuple[str, ...]
    devices: int
    device: str
    target: str
    cores: int
    host: str
    versions: Mapping[str, str]
    speed: float

    @staticmethod
    def of(data: Mapping[str, Any]) -> WorkerDescription:
        """The description that a worker sent.

        Raises:
            TuningError: if it is none.
        """
        try:
            known = {name: data[name] for name in (item.name for item in fields(WorkerDescription))}
            return WorkerDescription(**{**known, "keys": tuple(known["keys"])})
        except (KeyError, TypeError) as error:
            raise TuningError(f"a worker describes itself wrongly: {error}") from None


@dataclass(frozen=True)
class SentProgram(Program):
    """A program on a worker: its trace as JSON, which only the compile worker reads."""

    sent: Any = None

    @cached_property
    def steps(self) -> list[Any]:
        """What was sent."""
        return list(self.sent)


def digest_of(data: bytes) -> str:
    """The name of some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def frame_of(data: bytes) -> Frame:
    """The one frame in some bytes.

    Raises:
        TuningError: for anything else.
    """
    decoder = FrameDecoder()
    frames = list(decoder.feed(bytes(data)))
    if len(frames) != 1 or decoder.is_torn:
        raise TuningError(f"a message of the fleet is one frame, not {len(data)} bytes with {len(frames)}")
    return frames[0]


def options_to_json(options: MeasureOptions) -> dict[str, Any]:
    """Options as JSON."""
    return asdict(options)


def options_from_json(data: Mapping[str, Any]) -> MeasureOptions:
    """The options that `options_to_json` wrote."""
    return MeasureOptions(**{**data, "timing": TimingPolicy(**data["timing"])})


def build_subject(task: Mapping[str, Any], options: MeasureOptions) -> bytes:
    """What workers need to know to compile programs of a task."""
    return encode(Frame({"type": "subject", "kind": "build", "task": dict(task), "options": options_to_json(options)}))


def run_subject(spec: Frame, options: MeasureOptions) -> bytes:
    """What workers need to know to run programs of a subject (`places.Subject.spec`)."""
    return encode(Frame({**spec.header, "options": options_to_json(options)}, spec.blobs))


def build_job(program: Program, opt_level: int) -> bytes:
    """A program to compile."""
    own = {} if program.dag is None else {"dag": program.dag}
    return encode(Frame({"type": "build", "trace": program.steps, "opt_level": opt_level, **own}))


def program_of(frame: Frame) -> SentProgram:
    """The program that `build_job` wrote."""
    return SentProgram(0, Trace(), frame.header.get("dag"), sent=frame.header["trace"])


def built(build: Build) -> Frame:
    """What became of it."""
    if isinstance(build.made, Failure):
        return Frame({"type": "built", "failure": _failure_to_json(build.made), "seconds": build.seconds})
    return Frame({"type": "built", "seconds": build.seconds, **build.made.header()}, (build.made.object_code,))


def build_of(frame: Frame) -> Build:
    """What `built` wrote."""
    made = _failure_of(frame.header["failure"]) if "failure" in frame.header else CompiledCandidate.from_frame(frame)
    return Build(made, float(frame.header["seconds"]))


def run_job(candidates: Sequence[CompiledCandidate], best: float | None, speed: float = 0.0) -> bytes:
    """Candidates to run; `best` is the least cost so far, None if nothing ran, `speed` that of the fastest device of the key."""
    kernels = [candidate.header() for candidate in candidates]
    return encode(Frame({"type": "run", "kernels": kernels, "best": best, "speed": speed}, tuple(one.object_code for one in candidates)))


def interleave_job(candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]) -> bytes:
    """Candidates to run in turn."""
    header = {"type": "interleave", "kernels": [candidate.header() for candidate in candidates], "costs": list(costs)}
    blobs = tuple(candidate.object_code for candidate in candidates)
    return encode(Frame({**header, "rounds": rounds, "offsets": list(offsets)}, blobs))


def candidates_of(frame: Frame) -> list[CompiledCandidate]:
    """The candidates of a job."""
    kernels = frame.header["kernels"]
    return [CompiledCandidate.from_frame(Frame(header, (blob,))) for header, blob in zip(kernels, frame.blobs, strict=True)]


def outcomes_to_json(outcomes: Sequence[tuple[Outcome, float]]) -> list[Any]:
    """What became of candidates, and the seconds that each took."""
    return [[{"failure": _failure_to_json(made)} if isinstance(made, Failure) else made, seconds] for made, seconds in outcomes]


def outcomes_of(data: Sequence[Any]) -> list[tuple[Outcome, float]]:
    """What `outcomes_to_json` wrote."""
    return [(_failure_of(made["failure"]) if "failure" in made else made, float(seconds)) for made, seconds in data]


def _failure_to_json(failure: Failure) -> dict[str, Any]:
    return {**asdict(failure), "error_no": failure.error_no.name}


def _failure_of(data: Mapping[str, Any]) -> Failure:
    return Failure(MeasureErrorNo[data["error_no"]], data["message"], data["detail"], data["stopped_s"])
