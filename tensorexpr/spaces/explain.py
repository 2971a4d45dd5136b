"""Why a stage gets the loops it gets without a search: which rule takes it, or why the rules for contractions leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, StageNode
from ..target import Target, TargetLike
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from .contraction_plan import contraction_plans
from .contractions import OPEN_ROWS, Refused, contraction_of
from .convolutions import convolution_of
from .default import rows_of_program, scheduled_contractions, take_apart
from .dot_tiles import dot_tile
from .gpu import is_gpu, seen_on_gpu
from .pairs import row_of_pairs
from .products import planned, plans_of
from .stages import untouched
from .window import is_sum_of_windows, is_window


def explain_default(tensors: Sequence[Tensor], target: TargetLike | None = None) -> str:
    """A line for each reduction of a computation: how the rules see it and, where it gets plain loops, why they refused it.

    Args:
        tensors: inputs and outputs of the computation, as for `build`.
        target: what it will run on; by default the current target, or this machine.
    """
    chosen = Target.target_or_current(target)
    s = Schedule(tuple(tensor.op for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)))
    take_apart(s, chosen)
    return "\n".join(_lines(s, chosen)) or "nothing is reduced: loops over the results, in vectors and in parallel"


def _lines(s: Schedule, target: Target) -> Iterator[str]:
    for stage in s.tree.in_order():
        if isinstance(stage.op, ComputeOp) and stage.op.reduce_axis and not isinstance(stage.attach, Inline):
            seen = seen_on_gpu(s, stage, target) if is_gpu(target) else _seen(s, stage, stage.op, target)
            yield f"{stage.name}: {seen}"
    if is_gpu(target):
        return
    scheduled_contractions(s, target)
    left = list(untouched(s))
    rows = rows_of_program(s, left, target)
    if rows:
        axes = ", ".join(axis.name for axis in left[-1].compute.axis[:rows])
        yield f"{', '.join(stage.name for stage in left)}: computed together, row by row, along {axes} of {left[-1].name}"


def _seen(s: Schedule, stage: StageNode, op: ComputeOp, target: Target) -> str:
    """What the first rule that takes a stage makes of it, in the order of `scheduled_by_plans`."""
    row = row_of_pairs(s.tree, stage, target)
    if row is not None:
        return f"a sum over pairs: {op.axis[row].name} in the lanes, each term for all of them"
    if planned(s, stage, target, by_dots=True):
        return "a contraction by instructions that sum groups of small numbers"
    if is_window(s, stage):
        return "a window written out: several rows of results share their loads"
    if is_sum_of_windows(op, target):
        return "windows written out, in a loop over what else is summed: several rows of results share their loads"
    convolution = convolution_of(op)
    if convolution is not None and plans_of(convolution, s.tree, stage, target):
        return "a convolution: tiles of pixels by vectors of channels"
    if dot_tile(s.tree, stage, target) is not None:
        return "tiles of dot products: a few rows, with terms of the sum in the lanes"
    found = contraction_of(s.tree, stage, taken_as=OPEN_ROWS)
    windows = "no convolution" if convolution is None else "a convolution of too few channels for vectors of them"
    if isinstance(found, Refused):
        return f"a plain reduction; {windows}; no contraction: {found.reason}"
    if not contraction_plans(found, stage.origin.output(0).dtype, target):
        return f"a plain reduction; {windows}; a contraction with too few rows or columns for a tile of vectors"
    rows = f"{'any number of ' if found.opened else ''}rows {found.names(*found.rows)}"
    return f"a contraction: {rows}, columns {found.names(found.column)}, summed over {found.names(*found.summed)}"
