"""What rules ask of a stage in a tree: its extents, and the one stage that reads it element by element."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TypeGuard

from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, Root, ScheduleTree, StageNode
from ..te.operation import ComputeOp, Operation
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, PrimExpr, ProducerLoad, Reduce
from ..tir.rewriting import walk


def is_untouched(stage: StageNode) -> bool:
    """True for a stage at the root whose loops no rule and nobody else has changed."""
    return isinstance(stage.attach, Root) and not stage.marks and not stage.relations


def untouched(s: Schedule) -> Iterator[StageNode]:
    """The stages with loops that `is_untouched`, producers first, each as it is when its turn comes."""
    for stage in list(s.tree.in_order()):
        if not stage.is_placeholder and is_untouched(node := s.tree[stage.id]):
            yield node


def is_plain_sum(op: Operation) -> TypeGuard[ComputeOp]:
    """True for a reduction to one tensor that starts from the identity."""
    return isinstance(op, ComputeOp) and len(op.body) == 1 and isinstance(op.body[0], Reduce) and not op.body[0].init and bool(op.axis)


def compute_of(s: Schedule, tensor: Tensor) -> ComputeOp:
    """What a stage computes, after the steps that changed its definition."""
    return s.tree[s[tensor].id].compute


def constant_extents(axes: Sequence[IterVar]) -> list[int] | None:
    """The extents of some axes, or None if one isn't a constant."""
    known = [extent for extent in map(extent_of, axes) if extent is not None]
    return known if len(known) == len(axes) else None


def extent_of(axis: IterVar) -> int | None:
    """The extent of an axis, or None if it is no constant."""
    return as_int(axis.dom.extent) if axis.dom is not None else None


def are_rectangular(axes: Sequence[IterVar]) -> bool:
    """True if ranges are of sizes alone: a triangle, k < i + 1, or a row whose length a tensor says, keeps the loops it has."""
    own = {axis.var for axis in axes}
    ends = [end for axis in axes if axis.dom is not None for end in (axis.dom.min, axis.dom.extent)]
    return not any(node in own or isinstance(node, ProducerLoad) for end in ends for node in walk(end))


def extents_of(axes: Sequence[IterVar]) -> list[int]:
    """The extents of axes that are known to be constants."""
    found = constant_extents(axes)
    assert found is not None
    return found


def elementwise_consumer(tree: ScheduleTree, stage: StageNode) -> StageNode | None:
    """The only stage with loops that reads `stage`, through inlined ones, if every read on all ways is elementwise and the shapes agree.

    Example:
        y = A @ B; y * sigmoid(y), with the sigmoid inlined: the product, though it reads y twice.
    """
    found: StageNode | None = None
    waiting = [stage]
    # the list grows while it is walked
    for current in waiting:
        readers = tree.consumers(current)
        # One reader at other indices, a sum of what was computed say, needs elements that a tile of this stage doesn't have yet.
        if not readers or not all(reads_elementwise(tree, reader, current) for reader in readers):
            return None
        for reader in readers:
            if isinstance(reader.attach, Inline):
                waiting += [] if any(reader.id == known.id for known in waiting) else [reader]
            elif found is not None and found.id != reader.id:
                return None
            else:
                found = reader
    return found


def result_of(s: Schedule, stage: StageNode) -> Tensor:
    """Where a stage's elements end up: in the only stage that reads it, if that reads each once, in order; else in itself."""
    reader = None if stage.is_output else elementwise_consumer(s.tree, stage)
    found: Tensor = (stage if reader is None else reader).origin.output(0)
    return found


def tiled_result(s: Schedule, stage: StageNode, finished: Container[int] = ()) -> Tensor:
    """What is computed in tiles of a stage: where its elements end up, if nothing was said of that yet; else itself."""
    own, result = stage.origin.output(0), result_of(s, stage)
    reader = s.tree[s[result].id]
    # Another rule's loops can't be cut again: then the product keeps a tile of its own, which its reader reads from memory.
    found: Tensor = result if is_untouched(reader) and reader.id not in finished else own
    return found


def reads_elementwise(tree: ScheduleTree, reader: StageNode, stage: StageNode) -> bool:
    """True if a stage reads each element of another once, or again, where it stands itself: y * sigmoid(y) of y."""
    if not isinstance(reader.op, ComputeOp) or len(reader.reduction) or reader.origin.num_outputs != 1 or not _same_shape(reader, stage):
        return False
    for load in tree.reads(reader):
        own = isinstance(load.producer, Tensor) and tree.producer(load).id == stage.id
        if own and not all(_is_axis(index, axis) for index, axis in zip(load.indices, reader.op.axis, strict=True)):
            return False
    return True


def _is_axis(index: PrimExpr, axis: IterVar) -> bool:
    """True for the axis itself, or its only value."""
    return index is axis.var or (extent_of(axis) == 1 and as_int(index) == 0)


def _same_shape(a: StageNode, b: StageNode) -> bool:
    first, second = a.origin.output_shape(0), b.origin.output_shape(0)
    return len(first) == len(second) and all(_same_extent(x, y) for x, y in zip(first, second, strict=True))


def _same_extent(a: PrimExpr, b: PrimExpr) -> bool:
    """True for equal constants, and for the same open extent."""
    return a is b if as_int(a) is None else as_int(a) == as_int(b)


def extents(node: StageNode, axes: Sequence[int]) -> list[int]:
    """The constant extents of root axes; 1 where one is symbolic."""
    return [extent_of(node.axes[axis]) or 1 for axis in axes]
