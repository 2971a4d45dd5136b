"""The step that keeps what consecutive visits of a stage have in common."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ..tree import At, ScheduleTree
from .base import StageStep, stage_of


@dataclass(frozen=True)
class RollingBuffer(StageStep):
    """A stage computed at a loop of its consumer keeps the elements that the next iteration needs again.

    for i in n:                               A = window of 3
        for k in 3: A[i + k] = ...      ->    for i in n:
        B[i] = A[i] + A[i + 2]                    if i == 0: for k in 2: A[k % 3] = ...
                                                  A[(i + 2) % 3] = ...
                                                  B[i] = A[i % 3] + A[(i + 2) % 3]

    The storage is a window of the needed size, used round and round. The loop has to run in order, and from one
    iteration to the next the needed box has to move along one dimension by a constant that is less than its size.
    """

    code: ClassVar[str] = "rolling_buffer"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage's mark; how far it rolls, lowering finds from the regions.

        Raises:
            ScheduleError: if the stage isn't at a loop of its consumer.
        """
        stage = stage_of(tree, self.stage, "rolling_buffer")
        if not isinstance(stage.attach, At):
            raise stage.refused("rolling_buffer needs the stage at a loop of its consumer; use compute_at first")
        return tree.with_stage(replace(stage, rolling_buffer=True))
