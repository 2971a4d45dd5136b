"""How a stage's elements are stored: in two buffers that take turns, with aligned strides."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ..naming import PythonNames
from ..tree import Inline, ScheduleTree, StageNode
from .base import StageStep, stage_of

MAX_COPIES = 16
"""Of a stage's storage; more iterations ahead hide no latency that there is."""
MAX_ALIGN_FACTOR = 1 << 16
"""Elements; strides grow by up to the factor, so a larger one would waste memory only."""


def _check_own_storage(stage: StageNode, primitive: str) -> None:
    """Refuse stages whose elements live where the caller says, or nowhere."""
    if stage.is_output:
        raise stage.refused(
            f"{primitive} is about storage that the schedule makes, but the elements of an output live "
            "in the caller's array; use cache_write and schedule the stage that it makes"
        )
    if isinstance(stage.attach, Inline):
        raise stage.refused(f"{primitive} needs storage, but the stage is inlined; use compute_root or compute_at first")


@dataclass(frozen=True)
class DoubleBuffer(StageStep):
    """A stage at a loop of its consumer has two copies of its storage: one is filled for the next iteration while the other is read.

    for i in n:                  ->     A[0, ...] = f(0)
        A[...] = f(i)                   for i in n - 1:
        B[i] = g(A[...])                    A[(i + 1) % 2, ...] = f(i + 1)
                                            B[i] = g(A[i % 2, ...])
                                        B[n - 1] = g(A[(n - 1) % 2, ...])
    """

    code: ClassVar[str] = "double_buffer"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage's mark.

        Raises:
            ScheduleError: for a stage without storage of its own, or with several outputs.
        """
        return _buffered(tree, self.stage, "double_buffer", 2)


@dataclass(frozen=True)
class MultiBuffer(StageStep):
    """A stage at a loop of its consumer has several copies of its storage, all but one of which are filled for iterations ahead.

    for i in n:                  ->     A[0, ...] = f(0);  A[1, ...] = f(1)
        A[...] = f(i)                   for i in n:
        B[i] = g(A[...])                    if i + 2 < n: A[(i + 2) % 3, ...] = f(i + 2)
                                            B[i] = g(A[i % 3, ...])
    """

    code: ClassVar[str] = "multi_buffer"
    copies: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage's mark.

        Raises:
            ScheduleError: for a number of copies that is none, and for what `DoubleBuffer` refuses.
        """
        if not 2 <= self.copies <= MAX_COPIES:
            raise stage_of(tree, self.stage, "multi_buffer").refused(f"multi_buffer makes 2 to {MAX_COPIES} copies, not {self.copies}")
        return _buffered(tree, self.stage, "multi_buffer", self.copies)

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        return str(self.copies)


def _buffered(tree: ScheduleTree, number: int, primitive: str, copies: int) -> ScheduleTree:
    stage = stage_of(tree, number, primitive)
    _check_own_storage(stage, primitive)
    if stage.origin.num_outputs != 1:
        raise stage.refused(f"{primitive} takes a stage with one output, this one has {stage.origin.num_outputs}")
    return tree.with_stage(replace(stage, double_buffer=copies))


@dataclass(frozen=True)
class StorageAlign(StageStep):
    """The stride of an axis of a stage's storage is made `k * factor + offset`, by leaving elements unused.

    A: 4 x 6, strides 6, 1    ->    storage_align(axis 0, factor 8, offset 1): strides 9, 1
    """

    code: ClassVar[str] = "storage_align"
    axis: int
    factor: int
    offset: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the alignment, in place of an earlier one of that axis.

        Raises:
            ScheduleError: for an axis that is no dimension of the storage, or a factor or offset out of range.
        """
        stage = stage_of(tree, self.stage, "storage_align")
        _check_own_storage(stage, "storage_align")
        if self.axis not in stage.spatial:
            name = stage.axes[self.axis].name if 0 <= self.axis < len(stage.axes) else self.axis
            dimensions = ", ".join(stage.axes[axis].name for axis in stage.spatial) or "none"
            raise stage.refused(f"storage_align takes a dimension of the stage's storage, not {name!r}; dimensions: {dimensions}")
        if not (1 <= self.factor <= MAX_ALIGN_FACTOR and 0 <= self.offset < self.factor):
            raise stage.refused(
                f"storage_align with factor {self.factor} and offset {self.offset}; "
                f"it takes a factor of 1 to {MAX_ALIGN_FACTOR} elements and an offset of 0 to factor - 1"
            )
        others = tuple(item for item in stage.aligns if item[0] != self.axis)
        return tree.with_stage(replace(stage, aligns=tuple(sorted((*others, (self.axis, self.factor, self.offset))))))

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        return f"{names.axis(stage, self.axis)}, {self.factor}, {self.offset}"
