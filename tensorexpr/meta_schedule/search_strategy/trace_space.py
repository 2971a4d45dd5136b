"""The programs of traces as a space of `tune`'s search loop: a row is the number of a program that was made."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence

import numpy as np

from ...dataclass import dataclass, field
from ...target import Target
from ...tune.features import Extracted
from ...tune.space import IntArray, Rng
from ..cost_model.analytic import log_throughput
from .population import Individual, Programs

_NEIGHBOURS = 16  # a program has more than anybody would measure


@dataclass(eq=False)
class TraceSpace:
    """Programs that are drawn and varied one by one, and known by numbers: rows are [n, 1] (see `tune.space.Space`).

    Making a program takes milliseconds, so a search may be given a moment at which it has to be done.

    Args:
        programs: varies programs.
        draw: makes one at random; None where its decisions make none.
        max_draw_failures, max_variation_failures: vain attempts after which drawing, or varying a population, ends.
        least: programs that a population starts with at least, however long it takes.
        known: what programs are known by that are not wanted at all.
        distinct: a program that was made before keeps its number; else each draw is a program of its own.
        made: the programs, by their numbers.
    """

    programs: Programs
    draw: Callable[[], Individual | None]
    max_draw_failures: int
    max_variation_failures: int = 100
    least: int = 1
    known: Collection[str] = ()
    distinct: bool = True
    made: list[Individual] = field(default_factory=list)
    preferred_row: tuple[int, ...] | None = None
    _by_key: dict[str, int] = field(default_factory=dict)
    _by_hash: dict[int, int] = field(default_factory=dict)  # different decisions may make the same program
    _deadline: float = math.inf
    _turns: int = 1

    def begin(self, seconds: float | None, generations: int) -> None:
        """Let the next populations take no longer than so many seconds: a third for the first, the rest for those bred from it."""
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._turns = max(1, generations)

    def add(self, individual: Individual) -> int:
        """The number of a program."""
        if not self.distinct:
            self.made.append(individual)
            return len(self.made) - 1
        number = self._by_key.get(individual.key)
        if number is None:
            # other decisions that make the same program share its number, so that it is measured once
            number = self._by_key[individual.key] = self._by_hash.setdefault(individual.program_hash, len(self.made))
            if number == len(self.made):
                self.made.append(individual)
        return number

    @property
    def size(self) -> float:
        """Not known: each draw may make another program."""
        return math.inf

    def sample(self, count: int, rng: Rng) -> IntArray:
        """Up to `count` programs at random, as many as there is time for."""
        now = time.monotonic()
        return self._drawn(count, now + (self._deadline - now) / 3)

    def drawn(self, count: int, rng: Rng, target: Target) -> IntArray:
        """Up to `count` programs at random, however long it takes."""
        return self._drawn(count, math.inf)

    def _drawn(self, count: int, end: float) -> IntArray:
        found: dict[int, None] = {}
        failed = 0
        while len(found) < count and failed < self.max_draw_failures and (len(found) < self.least or time.monotonic() < end):
            made = self.draw()
            number = None if made is None or made.key in self.known else self.add(made)
            if number is None or number in found:
                failed += 1
                continue
            failed = 0
            found[number] = None
        return _rows(found)

    def mutate(self, rows: IntArray, rng: Rng) -> IntArray:
        """Each program varied, as many as there is time for; the others as they were."""
        now, failed = time.monotonic(), 0
        # what is left of the time is shared by the generations that are still to come
        end = now + (self._deadline - now) / self._turns
        self._turns = max(1, self._turns - 1)
        result = np.array(rows)
        for place, (number,) in enumerate(rows.tolist()):
            if time.monotonic() >= end or failed >= self.max_variation_failures:
                break
            child = self.programs.varied(self.made[number])
            if child is None or child.key in self.known:
                failed += 1
            else:
                result[place, 0] = self.add(child)
        return result

    def neighbours(self, row: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Some programs that differ from one in a decision."""
        made = (self.programs.varied(self.made[row[0]]) for _ in range(_NEIGHBOURS))
        rows = _rows(dict.fromkeys(self.add(child) for child in made if child is not None))
        return rows, np.zeros(len(rows), np.int64)

    def features(self, rows: IntArray, target: Target) -> Extracted:
        """The analytic cost of programs. They have no features: models that learn look at the programs themselves."""
        logs = np.array([log_throughput(self.made[int(row[0])].sch.mod, target) for row in rows], np.float64)
        return Extracted(np.zeros((len(rows), 0)), np.exp(-logs), np.ones(len(rows), np.bool_))

    def program(self, row: Sequence[int]) -> Individual:
        """The program of a number."""
        return self.made[int(row[0])]


def _rows(numbers: Collection[int]) -> IntArray:
    return np.array(list(numbers), np.int64).reshape(len(numbers), 1)
