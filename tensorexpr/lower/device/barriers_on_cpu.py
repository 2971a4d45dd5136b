"""Barriers where the threads of a block would race, and reductions over threads as their steps, for `blocks_on_cpu`."""

from __future__ import annotations

from ...target import Target
from ...tir.function import PrimFunc
from ..context import PassContext
from ..transform.lower_thread_allreduce import lower_thread_allreduce
from ..transform.thread_sync import thread_sync
from .launches import has_threads
from .lone_units import lone_units

_SHARED_SCOPES = ("shared", "shared.dyn", "warp")


def barriers_on_cpu(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with a barrier before what must wait for other threads; itself if it has no threads.

    Raises:
        LoweringError: where threads exchange memory under a condition on which they disagree.
    """
    if not has_threads(func):
        return func
    func = lone_units(func)  # copies are stores, which wait for other threads
    # Of a device without warps: a tree in shared memory, whose steps are loops over threads without exchanges.
    func = lower_thread_allreduce(func, Target("opencl"))
    for scope in _SHARED_SCOPES:
        func = thread_sync(func, scope)
    return func
