"""Schedules of programs that work row by row: softmax, norms, attention scores without their product.

block: one row, or several of rows that are shorter than a warp has vectors for
    the threads share its largest element, each has it afterwards
    exp of the row, in shared memory
    the threads share the sum
    the row divided by it, to memory
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...schedule.steps import ComputeInline
from ...schedule.te_schedule import Schedule
from ...schedule.tree import Inline, StageNode
from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.expr import IterVar
from ..access import element_bytes, merged_loops, stage_reads
from ..rows import common_rows, has_known_rows
from ..sizes import Factor, decided
from ..stages import compute_of, constant_extents
from .block import Limits, limits_of, one_walk, vector_width, vectors
from .reduction import ShortRows, bind_rows, decided_threads, is_shared_by_threads, row_threads, share, short_rows

_FEW = 8  # terms that a thread reduces alone, whatever the row
# Elements of a row that a block takes as long to read three times as five more kernels take to start (12 bytes at 64 a cycle, 4000 cycles
# each): where most multiprocessors have no row, longer ones are shared by all.
_LONG = 1 << 17


def rows_for_blocks(s: Schedule, left: Sequence[StageNode], target: Target) -> int:
    """How many leading axes the stages share, of which each block takes one element; 0 if they are no program of rows."""
    if len(left) < 2 or not all(isinstance(stage.op, ComputeOp) for stage in left):
        return 0
    *inner, last = left
    if last.compute.reduce_axis or not last.is_output or any(stage.is_output for stage in inner):
        return 0
    rows = common_rows(s, last.origin.output(0), inner)
    if not rows or not has_known_rows(s, left, rows) or any(constant_extents(stage.compute.axis) is None for stage in left):
        return 0
    count = prod(constant_extents(last.compute.axis[:rows]) or [1])
    if 4 * count <= limits_of(target).rates.multiprocessors and max(_terms(stage.compute, rows) for stage in left) >= _LONG:
        return 0
    # A sum whose terms threads can't share would be done by each of them for itself.
    reductions = [stage.compute for stage in inner if stage.compute.reduce_axis]
    fits = all(is_shared_by_threads(op) and prod(constant_extents(op.axis[rows:]) or [1]) == 1 for op in reductions)
    return rows if fits and _kept_bytes(inner, rows, keep_all=False) <= limits_of(target).shared else 0


def _width(op: ComputeOp, rows: int) -> int:
    return prod(constant_extents(op.axis[rows:]) or [1])


def _kept_bytes(inner: Sequence[StageNode], rows: int, keep_all: bool) -> int:
    """Bytes of a row of what is kept: of everything, or of what can't be computed again where it is read."""
    kept = [stage.compute for stage in inner if keep_all or stage.compute.reduce_axis]
    return sum(_width(op, rows) * element_bytes(op.output_dtype(0)) for op in kept if not op.reduce_axis)


def schedule_rows(s: Schedule, left: Sequence[StageNode], rows: int, target: Target) -> None:
    """Schedule the last stage and those before it, which share its first `rows` axes."""
    *inner, last = left
    limits, output = limits_of(target), last.origin.output(0)
    short = _short(s, last, inner, rows, limits)
    # What is shared is for all rows of a block, each of which would compute it; of short rows it costs less to compute it again.
    if short is not None or _kept_bytes(inner, rows, keep_all=True) > limits.shared:
        inner = _inlined(s, inner)
    preferred = row_threads(limits, max(_width(last.compute, rows), *(_terms(stage.compute, rows) for stage in inner)))
    reduction = next((stage.origin.output(0) for stage in inner if stage.compute.reduce_axis), None)
    threads = preferred if reduction is None or short is not None else decided_threads(s, reduction, preferred, limits)
    if short is not None:
        threads = preferred = short.threads
    thread = thread_axis("threadIdx.x")
    place = bind_rows(s, output, compute_of(s, output).axis[:rows], short.beside if short is not None else 1)
    if rows == len(compute_of(s, output).axis):
        _one(s, output, place, thread, threads)
    else:
        _columns(s, output, rows, thread, threads, preferred)
    for stage in reversed(inner):
        tensor = stage.origin.output(0)
        if isinstance(s.tree[stage.id].attach, Inline):
            continue
        if stage.compute.reduce_axis and _terms(stage.compute, rows) >= (limits.warp if short is None else _FEW + 1):
            share(s, tensor, thread, threads, in_row=True)
        elif not stage.compute.reduce_axis and _width(stage.compute, rows) > 1:
            _columns(s, tensor, rows, thread, threads, preferred)
        # Every thread gets the result of a reduction, and what it makes of it, for itself; a few terms it reduces alone.
        is_own = bool(stage.compute.reduce_axis) or _width(stage.compute, rows) == 1
        s[tensor].set_scope("local" if is_own else "shared")
        s[tensor].compute_at(s[output], place)


def _short(s: Schedule, last: StageNode, inner: Sequence[StageNode], rows: int, limits: Limits) -> ShortRows | None:
    """How blocks share rows that are shorter than a warp has vectors for."""
    lengths = {terms for stage in (*inner, last) if (terms := _terms(stage.compute, rows)) > _FEW}
    if len(lengths) != 1:  # what isn't as long as all else has another number of vectors
        return None
    stage = next(stage for stage in (*inner, last) if _terms(stage.compute, rows) > _FEW)
    op, reads = stage.compute, stage_reads(s.tree, stage)
    loops = merged_loops(s.copy(), stage.origin.output(0), op.reduce_axis or op.axis[rows:], reads)
    width = vector_width(op, loops[-1], reads, in_row=True, stored=False)
    # of the last axis, so that rows beside each other are neighbours along it
    return short_rows(limits, lengths.pop(), width, (constant_extents(last.compute.axis[rows - 1 : rows]) or [1])[0])


def _terms(op: ComputeOp, rows: int) -> int:
    return prod(constant_extents((*op.axis[rows:], *op.reduce_axis)) or [1])


def _inlined(s: Schedule, inner: Sequence[StageNode]) -> list[StageNode]:
    """The stages that stay where rows are too long to be kept: all others are computed again where they are read."""
    for stage in inner:
        if not stage.compute.reduce_axis:
            s.apply_step(ComputeInline(stage.id))
    return [s.tree[stage.id] for stage in inner if stage.compute.reduce_axis]


def _one(s: Schedule, output: Tensor, place: IterVar, thread: IterVar, threads: Factor) -> None:
    """A single result for each row, which one of the threads stores."""
    stage = s[output]
    single = stage.fuse()
    stage.reorder(place, single)
    stage.bind(stage.split(single, factor=threads)[1], thread)


def _columns(s: Schedule, tensor: Tensor, rows: int, thread: IterVar, threads: Factor, preferred: int) -> None:
    """Threads along a row, each with vectors of neighbours in turn."""
    stage, axes = s[tensor], list(compute_of(s, tensor).axis[rows:])
    loops, width = one_walk(s, tensor, axes, in_row=True)
    while width > 1 and 2 * (prod(constant_extents(axes) or [1]) // width) < preferred:
        width //= 2  # work for half of the threads at least, rather than vectors for some
    if width > 1:
        loops[-1], lane = stage.split(loops[-1], factor=decided(stage, loops[-1], width, vectors(width)))
        stage.vectorize(lane)
    _, mine = stage.split(stage.fuse(*loops), factor=threads)
    stage.bind(mine, thread)
