"""Schedules: an immutable tree derived from a trace of steps, and the façades that users write them with.

tree         stages, axes, loops and where stages are computed
steps/       the primitives: frozen records that check, apply, print and serialise themselves
trace        a sequence of steps; replaying it on an equal program gives the same tree
domain       extents, values and guards of axes, given the region to compute
balanced     tiles of two sizes: their starts, extents and the guard between them
memory_rules, memory_words   prefetches, rolling buffers, store predicates, non-temporal stores: laws, and words for people
axis_expression              expressions over a stage's axes as plain data
intrinsic_match              what an intrinsic computes against what a program does; both engines ask it
scans        what recurrences ask of a schedule
legality     what must hold of a whole tree; of threads, double buffers and intrinsics: thread_legality,
             buffering_legality, tensorize_legality
exact        splits that promise to need no guard;  tilings, the factors of an extent
given_layouts, tiled_layout, layout_rewrite   inputs that are passed, or copied, in the layout in which tiles read them
te_schedule  `te.create_schedule` and the primitives on `s[C]`; stage_views, what `s[C]` looks like; group, stages placed together
read_graph   the graph of operations, and what scans look like, for programs that ask
draw         `print(s)`;  explain, why it is legal;  naming, Python names for stages and axes
projection   a part of a stage's loops as those of another;  lane_reduction, reductions in the lanes of a vector
blocks/      `tir.Schedule`: programs of blocks and their primitives
auto_inline  inline by kind of stage
"""

from typing import TYPE_CHECKING

from ..arith.index_map import AXIS_SEPARATOR
from ..later import later
from ..te.specialized_condition import SpecializedCondition
from ..tir.buffer import Buffer
from .auto_inline import AutoInlineBroadcast, AutoInlineElemWise, AutoInlineInjective
from .group import Group
from .read_graph import CreateAttachPath, CreateReadGraph, PostDFSOrder, ScanFixPointAnalysis, ScanGetBody
from .stage_views import Fuse, IterVarAttr, Singleton, Split
from .te_schedule import Schedule, Stage, create_schedule
from .trace import Trace
from .tree import ScheduleTree

if TYPE_CHECKING:
    from ..lower.phase0.post_process import SchedulePostProcToPrimFunc, VerifyCompactBuffer
    from ..lower.phase0.views import InferBound, ScheduleOps

__all__ = [
    "AXIS_SEPARATOR",
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "Buffer",
    "CreateAttachPath",
    "CreateReadGraph",
    "Fuse",
    "Group",
    "InferBound",
    "IterVarAttr",
    "PostDFSOrder",
    "ScanFixPointAnalysis",
    "ScanGetBody",
    "Schedule",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "ScheduleTree",
    "Singleton",
    "SpecializedCondition",
    "Split",
    "Stage",
    "Trace",
    "VerifyCompactBuffer",
    "create_schedule",
]

# Names that users look for here but that live in a higher row; loaded when they are first asked for.
_HOMES = {
    "tensorexpr.lower.phase0.post_process": "SchedulePostProcToPrimFunc VerifyCompactBuffer",
    "tensorexpr.lower.phase0.views": "InferBound ScheduleOps",
}

__getattr__, __dir__ = later(__name__, _HOMES)
