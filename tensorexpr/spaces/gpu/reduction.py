"""Schedules of reductions: threads go along the axis whose elements are neighbours in memory.

Where that is a reduction axis, the threads of a block share a row:         Y[i] = sum over k of X[i, k]
    block i, thread t: t takes k = t, t + threads, ...; then all partial results become one by exchanges within warps.
    Of rows shorter than a warp has vectors for, a block has several.
Where results are neighbours, each thread has a vector of them, and several rows of threads share their terms:
    block j, thread (x, y): y takes k = y, y + rows, ... of the vector x        Y[j] = sum over k of X[k, j]
Where a few results would leave most of a chip idle, blocks make partial results first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dataclass import dataclass
from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.combiner_laws import depends_on_order, is_componentwise, refuted_law
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.expr import IterVar, Reduce
from ..access import merged_loops, stage_reads
from ..reduction import contiguous_axis
from ..sizes import Factor, decided
from ..stages import compute_of, constant_extents
from .block import Limits, limits_of, numbers_of_threads, over_blocks, preferred_threads, vector_width, vectors

# Terms of each block's part where a few results have to keep a whole chip busy.
_PART = 1 << 14
_FEW_RESULTS = 64
# Terms of each thread from which on it is worth that several share those of a result, and meet in shared memory.
_TERMS_EACH = 16
# Blocks from which on no multiprocessor is idle.
_BLOCKS = 128
# Elements of one access, of 32 bits each.
_VECTOR = 4
_WARP = 32
# Threads of a block of short rows: four warps, so that few multiprocessors are without one.
_SHORT_THREADS = 128


def schedule_reduction(s: Schedule, tensor: Tensor, target: Target, together: bool = True) -> None:
    """Schedule one stage with a reduction that stays at the root; `together`, if threads may share each result."""
    op = compute_of(s, tensor)
    limits = limits_of(target)
    if not (together and is_shared_by_threads(op)):
        if together and may_be_regrouped(op) and constant_extents(op.axis) and op.num_outputs == 1:
            _columns(s, tensor, target, limits)
        else:
            over_blocks(s, tensor, op.axis, target, vector=False)
        return
    partial = _in_parts(s, tensor)
    if partial is not None:
        _rows(s, partial, limits)
    _rows(s, tensor, limits)


def is_shared_by_threads(op: ComputeOp) -> bool:
    """True if threads may share the terms of each result, and these are neighbours in memory."""
    return may_be_regrouped(op) and contiguous_axis(op) in op.reduce_axis


def may_be_regrouped(op: ComputeOp) -> bool:
    """True if threads may share the terms of each result."""
    body = op.body[0]
    if not isinstance(body, Reduce) or constant_extents(op.reduce_axis) is None:
        return False
    # A start other than the identity would be added by each thread.
    if body.init or refuted_law(body.combiner) is not None:
        return False
    return is_componentwise(body.combiner) or depends_on_order(body.combiner) is None


def _in_parts(s: Schedule, tensor: Tensor) -> Tensor | None:
    """Partial results that blocks compute, if there are a few results of many terms each."""
    op = compute_of(s, tensor)
    results, terms = constant_extents(op.axis), constant_extents(op.reduce_axis)
    if results is None or terms is None or prod(results) > _FEW_RESULTS or prod(terms) < 2 * _PART:
        return None
    whole = s[tensor].fuse(*op.reduce_axis)
    outer, _ = s[tensor].split(whole, factor=_PART)
    made = s.rfactor(tensor, outer)
    return made if isinstance(made, Tensor) else made[0]


def _columns(s: Schedule, tensor: Tensor, target: Target, limits: Limits) -> None:
    """Blocks of neighbouring results: threads sum vectors of them over a part of the terms each, and then one result over these parts."""
    op, stage = compute_of(s, tensor), s[tensor]
    results, terms = prod(constant_extents(op.axis) or [1]), prod(constant_extents(op.reduce_axis) or [1])
    threads = preferred_threads(limits, results)
    reads = stage_reads(s.tree, s.tree[stage.id])
    width = vector_width(op, merged_loops(s.copy(), tensor, op.axis, reads)[-1], reads)
    blocks = -(-results // threads)
    if blocks < _BLOCKS and terms >= 2 * width * _TERMS_EACH:
        parts = min(-(-_BLOCKS // blocks), terms // (width * _TERMS_EACH))
        outer, _ = stage.split(stage.fuse(*op.reduce_axis), nparts=parts)
        partial = s.rfactor(tensor, outer)
        assert isinstance(partial, Tensor)
        _columns(s, partial, target, limits)
        over_blocks(s, tensor, compute_of(s, tensor).axis, target)
        return
    if width == 1 or terms < width * _TERMS_EACH or threads < width:
        over_blocks(s, tensor, op.axis, target)
        return
    column, row = thread_axis((0, threads // width), "threadIdx.x"), thread_axis((0, width), "threadIdx.y")
    _, mine = stage.split(stage.fuse(*op.reduce_axis), factor=width)
    part = s.rfactor(tensor, mine)
    assert isinstance(part, Tensor)
    block, inner = stage.split(stage.fuse(*op.axis), factor=threads)
    rows, columns = stage.split(inner, factor=threads // width)
    stage.bind(block, thread_axis("blockIdx.x"))
    stage.bind(rows, row)
    stage.bind(columns, column)
    s[part].set_scope("shared")
    s[part].compute_at(stage, block)
    own = compute_of(s, part)
    place = s[part].fuse(*own.axis[1:])
    place, lane = s[part].split(place, factor=width)
    _, place = s[part].split(place, factor=threads // width)
    s[part].bind(own.axis[0], row)
    s[part].bind(place, column)
    s[part].reorder(own.axis[0], place, *own.reduce_axis, lane)
    s[part].vectorize(lane)


def _rows(s: Schedule, tensor: Tensor, limits: Limits) -> None:
    op = compute_of(s, tensor)
    stage = s[tensor]
    thread = thread_axis("threadIdx.x")
    reads = stage_reads(s.tree, s.tree[stage.id])
    width = vector_width(op, merged_loops(s.copy(), tensor, list(op.reduce_axis), reads)[-1], reads, stored=False)
    results, terms = (prod(constant_extents(axes) or [1]) for axes in (op.axis, op.reduce_axis))
    short = short_rows(limits, terms, width, results)
    bind_rows(s, tensor, op.axis, short.beside if short is not None else 1)
    threads = short.threads if short is not None else decided_threads(s, tensor, row_threads(limits, terms), limits)
    share(s, tensor, thread, threads)
    # What other stages read is stored by all threads, who have the same value: a predicate would leave out elements as they see it.
    if s.tree[stage.id].is_output:
        stage.set_store_predicate(thread.var.equal(0))


@dataclass(frozen=True)
class ShortRows:
    """Rows of so few elements that a warp has several: threads of each, and rows of a block beside each other."""

    threads: int
    beside: int


def short_rows(limits: Limits, elements: int, width: int, rows: int) -> ShortRows | None:
    """How a block shares short rows so that each thread has a vector of them; None where a warp has vectors for all of its threads, or
    no two rows."""
    threads = 1 << (max(1, elements // width) - 1).bit_length()
    beside = min(_SHORT_THREADS // threads, rows & -rows) if threads < limits.warp and elements % width == 0 else 1
    return ShortRows(threads, beside) if beside > 1 else None


def bind_rows(s: Schedule, tensor: Tensor, axes: Sequence[IterVar], beside: int) -> IterVar:
    """Bind the loop over rows to blocks, some rows of each beside each other; returns the loop within which a row is computed."""
    stage = s[tensor]
    place = stage.fuse(*axes)
    if beside > 1:  # of as many rows as they divide, as threads that have none would miss barriers
        place, row = stage.split(place, factor=beside)
        stage.bind(row, thread_axis("threadIdx.y"))
        stage.bind(place, thread_axis("blockIdx.x"))
        return row
    stage.bind(place, thread_axis("blockIdx.x"))
    return place


def row_threads(limits: Limits, elements: int) -> int:
    """Threads that share so many elements of a row: whole warps, without a rest where some number of them leaves none."""
    vectors = max(1, elements // _VECTOR)
    most = preferred_threads(limits, vectors)
    fitting = [count for count in range(limits.warp, most + 1, limits.warp) if vectors % count == 0]
    return fitting[-1] if fitting and 2 * fitting[-1] >= most else most


def decided_threads(s: Schedule, tensor: Tensor, threads: int, limits: Limits) -> Factor:
    """The threads that share the terms of a reduction, as a decision."""
    axes = compute_of(s, tensor).reduce_axis
    longest = max(axes, key=lambda axis: (constant_extents((axis,)) or [0])[0])
    return decided(s[tensor], longest, threads, lambda _: numbers_of_threads(limits))


def share(s: Schedule, tensor: Tensor, thread: IterVar, threads: Factor, in_row: bool = False) -> None:
    """Let threads share the terms of a reduction, wherever it is computed: each takes vectors of neighbours in turn."""
    op, stage = compute_of(s, tensor), s[tensor]
    reads = stage_reads(s.tree, s.tree[stage.id])
    loops = merged_loops(s, tensor, list(op.reduce_axis), reads)
    width = vector_width(op, loops[-1], reads, in_row, stored=False)
    least = threads if isinstance(threads, int) else _WARP
    while width > 1 and 2 * (loops[-1].extent // width) <= min(least, _WARP):
        width //= 2  # work for most threads of a warp, rather than vectors for some
    axes = [loop.axis for loop in loops]
    lanes: list[IterVar] = []
    if width > 1:
        axes[-1], lane = stage.split(axes[-1], factor=decided(stage, axes[-1], width, vectors(width)))
        stage.unroll(lane)
        lanes = [lane]
    whole = stage.fuse(*axes)
    outer, mine = stage.split(whole, factor=threads)
    stage.reorder(mine, outer, *lanes)
    stage.bind(mine, thread)
