"""Loop nests that rules have in common: vectors with what is written out around them, tasks for all cores, and the sums of a tile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..schedule.te_schedule import Schedule, Stage
from ..te.tensor import Tensor
from ..tir.expr import IterVar


def in_vectors(stage: Stage, around: Iterable[IterVar], written: Sequence[IterVar], lane: IterVar) -> None:
    """The innermost loops of a stage: some in order, those that are written out, and a vector; all others stay outside, as they are.

    Example:
        for y: for x.outer: for k:  unrolled y.inner:  vector x.inner        sums of a tile, which stay in registers over k
    """
    inside = [*around, *written, lane]
    stage.reorder(*[axis for axis in stage.leaf_iter_vars if axis not in inside], *inside)
    # Constant indices after unrolling are what lets lowering keep the tile in registers.
    for axis in written:
        stage.unroll(axis)
    stage.vectorize(lane)


def as_tasks(stage: Stage, loops: Sequence[IterVar], parallel: bool) -> IterVar:
    """Loops as one, on all cores or not."""
    # One loop, so that 3 x 50 rows are shared as 150.
    place = stage.fuse(*loops)
    if parallel:
        stage.parallel(place)
    return place


def accumulators_of(s: Schedule, tensor: Tensor, result: Tensor, scope: str = "local") -> Tensor:
    """The stage that sums up a tile: that of the sum itself, where another stage makes the result of it, else a copy of it."""
    if tensor.op is result.op:
        copy: Tensor = s.cache_write(tensor, scope)
        return copy
    s[tensor].set_scope(scope)
    return tensor
