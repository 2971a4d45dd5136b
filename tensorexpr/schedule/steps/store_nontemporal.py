"""The step that lets an output's vectors bypass the caches."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ..tree import ScheduleTree
from .base import StageStep, stage_of


@dataclass(frozen=True)
class StoreNontemporal(StageStep):
    """The vectors that an output stores go to memory past the caches, and without reading the lines they overwrite.

    for i in n: vectorised store C[i]   ->   if C is aligned: for i in n: non-temporal vectorised store C[i]; fence
                                             else:            for i in n: vectorised store C[i]

    It pays for outputs larger than the caches and costs those who read the result soon after. Vectors may not cross the
    end of a cache line: the code checks when it is called that the array starts at one (as those of `nd.empty` do), and
    when it is made the distances between vectors; where either fails, and for single elements and masked vectors, the
    stores are ordinary ones.
    """

    code: ClassVar[str] = "store_nontemporal"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage's mark.

        Raises:
            ScheduleError: if another stage reads the stage.
        """
        stage = stage_of(tree, self.stage, "store_nontemporal")
        if not stage.is_output:
            readers = ", ".join(s.name for s in tree.consumers(stage)) or "nothing"
            raise stage.refused(
                f"store_nontemporal is for outputs, which nobody reads soon; this one is read by {readers}, "
                "so its values belong in the cache"
            )
        return tree.with_stage(replace(stage, nontemporal=True))
