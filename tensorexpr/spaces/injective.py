"""Schedules of operators without a reduction: outer axes in parallel, the innermost one in vectors."""

from __future__ import annotations

from math import gcd, prod

from ..arith.linear import linear_form
from ..lower.phase0.inline_stages import inlined_bodies
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.tensor import Tensor
from ..tir.expr import GE, GT, LE, LT, IterVar, Var
from ..tir.rewriting import walk
from .access import Loop, is_streamed, merged_loops, stage_reads
from .blocks_of_axes import loops_at_blocks
from .gpu import is_gpu
from .gpu.injective import schedule_injective as over_threads
from .machine import is_parallel, lanes_of, operations
from .nests import in_vectors
from .reduction import open_tasks
from .sizes import vector_of
from .stages import compute_of, constant_extents
from .transpose import schedule_transpose, transposed_axis


def schedule_injective(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule one stage that stays at the root; of a target with blocks of threads, over these."""
    if is_gpu(target):
        over_threads(s, tensor, target)
        return
    op = compute_of(s, tensor)
    axes = list(op.axis)
    if not axes:
        return
    if constant_extents(axes) is None:
        _symbolic(s, tensor, target)
        return
    # Loops that are one walk through memory become one loop: of 3 x 5 x 7 elements no row fills a vector of 8, and all of them fill 13.
    reads = stage_reads(s.tree, s.tree[s[tensor].id])
    loops = loops_at_blocks(s, tensor, axes, reads, target) or merged_loops(s, tensor, axes, reads)
    across = transposed_axis(loops)
    streamed = is_streamed(s, tensor, target)
    outer = _rows(s, tensor, loops, target) if across is None else schedule_transpose(s, tensor, loops, across, target, streamed)
    if outer and is_parallel(target, operations(op.body, prod([loop.extent for loop in loops]))):
        s[tensor].parallel(s[tensor].fuse(*outer))
    if streamed:
        s[tensor].store_nontemporal()


def _rows(s: Schedule, tensor: Tensor, loops: list[Loop], target: Target) -> list[IterVar]:
    """Vectors along the last loop; returns the loops to run in parallel.

    The loop over vectors stays serial if there are enough rows: what only the row decides is then computed once for each.
    """
    if (place := _before_components(loops, lanes_of(target, tensor.dtype))) is not None:
        return _components(s, tensor, loops, place, target)
    last = loops[-1]
    outer, inner = s[tensor].split(last.axis, factor=vector_of(s[tensor], last.axis, _part(s, tensor, last, target), target))
    s[tensor].vectorize(inner)
    rows = [loop.axis for loop in loops[:-1]]
    # 8 for each core: one that gets a row more than the others has an eighth more to do
    return rows if prod([loop.extent for loop in loops[:-1]]) >= 8 * target.num_cores else [*rows, outer]


def _part(s: Schedule, tensor: Tensor, row: Loop, target: Target) -> int:
    """What to take for a row's extent: the longest part that divides it and all places where it goes on with another operand.

    A vector with such a place inside of it computes both sides in all of its lanes, and reads each by a mask. Parts shorter than a
    vector of float32 are no gain.

    Example:
        quantised values beside copied ones, 55 x 55 x (64 + 64) bytes: vectors of 64, not of 128.
    """
    bodies = inlined_bodies(s.tree, s.tree[s[tensor].id])
    found = [_change(node, row.axis.var) for body in bodies for node in walk(body) if isinstance(node, LT | LE | GT | GE)]
    part = gcd(row.extent, *(place for place in found if place is not None and 0 < place < row.extent))
    return part if part >= lanes_of(target, "float32") else row.extent


def _change(comparison: LT | LE | GT | GE, axis: Var) -> int | None:
    """The first value of an axis, counted up, at which its comparison with a constant is another one; None for any other comparison."""
    less, more = (comparison.b, comparison.a) if isinstance(comparison, GT | GE) else (comparison.a, comparison.b)
    form = linear_form(less - more)  # < 0 or <= 0
    sign = form.terms.get(axis, 0)
    if len(form.terms) != 1 or abs(sign) != 1:
        return None
    is_strict = isinstance(comparison, LT | GT)
    return -form.constant + (not is_strict) if sign == 1 else form.constant + is_strict


def _before_components(loops: list[Loop], lanes: int) -> int | None:
    """The loop to have in the lanes where what is inside of it would leave half of them empty; None if the last one fills more.

    Example:
        the inverses of n matrices of 2 x 2 side by side: n (18304 of them 0.041 -> 0.024 ms; results of 7 components 0.74 of the speed).
    """
    place = len(loops) - 1
    while place and 2 * prod([loop.extent for loop in loops[place:]]) <= lanes:
        place -= 1
    return place if place < len(loops) - 1 and loops[place].extent >= 2 * lanes else None


def _components(s: Schedule, tensor: Tensor, loops: list[Loop], place: int, target: Target) -> list[IterVar]:
    """Vectors along a loop outside of short ones, which are written out; returns the loops to run in parallel."""
    stage, row = s[tensor], loops[place]
    outer, inner = stage.split(row.axis, factor=lanes_of(target, tensor.dtype))
    short = [loop.axis for loop in loops[place + 1 :]]
    in_vectors(stage, [outer], short, inner)
    return [*[loop.axis for loop in loops[:place]], outer]


def _symbolic(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Vectors along the last axis, in parallel where a call has enough of them."""
    op, lanes = compute_of(s, tensor), lanes_of(target, tensor.dtype)
    outer, inner = s[tensor].split(op.axis[-1], factor=lanes)
    s[tensor].vectorize(inner)
    open_tasks(s, tensor, [*op.axis[:-1], outer], outer, operations(op.body, lanes), target)
