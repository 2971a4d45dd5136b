"""Functions of blocks for GPUs that nobody scheduled run on a grid.

for i, j in T.grid(128, 128):        for i_j_fused_0 in T.thread_binding(16, "blockIdx.x"):
    with T.block("b"): ..        ->      for i_j_fused_1 in T.thread_binding(1024, "threadIdx.x"):
                                             with T.block("b"): ..
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import LoweringError, ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import bind_block
from ...target import Target
from ...tir.block import BlockRealize
from ...tir.function import IRModule, PrimFunc
from ..context import PassContext
from ..passes import ModulePass, Pass
from .decorators import unused

_IS_SCHEDULED = "tir.is_scheduled"
# As many blocks as keep a large GPU busy; where there are more iterations, each thread takes several.
_MAX_BLOCKS = 256


def DefaultGPUSchedule() -> Pass:
    """The blocks of each function for a GPU bound to blocks and threads; functions marked `tir.is_scheduled` stay, the others get the mark.

    The target is the function's attribute, or the one whose scope this runs in.

    Raises:
        LoweringError: when it runs, where the target of a GPU doesn't say how many threads a block may have.
    """
    return ModulePass("tir.DefaultGPUSchedule", unused, module_func=_scheduled, by_user=False)


def _scheduled(mod: IRModule, ctx: PassContext) -> IRModule:
    targets = {var.name_hint: _target_of(func) for var, func in mod.functions.items() if isinstance(func, PrimFunc) and _is_open(func)}
    most = {name: _most_threads(name, target) for name, target in targets.items() if target is not None and "gpu" in target.keys}
    if not most:
        return mod
    sch = Schedule(mod)
    for name, threads in most.items():
        _bind(sch, name, threads)
    changed = {name: sch.mod[name].with_attr(_IS_SCHEDULED, True) for name in most}
    return IRModule({var: changed.get(var.name_hint, func) for var, func in mod.functions_items()}, mod.attrs)


def _is_open(func: PrimFunc) -> bool:
    return isinstance(func.body, BlockRealize) and not func.attrs.get(_IS_SCHEDULED)


def _target_of(func: PrimFunc) -> Target | None:
    target = func.attrs.get("target")
    return target if isinstance(target, Target) else Target.current(allow_none=True)


def _most_threads(name: str, target: Target) -> int:
    most = target.attrs.get("max_threads_per_block")
    if most is None:
        raise LoweringError(f"function {name}: its target {target} names no number of threads; add -max_threads_per_block=1024")
    return int(most)


def _bind(sch: Schedule, name: str, threads: int) -> None:
    """Bind the blocks of a function; those that run on blocks of a grid without its threads stay as they were written."""
    sch.work_on(name)
    for block in list(_blocks_below(sch, sch.get_block("root"))):
        try:
            bind_block(sch, block, _MAX_BLOCKS, threads, lambda most: most)
        except ScheduleError:
            continue


def _blocks_below(sch: Schedule, block: BlockRV) -> Iterator[BlockRV]:
    for child in sch.get_child_blocks(block):
        yield child
        yield from _blocks_below(sch, child)
