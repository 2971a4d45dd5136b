"""Schedules of programs of blocks: `tir.Schedule`, its primitives and its trace.

A schedule is a trace of instructions, as everywhere here; what it gives is derived from an immutable program by applying
them. Where te's steps derive loops from a graph of stages, these rewrite a function of blocks, which may have been written
by hand and may write one buffer from several places.

program      a function of blocks that answers where its loops and blocks are, and is rewritten in one place at a time
handles      what stands for blocks and loops in a user's hands and in traces
scope        who produces and who consumes what, and which blocks may be moved
bindings     axes of blocks in terms of loops, after loops have changed
instruction  what a primitive is, and one application of it
trace        instructions and decisions: Python, JSON, replay
diagnostics  errors that show the program with the offending place marked
primitives/  one file each
tir_schedule the façade; facade/ has its methods by subject
"""

from __future__ import annotations

from ...errors import ScheduleError
from .handles import BlockRV, LoopRV
from .instruction import Instruction
from .tir_schedule import Schedule
from .trace import Trace

__all__ = ["BlockRV", "Instruction", "LoopRV", "Schedule", "ScheduleError", "Trace"]
