"""Convolutions that read each second pixel, or fewer: a copy of those that they read.

    parallel over rows of the data:  X[c, 2y, 2x] -> P[c, y, x]
    out[o, y, x] = sum over c of X[c, 2y, 2x] * W[o, c]    ->    out[o, y, x] = sum over c of P[c, y, x] * W[o, c]

Every panel of weights meets all pixels again. Where the second-level cache doesn't keep the lines that these lie in, they come from
the third level for each panel, and half of what comes is pixels that nobody asked for. The copy is dense: of a plane for windows of
one pixel, tiles run on over the ends of rows. (znver1, two cores, 256 x 56 x 56 to 512 channels, stride 2: 65 % of the peak without
it, 89 % with it, 90 % for the same products at stride 1; Sapphire Rapids, 512 x 28 x 28 to 1,024 channels, whose lines stay in the
second level: 0.84 to 0.74 ms.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ..arith import linear_form
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.declare import placeholder
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import PrimExpr, Var
from ..tir.rewriting import Node, post_order_rewrite, variables
from .contraction_plan import Order, Plan
from .conv_plan import is_peeled
from .conv_tile import waits_for_pixels
from .convolutions import Convolution, convolution_of


def dense(convolution: Convolution, plan: Plan, target: Target) -> Convolution | None:
    """The convolution as it reads a copy of the pixels that it needs; None unless a copy saves the plan more than it takes.

    Example:
        D[k, 2y, 2x] of 256 x 56 x 56 as P[k, y, x]. Not D[k, 2y, x]: rows that are skipped whole leave no gap in a line.
    """
    steps = _steps(convolution)
    # Rows that are skipped whole leave no gap in a line, so they cost nothing to leave where they are.
    leaves_gaps = steps.get(len(convolution.data.load.indices) - 1, 1) > 1  # a line of the cache has pixels that no window reads
    if not leaves_gaps or convolution.is_transposed or plan.order is Order.ROWS or is_peeled(convolution):
        return None
    kept, lines = _bytes_read(convolution, steps, target)
    # With images outside, only one of them is met again by the next panel.
    if plan.order is Order.BATCHES:
        images = convolution.size(*convolution.batch)
        kept, lines = kept // images, lines // images
    panel = convolution.bytes * convolution.depth * plan.width
    panels = -(-convolution.size(convolution.column) // plan.width)
    # All lines and a panel stay in the first level, or in the second one, from which they come fast enough.
    first, second, _ = (lines + panel <= cache.size for cache in target.machine.caches)
    is_near = first or (second and not waits_for_pixels(convolution, plan.tile, target))
    # panels * lines > panels * kept + what the copy reads and writes
    if is_near or panels * (lines - kept) <= lines + kept:
        return None
    return _reading_copy(convolution, steps)


def copied(s: Schedule, convolution: Convolution, reader: Tensor) -> Tensor:
    """The stage that copies what a convolution reads, in the loops of its reader's schedule yet to be found a place."""
    steps = _steps(convolution)
    copy = s.cache_read(convolution.data.tensor, "global", [reader])

    def layout(*i: Var) -> list[PrimExpr]:
        # What is left over is 0 wherever the convolution reads: loops that nobody needs, around those over what is kept.
        return [*(i[place] % step for place, step in steps.items()), *(index // steps.get(place, 1) for place, index in enumerate(i))]

    s[copy].transform_layout(layout)
    return copy


def _steps(convolution: Convolution) -> Mapping[int, int]:
    """For each index of the data with a window: how far apart the elements are that any window reads.

    Example:
        2y + r with r in 0..0, and 2y + 2r with r in 0..2: 2.  2y + r with r in 0..2: 1.
    """
    found = dict[int, int]()
    for pixel in convolution.rows:
        place = convolution.index_of(pixel)
        form = linear_form(convolution.data.load.indices[place])
        single = {convolution.axis(tap).var for tap in convolution.taps if convolution.size(tap) == 1}
        found[place] = math.gcd(form.constant, *(factor for var, factor in form.terms.items() if var not in single))
    return found


def _bytes_read(convolution: Convolution, steps: Mapping[int, int], target: Target) -> tuple[int, int]:
    """Bytes of what the convolution reads, and of the lines that these lie in."""
    shape = [as_int(extent) or 1 for extent in convolution.data.tensor.shape]
    *others, last = (-(-extent // steps.get(place, 1)) for place, extent in enumerate(shape))
    rows, row = prod(others), convolution.bytes * shape[-1]
    # A row, its ends in lines that it shares with rows that nobody reads, where these are longer.
    return rows * last * convolution.bytes, rows * min(row + target.machine.line_bytes, row * steps.get(len(shape) - 2, 1))


def _reading_copy(convolution: Convolution, steps: Mapping[int, int]) -> Convolution | None:
    """What the convolution is once its data has nothing but the elements that it reads."""
    load = convolution.data.load
    shape = [-(-(as_int(extent) or 1) // steps.get(place, 1)) for place, extent in enumerate(load.producer.shape)]
    copy = placeholder(shape, load.dtype, "dense")
    indices = [_closer(index, steps.get(place, 1)) for place, index in enumerate(load.indices)]

    def rule(node: Node) -> Node | None:
        return copy(*indices) if node is load else None

    op = convolution.op
    return convolution_of(replace(op, body=tuple(post_order_rewrite(body, rule) for body in op.body)))


def _closer(index: PrimExpr, step: int) -> PrimExpr:
    """2y + r -> y + r: r is 0 where its factor isn't a multiple of the step."""
    if step == 1:
        return index
    form = linear_form(index)
    total: PrimExpr | None = None
    for var in variables(index):
        term = var * max(1, form.terms[var] // step)
        total = term if total is None else total + term
    assert total is not None
    return total + form.constant // step
