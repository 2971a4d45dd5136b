"""Matrix products seen in a computation: sums of products of two tensors, told by which axes index which tensor.

sum over k of left[.., i.., k..] * right[.., k.., j..]: names, tags and the order of the indices don't matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Root, StageNode
from ..te.contraction import Factor, recognise
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, ProducerLoad, Reduce, Var
from .access import StageReads, product, stage_reads
from .reduction import constant_extents


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of a product.

    Args:
        tensor: what the definition reads; it may be an inlined stage.
        axes: for each of its dimensions the axis that indexes it, None where that is a constant.
        strides: elements between neighbours along an axis, in the memory that is read in the end.
        bytes: of an element there.
        casts: the types that an element is converted to, one after the other, before it is multiplied.
    """

    tensor: Tensor
    axes: tuple[IterVar | None, ...]
    strides: Mapping[Var, int]
    bytes: int
    casts: tuple[str, ...]

    def has(self, axis: IterVar) -> bool:
        """True if the axis is one of the indices."""
        return any(axis is own for own in self.axes)

    def position(self, axis: IterVar) -> int:
        """Which index the axis is."""
        return next(number for number, own in enumerate(self.axes) if own is axis)

    def stride(self, axis: IterVar) -> int:
        """Bytes from one step of the axis to the next."""
        return abs(self.strides.get(axis.var, 0)) * self.bytes

    def is_contiguous(self, axis: IterVar) -> bool:
        """True if neighbours along the axis are neighbours in memory."""
        return self.strides.get(axis.var, 0) == 1


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product. The last axis of the result belongs to `right` alone, so vectors of results run along it.

    Args:
        batch: axes of both operands, those of `right` that aren't the last one, and those of extent 1 that neither has.
        rows: axes of `left` alone; register tiles have several rows of the last one.
        column: the last axis of the result.
        summed: the axes of the reduction, outermost first.
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


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a rule leaves a stage to the others, in words, for `explain`."""

    reason: str


def product_of(s: Schedule, stage: StageNode) -> Product | Refused:
    """What a stage computes as a product of two different tensors of constant shape, or why it is none."""
    op = stage.op
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init or not op.axis:
        return Refused("it is no reduction to one tensor that starts from the identity")
    if constant_extents((*op.axis, *op.reduce_axis)) is None:
        return Refused("its extents are no constants")
    found = recognise(op.body[0])
    if found is None or found.scale != 1:
        return Refused("it is no sum of products of elements at sums of multiples of the axes")
    if len(found.factors) != 2:
        return Refused("it multiplies nothing" if len(found.factors) < 2 else f"it has {len(found.factors)} factors, not 2")
    axes = {axis.var: axis for axis in (*op.axis, *op.reduce_axis)}
    reads = stage_reads(s, stage.origin.output(0))
    operands = [_operand(factor, axes, reads) for factor in found.factors]
    for operand in operands:
        if isinstance(operand, Refused):
            return operand
    first, second = (operand for operand in operands if isinstance(operand, Operand))
    return _product(op, first, second)


def _product(op: ComputeOp, first: Operand, second: Operand) -> Product | Refused:
    """The product of two operands: what each axis is for follows from which of them it indexes."""
    if first.tensor is second.tensor:
        return Refused(f"both factors are {first.tensor.op.name}")
    column = op.axis[-1]
    # The operand with the last axis is read along the lanes; the other one gives a scalar that is broadcast to them.
    left, right = (first, second) if second.has(column) else (second, first)
    if left.has(column) or not right.has(column):
        return Refused(f"the last axis, {column.name}, indexes {'both factors' if left.has(column) else 'none of them'}, not one")
    for axis in op.reduce_axis:
        if not (left.has(axis) and right.has(axis)):
            return Refused(f"the reduction axis {axis.name} doesn't index both factors")
    rows = tuple(axis for axis in op.axis if left.has(axis) and not right.has(axis))
    # Each value of an axis of the right operand has a matrix of its own; one of extent 1 that neither has costs nothing wherever it goes.
    batch = tuple(axis for axis in op.axis[:-1] if right.has(axis) or (not left.has(axis) and size_of((axis,)) == 1))
    if not rows:
        return Refused(f"no axis indexes {left.tensor.op.name} alone, so that nothing uses a vector of {right.tensor.op.name} twice")
    if len(rows) + len(batch) + 1 != len(op.axis):
        return Refused("an axis indexes no factor, so that the same sum is wanted several times")
    return Product(left, right, batch, rows, column, tuple(op.reduce_axis))


def _operand(factor: Factor, axes: Mapping[Var, IterVar], reads: StageReads) -> Operand | Refused:
    """The factor if each of its indices is one axis, or a constant, and no axis is there twice."""
    found: list[IterVar | None] = []
    tensor = factor.load.producer
    for index in factor.indices:
        if not index.terms:
            found.append(None)
        elif len(index.terms) > 1 or index.constant or index.terms[0][1] != 1 or index.terms[0][0] not in axes:
            return Refused(f"{factor.load} has an index that is no axis by itself")
        else:
            found.append(axes[index.terms[0][0]])
    named = [axis for axis in found if axis is not None]
    if not isinstance(tensor, Tensor) or len(set(map(id, named))) < len(named):
        return Refused(f"{factor.load} has an axis twice")
    wanted = {axis.var for axis in named}
    behind = [access for access in reads.accesses if access.is_affine and access.strides.keys() <= wanted]
    largest = max(behind, key=lambda access: len(access.strides), default=None)
    if largest is None:
        return Refused(f"{factor.load} is computed from what doesn't lie at sums of multiples of its axes")
    source = largest.load.producer
    assert isinstance(source, Tensor)
    return Operand(tensor, tuple(found), largest.strides, max(1, parse_dtype(source.dtype).bits // 8), factor.casts)


def inline_moves(s: Schedule, stage: StageNode) -> None:
    """Inline what only puts elements elsewhere for this stage alone: transposes, slices, reshapes."""
    waiting = [stage]
    while waiting:
        for load in s.tree.reads(waiting.pop()):
            producer = s.tree.producer(load)
            readers = {reader.id for reader in s.tree.consumers(producer)}
            if producer.is_placeholder or producer.is_output or not isinstance(producer.op, ComputeOp) or len(readers) > 1:
                continue
            moves = len(producer.op.body) == 1 and isinstance(producer.op.body[0], ProducerLoad)
            if moves and isinstance(producer.attach, Root) and not producer.relations and not producer.marks:
                s.apply_step(ComputeInline(producer.id))
                waiting.append(producer)


def extent_of(axis: IterVar) -> int:
    """The extent of an axis of a product."""
    return size_of((axis,))


def size_of(axes: Sequence[IterVar]) -> int:
    """The product of the extents of some axes of a product."""
    extents = constant_extents(axes)
    assert extents is not None
    return product(extents)
