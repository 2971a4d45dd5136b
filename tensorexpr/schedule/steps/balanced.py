"""The step that cuts an axis into tiles of nearly equal size."""

from __future__ import annotations

from typing import ClassVar

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ..domain import axis_extents
from ..factors import Factor
from ..naming import PythonNames
from ..tree import ScheduleTree, SplitRelation
from .base import StageStep
from .loops import Split


@dataclass(frozen=True)
class BalancedSplit(StageStep):
    """One axis becomes a loop over tiles and a loop inside a tile, with tile sizes that differ by at most one.

    factors is (None, f): as few tiles as sizes of at most f allow; or (p, None): p tiles. The larger tiles come first.

        for i in n:            ->     for i.outer in p:                                # p = ceil(n / f), s = n // p, r = n % p
            body(i)                       for i.inner in s + 1:
                                              if i.inner < s or i.outer < r: body(i.outer*s + min(i.outer, r) + i.inner)

    Where `Split` leaves a thin last tile (1009 = 72*14 + 1), this one makes 60 tiles of 14 and 13 of 13. Stages that are
    computed at i.outer have tiles of the same two sizes. Loop partition gives each size a body with constant extents.
    """

    code: ClassVar[str] = "balanced_split"
    axis: int
    factors: tuple[Factor, ...]

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """As `Split`, noted as balanced.

        Raises:
            ScheduleError: for more than two parts, or an extent that is no constant.
        """
        if len(self.factors) != 2:
            name = tree[self.stage].name if 0 <= self.stage < len(tree.stages) else self.stage
            raise ScheduleError(
                f"In schedule for {name}: a balanced split makes two parts, got {len(self.factors)}; split one of the parts again"
            )
        result = Split(self.stage, self.axis, self.factors).apply(tree)
        stage = result[self.stage]
        *others, made = stage.relations
        assert isinstance(made, SplitRelation)
        stage = replace(stage, relations=(*others, replace(made, balanced=True)))
        axis_extents(stage, Analyzer())  # refuses an extent that is no constant
        return result.with_stage(stage)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return [f"{line[:-1]}, balanced=True)" for line in Split(self.stage, self.axis, self.factors).python(before, after, names)]
