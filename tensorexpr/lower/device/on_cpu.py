"""The passes that make loops of a CPU of the threads of a grid, in the order in which they run, each before those of a phase."""

from __future__ import annotations

from ...tir.function import IRModule
from ..context import PassContext
from ..passes import Pass, deep_recursion, run_pass
from ..phase2.inject_double_buffer import inject_double_buffer
from ..phase2.inject_virtual_thread import inject_virtual_thread
from .barriers_on_cpu import barriers_on_cpu
from .blocks_on_cpu import blocks_on_cpu
from .launch_threads import launch_threads

ON_CPU: dict[int, tuple[Pass, ...]] = {
    2: (
        Pass("tir.InjectDoubleBuffer", inject_double_buffer),  # before barriers, which are between its copies then
        Pass("tir.InjectVirtualThread", inject_virtual_thread),  # while their loops stand around those of the threads that they share
        Pass("tir.LaunchThreads", launch_threads),  # from here on all threads of a kernel run at once
        Pass("tir.BarriersOnCPU", barriers_on_cpu),  # before a piece is what stands between two of them
        Pass("tir.BlocksOnCPU", blocks_on_cpu),  # first of all else: what follows shapes its loops as any other
    ),
}


def with_barriers(mod: IRModule) -> IRModule:
    """A module after phase 1 with its threads as a device runs them: all at once, with a barrier where they would race.

    Raises:
        LoweringError: where threads exchange memory under a condition on which they disagree.
    """
    ctx = PassContext.current()
    with deep_recursion:
        for one in ON_CPU[2]:
            if one.name != "tir.BlocksOnCPU":
                mod = run_pass(one, mod, ctx)
    return mod
