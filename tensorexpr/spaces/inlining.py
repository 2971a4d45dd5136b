"""What is computed where it is read, in place of a stage of its own, before any rule looks at what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ..lower.phase0.inline_stages import inlined_bodies
from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target
from ..te.access import is_costly, is_strictly_inlineable, needs_multi_level_tiling
from ..te.operation import ComputeOp
from ..tir.expr import ProducerLoad
from ..tir.rewriting import walk
from .access import is_move, is_view
from .contractions import Refused, contraction_of
from .convolutions import convolution_of
from .gpu import is_gpu
from .machine import operations
from .parts import MANY_READS, WORTH_A_LOOP
from .stages import constant_extents, reads_elementwise, result_of


def inline_cheap_stages(s: Schedule, target: Target) -> None:
    """Inline what costs nothing to compute again, and what is read once for each of its elements."""
    stages = list(s.tree.in_order())
    # Again from the results on: of two readers of a stage one may be a part of the other by then.
    for is_cheap, order in ((_is_cheap, stages), (_is_read_in_place, reversed(stages))):
        for stage in order:
            if stage.is_placeholder or stage.is_output or not isinstance(stage.op, ComputeOp) or stage.op.reduce_axis:
                continue
            # looked up again: inlining other stages has changed who reads what
            now = s.tree[stage.id]
            readers = [] if isinstance(now.attach, Inline) else s.tree.consumers(now)
            # Loops of an operator's own, such as a sort's, read memory; a step of a scan stays where the time loop finds it.
            if not readers or stage.id in s.tree.carried or not all(reader.has_loops for reader in readers):
                continue
            if not is_cheap(s.tree, now, readers):
                continue
            if is_gpu(target) or not (_ends_a_product(s, now) or any(_is_worth_storing(s, now, reader) for reader in readers)):
                s.apply_step(ComputeInline(stage.id))


def _sums(reader: StageNode) -> bool:
    return not isinstance(reader.op, ComputeOp) or bool(reader.op.reduce_axis)


def _is_cheap(tree: ScheduleTree, stage: StageNode, readers: Sequence[StageNode]) -> bool:
    """True if to compute a stage where it is read takes nothing, or one reader, which has no more elements, takes it once."""
    # A table, such as the waves of a Fourier transform: a sum reads each of its elements for many results.
    if is_costly(stage.compute) and any(map(_sums, readers)):
        return False
    # a reader of more elements than the stage has would compute some of them again
    once = len(readers) == 1 and not _sums(readers[0]) and _elements(readers[0]) <= _elements(stage)
    return once or is_strictly_inlineable(stage.op) or is_view(stage.compute)


def _is_read_in_place(tree: ScheduleTree, stage: StageNode, readers: Sequence[StageNode]) -> bool:
    """True for what only moves elements to where nothing is summed, and for what its only reader reads element by element.

    Example:
        the nearest pixels X[i // 2, j // 2, c] beside others (1 x 40 x 40 x (128 + 64): 418 -> 65 us, two cores of Zen 3), and exp(X[i]) of
        exp(X[i]) + sqrt(exp(X[i])), of which two stages read one until the second is part of the first.
    """
    with_loops = {reader.id: reader for reader in _with_loops(tree, readers)}
    if any(map(_sums, with_loops.values())):
        return False
    if is_move(stage.compute) or len(with_loops) > 1:
        return is_move(stage.compute)
    (reader,) = with_loops.values()
    axes = tuple(axis.var for axis in reader.compute.axis)
    found = [node for body in inlined_bodies(tree, reader) for node in walk(body) if isinstance(node, ProducerLoad)]
    return _elements(reader) == _elements(stage) and all(load.indices == axes for load in found if tree.producer(load).id == stage.id)


def _with_loops(tree: ScheduleTree, readers: Sequence[StageNode]) -> Iterator[StageNode]:
    """Readers, and those of the inlined ones in place of these."""
    for reader in readers:
        if isinstance(reader.attach, Inline):
            yield from _with_loops(tree, tree.consumers(reader))
        else:
            yield reader


def _ends_a_product(s: Schedule, stage: StageNode) -> bool:
    """True for the last stage that is made of a product's results element by element: it is stored in place of them, by the same loops.

    Example:
        H = relu(X @ W + b);  Y = H @ V: with H inlined, each panel of columns of V would compute it again, to multiply vectors by its
        elements (1024 x 512 x 512: 9.4 -> 7.2 ms, two cores of Zen 3). A border around H has less to do, too.
    """
    if all(reads_elementwise(s.tree, reader, stage) for reader in s.tree.consumers(stage)):
        return False
    waiting = [stage]
    # the list grows while it is walked
    for current in waiting:
        for producer in map(s.tree.producer, s.tree.reads(current)):
            # A quantised value reads scales and zeros along all axes, as an outer product its vectors, and sums nothing.
            is_product = needs_multi_level_tiling(producer.op) and bool(producer.compute.reduce_axis)
            if is_product and result_of(s, producer) is stage.origin.output(0):
                return True
            if isinstance(producer.attach, Inline):
                waiting.append(producer)
    return False


def _is_worth_storing(s: Schedule, stage: StageNode, reader: StageNode) -> bool:
    """True if a product or a convolution would compute elements of a stage so often that a loop of its own costs less.

    Example:
        relu(X + b) @ V of 20000 x 96 x 64: 2.4 -> 1.5 ms; 64 x 256 x 64: 0.023 -> 0.026 (two cores of Zen 3). Of V * scale panels are made.
    """
    if is_move(stage.compute) or not isinstance(reader.op, ComputeOp) or not reader.op.reduce_axis:
        return False
    extents = constant_extents((*reader.op.axis, *reader.op.reduce_axis))
    steps = prod(extents or (0,))
    if steps < MANY_READS * _elements(stage) or operations(stage.compute.body, steps) < WORTH_A_LOOP:
        return False
    found = contraction_of(s.tree, reader)
    if isinstance(found, Refused):
        return convolution_of(reader.op) is not None
    return found.right.tensor is not stage.origin.output(0) or not found.can_be_packed


def _elements(stage: StageNode) -> float:
    extents = constant_extents(stage.compute.axis)
    return 0 if extents is None else prod(extents)
