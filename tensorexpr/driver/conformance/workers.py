"""Tests in processes of their own: one that crashes or hangs is a result, and the next one goes on."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ...dataclass import dataclass
from .cases import Case


@dataclass(frozen=True)
class Outcome:
    """What came of a test.

    Args:
        case: the test.
        passed: whether results were those expected.
        hosted: operators that ran on NumPy's arrays.
        error: why it didn't pass.
        seconds: that it took.
    """

    case: Case
    passed: bool
    hosted: tuple[str, ...]
    error: str
    seconds: float


def run_case(case: Case) -> tuple[bool, tuple[str, ...], str]:
    """Run a test here: whether it passed, what ran on NumPy's arrays, and the error."""
    from onnx.backend.test.runner import Runner

    from ...frontend.onnx.backend import Prepared

    hosted: set[str] = set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = case.model()
            prepared = Prepared(model)
            for inputs, expected in case.data_sets(model):
                found = prepared.run(inputs)
                hosted |= {name for _, name in prepared.executable.host_calls()}
                Runner.assert_similar_outputs(expected, list(found), case.source.rtol, case.source.atol)
    except (Exception, RecursionError) as error:  # whatever it is, it is why the test doesn't pass
        return False, tuple(sorted(hosted)), f"{type(error).__name__}: {error}"
    return True, tuple(sorted(hosted)), ""


def _work(cases: Sequence[Case], channel: Connection) -> None:
    """A process: tests by number, until None comes."""
    while (number := channel.recv()) is not None:
        begin = time.perf_counter()
        channel.send((*run_case(cases[number]), time.perf_counter() - begin))


class _Worker:
    """A process, and the test that it runs."""

    def __init__(self, cases: Sequence[Case]) -> None:
        context = multiprocessing.get_context("fork")  # which has the tests: to make them again takes seconds
        self.channel, other = context.Pipe()
        self.process = context.Process(target=_work, args=(cases, other), daemon=True)
        self.process.start()
        # before the next fork: a copy in another worker would keep the pipe open after this one crashed
        other.close()
        self.number, self.begin = -1, 0.0

    def start(self, number: int) -> None:
        """Let it run a test."""
        self.number, self.begin = number, time.perf_counter()
        self.channel.send(number)

    def end(self) -> None:
        """Stop the process."""
        self.process.kill()
        self.process.join()
        self.channel.close()


def run_cases(
    cases: Sequence[Case], jobs: int = 1, limit: float = 300.0, watch: Callable[[Outcome], None] = lambda one: None
) -> list[Outcome]:
    """Run tests in processes.

    Args:
        cases: the tests.
        jobs: how many processes.
        limit: seconds after which a test is stopped.
        watch: is told each outcome.

    Returns:
        the outcomes in the order of the tests.
    """
    outcomes: dict[int, Outcome] = {}
    # backwards, as they are popped from the end
    waiting = list(range(len(cases)))[::-1]
    workers: list[_Worker] = []

    def finish(worker: _Worker, found: Any) -> None:
        passed, hosted, error, seconds = found
        outcomes[worker.number] = Outcome(cases[worker.number], passed, hosted, error, seconds)
        watch(outcomes[worker.number])

    while waiting or workers:
        while waiting and len(workers) < max(1, jobs):
            workers.append(_Worker(cases))
            workers[-1].start(waiting.pop())
        ready = wait([worker.channel for worker in workers], timeout=1.0)
        for worker in list(workers):
            taken = time.perf_counter() - worker.begin
            # an answer comes before the limit: one that is there counts, though late
            if worker.channel in ready:
                try:
                    finish(worker, worker.channel.recv())
                    if waiting:
                        worker.start(waiting.pop())
                        continue
                except (EOFError, ConnectionError):
                    finish(worker, (False, (), "the process crashed", taken))
            elif taken < limit:
                continue
            else:
                finish(worker, (False, (), f"stopped after {limit:.0f} s", taken))
            worker.end()
            workers.remove(worker)
    return [outcomes[number] for number in sorted(outcomes)]
