"""`tir.Schedule`: numbers that are decided. Each call draws a value, or takes the decision that it is given."""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.expr import Var
from ..handles import LoopRV
from .base import ScheduleBase, whole_numbers


class Samples(ScheduleBase):
    """Methods that sample."""

    def sample_perfect_tile(self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None) -> list[Var]:
        """n factors of a loop's extent, outermost first, each tiling as likely as any other.

        Args:
            loop: of constant extent; it stays as it is until `split` uses the factors.
            max_innermost_factor: the largest last factor.
            decision: the factors, instead of a draw.

        Raises:
            ScheduleError: if the loop has no constant extent, or the decision isn't n positive factors.
        """
        taken = None if decision is None else whole_numbers("the decision of a tiling", decision)
        return self.run("SamplePerfectTile", [loop], [n, max_innermost_factor], taken)  # type: ignore[return-value]

    def sample_partitioned_tile(
        self, loop: LoopRV, n: int, partition_pos: int = 0, innerpart_factor: int = 1, decision: Sequence[int] | None = None
    ) -> list[Var]:
        """n factors of a loop's extent, of which those from `partition_pos` on multiply to a multiple of `innerpart_factor`."""
        taken = None if decision is None else whole_numbers("the decision of a tiling", decision)
        return self.run("SamplePartitionedTile", [loop], [n, partition_pos, innerpart_factor], taken)  # type: ignore[return-value]

    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> Var:
        """One of some integers.

        Args:
            probs: one for each candidate.
            decision: the place of the choice in `candidates`, instead of a draw.

        Raises:
            ScheduleError: if there are not as many probabilities as candidates, or the decision is no place.
        """
        return self._one(Var, "SampleCategorical", [], [list(map(int, candidates)), list(map(float, probs))], decision)
