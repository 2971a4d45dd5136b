"""Inputs of symbolic sizes that nothing ties to the loops which read them: where one has a single element it stands for all.

    A = placeholder((m,)); B = compute((n,), lambda i: A[i])      m is 1, and A[0] is every B[i], or A has n elements

Only such inputs get strides that the array decides. Where an index mentions the size, or its axes do, it is trusted to stay inside:
then the only index of a single element is 0, and its stride doesn't matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...schedule.tree import ScheduleTree, StageNode
from ...te.bounds import guarded_loads
from ...te.operation import ComputeOp, PlaceholderOp
from ...tir.arithmetic import is_const_int
from ...tir.expr import PrimExpr, ProducerLoad, Var
from ...tir.rewriting import variables, walk


def may_repeat(tree: ScheduleTree, stage: StageNode) -> bool:
    """Whether the input `stage` is read along a symbolic size with an index that has nothing to do with that size."""
    if not isinstance(stage.op, PlaceholderOp) or not any(isinstance(extent, Var) for extent in stage.op.shape):
        return False
    for reader in tree.consumers(stage):
        if not isinstance(reader.op, ComputeOp):
            continue
        sizes = {axis.var: variables(axis.dom.extent) for axis in (*reader.op.axis, *reader.op.reduce_axis) if axis.dom is not None}
        for load, guards in guarded_loads(reader.op):
            if tree.producer(load).id == stage.id:
                known = _with_sizes((condition for condition, _ in guards), sizes)
                if any(_untied(index, extent, known, sizes) for index, extent in zip(load.indices, load.producer.shape, strict=True)):
                    return True
    return False


def _untied(index: PrimExpr, extent: PrimExpr, known: set[Var], sizes: dict[Var, set[Var]]) -> bool:
    """Whether nothing says that `index` stays below the symbolic `extent`. An index that is data is the caller's affair."""
    if not isinstance(extent, Var) or extent in known or is_const_int(index, 0):
        return False
    return extent not in _with_sizes((index,), sizes) and not any(isinstance(node, ProducerLoad) for node in walk(index))


def _with_sizes(exprs: Iterable[PrimExpr], sizes: dict[Var, set[Var]]) -> set[Var]:
    """The variables of expressions, and those of the extents of their axes."""
    used = {var for expr in exprs for var in variables(expr)}
    return used.union(*(sizes[var] for var in used if var in sizes))
