"""Schedules of programs that work row by row: softmax, norms, attention scores without their product.

All stages of a row are computed at the row's loop, one after the other, so that the row stays in the nearest cache; the
rows run in parallel and every stage in vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import prod

from ..lower.phase0.inline_stages import inline_stages
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, StageNode
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.expr import IterVar, ProducerLoad, Var
from ..tir.rewriting import variables, walk
from .access import element_bytes, is_streamed, stage_reads
from .machine import is_parallel, lanes_of, operations, parallel_from
from .reduction import schedule_reduction
from .sizes import decided, several, vector_of
from .stages import compute_of, constant_extents, extent_of

_ENOUGH = 1 << 30  # operations for all threads, where a call says how many there are
# Rows whose trees of lanes overlap: four of them hide the latency of one.
_MOST_ROWS = 4


def common_rows(s: Schedule, output: Tensor, inner: Sequence[StageNode]) -> int:
    """How many leading axes of `output` are the leading axes of all stages before it, read at the same indices.

    Example:
        m[i] = max over k of X[i, k];  e[i, j] = exp(X[i, j] - m[i]);  s[i] = sum over k of e[i, k];  Y[i, j] = e[i, j] / s[i]: one, i.

    0 if there are none, so that the stages can't share a loop; or if any other stage, which has its schedule, reads one of them. An axis
    along which a sum's operand is contiguous is a column and no row, as are all behind it: sums of X[k, j] over k would each read one
    element of a line (1 x 4096 x 4096 with a ReLU: 289 instead of 1.3 ms, two cores of Zen 3).
    """
    rows = len(output.op.axis) if isinstance(output.op, ComputeOp) else 0
    # A stage behind that reads `m[j]` where the row's loop is i would need all rows before the first is done.
    wanted = {stage.id for stage in inner}
    for reader, load in _reads(s):
        if reader.id in wanted:
            rows = min(rows, _first_column(reader.compute, load))
        if s.tree.producer(load).id in wanted:
            if reader.id not in wanted and reader.origin is not output.op:
                return 0
            same = takewhile(lambda pair: pair[0] is pair[1].var, zip(load.indices, reader.compute.axis, strict=False))
            rows = min(rows, len(list(same)))
    return rows


def _first_column(op: ComputeOp, load: ProducerLoad) -> int:
    """The first axis of the results along which what a sum reads is contiguous; their number if it is none of them.

    Example:
        Y[i, j] = sum over k of A[i, k] * B[k, j]: 1 by B, 2 by A.
    """
    summed = {axis.var for axis in op.reduce_axis}
    *outer, along = (set[Var](), *(variables(index) for index in load.indices))
    goes_down = any(summed & moved for moved in outer) and not summed & along
    return next((place for place, axis in enumerate(op.axis) if goes_down and axis.var in along), len(op.axis))


def _reads(s: Schedule) -> Iterator[tuple[StageNode, ProducerLoad]]:
    """All reads of a program, inlined stages a part of what reads them, each with the stage that it stands in."""
    for number, bodies in inline_stages(s.tree).items():
        yield from ((s.tree[number], node) for body in bodies for node in walk(body) if isinstance(node, ProducerLoad))


def has_known_rows(s: Schedule, stages: Sequence[StageNode], rows: int) -> bool:
    """True if what is kept of a row has an extent that is constant, or that of the row itself.

    Example:
        Of n pixels padded to n + 2, windows `P[i, 2 * x + k]` for x < (n + 1) // 2 read to an end that is even or odd as n is: a bound of
        it for any n is 2^31, and so much memory would be kept for each row.
    """
    kept = {stage.id for stage in stages}
    for reader, load in _reads(s):
        producer = s.tree.producer(load)
        if reader.id in kept and producer.id in kept:
            inside = zip(load.indices[rows:], producer.compute.axis[rows:], strict=True)
            if any(constant_extents((axis,)) is None and not isinstance(index, Var) for index, axis in inside):
                return False
    return True


def schedule_rows(s: Schedule, output: Tensor, inner: Sequence[StageNode], rows: int, target: Target) -> None:
    """Schedule `output` and the stages before it, which share its first `rows` axes."""
    op = compute_of(s, output)
    extents = constant_extents(op.axis)
    is_elementwise = rows == len(op.axis) and not any(stage.compute.reduce_axis for stage in inner)
    # Of open sizes a part of all rows as one loop isn't known to be a part of one of them, so that a whole one is computed at a time.
    if is_elementwise and extents is None and rows > 1:
        rows -= 1
    loops, columns = list(op.axis[:rows]), list(op.axis[rows:])
    if columns:
        columns[-1:] = _in_vectors(s, output, columns[-1], target)
        if extents is not None:
            loops[-1:], some = _several(s, output, loops[-1], _rows_at_once(s, output, inner, extents, rows, target))
            if some and _is_shared(s, output, rows):
                # One load of a scale or an offset of columns serves all rows of a group.
                s[output].reorder(*loops, *columns[:-1], *some, columns[-1])
                s[output].unroll(some[0])
            else:
                s[output].reorder(*loops, *some, *columns)
    elif is_elementwise:
        # one vector of each stage, then the next
        loops[-1], _ = _in_vectors(s, output, loops[-1], target)
    place = s[output].fuse(*loops)
    stages = (s.tree[s[output].id], *inner)
    work, each = _work(stages), _work(stages, rows)
    if is_parallel(target, _ENOUGH if work is None else work):
        s[output].parallel(place)
        if each and constant_extents(op.axis[:rows]) is None:
            s[output].pragma(place, "parallel_from", parallel_from(target, each))
    if extents is not None and is_streamed(s, output, target):
        s[output].store_nontemporal()
    for stage in reversed(inner):
        if not isinstance(s.tree[stage.id].attach, Inline):
            tensor = stage.origin.output(0)
            row = s[tensor].op.axis[rows - 1]
            for partial in _schedule_one(s, tensor, target):
                s[partial].compute_at(s[tensor], row)
            s[tensor].compute_at(s[output], place)


def _work(stages: Sequence[StageNode], rows: int = 0) -> float | None:
    """Operations of all stages inside of so many leading axes; None if an extent is symbolic."""
    extents = [constant_extents((*stage.compute.axis[rows:], *stage.compute.reduce_axis)) for stage in stages]
    known = [operations(stage.compute.body, prod(own)) for stage, own in zip(stages, extents, strict=True) if own is not None]
    return sum(known) if len(known) == len(stages) else None


def _several(s: Schedule, output: Tensor, axis: IterVar, count: int) -> tuple[list[IterVar], list[IterVar]]:
    """The loop over groups of so many rows, and that over the rows of a group if there are several."""
    if count == 1:
        return [axis], []
    outer, each = s[output].split(axis, factor=decided(s[output], axis, count, several))
    return [outer], [each]


def _is_shared(s: Schedule, output: Tensor, rows: int) -> bool:
    """True if a vector of some tensor is read for every row: an index has the last axis, and none the rows.

    Rows of 4096 bytes, whose stores have the lower address bits of the loads after them, gain as others do (8 % on znver1).
    """
    axes = compute_of(s, output).axis
    reads = stage_reads(s.tree, s.tree[s[output].id]).accesses
    return any(read.stride(axes[-1].var) and not any(read.stride(axis.var) for axis in axes[:rows]) for read in reads)


def _rows_at_once(s: Schedule, output: Tensor, inner: Sequence[StageNode], extents: Sequence[int], rows: int, target: Target) -> int:
    """Rows for which each stage runs before the next one: the tree of lanes at the end of one row's sum, and what waits for it,
    then overlap with the next row.

    A number that divides the rows, while all their stages' values fit half of the nearest cache and every thread gets some.
    """
    width = prod(extents[rows:])
    kept = sum(len(stage.compute.axis) > rows for stage in inner if not isinstance(s.tree[stage.id].attach, Inline))
    size = width * (2 + kept) * element_bytes(output.dtype)  # what is read, what is written, what is kept
    for count in range(_MOST_ROWS, 1, -1):
        # Groups of rows are fewer tasks: at least four for each core, or one of them waits for another's last group.
        balanced = prod(extents[:rows]) >= 4 * count * target.num_cores
        if extents[rows - 1] % count == 0 and balanced and 2 * count * size <= target.l1_cache_size_bytes:
            return count
    return 1


def _schedule_one(s: Schedule, tensor: Tensor, target: Target) -> list[Tensor]:
    op = compute_of(s, tensor)
    if op.reduce_axis:
        return schedule_reduction(s, tensor, target)
    if op.axis and extent_of(op.axis[-1]) != 1:
        _in_vectors(s, tensor, op.axis[-1], target)
    return []


def _in_vectors(s: Schedule, tensor: Tensor, axis: IterVar, target: Target) -> tuple[IterVar, IterVar]:
    """Vectors along an axis, of one register where its extent is open; returns the loop over them, and theirs."""
    extent, lanes = extent_of(axis), lanes_of(target, tensor.dtype)
    outer, lane = s[tensor].split(axis, factor=lanes if extent is None else vector_of(s[tensor], axis, extent, target))
    s[tensor].vectorize(lane)
    return outer, lane
