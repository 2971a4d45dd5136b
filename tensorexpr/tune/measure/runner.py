"""Object code to costs, in the measuring process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from signal import SIGALRM
from typing import TYPE_CHECKING, Any

from ...spaces.gpu import is_gpu
from ...target import Target
from .arrays import StoredArray
from .builder import Failure, is_bystander, refused
from .compiled import CompiledCandidate
from .errors import MeasureErrorNo
from .pool import Answer, Job, WorkerPool
from .process import Death, Launch
from .protocol import Frame
from .results import MeasureOptions
from .workers import Workers

if TYPE_CHECKING:
    from .places import Subject

MODULE = "tensorexpr.tune.measure.run_worker"


class Runner:
    """The measuring process as one task uses it, replaced when a candidate takes it down; where nobody shares his, it is its own."""

    def __init__(
        self, task: Subject, arrays: Sequence[StoredArray], options: MeasureOptions, folder: Path, workers: Workers | None = None
    ) -> None:
        greeting = {
            "type": "task",
            "arrays": [array.to_json() for array in arrays],
            "policy": options.timing.to_json(),
            "folder": str(folder),
            "threads": min(Target("llvm").num_cores, task.target.num_cores),
        }
        self._on_gpu = is_gpu(task.target)
        if self._on_gpu:
            greeting["device"] = options.device
        # Each array is there once, each output's expected values too, and comparing takes some of its size.
        memory = options.run_memory_bytes + 4 * task.array_bytes
        if workers is not None:  # the next task may be larger: while it takes up to twice as much, the process serves it too
            memory = 1 << memory.bit_length()
        # a driver of GPUs reserves more than it takes
        self._launch, self._greeting = Launch(MODULE, memory_bytes=0 if self._on_gpu else memory), Frame(greeting)
        self._workers, self._is_shared = workers or Workers(), workers is not None
        self._timeout_s, self._timing = options.run_timeout_s, options.timing

    @property
    def _pool(self) -> WorkerPool:
        return self._workers.pool(self._launch, 1, self._greeting)

    @property
    def pids(self) -> list[int]:
        """The process id of the worker, if it runs."""
        return self._workers.pids

    def start(self) -> None:
        """Start the process, without waiting for it."""
        self._pool.start()

    def run(self, candidate: CompiledCandidate, best: float) -> tuple[dict[str, Any] | Failure, float]:
        """Check and time a candidate: what the worker says of it, and the seconds it took.

        A candidate that dies in a process where others ran before gets a second chance in a fresh one; and after a
        wrong answer the process is replaced, since nobody knows what else was written. So it is after any failure on a GPU, whose
        context is of no use any more.
        """
        request = Frame(
            {"type": "run", "kernels": [candidate.header()], "best": best if math.isfinite(best) else None}, (candidate.object_code,)
        )
        answer = self._ask(request, self._timeout_s)
        if isinstance(answer.reply, Death) and is_bystander(answer, answer.reply):
            answer = self._ask(request, self._timeout_s)
        outcome = self._stopped(answer, best) or _outcome(answer)
        if isinstance(outcome, Failure) and (self._on_gpu or outcome.error_no == MeasureErrorNo.WRONG_ANSWER):
            self._pool.replace_workers()
        if isinstance(answer.reply, Death):
            self._pool.start()  # while the next candidates are chosen and compiled
        return outcome, answer.seconds

    def _stopped(self, answer: Answer, best: float) -> Failure | None:
        """The failure of a candidate whose first call was stopped (`Bench.check`)."""
        if not isinstance(answer.reply, Death) or answer.reply.signal != SIGALRM:
            return None
        limit, factor = self._timing.first_call_limit(best), self._timing.stop_factor
        why = f"{factor:g} times the best" if limit <= factor * best else f"more than {factor:g} times the best"
        return Failure(MeasureErrorNo.RUN_TIMEOUT, f"stopped after {limit:.3g} s, {why}", stopped_s=limit)

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]] | Failure:
        """Costs of candidates that ran before, measured in turn `rounds` times.

        Args:
            candidates: what to run.
            costs: seconds per call as measured before.
            rounds: costs of each; more rounds are run, and the most disturbed left out.
            offsets: bytes into a cache line at which the arrays begin, one after the other in each round.
        """
        header = {"type": "interleave", "costs": list(costs), "rounds": rounds, "offsets": list(offsets)}
        header["kernels"] = [c.header() for c in candidates]
        request = Frame(header, tuple(c.object_code for c in candidates))
        answer = self._ask(request, self._timeout_s * max(1, len(candidates)))
        outcome = _outcome(answer)
        return outcome if isinstance(outcome, Failure) else outcome["costs"]

    def close(self) -> None:
        """Kill the process, unless others use it too."""
        if not self._is_shared:
            self._workers.close()

    def _ask(self, request: Frame, limit_s: float) -> Answer:
        pool = self._pool
        pool.submit(Job(0, request, limit_s))
        return next(iter(list(pool.answers())))


def _outcome(answer: Answer) -> dict[str, Any] | Failure:
    match answer.reply:
        case Death(timed_out=True) as death:
            return Failure(MeasureErrorNo.RUN_TIMEOUT, f"the candidate {death.reason}", death.output)
        case Death() as death:
            return Failure(MeasureErrorNo.RUNTIME_DEVICE, f"the candidate took its process down: {death.reason}", death.output)
        case Frame(header={"type": "failed"} as header):
            return refused(header, MeasureErrorNo.RUNTIME_DEVICE)
        case Frame(header=header):
            return dict(header)
