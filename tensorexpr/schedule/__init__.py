"""Schedules: an immutable tree derived from a trace of steps, and the façades that users write them with.

tree         stages, axes, loops and where stages are computed
steps/       the primitives: frozen records that check, apply, print and serialise themselves
trace        a sequence of steps; replaying it on an equal program gives the same tree
domain       extents, values and guards of axes, given the region to compute
legality     what must hold of a whole tree
te_schedule  `te.create_schedule` and the primitives on `s[C]`
draw         `print(s)`
"""

from .te_schedule import Schedule, Stage, create_schedule
from .trace import Trace
from .tree import ScheduleTree

__all__ = ["Schedule", "ScheduleTree", "Stage", "Trace", "create_schedule"]
