"""Populations over decisions: a decision is a column of candidates, a population an int array [n, d] of candidate numbers.

Row r of a population chooses `decisions[c].values[rows[r, c]]` for decision c. Sampling, mutation and crossover are array
operations; a program is made only of what is to be built.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from ..dataclass import dataclass
from ..schedule.tilings import divisors
from .features.nest import IntArray

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
            # Two steps either way: where 6 and 7 rows do about the same, 8 may be the next that differs.
            lists = [[c for c in (own - 2, own - 1, own + 1, own + 2) if 0 <= c < self.count] for own in range(self.count)]
        elif self.values.shape[1] == 1:
            lists = [[c for c in range(self.count) if c != own] for own in range(self.count)]
        else:
            numbers = {tuple(value): number for number, value in enumerate(self.values.tolist())}
            lists = [_moves(tuple(value), numbers) for value in self.values.tolist()]
        most = max(1, max(map(len, lists)))
        padded = np.zeros((self.count, most), np.int64)
        for own, found in enumerate(lists):
            # Repeated to the same length, so that a table serves a whole population; `counts` keeps the repeats out of the draw.
            padded[own] = np.resize(found, most) if found else own
        return padded, np.array([max(1, len(found)) for found in lists], np.int64)


def _moves(value: tuple[int, ...], numbers: dict[tuple[int, ...], int]) -> list[int]:
    found: dict[int, None] = {}
    for source, amount in enumerate(value):
        # Products stay what they were: 4 x 8 -> 2 x 16, so that every move is a tiling of the same extent.
        for factor in divisors(amount)[1:]:
            for sink in range(len(value)):
                if sink != source:
                    moved = list(value)
                    moved[source] //= factor
                    moved[sink] *= factor
                    # some moves leave the space, such as those that make the innermost part longer than it may be
                    number = numbers.get(tuple(moved))
                    if number is not None:
                        found[number] = None
    return list(found)


class Decided(Protocol):
    """A space whose programs are rows of candidate numbers: a sketch, or a template with knobs."""

    @property
    def decisions(self) -> Sequence[Decision]:
        """What is open, a column each."""


def sample(space: Decided, count: int, rng: Rng) -> IntArray:
    """`count` uniformly drawn rows [count, d]."""
    rows = np.zeros((count, len(space.decisions)), np.int64)
    for column, decision in enumerate(space.decisions):
        rows[:, column] = rng.integers(0, decision.count, count)
    return rows


def every_row(space: Decided) -> IntArray:
    """All rows [n, d], for spaces with few of them."""
    counts = [decision.count for decision in space.decisions]
    # a space without decisions has one program, the empty row
    rows = np.array(np.unravel_index(np.arange(prod(counts)), counts or [1]), np.int64)
    return np.asarray(rows.T.reshape(prod(counts), -1)[:, : len(counts)], np.int64)


def mutate(space: Decided, rows: IntArray, rng: Rng) -> IntArray:
    """Each row with one decision moved to a neighbouring candidate; decisions with more candidates move more often."""
    if not space.decisions or not len(rows):
        return np.array(rows)
    # A decision of one candidate weighs nothing; one of 1,000 ten times as much as one of two.
    weights = np.log2(np.array([decision.count for decision in space.decisions], float))
    # decisions with one candidate each: there is nowhere to move
    if not weights.any():
        return np.array(rows)
    which = rng.choice(len(weights), len(rows), p=weights / weights.sum())
    result = np.array(rows)
    for column, decision in enumerate(space.decisions):
        hit = np.flatnonzero(which == column)
        if len(hit):
            table, counts = decision.neighbours
            own = rows[hit, column]
            result[hit, column] = table[own, rng.integers(0, counts[own])]
    return result


def crossover(first: IntArray, second: IntArray, rng: Rng) -> IntArray:
    """Rows that take each decision from one of two parents [n, d]."""
    # Decision by decision, as columns mean the same in both parents; one cut through the row would keep the first columns together.
    return np.asarray(np.where(rng.random(first.shape) < 0.5, first, second), np.int64)


def unique_rows(rows: IntArray) -> IntArray:
    """The distinct rows in order of first appearance."""
    if not len(rows) or not rows.shape[1]:
        return rows[:1]
    # `unique` sorts by content; the places of first appearance, sorted, bring the order back
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def neighbours(space: Decided, row: Sequence[int]) -> tuple[IntArray, IntArray]:
    """The rows [n, d] with one decision moved to a neighbouring candidate, and the decision of each [n]."""
    rows, axes = [], []
    for axis, decision in enumerate(space.decisions):
        table, counts = decision.neighbours
        for choice in dict.fromkeys(table[row[axis], : counts[row[axis]]].tolist()):
            if choice != row[axis]:
                rows.append([*row[:axis], choice, *row[axis + 1 :]])
                axes.append(axis)
    return np.array(rows, np.int64).reshape(len(rows), len(row)), np.array(axes, np.int64)
