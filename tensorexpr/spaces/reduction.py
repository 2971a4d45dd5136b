"""Schedules of reductions: lanes over the axis whose elements are neighbours in memory, with several accumulators.

Where that is a reduction axis, its partial results are a stage of their own (rfactor), which keeps one accumulator for
each lane of some registers, and a tree of lanes in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import prod

from ..arith.analyzer import Analyzer
from ..lower.phase0.inline_stages import inlined_bodies
from ..schedule.domain import axis_extents
from ..schedule.lane_reduction import why_not_in_lanes
from ..schedule.te_schedule import Schedule
from ..schedule.tree import LoopKind, Root
from ..target import Target
from ..te.combiner_laws import depends_on_order, is_componentwise, refuted_law
from ..te.operation import ComputeOp, loads
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, Reduce, Var
from .access import flat_access, lanes_of_terms, stage_reads
from .machine import accumulators, is_parallel, lanes_of, operations, parallel_from, vector_factor
from .nests import accumulators_of, as_tasks, in_vectors
from .sizes import Factor, decided, registers, vector_of, written_rows
from .stages import are_rectangular, compute_of, constant_extents, extent_of, extents_of

# Rows added to a row of results that is loaded and stored once for all of them: half as many took up to a third longer, twice as many
# twice as long, whether or not the rows' lines share a set of the cache.
_ROWS_AT_ONCE = 8
# Rows for each thread from which on it doesn't matter that one of them gets a row more.
_ROWS_FOR_A_CORE = 4
# Terms of a sum from which on its additions wait for each other: fewer end before the next row's begin.
_LEAST_TERMS = 8
# Vectors of results from which on they are lanes where terms could be, too: Y[i, j] += X[i, k] * X[i, k + j] of 12 x 424 terms and 48
# results j 0.026 -> 0.009 ms (two cores of Zen 3), as all of them share X[i, k] and need no sum over lanes.
_VECTORS_OF_RESULTS = 2
# Terms of a lane from which on several vectors of them hide the latency of one: a maximum of 1400 and its place.
_TERMS_FOR_A_LANE = 64


def contiguous_axis(op: ComputeOp, lanes: int = 1) -> IterVar | None:
    """The axis along which reads go from neighbour to neighbour in memory, if there is one: fewest jump along it, and most follow it.

    Terms that don't fill a vector of `lanes` come behind results.

    Example:
        Y[i] = sum over k of X[i, k]: k, whose partial sums get lanes. Y[j] = sum over k of X[k, j]: j, whose results get them.
        Y[i, j] = sum over k of X[at[i, k], j] * W[i, k]: j, as rows of X at neighbouring k are anywhere.
    """
    votes: dict[Var, int] = {}
    reads = [flat_access(load) for load in loads(op)]
    for access in reads:
        for var, stride in access.strides.items():
            if stride == 1:
                # Reads of more dimensions weigh more: the matrix of a matrix and vector product moves all the bytes.
                votes[var] = votes.get(var, 0) + len(access.load.indices)
    jumps = {var: sum(access.moves_with(var) and access.stride(var) != 1 for access in reads) for var in votes}
    axes = [axis for axis in (*op.axis, *op.reduce_axis) if axis.var in votes]
    short = {axis.var for axis in op.reduce_axis if (extent_of(axis) or lanes) < lanes}
    long = _long_results(op, lanes)
    return max(axes, key=lambda axis: (-jumps[axis.var], axis.var not in short, axis.var in long, votes[axis.var]), default=None)


def _lanes(s: Schedule, tensor: Tensor, target: Target) -> int:
    """Terms of a stage that a register holds, those of inlined stages among them."""
    return lanes_of_terms(inlined_bodies(s.tree, s.tree[s[tensor].id]), target)


def _long_results(op: ComputeOp, lanes: int) -> set[Var]:
    """The axes of results that fill some vectors."""
    return {axis.var for axis in op.axis if (extent_of(axis) or 0) >= _VECTORS_OF_RESULTS * lanes}


def schedule_reduction(s: Schedule, tensor: Tensor, target: Target) -> list[Tensor]:
    """Vectorise a reduction, wherever it is computed; returns the stages that were added, which go where it goes."""
    op = compute_of(s, tensor)
    body = op.body[0]
    if not isinstance(body, Reduce):
        return []
    axis = contiguous_axis(op, _lanes(s, tensor, target))
    # whatever number of rows there is
    if axis is not None and axis in op.reduce_axis and constant_extents(op.reduce_axis) is not None:
        return _lanes_over_reduction(s, tensor, axis, body, target)
    if constant_extents((*op.axis, *op.reduce_axis)) is None:
        return [_in_lanes(s, tensor, axis, _lanes(s, tensor, target))] if axis is not None and _sums_along(op, axis) else []
    spatial = axis if axis is not None else (op.axis[-1] if op.axis else None)
    if spatial is None:
        return []
    _lanes_over_results(s, tensor, spatial, target)
    return []


def _lanes_over_reduction(s: Schedule, tensor: Tensor, axis: IterVar, body: Reduce, target: Target) -> list[Tensor]:
    lanes = _lanes(s, tensor, target)
    if not is_regrouped(body):
        return []
    whole = _continued(s, tensor, axis)
    extent = prod(extents_of(whole))
    # Fewer terms than lanes: a tree of lanes would cost as much as the sum.
    if extent < lanes:
        return []
    axis = s[tensor].fuse(*whole) if len(whole) > 1 else axis
    # Lanes that are combined one after the other: as many as a vector has, unless there are many more terms.
    in_turn = not is_componentwise(body.combiner)
    most = 1 if in_turn and extent < _TERMS_FOR_A_LANE * lanes else accumulators(target, len(body.source))
    return [_in_lanes(s, tensor, axis, vector_of(s[tensor], axis, extent, target, most, lanes))]


def _in_lanes(s: Schedule, tensor: Tensor, axis: IterVar, width: Factor) -> Tensor:
    """Partial sums of so many neighbours along a reduction axis, which are combined by a tree of lanes; returns their stage.

    Values that depend on each other, as a maximum and its place, are combined lane after lane.
    """
    _, inner = s[tensor].split(axis, factor=width)
    partial = _factored(s, tensor, inner, -1)
    lane = partial.op.axis[-1]
    in_vectors(s[partial], (), (), lane)
    # what rfactor has left to reduce: the lanes
    (combined,) = s[tensor].op.reduce_axis
    if why_not_in_lanes(s.tree[s[tensor].id]) is None:
        s[tensor].vectorize(combined)
    return partial


def _continued(s: Schedule, tensor: Tensor, axis: IterVar) -> list[IterVar]:
    """A reduction axis behind those that every read goes on through in memory: the pixels of a plane are one sum.

    Of planes of 7 x 7 rows alone would fill less than half a register.
    """
    reads = stage_reads(s.tree, s.tree[s[tensor].id])
    own = list(s[tensor].op.reduce_axis)
    found = [axis]
    # Where an axis stands outside of indices, as in argmax, a fused loop would divide to tell it.
    if not reads.axes_only_index or not all(access.is_affine for access in reads.accesses):
        return found
    while own and own[0] is not found[0]:
        outer = own[next(n for n, other in enumerate(own) if other is found[0]) - 1]
        (extent,) = extents_of((found[0],))
        if any(access.stride(outer.var) != access.stride(found[0].var) * extent for access in reads.accesses):
            break
        found.insert(0, outer)
    return found


def is_regrouped(body: Reduce) -> bool:
    """True if the terms may be reduced in parts: values each for itself, or in whatever order, as the first place of a maximum."""
    in_any_order = is_componentwise(body.combiner) or depends_on_order(body.combiner) is None
    return in_any_order and refuted_law(body.combiner, any_start=bool(body.init)) is None


def _factored(s: Schedule, tensor: Tensor, axis: IterVar, place: int) -> Tensor:
    """The partial results along an axis, or the first of those of several values."""
    made = s.rfactor(tensor, axis, factor_axis=place)
    return made if isinstance(made, Tensor) else made[0]


def _lanes_over_results(s: Schedule, tensor: Tensor, axis: IterVar, target: Target) -> None:
    (extent,) = extents_of((axis,))
    stage, lanes = s[tensor], lanes_of(target, tensor.dtype)
    # what is computed at another stage's loop has the rows of that loop, one as a rule
    is_long = prod(extents_of(compute_of(s, tensor).reduce_axis)) >= _LEAST_TERMS and isinstance(s.tree[stage.id].attach, Root)
    shared = _sharing_rows(s, tensor, axis, target) if is_long else []
    vectors = -(-min(extent, vector_factor(extent, lanes)) // lanes)
    rows = shared or (_rows_of(s, tensor, axis, vectors, target) if is_long else [])
    outer, inner = stage.split(axis, factor=min(extent, lanes) if shared else vector_of(stage, axis, extent, target))
    # the sum inside of the loop over vectors: each has its results in registers from the first term to the last
    in_vectors(stage, [outer, *[one for one in stage.leaf_iter_vars if one in stage.op.reduce_axis]], rows, inner)


def _sharing_rows(s: Schedule, tensor: Tensor, axis: IterVar, target: Target) -> list[IterVar]:
    """Rows of one vector each that share a vector of one operand, where all are read as vectors; none if there are no such rows.

    Example:
        Y[u, v, y, x] += A[k, y, x] * B[k, y + u, x + v]: a vector of A for all v, where rows y would read two vectors each (16 x 48 x 93
        with 7 x 7 offsets 0.31 -> 0.16 ms, two cores of Zen 3).
    """
    op = compute_of(s, tensor)
    reads = [flat_access(load) for load in loads(op)]
    for one in reversed(op.axis):
        (extent,) = extents_of((one,))
        shared = [access for access in reads if not access.moves_with(one.var)]
        if one is not axis and extent > 1 and 0 < len(shared) < len(reads) and all(access.moves_with(axis.var) for access in reads):
            return [s[tensor].split(one, factor=min(extent, accumulators(target, op.num_outputs)), balanced=True)[1]]
    return []


def _rows_of(s: Schedule, tensor: Tensor, axis: IterVar, vectors: int, target: Target) -> list[IterVar]:
    """Rows whose sums go on side by side, if the vectors of one row are too few to hide the latency of an addition; none elsewhere.

    Example:
        Y[i, j] += A[i, k] * T[k, i + j] with 11 results j: 2 vectors, so 4 rows i (704 rows of 59 terms: 0.098 -> 0.051 ms, Zen 3).
    """
    op = compute_of(s, tensor)
    others, count = [one for one in op.axis if one is not axis], accumulators(target, op.num_outputs) // max(1, vectors)
    if not others or count < 2:
        return []
    # tiles of one row less take part of what they save: of few rows there would be as many bodies as tiles
    (extent,) = extents_of((others[-1],))
    return [s[tensor].split(others[-1], factor=count, balanced=True)[1]] if extent >= 2 * count else []


def schedule_root_reduction(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule a reduction that stays at the root, results in parallel; a few long sums are cut over the threads."""
    op = compute_of(s, tensor)
    spatial, reduced = constant_extents(op.axis), constant_extents(op.reduce_axis)
    if spatial is None or reduced is None:
        _symbolic(s, tensor, target)
        return
    results, depth = prod(spatial), prod(reduced)
    work = results * depth
    axis = contiguous_axis(op, _lanes(s, tensor, target))
    along = axis is not None and axis in op.reduce_axis
    # where the lanes are results, their last axis makes no work for threads
    rows = results if along else results // max(1, spatial[-1])
    # Example: the sum of a million numbers has one result, so no loop over results has work for a second core.
    if is_parallel(target, work) and rows < target.num_cores and _can_cut(op, reduced, target):
        _over_threads(s, tensor, target)
        return
    added = schedule_reduction(s, tensor, target)
    outer = leading_loops(s, tensor)
    if not outer:
        return
    place = as_tasks(s[tensor], outer, is_parallel(target, work))
    for stage in added:
        s[stage].compute_at(s[tensor], place)


def _symbolic(s: Schedule, tensor: Tensor, target: Target) -> None:
    """A reduction whose sizes are open: results in vectors and a few rows of them at once, or lanes over what is reduced.

    C[o, y, x] += A[i, y + r, x + t] * W[o, i, r, t]    ->    for o.outer, y, x.outer: for i, r, t: 8 o in registers: 16 x in a vector
    """
    op = compute_of(s, tensor)
    body, axis, lanes = op.body[0], contiguous_axis(op), _lanes(s, tensor, target)
    if not isinstance(body, Reduce) or op.num_outputs != 1 or not are_rectangular((*op.axis, *op.reduce_axis)):
        return
    # The 3 taps of a row are no vector: strided windows have results in lanes, which are apart in what they read.
    long = axis is not None and (extent_of(axis) or lanes) >= lanes
    along = long and axis in op.reduce_axis
    if along and not is_regrouped(body):
        return
    # Sizes that aren't known count as a vector: threads start later than they could, never too early.
    depth = prod(extent_of(one) or lanes for one in op.reduce_axis)
    added = list[Tensor]()
    if along:
        assert axis is not None
        known = constant_extents(op.reduce_axis) is not None
        added = _lanes_over_reduction(s, tensor, axis, body, target) if known else [_in_lanes(s, tensor, axis, lanes)]
        each, outer = 1, None
    else:
        if not op.axis:
            return
        each, outer = _tile_of_results(s, tensor, axis if axis is not None and axis in op.axis else op.axis[-1], target)
    # A tile's sums are computed at the loop over vectors, which therefore stays one of its own.
    loops = list(takewhile(lambda one: one is not outer, leading_loops(s, tensor)))
    is_shared = open_tasks(s, tensor, loops, outer, operations(op.body, each * depth), target)
    for stage in added if is_shared else ():
        # Innermost, where the partial results are one vector.
        s[stage].compute_at(s[tensor], leading_loops(s, tensor)[-1])


def _sums_along(op: ComputeOp, axis: IterVar) -> bool:
    """True if lanes over an open axis of a reduction compute the same."""
    body = op.body[0]
    is_one = isinstance(body, Reduce) and op.num_outputs == 1 and is_regrouped(body)
    return is_one and axis in op.reduce_axis and extent_of(axis) is None and are_rectangular((*op.axis, *op.reduce_axis))


def open_tasks(s: Schedule, tensor: Tensor, loops: Sequence[IterVar], last: IterVar | None, work: float, target: Target) -> bool:
    """The outermost loops of a stage of open sizes as one, on all cores where a call has enough iterations; False if there is none.

    Without loops of more than one iteration the loop `last`, if there is one, is taken; `work` are the operations of an iteration.

    Only the first of them has an open size. A loop over n * m taken apart is a quotient by m, which a vector at the end of a row computes
    in each lane, with another divisor where the lane isn't used. So [2, h, w] is run as h * 2, and [64, h, w] as 64.
    """
    node = s.tree[s[tensor].id]
    extents = axis_extents(node, Analyzer())
    sizes = {id(node.axes[number]): as_int(extents[number]) for number in node.leaf}
    wide = [(axis, sizes[id(axis)]) for axis in loops if sizes[id(axis)] != 1]
    # Known extents make work that can be counted now; an open one joins them only where they alone are too few tasks.
    fixed = list(takewhile(lambda one: one[1] is not None, wide))
    opened = [one for one in wide if one[1] is None]
    enough = prod(extent or 1 for _, extent in fixed) >= _ROWS_FOR_A_CORE * target.num_cores
    together = [axis for axis, _ in (fixed if enough or not opened else [opened[0], *fixed])]
    if together:
        s[tensor].reorder(*together, *[axis for axis in loops if axis not in together])
        last = s[tensor].fuse(*together)
    if last is None:
        return False
    s[tensor].parallel(last)
    s[tensor].pragma(last, "parallel_from", parallel_from(target, work))
    return True


def _tile_of_results(s: Schedule, tensor: Tensor, axis: IterVar, target: Target) -> tuple[int, IterVar]:
    """Vectors along an axis inside of the sums, for several rows that read the same of some operand.

    Returns:
        How many results a tile has, and the loop over tiles.
    """
    op, lanes = compute_of(s, tensor), lanes_of(target, tensor.dtype)
    rows, factor = None, 1
    for place, one in enumerate(op.axis):
        extent = extent_of(one)
        shared = extent is not None and one is not axis and any(one.var not in flat_access(load).strides for load in loads(op))
        # A divisor, so that no row of the tile is half a row: 12 channels are two tiles of 6.
        # No more rows than sums hide the latency of a multiply-add: the other half of the registers is for what they read.
        fitting = [n for n in range(2, accumulators(target) + 1) if extent is not None and extent % n == 0] if shared else []
        if fitting and fitting[-1] > factor:
            rows, factor = place, fitting[-1]
    along = op.axis.index(axis)
    # Sums in an array of their own: in the result, whose rows are apart by open strides, they would be loaded and stored for each term.
    kept = accumulators_of(s, tensor, tensor)
    stage, sums = s[tensor], s[kept]
    outer, inner = stage.split(stage.op.axis[along], factor=lanes)
    in_vectors(stage, [outer, *([] if rows is None else [stage.split(stage.op.axis[rows], factor=factor)[1]])], (), inner)
    sums.compute_at(stage, outer)
    in_vectors(sums, sums.op.reduce_axis, [] if rows is None else [sums.op.axis[rows]], sums.op.axis[along])
    return factor * lanes, outer


def leading_loops(s: Schedule, tensor: Tensor) -> list[IterVar]:
    """The loops of a stage outside its first reduction loop that are no vectors, outermost first."""
    node = s.tree[s[tensor].id]
    found = []
    for axis in node.leaf:
        if node.is_reduction(axis) or node.mark(axis).kind is LoopKind.VECTORIZE:
            break
        found.append(node.axes[axis])
    return found


def _can_cut(op: ComputeOp, reduced: Sequence[int], target: Target) -> bool:
    body = op.body[0]
    # Four terms of the outermost axis for each core at least, so that one that gets a term more has a quarter more to do at most.
    return isinstance(body, Reduce) and reduced[0] >= 4 * target.num_cores and is_regrouped(body)


def _over_threads(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Each thread reduces a part of the first reduction axis into results of its own; one pass combines them."""
    op = compute_of(s, tensor)
    part, _ = s[tensor].split(op.reduce_axis[0], nparts=target.num_cores)
    partial = _factored(s, tensor, part, 0)
    lanes = lanes_of(target, tensor.dtype)
    parts = compute_of(s, partial)
    axis = contiguous_axis(parts)
    if axis is not None and axis in parts.reduce_axis:
        added = schedule_reduction(s, partial, target)
        each = s[partial].fuse(*s[partial].op.axis)
        s[partial].parallel(each)
        for stage_of_lanes in added:
            s[stage_of_lanes].compute_at(s[partial], each)
        return
    s[partial].parallel(partial.op.axis[0])
    if len(partial.op.axis) > 1:
        _rows_at_once(s, partial, target)
        last = s[tensor].op.axis[-1]
        outer, inner = s[tensor].split(last, factor=decided(s[tensor], last, lanes * 4, registers(lanes, target)))
        in_vectors(s[tensor], [outer, *s[tensor].op.reduce_axis], (), inner)


def _rows_at_once(s: Schedule, partial: Tensor, target: Target) -> None:
    """Several rows of the source are added to a row of results at once, so that it is loaded and stored that many times less."""
    stage = s[partial]
    rows = partial.op.reduce_axis[0]
    several, each = stage.split(rows, factor=decided(stage, rows, _ROWS_AT_ONCE, written_rows(target)))
    outer, inner = stage.split(partial.op.axis[-1], factor=lanes_of(target, partial.dtype))
    in_vectors(stage, [several, outer], [each], inner)
