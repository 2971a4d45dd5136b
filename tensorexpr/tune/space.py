"""Design spaces: a sketch is a trace with open decisions, a decision is a column of candidates.

A population over a sketch is an int array [n, d] of candidate numbers: row r chooses candidate rows[r, c] for
decision c. Everything that search does to programs (sampling, mutation, crossover, features) works on such arrays;
a trace is made only of what is to be built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InternalError
from ..schedule.steps import SampleCategorical, SampleTile, Sampling, Step
from ..schedule.tilings import divisors, factorizations
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree
from ..te.operation import Operation
from ..tir.arithmetic import as_int

IntArray = npt.NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Decision:
    """One open sampling step: `values[c]` is what candidate c stands for, `sample` its number among the samples.

    Candidates that are `ordered` are sizes: neighbours are much alike.
    """

    step: int
    sample: int
    values: IntArray  # [candidates, parts]
    ordered: bool = False

    @property
    def count(self) -> int:
        """The number of candidates."""
        return len(self.values)

    @cached_property
    def neighbours(self) -> tuple[IntArray, IntArray]:
        """Per candidate the candidates one move away, padded [candidates, most], and how many there are.

        A move on a tiling takes a factor from one level to another, on a tile it is one of the nearest sizes; on a
        categorical it is any other choice.
        """
        if self.ordered:
            lists = [[c for c in (own - 2, own - 1, own + 1, own + 2) if 0 <= c < self.count] for own in range(self.count)]
        elif self.values.shape[1] == 1:
            lists = [[c for c in range(self.count) if c != own] for own in range(self.count)]
        else:
            numbers = {tuple(value): number for number, value in enumerate(self.values.tolist())}
            lists = [_moves(tuple(value), numbers) for value in self.values.tolist()]
        most = max(1, max(map(len, lists)))
        padded = np.zeros((self.count, most), np.int64)
        for own, found in enumerate(lists):
            padded[own] = np.resize(found, most) if found else own
        return padded, np.array([max(1, len(found)) for found in lists], np.int64)


def _moves(value: tuple[int, ...], numbers: dict[tuple[int, ...], int]) -> list[int]:
    found: dict[int, None] = {}
    for source, amount in enumerate(value):
        for factor in divisors(amount)[1:]:
            for sink in range(len(value)):
                if sink != source:
                    moved = list(value)
                    moved[source] //= factor
                    moved[sink] *= factor
                    number = numbers.get(tuple(moved))
                    if number is not None:
                        found[number] = None
    return list(found)


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
                if step.decision is None:
                    found.append(Decision(number, samples, _candidates(step, tree), isinstance(step, SampleTile)))
                samples += 1
            tree = step.apply(tree)
        return tuple(found), tree

    @cached_property
    def tree(self) -> ScheduleTree:
        """The tree with variables where decisions are open."""
        return self._replayed[1]

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
