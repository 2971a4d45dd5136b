"""The protocol of design spaces that explore themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ...schedule.blocks import Schedule


@runtime_checkable
class PopulationSpace(Protocol):
    """A design space that knows its programs better than by their traces, and explores them itself, as rows of its own making.

    A space generator may give such spaces beside schedules; `EvolutionarySearch` then asks them for programs.
    """

    def sample(self, n: int) -> Sequence[Any]:
        """n rows at random, or fewer if there are no more."""

    def evolve(self, n: int) -> Sequence[Any]:
        """The n rows that it takes to be the fastest of those it has not given before."""

    def to_schedule(self, row: Any) -> Schedule | None:
        """The program of a row; None if it makes none."""

    def learn(self, rows: Sequence[Any], costs: Sequence[float]) -> None:
        """Hear how long programs took, in seconds; infinite for those that failed."""
