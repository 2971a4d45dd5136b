"""Programs of any number of images, scheduled as for one: where that is work for all cores, loops over images go around its loops.

Y[n, o, y, x] += X[n, k, y + r, x + s] * W[o, k, r, s] with n open: the steps of the convolution of one image
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ScheduleError
from ..schedule.steps import Annotate
from ..schedule.te_schedule import Schedule, create_schedule
from ..te.operation import ComputeOp, Operation, PlaceholderOp, loads
from ..te.substitution import substituted
from ..tir.expr import IntImm, PrimExpr, Var
from ..tir.rewriting import variables
from .contractions import OPEN_ROWS, Contraction, contraction_of

# Rows of a product within one element of the batch from which on several elements need not share a tile of rows.
_ROWS_OF_ONE = 32


def of_one(s: Schedule) -> Schedule | None:
    """A program of an open batch, of which nothing is scheduled, with a batch of one; None if it has no open batch.

    The number of elements is the only open size, the extent of the first axis of whatever has it, and each element is computed of those
    at its own place. Products whose rows are little more than the elements are none: tiles have rows of several elements.

    Example:
        Y[n, i, j] += X[n, i, k] * W[k, j] with 128 rows i, not Y[n, j] += X[n, k] * W[k, j].
    """
    ops = [stage.op for stage in s.tree.in_order()]
    found = {var for op in ops for extent in _extents(op) for var in variables(extent)}
    if len(found) != 1 or not all(type(op) in (ComputeOp, PlaceholderOp) and _is_apart(op, found) for op in ops):
        return None
    for stage in s.tree.in_order():
        product = contraction_of(s.tree, stage, taken_as=OPEN_ROWS)
        if isinstance(product, Contraction) and product.opened:
            known = product.size(*(row for row in product.rows if row not in product.opened))
            if known < _ROWS_OF_ONE:
                return None
    (batch,) = found
    outputs = substituted([op.output(0) for op in s.outputs], {}, {batch: IntImm(batch.dtype, 1)})
    return create_schedule([output.op for output in outputs])


def for_any(s: Schedule, one: Schedule) -> Schedule | None:
    """The program with the steps of `one`, the program for a batch of one; None unless those run on all cores, and fit any batch."""
    if not any(isinstance(step, Annotate) and step.kind == "parallel" for step in one.trace):
        return None
    try:
        return Schedule(s.outputs, one.trace)
    except ScheduleError:  # tiles that are balanced over all images, say, whose number they take
        return None


def _extents(op: Operation) -> Sequence[PrimExpr]:
    """The extents of all axes, and where they begin."""
    if isinstance(op, PlaceholderOp):
        return op.shape
    return [extent for axis in (*op.axis, *op.reduce_axis) if axis.dom is not None for extent in (axis.dom.extent, axis.dom.min)]


def _is_apart(op: Operation, batch: set[Var]) -> bool:
    """True if the batch is the first axis alone, or none, and what is read of a batch is the element at the same place."""
    has_batch = bool(op.output_shape(0)) and op.output_shape(0)[0] in batch
    if any(batch & variables(extent) for extent in _extents(op)[has_batch:]):
        return False
    if not isinstance(op, ComputeOp):
        return True
    reads = [load for load in loads(op) if load.producer.shape and load.producer.shape[0] in batch]
    in_place = all(has_batch and load.indices[0] is op.axis[0].var for load in reads)
    return in_place and not any(batch & variables(body) for body in op.body)
