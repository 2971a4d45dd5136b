"""Matrix products seen in a computation: sums of products of two tensors, told by which axes index which tensor.

sum over k of left[.., i.., k..] * right[.., k.., j..]: names, tags and the order of the indices don't matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...te.contraction import Factor, recognise
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.expr import IterVar, Reduce, Var
from .reduction import constant_extents


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of a product: for each of its dimensions the axis that indexes it, None where that is a constant."""

    factor: Factor
    axes: tuple[IterVar | None, ...]

    @property
    def tensor(self) -> Tensor:
        """The tensor that is read."""
        producer = self.factor.load.producer
        assert isinstance(producer, Tensor)
        return producer

    @property
    def bytes(self) -> int:
        """Bytes of an element as it lies in memory."""
        return max(1, parse_dtype(self.tensor.dtype).bits // 8)

    def has(self, axis: IterVar) -> bool:
        """True if the axis is one of the indices."""
        return any(axis is own for own in self.axes)

    def position(self, axis: IterVar) -> int:
        """Which index the axis is."""
        return next(number for number, own in enumerate(self.axes) if own is axis)

    def stride(self, axis: IterVar) -> int:
        """Elements from one step of the axis to the next."""
        step = 1
        for extent in self.tensor.shape[self.position(axis) + 1 :]:
            step *= int(str(extent))
        return step


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product. The last axis of the result is one of `right` alone, so vectors of results run along it.

    batch    axes of both operands, and those of `right` that aren't the last one
    rows     axes of `left` alone; the last is `row`, which register tiles have several of
    column   the last axis of the result
    summed   the axes of the reduction, outermost first
    """

    left: Operand
    right: Operand
    batch: tuple[IterVar, ...]
    rows: tuple[IterVar, ...]
    column: IterVar
    summed: tuple[IterVar, ...]

    @property
    def row(self) -> IterVar:
        """The axis of which a register tile has several rows."""
        return self.rows[-1]


def product_of(op: object) -> Product | None:
    """The operation as a product of two tensors, or None if it is anything else."""
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init:
        return None
    if not op.axis or constant_extents((*op.axis, *op.reduce_axis)) is None:
        return None
    found = recognise(op.body[0])
    if found is None or len(found.factors) != 2 or found.scale != 1:
        return None
    axes = {axis.var: axis for axis in (*op.axis, *op.reduce_axis)}
    operands = [_operand(factor, axes) for factor in found.factors]
    column = op.axis[-1]
    right = next((one for one in operands if one is not None and one.has(column)), None)
    left = next((one for one in operands if one is not None and one is not right), None)
    if right is None or left is None or left.has(column) or left.tensor is right.tensor:
        return None
    if not all(left.has(axis) and right.has(axis) for axis in op.reduce_axis):
        return None
    rows = tuple(axis for axis in op.axis if left.has(axis) and not right.has(axis))
    batch = tuple(axis for axis in op.axis[:-1] if right.has(axis))
    if not rows or len(rows) + len(batch) + 1 != len(op.axis):
        return None
    return Product(left, right, batch, rows, column, tuple(op.reduce_axis))


def _operand(factor: Factor, axes: dict[Var, IterVar]) -> Operand | None:
    """The factor if each of its indices is one axis, or a constant, and no axis is there twice."""
    found: list[IterVar | None] = []
    for index in factor.indices:
        if not index.terms:
            found.append(None)
            continue
        if len(index.terms) > 1 or index.constant or index.terms[0][1] != 1 or index.terms[0][0] not in axes:
            return None
        found.append(axes[index.terms[0][0]])
    named = [axis for axis in found if axis is not None]
    if not isinstance(factor.load.producer, Tensor) or len(set(map(id, named))) < len(named):
        return None
    return Operand(factor, tuple(found))


def extent_of(axis: IterVar) -> int:
    """The extent of an axis of a product, which is a constant."""
    extents = constant_extents((axis,))
    assert extents is not None
    return extents[0]


def size_of(axes: tuple[IterVar, ...]) -> int:
    """The product of the extents."""
    total = 1
    for axis in axes:
        total *= extent_of(axis)
    return total
