"""Parts of a search that do nothing, for tests of the others."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...schedule.blocks import Trace
from ..builder import BuilderInput, BuilderResult, PyBuilder
from ..mutator import PyMutator
from ..runner import PyRunner, PyRunnerFuture, RunnerFuture, RunnerInput, RunnerResult


class DummyRunnerFuture(PyRunnerFuture):
    """A result that was made up."""

    def done(self) -> bool:
        """True."""
        return True

    def result(self) -> RunnerResult:
        """A random time between 5 and 30 seconds."""
        return RunnerResult([random.uniform(5, 30)], None)


class DummyBuilder(PyBuilder):
    """Builds nothing."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """A path without a file for each program."""
        return [BuilderResult("test_path", None) for _ in build_inputs]


class DummyRunner(PyRunner):
    """Runs nothing."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """A made up result for each program."""
        return [DummyRunnerFuture() for _ in runner_inputs]


class DummyMutator(PyMutator):
    """Forgets all decisions of a program, so that they are drawn again."""

    def apply(self, trace: Trace, rand_state: int = -1) -> Trace | None:
        """The program with its decisions open."""
        return Trace(trace.insts, {})

    def clone(self) -> DummyMutator:
        """Another one."""
        return DummyMutator()
