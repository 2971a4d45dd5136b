"""Programs on one thread, for work that is done before others have been woken."""

from __future__ import annotations

from math import prod

from ...schedule.steps import Annotate
from ...schedule.trace import Trace
from ...schedule.tree import ScheduleTree
from ...spaces.stages import extents

# Iterations that a core does in some ten microseconds, 16 at a time; a fork and join takes one, and more on a busy machine.
FEW_ITERATIONS = 1 << 20


def is_little_work(tree: ScheduleTree) -> bool:
    """True if threads may cost more than they save."""
    return sum(prod(extents(stage, [*stage.spatial, *stage.reduction])) for stage in tree.stages if stage.has_loops) <= FEW_ITERATIONS


def on_one_thread(trace: Trace) -> Trace | None:
    """The same program without parallel loops; None if it has none."""
    steps = tuple(step for step in trace if not (isinstance(step, Annotate) and step.kind == "parallel"))
    return Trace(steps) if len(steps) < len(trace) else None
