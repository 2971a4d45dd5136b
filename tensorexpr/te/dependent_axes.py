"""Reduction axes whose range isn't the same for all elements: triangles, and the rows of sparse matrices.

te.reduce_axis((0, i + 1))    te.reduce_axis((0, begins[row + 1] - begins[row]))
"""

from __future__ import annotations

from ..tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Var
from ..tir.rewriting import variables, walk
from .operation import ComputeOp


def dependent_axes(op: ComputeOp) -> tuple[IterVar, ...]:
    """The reduction axes whose range depends on other axes of `op` or on what tensors hold."""
    if all(axis.dom and isinstance(axis.dom.min, IntImm) and isinstance(axis.dom.extent, IntImm) for axis in op.reduce_axis):
        return ()
    own = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    return tuple(axis for axis in op.reduce_axis if any(_varies(part, own) for part in _ends(axis)))


def _ends(axis: IterVar) -> tuple[PrimExpr, ...]:
    return (axis.dom.min, axis.dom.extent) if axis.dom is not None else ()


def _varies(end: PrimExpr, own: set[Var]) -> bool:
    return not own.isdisjoint(variables(end)) or any(isinstance(node, ProducerLoad) for node in walk(end))


def within(axis: IterVar) -> list[PrimExpr]:
    """The conditions that an axis is in its range; a constant beginning is that of the range around it too."""
    if axis.dom is None:
        return []
    below = axis.var < axis.dom.min + axis.dom.extent
    return [below] if isinstance(axis.dom.min, IntImm) else [axis.dom.min <= axis.var, below]
