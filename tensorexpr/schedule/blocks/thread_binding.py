"""Binding the loops of a block to blocks and threads of a grid, for rules of searches and `tir.transform.DefaultGPUSchedule`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ScheduleError
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize
from ...tir.expr import IterVar, Var
from ...tir.rewriting import variables
from ...tir.stmt import For, ForKind, Stmt
from ...tir.thread import bound_tag
from .handles import BlockRV, LoopRV
from .program import inner_statements
from .schedule import Schedule

TILED = "meta_schedule.tiling_structure"  # marks blocks that were bound as they were tiled
BLOCKS, THREADS = "blockIdx", "threadIdx"
# What a number of threads is sampled from where a rule names none.
THREAD_EXTENTS = (32, 64, 128, 256, 512, 1024)
FactorOf = Callable[[int], Any]


def factor_sampler(sch: Schedule, extents: Sequence[int] = THREAD_EXTENTS) -> FactorOf:
    """A function that takes the most threads that there may be and gives how many there are: sampled, where several extents fit."""

    def sampled(most: int) -> Any:
        fitting = [extent for extent in extents if extent <= most]
        if len(fitting) < 2:
            return fitting[0] if fitting else most
        return sch.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))

    return sampled


def is_bound(loop: For, axis: str) -> bool:
    """Whether a loop runs over "blockIdx" or "threadIdx", in any dimension."""
    return (bound_tag(loop) or "").startswith(axis)


def in_threads(sch: Schedule, block: BlockRV) -> bool:
    """Whether a loop around a block runs over threads."""
    return any(is_bound(sch.get(loop), THREADS) for loop in sch.get_loops(block))


def is_root(sch: Schedule, block: BlockRV) -> bool:
    """True for the block of a function's buffers."""
    stmt: Block = sch.get(block)
    return not stmt.iter_vars and not stmt.writes and stmt.name_hint in ("root", "")


def dependent_loops(outermost: For) -> set[Var]:
    """The loops of a nest over which a block is not independent: other axes than of data run over them, or a reduction is repeated."""
    found: set[Var] = set()
    stack: list[tuple[Stmt, tuple[Var, ...]]] = [(outermost, ())]
    while stack:
        stmt, around = stack.pop()
        if isinstance(stmt, BlockRealize):
            pairs = list(stmt.bindings())
            reducing = set().union(*(variables(value) for axis, value in pairs if axis.iter_type != IterVar.DATA_PAR))
            found |= reducing
            # A loop that no axis of a reduction mentions repeats it: its iterations update the same elements.
            if reducing or stmt.block.init is not None:
                found |= set(around).difference(*(variables(value) for _, value in pairs))
        inside = (*around, stmt.loop_var) if isinstance(stmt, For) and as_int(stmt.extent) != 1 else around
        stack += [(inner, inside) for inner in inner_statements(stmt)]
    return found


def bind_block(sch: Schedule, block: BlockRV, max_blocks: int, max_threads: int, factor_of: FactorOf) -> None:
    """Bind the loops around a block to blocks and threads, as far as they aren't bound; tiled blocks and roots are left.

    The outer loops of data are fused: for loops (i, j) of data and k that reduces, with 256 threads of at most 1024,

    for i: for j: for k: ->  for blockIdx.x: for threadIdx.x: for k:

    and where there are more iterations than blocks and threads, a serial loop stands inside of both. A block without such loops gets
    one of one iteration; one whose threads are bound already gets the loops around these as its blocks.

    Args:
        max_blocks: of the grid.
        max_threads: of each block of it.
        factor_of: gives the number of threads, see `factor_sampler`.

    Raises:
        ScheduleError: if blocks are bound and threads are not.
    """
    if is_root(sch, block) or TILED in sch.get(block).annotations:
        return
    loops = sch.get_loops(block)
    statements: list[For] = [sch.get(loop) for loop in loops]
    has_blocks, has_threads = (any(is_bound(loop, axis) for loop in statements) for axis in (BLOCKS, THREADS))
    if has_blocks and not has_threads:
        raise ScheduleError(
            f"block {sch.get(block).name_hint} runs over blocks of a grid, but not over its threads: bind a loop to threadIdx.x too"
        )
    if has_blocks:
        return
    count = _outer_of_data(statements)
    fused = sch.fuse(*loops[:count]) if count else sch.add_unit_loop(loops[0] if loops else block)
    if has_threads:
        sch.bind(fused, f"{BLOCKS}.x")
    else:
        _bind_both(sch, fused, max_blocks, max_threads, factor_of)


def _outer_of_data(loops: Sequence[For]) -> int:
    """How many outer loops are of data, in no way special, and stand each alone in the one before."""
    dependent = dependent_loops(loops[0]) if loops else set()
    count = 0
    for loop in loops:
        if loop.loop_var in dependent or loop.kind is not ForKind.SERIAL:
            break
        count += 1
        if not isinstance(loop.body, For):
            break
    return count


def _bind_both(sch: Schedule, loop: LoopRV, max_blocks: int, max_threads: int, factor_of: FactorOf) -> None:
    """Split a loop into blocks and threads, with a serial loop inside where they aren't enough."""
    extent = as_int(sch.get(loop).extent)
    if extent is None or extent > max_blocks * max_threads:
        # The slowest part becomes the innermost loop, so that neighbouring threads touch neighbouring elements at each step.
        rest, outer, inner = sch.split(loop, [None, max_blocks, max_threads])
        sch.reorder(outer, inner, rest)
    else:
        outer, inner = sch.split(loop, [None, factor_of(min(extent, max_threads))])
    sch.bind(outer, f"{BLOCKS}.x")
    sch.bind(inner, f"{THREADS}.x")
