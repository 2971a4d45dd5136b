"""Programs to object code, in compile workers."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence, Set
from signal import SIGALRM, SIGKILL
from typing import Any

from ...dataclass import dataclass
from .compiled import CompiledCandidate
from .errors import MeasureErrorNo
from .pool import LONGEST_WAIT_SECONDS, Answer, Job, WorkerPool
from .process import Death, Launch
from .protocol import Frame
from .results import MeasureOptions, Program
from .workers import Workers

MODULE = "tensorexpr.tune.measure.compile_worker"
# Workers are as many as cores; threads of theirs would only get in each other's way. LLVM and our passes start none.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Failure:
    """Why a program can't be measured: an error number, one line, and everything else that is known.

    `stopped_s` are the seconds after which it was stopped for being far slower than others; 0 if that isn't why.
    """

    error_no: MeasureErrorNo
    message: str
    detail: str = ""
    stopped_s: float = 0.0


@dataclass(frozen=True)
class Build:
    """What became of a program in the compile workers; `seconds` from when a worker got it."""

    made: CompiledCandidate | Failure
    seconds: float


class Builder:
    """Compile workers as one task uses them; where nobody shares his, they are its own."""

    def __init__(self, task: Mapping[str, Any], options: MeasureOptions, workers: Workers | None = None) -> None:
        self._launch = Launch(MODULE, options.compiler, options.build_memory_bytes, _ONE_THREAD)
        self._greeting = Frame({"type": "task", "task": dict(task)})
        self._workers, self._is_shared = workers or Workers(), workers is not None
        self._size, self._timeout_s = options.n_parallel, options.build_timeout_s

    @property
    def _pool(self) -> WorkerPool:
        return self._workers.pool(self._launch, self._size, self._greeting)

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return self._workers.pids

    def hosts(self) -> Set[str]:
        """This machine's name."""
        return {socket.gethostname()}

    def start(self) -> None:
        """Start the workers, without waiting for them."""
        self._pool.start()

    def build(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build]]:
        """Compile programs; each comes with its position, in the order in which they are done.

        Raises:
            TuningError: if no worker can be started.
        """
        return (made for made in self._made(programs, opt_level, LONGEST_WAIT_SECONDS) if made is not None)

    def arriving(self, programs: Sequence[Program], opt_level: int) -> Iterator[tuple[int, Build] | None]:
        """`build` that waits for nothing: None each time that none is done."""
        return self._made(programs, opt_level, 0.0)

    def _made(self, programs: Sequence[Program], opt_level: int, wait_s: float) -> Iterator[tuple[int, Build] | None]:
        jobs = [Job(n, _request(program, opt_level), self._timeout_s) for n, program in enumerate(programs)]
        retried: set[int] = set()
        pool = self._pool
        for job in jobs:
            pool.submit(job)
        try:
            for answer in pool.arriving(wait_s):
                if answer is None:
                    yield None
                # once only: a program that takes down every worker it meets must end
                elif isinstance(answer.reply, Death) and is_bystander(answer, answer.reply) and answer.key not in retried:
                    retried.add(answer.key)
                    pool.submit(jobs[answer.key])
                else:
                    yield answer.key, Build(_outcome(answer), answer.seconds)
        finally:
            # whoever asked has given up: the numbers of these jobs would be taken for those of the next ones
            if pool.is_busy:
                pool.close()

    def close(self) -> None:
        """Kill the workers, unless others use them too."""
        if not self._is_shared:
            self._workers.close()


def is_bystander(answer: Answer, death: Death) -> bool:
    """Whether a job may be innocent of its worker's death: somebody else killed it, or an earlier job may have spoilt it."""
    return not death.timed_out and death.signal != SIGALRM and (death.signal == SIGKILL or answer.served_before > 0)


def _request(program: Program, opt_level: int) -> Frame:
    own = {} if program.dag is None else {"dag": program.dag}
    return Frame({"type": "compile", "trace": program.steps, "opt_level": opt_level, **own})


def _outcome(answer: Answer) -> CompiledCandidate | Failure:
    match answer.reply:
        case Death() as death:
            error = MeasureErrorNo.BUILD_TIMEOUT if death.timed_out else MeasureErrorNo.COMPILE_HOST
            return Failure(error, f"the compile worker {_past(death)}", death.output)
        case Frame(header={"type": "compiled"}) as frame:
            return CompiledCandidate.from_frame(frame)
        case Frame(header=header):
            return refused(header, MeasureErrorNo.COMPILE_HOST)


def refused(header: Mapping[str, Any], otherwise: MeasureErrorNo) -> Failure:
    """The failure that a worker reports."""
    error = MeasureErrorNo.__members__.get(str(header.get("error")), otherwise)
    return Failure(error, str(header.get("message", "")), str(header.get("traceback", "")))


def _past(death: Death) -> str:
    return f"was {death.reason}" if death.reason.startswith("killed") else death.reason
