"""Design spaces: what the search asks of one (`Space`), and the space of a trace with open decisions (`Sketch`).

A program is a row of whole numbers, whatever the space: of a sketch the candidates of its decisions, of a template its knobs', of
traces of blocks the number of a program that was drawn. So one search loop (`tuner`) serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..dataclass import dataclass, replace
from ..errors import InternalError
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.steps import SampleCategorical, SampleTile, Sampling, Step
from ..schedule.tilings import factorizations
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree
from ..target import Target
from ..te.operation import Operation
from ..tir.arithmetic import as_int
from .features import Extracted, extract
from .features.nest import Bodies, IntArray
from .population import Decision, Rng, every_row, mutate, neighbours, sample, unique_rows

__all__ = ["Decision", "IntArray", "Rng", "Sketch", "Space"]

_DRAWN = 16  # rows of a sketch drawn for each that is wanted: some may not be built


class Space(Protocol):
    """A design space as the search sees it: programs are rows, int arrays [n, d]."""

    @property
    def preferred_row(self) -> tuple[int, ...] | None:
        """The program to try first; None if none is known."""

    @property
    def size(self) -> float:
        """The number of programs; infinite if it isn't known."""

    def sample(self, count: int, rng: Rng) -> IntArray:
        """Rows [count, d] at random; fewer if there are no more."""

    def drawn(self, count: int, rng: Rng, target: Target) -> IntArray:
        """Different rows at random that may be built: `count` if there are so many, and more where that costs nothing."""

    def mutate(self, rows: IntArray, rng: Rng) -> IntArray:
        """Each row [n, d] with one decision changed."""

    def neighbours(self, row: Sequence[int]) -> tuple[IntArray, IntArray]:
        """The rows [n, d] one change away from a row, and which decision each changes [n]."""

    def features(self, rows: IntArray, target: Target) -> Extracted:
        """What a model sees of a population, its analytic cost, and which rows may be built."""

    def program(self, row: Sequence[int]) -> Any:
        """The program of a row, as it is measured and as models see it that look at programs: a trace, or a `Computed`.

        Raises:
            TensorExprError: if the row makes none; that is its result.
        """


@dataclass(frozen=True, eq=False)
class Computed:
    """A program with a computation of its own, of the same inputs and results as the task's: see `measure.Program.dag`."""

    trace: Trace
    dag: Any


@dataclass(frozen=True, eq=False)
class Sketch:
    """A program whose trace has open decisions: a design space.

    Args:
        name: which rules made it, for people.
        outputs: the operations whose results are wanted.
        initial: the tree of the unscheduled program.
        trace: steps, some of them sampling steps without a decision.
        preferred: the values of the open decisions, in order, that make a program worth trying first; None if none is known.
        finish: what is done to a program when all decisions are made; it keeps the sampling steps and their order.
    """

    name: str
    outputs: tuple[Operation, ...]
    initial: ScheduleTree
    trace: Trace
    preferred: tuple[tuple[int, ...], ...] | None = None
    finish: Callable[[Trace], Trace] | None = None

    @cached_property
    def preferred_row(self) -> tuple[int, ...] | None:
        """The row of the program to try first."""
        if self.preferred is None:
            return None
        values = zip(self.preferred, self.decisions, strict=True)
        return tuple(decision.values.tolist().index(list(value)) for value, decision in values)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The open decisions in the order of their steps."""
        return self._replayed[0]

    @cached_property
    def _replayed(self) -> tuple[tuple[Decision, ...], ScheduleTree]:
        """The open decisions, and the tree in which they are variables."""
        found = []
        samples = 0
        tree = self.initial
        for number, step in enumerate(self.trace):
            if isinstance(step, Sampling):
                # decided samples have no column, but a number: values go to steps by that number
                if step.decision is None:
                    found.append(Decision(number, samples, _candidates(step, tree), isinstance(step, SampleTile)))
                samples += 1
            tree = step.apply(tree)
        return tuple(found), tree

    @cached_property
    def tree(self) -> ScheduleTree:
        """The tree with variables where decisions are open."""
        return self._replayed[1]

    @cached_property
    def bodies(self) -> Bodies:
        """The stages' bodies without reads of inlined stages."""
        return inline_stages(self.tree)

    def sample(self, count: int, rng: Rng) -> IntArray:
        """`count` uniformly drawn rows [count, d]; all rows if there are no more."""
        # A space of 100 programs is known whole after one population; drawing would leave out a third of it.
        return sample(self, count, rng) if self.size > count else every_row(self)

    def drawn(self, count: int, rng: Rng, target: Target) -> IntArray:
        """All different rows of some random ones that may be built."""
        # Validity is known only once features are computed, and one pass over many rows costs little more than one over a few.
        rows = unique_rows(sample(self, _DRAWN * count, rng))
        return np.asarray(rows[self.features(rows, target).valid], np.int64)

    def mutate(self, rows: IntArray, rng: Rng) -> IntArray:
        """Each row with one decision moved to a neighbouring candidate."""
        return mutate(self, rows, rng)

    def neighbours(self, row: Sequence[int]) -> tuple[IntArray, IntArray]:
        """The rows with one decision moved, and the decision of each."""
        return neighbours(self, row)

    def features(self, rows: IntArray, target: Target) -> Extracted:
        """Features, analytic cost and validity of a population, without lowering anything."""
        return extract(self, self.bodies, rows, target)

    def program(self, row: Sequence[int]) -> Trace:
        """The trace of a row."""
        return self.trace_of(row)

    @property
    def size(self) -> int:
        """The number of programs in the space."""
        total = 1
        for decision in self.decisions:
            total *= decision.count
        return total

    def sample_values(self, rows: IntArray) -> dict[int, IntArray]:
        """Sample number -> its values [n, parts] for a population [n, d]."""
        return {decision.sample: decision.values[rows[:, column]] for column, decision in enumerate(self.decisions)}

    def trace_of(self, row: Sequence[int] | IntArray) -> Trace:
        """The trace with all decisions made as in one row of a population."""
        # The sketch's trace with numbers in place of open values: no step is applied here, so that a trace of a row costs microseconds.
        steps: list[Step] = list(self.trace.steps)
        for choice, decision in zip(row, self.decisions, strict=True):
            step: Any = steps[decision.step]
            value = tuple(int(v) for v in decision.values[int(choice)])
            steps[decision.step] = replace(step, decision=_as_decision(step, int(choice), value))
        return Trace(tuple(steps)) if self.finish is None else self.finish(Trace(tuple(steps)))


def _as_decision(step: Sampling, choice: int, value: tuple[int, ...]) -> int | tuple[int, ...]:
    """A candidate as the step stores it."""
    if isinstance(step, SampleCategorical):
        return choice
    return value[0] if isinstance(step, SampleTile) else value


def _candidates(step: Sampling, tree: ScheduleTree) -> IntArray:
    if isinstance(step, SampleCategorical):
        return np.array(step.candidates, np.int64).reshape(-1, 1)
    if isinstance(step, SampleTile):
        return np.array(step.sizes, np.int64).reshape(-1, 1)
    axis = tree[step.stage].axes[step.axis]
    extent = as_int(axis.dom.extent) if axis.dom is not None else None
    if extent is None:
        raise InternalError(f"sample_perfect_tile of {axis.name}, whose extent is no constant")
    return np.array(factorizations(extent, step.parts, step.max_innermost), np.int64)
