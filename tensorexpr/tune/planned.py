"""Design spaces of rules whose choices are no steps of a trace, as layouts are made of them: tiles of matrix units.

A row tells the rule what to choose; its program is the trace that the rule makes of that, behind the choices themselves (`Knob` steps), so
that it can be replayed where no rule is asked. Programs are made when they are asked for.

    tile_m 128, tile_n 64, warp_m 64, ..., parts 4      ->      knob("tile_m", 4 of 5), ..., split(k, nparts=4), rfactor, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..schedule.steps import Knob
from ..schedule.trace import Trace
from ..target import Target
from ..te.operation import Operation
from .features import Extracted
from .population import Decision, Rng, mutate, neighbours, unique_rows
from .space import IntArray

Choice = tuple[int, ...]
_KEPT = 1 << 12  # programs that are kept: a search asks again for those that it measures


@dataclass(frozen=True, eq=False)
class Planned:
    """A space of a rule's choices (see `space.Space`).

    Args:
        name: for people.
        outputs: the operations whose results are wanted.
        knobs: the choices by name, and of each the numbers to choose from, ascending.
        choices: those that go together, [n, knobs], as numbers.
        preferred: the rule's own choice; None if it is none of them.
        make: the trace of a choice.
        seen: features, analytic cost and validity of choices [n, knobs].
    """

    name: str
    outputs: tuple[Operation, ...]
    knobs: Mapping[str, tuple[int, ...]]
    choices: IntArray
    preferred: Choice | None
    make: Callable[[Choice], Trace]
    seen: Callable[[IntArray, Target], Extracted]
    _made: dict[Choice, Trace] = field(default_factory=dict)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The knobs."""
        return tuple(Decision(n, n, np.array(values, np.int64).reshape(-1, 1), True) for n, values in enumerate(self.knobs.values()))

    @cached_property
    def _rows(self) -> IntArray:
        """All programs, by places of their choices."""
        columns = [np.searchsorted(values, self.choices[:, knob]) for knob, values in enumerate(self.knobs.values())]
        return np.asarray(np.stack(columns, axis=1), np.int64)

    @cached_property
    def _numbers(self) -> Any:
        return np.sort(self._number(self._rows))

    def _number(self, rows: IntArray) -> Any:
        """One number for each row."""
        return np.ravel_multi_index(rows.T, [len(values) for values in self.knobs.values()])

    def _there(self, rows: IntArray) -> Any:
        return np.isin(self._number(rows), self._numbers) if len(rows) else np.zeros(0, bool)

    @property
    def preferred_row(self) -> Choice | None:
        """The rule's own choice."""
        return None if self.preferred is None else self._row(self.preferred)

    @property
    def size(self) -> float:
        """The number of programs."""
        return float(len(self.choices))

    def sample(self, count: int, rng: Rng) -> IntArray:
        """Rows at random; all if there are no more. Every choice that is drawn fits the chip."""
        if self.size <= count:
            return self._rows
        return np.asarray(self._rows[rng.integers(0, len(self._rows), count)], np.int64)

    def drawn(self, count: int, rng: Rng, target: Target) -> IntArray:
        """Different rows at random."""
        return unique_rows(self.sample(2 * count, rng))

    def mutate(self, rows: IntArray, rng: Rng) -> IntArray:
        """Each row with one choice moved; as it was where nothing fits that."""
        made = mutate(self, rows, rng)
        return np.where(self._there(made)[:, None], made, rows)

    def neighbours(self, row: Sequence[int]) -> tuple[IntArray, IntArray]:
        """The rows with one choice moved, and which."""
        rows, axes = neighbours(self, row)
        there = self._there(rows)
        return rows[there], axes[there]

    def features(self, rows: IntArray, target: Target) -> Extracted:
        """What a model sees, the analytic cost, and which rows are programs: two parents may have children that don't fit."""
        there = self._there(rows)
        # what is no program looks like one that is
        found = self.seen(np.stack([self.choice(row) for row in np.where(there[:, None], rows, self._rows[:1])]), target)
        return Extracted(found.features, found.cycles, found.valid & there)

    def choice(self, row: Sequence[int] | IntArray) -> IntArray:
        """The numbers that a row chooses."""
        return np.array([values[int(place)] for values, place in zip(self.knobs.values(), row, strict=True)], np.int64)

    def program(self, row: Sequence[int]) -> Trace:
        """The trace of a row: its choices, and what the rule makes of them.

        Raises:
            TensorExprError: if it makes nothing of them.
        """
        places = tuple(int(place) for place in row)
        found = self._made.get(places)
        if found is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            steps = self.make(tuple(int(number) for number in self.choice(places)))
            knobs = zip(self.knobs.items(), places, strict=True)
            found = Trace((*(Knob(name, len(values), place) for (name, values), place in knobs), *steps))
            self._made[places] = found
        return found

    def find(self, trace: Trace) -> Choice | None:
        """The row of a program; None if it is none of these."""
        knobs = [step for step in trace if isinstance(step, Knob)]
        if [(knob.name, knob.candidates) for knob in knobs] != [(name, len(values)) for name, values in self.knobs.items()]:
            return None
        row = tuple(knob.decision for knob in knobs)
        return row if self._there(np.array([row], np.int64)).all() and self.program(row) == trace else None

    def _row(self, choice: Choice) -> Choice:
        return tuple(values.index(number) for values, number in zip(self.knobs.values(), choice, strict=True))


def without_knobs(trace: Trace) -> Trace:
    """What a rule made of its choices."""
    return Trace(tuple(step for step in trace if not isinstance(step, Knob)))
