"""The step that fetches what a later iteration reads."""

from __future__ import annotations

from typing import Any, ClassVar

from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int
from ..memory_rules import check_prefetch
from ..naming import PythonNames
from ..tree import PrefetchMark, ScheduleTree, StageNode
from .base import StageStep, loops_of

MAX_OFFSET = 1 << 20


@dataclass(frozen=True)
class Prefetch(StageStep):
    """Each iteration of a loop asks for the cache lines of a tensor that the iteration `offset` later reads.

    for i in n:              ->     for i in n:
        C[i] = sum(A[i, :])             for line in A[i + offset, :]: prefetch(line)
                                        C[i] = sum(A[i, :])

    A prefetch is a hint: it changes no value, and past the end of the tensor it does nothing.
    """

    code: ClassVar[str] = "prefetch"
    producer: int
    output: int
    axis: int
    offset: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the mark in place of an earlier one of the same tensor and loop.

        Raises:
            ScheduleError: for a tensor that the loop doesn't read, or an offset out of range.
        """
        stage = loops_of(tree, self.stage, (self.axis,), "prefetch")
        if not 0 <= self.producer < len(tree.stages) or not 0 <= self.output < tree[self.producer].origin.num_outputs:
            raise stage.refused(f"prefetch of output {self.output} of stage {self.producer}, which the schedule hasn't")
        if not 1 <= self.offset <= MAX_OFFSET:
            raise stage.refused(f"prefetch takes an offset of 1 to {MAX_OFFSET} iterations, not {self.offset}")
        mark = PrefetchMark(self.producer, self.output, self.axis, self.offset)
        others = tuple(m for m in stage.prefetches if (m.producer, m.output, m.axis) != (self.producer, self.output, self.axis))
        made = tree.with_stage(replace(stage, prefetches=(*others, mark)))
        check_prefetch(made, made[self.stage], mark)
        return made

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, producer = after[self.stage], after[self.producer]
        tensor = names.stage(producer) if producer.origin.num_outputs == 1 else f"{names.stage(producer)}.op.output({self.output})"
        return [f"s[{names.stage(stage)}].prefetch({tensor}, {names.axis(stage, self.axis)}, {self.offset})"]


def checked_offset(stage: StageNode, offset: Any) -> int:
    """The distance of a prefetch as the step stores it.

    Raises:
        ScheduleError: for anything but an integer.
    """
    value = None if isinstance(offset, bool) else as_int(offset)
    if value is None:
        raise stage.refused(f"prefetch takes its offset as a number of iterations, not {offset!r}")
    return value
