"""Schedules of programs of blocks: `tir.Schedule`, its primitives and its trace.

A schedule is a trace of instructions, as everywhere here; what it gives is derived from an immutable program by applying
them. Where te's steps derive loops from a graph of stages, these rewrite a function of blocks, which may have been written
by hand and may write one buffer from several places.

program      a function of blocks that answers where its loops and blocks are, and is rewritten in one place at a time
handles      what stands for blocks and loops in a user's hands and in traces
scope        who produces and who consumes what, and which blocks may be moved
bindings     axes of blocks in terms of loops, after loops have changed;  affine, whether they are splits and fusions of loops
nests        loops around statements: given, new, copied
accesses     accesses of a buffer, sent to another one
copying      copies of buffers: which part, where, and the nest that makes it
layout_padding  what stands where a new layout has no element
dataflow     whether a block may be computed elsewhere; coverage, whether what it reads is written by then
moving       a block put into a loop of others; block_domains, over which part of its axes it runs there
instruction  what a primitive is, and one application of it
state, block_scope   the module with the places of its blocks and loops, for those who change it by themselves
testing      checks of traces
trace        instructions and decisions: Python, JSON, replay;  trace_values, what instructions take, as text;
             trace_expressions, of sampled numbers; trace_python, traces read from their text
apart        iterations that touch different elements
subspace     axes divided between loops outside and inside of a place
thread_binding loops of a block that run on a grid
tensor_match, intrinsics     blocks that do what an intrinsic describes; those that come with the package
buffers      which buffer a primitive is about
diagnostics  errors that show the program with the offending place marked
primitives/  one file each
schedule     the façade; facade/ has its methods by subject
"""

from ...errors import ScheduleError
from . import intrinsics
from .block_scope import BlockScope, Dependency, DepKind, StmtSRef
from .handles import BlockRV, LoopRV
from .instruction import Instruction, InstructionKind
from .schedule import Schedule
from .state import ScheduleDebugMask, ScheduleState
from .trace import Trace

__all__ = [
    "BlockRV",
    "BlockScope",
    "DepKind",
    "Dependency",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "Schedule",
    "ScheduleDebugMask",
    "ScheduleError",
    "ScheduleState",
    "StmtSRef",
    "Trace",
    "intrinsics",
]
