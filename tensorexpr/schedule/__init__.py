"""Schedules: an immutable tree derived from a trace of steps, and the façades that users write them with.

tree         stages, axes, loops and where stages are computed
steps/       the primitives: frozen records that check, apply, print and serialise themselves
trace        a sequence of steps; replaying it on an equal program gives the same tree
domain       extents, values and guards of axes, given the region to compute
balanced     tiles of two sizes: their starts, extents and the guard between them
memory_rules, memory_words   prefetches, rolling buffers, store predicates, non-temporal stores: laws, and words for people
axis_expression              expressions over a stage's axes as plain data
legality     what must hold of a whole tree
te_schedule  `te.create_schedule` and the primitives on `s[C]`
draw         `print(s)`
auto_inline  inline by kind of stage
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .auto_inline import AutoInlineBroadcast, AutoInlineElemWise, AutoInlineInjective
from .te_schedule import Schedule, Stage, create_schedule
from .trace import Trace
from .tree import ScheduleTree

if TYPE_CHECKING:
    from ..lower.phase0.views import InferBound, ScheduleOps

__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "InferBound",
    "Schedule",
    "ScheduleOps",
    "ScheduleTree",
    "Stage",
    "Trace",
    "create_schedule",
]

# Names that users look for here but that live in a higher row; loaded when they are first asked for.
_HIGHER = {name: "tensorexpr.lower.phase0.views" for name in ("InferBound", "ScheduleOps")}


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module 'tensorexpr.schedule' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HIGHER[name]), name)
    globals()[name] = value
    return value
