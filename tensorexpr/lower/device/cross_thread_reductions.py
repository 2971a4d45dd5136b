"""Reductions over loops that are bound to threads, by `LowerCrossThreadReduction`'s rules."""

from __future__ import annotations

from ...tir.function import PrimFunc
from ..context import PassContext
from .launches import has_threads


def cross_thread_reductions(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with the parts of threads and a `tvm_thread_allreduce` for each; itself if no block reduces over threads.

    Raises:
        ScheduleError: for reductions that threads can't share.
    """
    if not has_threads(func):
        return func
    from ..transform.lower_cross_thread_reduction import LowerCrossThreadReduction  # loads much, and few programs run on grids

    return LowerCrossThreadReduction().run(func, ctx)
