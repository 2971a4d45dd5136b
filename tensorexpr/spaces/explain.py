"""Why a stage gets the loops it gets without a search: which rule takes it, or why the rules for contractions leave it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, StageNode
from ..target import Target, TargetLike
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from .contractions import OPEN_ROWS, Refused, contraction_of
from .convolutions import convolution_of
from .default import rows_of_program, scheduled_contractions, take_apart, words_of
from .gpu import is_gpu, seen_on_gpu
from .stages import untouched


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
            seen = seen_on_gpu(s, stage, target) if is_gpu(target) else _seen(s, stage, target)
            yield f"{stage.name}: {seen}"
    if is_gpu(target):
        return
    # What rows are left for is known once the rules have taken theirs.
    scheduled_contractions(s, target)
    left = list(untouched(s))
    rows = rows_of_program(s, left, target)
    if rows:
        axes = ", ".join(axis.name for axis in left[-1].compute.axis[:rows])
        yield f"{', '.join(stage.name for stage in left)}: computed together, row by row, along {axes} of {left[-1].name}"


def _seen(s: Schedule, stage: StageNode, target: Target) -> str:
    """What the first rule that takes a stage makes of it, or why none does."""
    if (taken := words_of(s.tree, stage, target)) is not None:
        return taken
    found = contraction_of(s.tree, stage, taken_as=OPEN_ROWS)
    windows = "no convolution" if convolution_of(stage.op) is None else "a convolution of too few channels for vectors of them"
    if isinstance(found, Refused):
        return f"a plain reduction; {windows}; no contraction: {found.reason}"
    return f"a plain reduction; {windows}; a contraction with too few rows or columns for a tile of vectors"
