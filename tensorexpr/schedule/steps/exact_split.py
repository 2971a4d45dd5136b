"""A split without a guard."""

from __future__ import annotations

from typing import ClassVar

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ..domain import full_region, stage_domain
from ..exact import check_exact
from ..naming import PythonNames
from ..tree import Root, ScheduleTree, SplitRelation
from .base import stage_of
from .loops import Split


@dataclass(frozen=True)
class ExactSplit(Split):
    """A split whose user promises that the factors divide the extent, so that there is no guard (`disable_predication`).

    for i in n * 4:        ->     for i.outer in n:
        body(i)                       for i.inner in 4:
                                          body(i.outer*4 + i.inner)

    The promise is checked: of a stage at the root at once, of one at a loop of its consumer when it is lowered, as the
    part that it computes is known then.
    """

    code: ClassVar[str] = "exact_split"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """As `Split`, noted as exact. At the root it is checked here; elsewhere the extent is known only once the stage is placed."""
        result = super().apply(tree)
        stage = stage_of(result, self.stage, "split")
        made = stage.relations[-1]
        assert isinstance(made, SplitRelation)
        stage = replace(stage, relations=(*stage.relations[:-1], replace(made, exact=True)))
        if isinstance(stage.attach, Root):
            analyzer = Analyzer()
            check_exact(stage_domain(stage, full_region(stage), analyzer), analyzer)
        return result.with_stage(stage)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        lines = super().python(before, after, names)
        return [f"{line.removesuffix(')')}, disable_predication=True)" for line in lines]
