"""Schedules of programs that work row by row: softmax, norms, attention scores without their product.

block: one row
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
from ..access import element_bytes
from ..rows import common_rows, has_known_rows
from ..sizes import Factor, decided
from ..stages import compute_of, constant_extents
from .block import limits_of, one_walk, vectors
from .reduction import decided_threads, is_shared_by_threads, row_threads, share


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
    if _kept_bytes(inner, rows, keep_all=True) > limits.shared:
        inner = _inlined(s, inner)
    preferred = row_threads(limits, max(_width(last.compute, rows), *(_terms(stage.compute, rows) for stage in inner)))
    reduction = next((stage.origin.output(0) for stage in inner if stage.compute.reduce_axis), None)
    threads = preferred if reduction is None else decided_threads(s, reduction, preferred, limits)
    thread = thread_axis("threadIdx.x")
    place = s[output].fuse(*compute_of(s, output).axis[:rows])
    s[output].bind(place, thread_axis("blockIdx.x"))
    if rows == len(compute_of(s, output).axis):
        _one(s, output, place, thread, threads)
    else:
        _columns(s, output, rows, thread, threads, preferred)
    for stage in reversed(inner):
        tensor = stage.origin.output(0)
        if isinstance(s.tree[stage.id].attach, Inline):
            continue
        if stage.compute.reduce_axis and _terms(stage.compute, rows) >= limits.warp:
            share(s, tensor, thread, threads, limits, in_row=True)
        elif not stage.compute.reduce_axis and _width(stage.compute, rows) > 1:
            _columns(s, tensor, rows, thread, threads, preferred)
        # Every thread gets the result of a reduction, and what it makes of it, for itself; a few terms it reduces alone.
        is_own = bool(stage.compute.reduce_axis) or _width(stage.compute, rows) == 1
        s[tensor].set_scope("local" if is_own else "shared")
        s[tensor].compute_at(s[output], place)


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
