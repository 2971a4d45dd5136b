"""What a kernel reads comes from afar: between two calls of it the other kernels of a network have put it out of the caches.

for rc in range(1024):                                     for rc in range(1024):
    c0 += x[rc, 0] * w[o, rc, 0:16]            ->              prefetch(x[rc + 16, 0]), prefetch(w[o, rc + 16, 0])
    c1 += x[rc, 1] * w[o, rc, 0:16]                            ...

A tile asks for a line every dozen cycles: too slowly for the processor's prefetcher to run far ahead, and too fast for lines that come
from the last level or from another core. (2 cores of Sapphire Rapids: SqueezeNet 3.42 -> 3.01 ms, ResNet-50 34.5 -> 29.4, MobileNetV2
3.91 -> 3.27; with code for znver3 5.04 -> 4.58, 49.2 -> 46.9, 4.99 -> 4.75.)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..dataclass import dataclass
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.te_schedule import Schedule
from ..schedule.tree import At, Inline, LoopKind, Root, ScheduleTree, StageNode, leaves_of
from ..target import Target
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import ProducerLoad
from ..tir.rewriting import variables
from .features.access import accesses
from .features.nest import IntArray, StageNest, nests

# Iterations between asking and reading: longer than a line takes to arrive.
AHEAD = 16
# Shorter loops end before what they ask for arrives; many are written out.
_LONG = 2 * AHEAD
# Tiles that read the same: the first of them waits.
_OFTEN = 8
# Lines that an iteration may ask for at once: of more, the last wait for the first to arrive.
_AT_ONCE = 64


def ask_ahead(s: Schedule, target: Target) -> None:
    """Let the innermost loops over sums ask ahead for the inputs that each iteration reads other lines of.

    Inputs that fit in the first-level cache are left out, those whose lines several iterations share, which the processor's own
    prefetcher follows, and those of which most tiles read what an earlier one has left in the second-level cache.

    Args:
        s: a schedule of a kernel.
        target: whose caches count.
    """
    for reader in () if s.tree.by_blocks else s.tree.in_order():
        place = _innermost_sum(s, reader)
        if place is None:
            _ask_for_windows(s, reader, target)
            continue
        handle = s[reader.op.output(0)]
        inputs: dict[Tensor, bool] = {}
        for tensor, load in _inputs(s.tree, reader):
            if _bytes(tensor) > target.machine.caches[0].size:
                # All loads of it have to: lines that one of them shares between iterations are followed by the processor's prefetcher.
                inputs[tensor] = inputs.get(tensor, True) and _moves_by_lines(s, reader, place, load, target)
        for tensor, moves in inputs.items():
            if moves and not _stays(s, reader, place, tensor, target):
                handle.prefetch(tensor, handle.leaf_iter_vars[place], AHEAD)


def _ask_for_windows(s: Schedule, reader: StageNode, target: Target) -> None:
    """Where a tile's sum is written out, let a loop over tiles ask for what its next iteration reads.

        for y in parallel:  for x tiles:  prefetch(X[..., 4 * (x + 1) : 4 * (x + 2) + 2, ...]),  for channels:  Y[y, 4 tiles] = 9 taps of X

    The outermost loop of which an iteration brings few new lines, or the innermost one. (Two cores of a Zen 3 server, arrays from behind
    the caches: a depthwise 3x3 on 56 x 56 x 144 channels last 0.35 -> 0.19 ms, its planes 0.19 -> 0.14, a 3x3 pool of stride 2 on
    112 x 112 x 64 0.34 -> 0.22; with arrays in the caches 0.96 to 1.1 times as long.)
    """
    at, machine = reader.attach, target.machine
    if not isinstance(at, At) or not reader.reduction or any(reader.mark(number).kind is LoopKind.SERIAL for number in reader.leaf):
        return
    around = s.tree[at.stage]
    loops = around.leaf[: around.leaf.index(at.axis) + 1] if isinstance(around.attach, Root) else ()
    inside = [place for place, number in enumerate(loops) if around.mark(number).kind is LoopKind.SERIAL]
    large = dict.fromkeys(tensor for tensor, _ in _inputs(s.tree, reader) if _bytes(tensor) > machine.caches[0].size)
    nest = _nest_of(s, reader) if inside and large else None
    if nest is None:
        return
    iterations = {place: prod(float(loop.extent[0]) for loop in nest.loops[: nest.ends[place]]) for place in inside}
    handle = s[around.op.output(0)]
    for tensor in large:
        lines = _bytes(tensor) / machine.line_bytes
        place = next((place for place in inside if lines <= _AT_ONCE * iterations[place]), inside[-1])
        handle.prefetch(tensor, handle.leaf_iter_vars[place], 1)


def _innermost_sum(s: Schedule, reader: StageNode) -> int | None:
    """The place of the innermost long loop over a sum that is a loop when the kernel runs."""
    if not reader.has_loops or isinstance(reader.attach, Inline):
        return None
    for place in range(len(reader.leaf) - 1, -1, -1):
        number = reader.leaf[place]
        if reader.is_reduction(number) and reader.mark(number).kind is LoopKind.SERIAL and (_extent(s, reader, place) or 0) >= _LONG:
            return place
    return None


def _inputs(tree: ScheduleTree, reader: StageNode) -> Iterator[tuple[Tensor, ProducerLoad]]:
    """The inputs of the kernel that a stage reads, with its loads: of themselves, or of inlined stages of as many axes, as padding is."""
    for load in tree.reads(reader):
        waiting = [tree.producer(load)]
        while waiting:
            producer = waiting.pop()
            if isinstance(producer.op, PlaceholderOp) and len(producer.op.output(0).shape) == len(load.indices):
                yield producer.op.output(0), load
            elif isinstance(producer.attach, Inline):
                waiting += [tree.producer(one) for one in tree.reads(producer)]


def _bytes(tensor: Tensor) -> int:
    """Of a tensor; 0 if its size isn't constant."""
    return prod(as_int(extent) or 0 for extent in tensor.shape) * parse_dtype(tensor.dtype).itemsize


def _moves_by_lines(s: Schedule, reader: StageNode, place: int, load: ProducerLoad, target: Target) -> bool:
    """Whether each iteration of a loop reads half a line or more of a tensor, and the next one a line or more further on."""
    tensor = load.producer
    size, used = parse_dtype(tensor.dtype).itemsize, variables(load)
    loops = {root: leaves_of(reader, root) for root in (*reader.spatial, *reader.reduction) if reader.axes[root].var in used}
    steps = []
    for dimension, index in enumerate(load.indices):
        read = variables(index)
        if any(reader.axes[root].var in read and reader.leaf[place] in leaves for root, leaves in loops.items()):
            steps.append(size * prod(as_int(extent) or 0 for extent in tensor.shape[dimension + 1 :]))
    for later in range(place + 1, len(reader.leaf)):
        if any(reader.leaf[later] in leaves for leaves in loops.values()):
            size *= _extent(s, reader, later) or target.machine.line_bytes  # of a part that the bounds say later: a vector, in all rules
    return bool(steps) and min(steps) >= target.machine.line_bytes and 2 * size >= target.machine.line_bytes


@dataclass(frozen=True)
class _Fixed:
    """A schedule as a population of one program."""

    tree: ScheduleTree

    def sample_values(self, rows: IntArray) -> dict[int, IntArray]:
        """Nothing is open."""
        return {}


def _nest_of(s: Schedule, reader: StageNode) -> StageNest | None:
    """The loops around a stage; None if not all of them have constant extents."""
    stages = [stage for stage in s.tree.in_order() if stage.has_loops]
    domains = [stage.axes[axis].dom for stage in stages for axis in (*stage.spatial, *stage.reduction)]
    if any(domain is None or as_int(domain.extent) is None for domain in domains):
        return None
    found = nests(_Fixed(s.tree), inline_stages(s.tree), np.zeros((1, 0), np.int64))
    return next(nest for nest in found if nest.stage.id == reader.id)


def _stays(s: Schedule, reader: StageNode, place: int, tensor: Tensor, target: Target) -> bool:
    """Whether most tiles find what they read of a tensor in the second-level cache, where an earlier one has left it.

    To ask again takes as many places among loads as the loads themselves where a vector is half a line, which two steps ask for; vectors of
    a line leave half of these places free.

    Example:
        Panels of 768 x 24 weights serve 32 tiles of rows: 128 x 768 by 768 x 3072 in 4.4 ms, 5.0 with 3 lines asked for in each step, and
        with GELU behind it 4.9 and 6.2 (two cores of Zen 3).
    """
    machine = target.machine
    nest = _nest_of(s, reader) if machine.vector_bytes < machine.line_bytes else None
    if nest is None:
        return False
    at = nest.ends[len(nest.ends) - len(nest.stage.leaf) + place] - 1
    loads = accesses(nest, {}, machine.line_bytes)[1:]
    access = next((one for one, load in zip(loads, _tensors(nest), strict=True) if load is tensor), None)
    if access is None:
        return False
    again, size = 1.0, 0.0
    for loop in range(at - 1, -1, -1):
        extent = nest.loops[loop].extent[0]
        if extent <= 1:
            continue
        if access.invariant[0, loop]:
            size = size or float(access.lines[0, loop + 1] * access.line_bytes)
            again *= extent
        elif again > 1:
            break
    return again >= _OFTEN and 2 * size <= machine.caches[1].size


def _tensors(nest: StageNest) -> list[Tensor]:
    """What the accesses of a nest read, in their order."""
    return [load.producer for load in nest.loads if isinstance(load.producer, Tensor)]


def _extent(s: Schedule, reader: StageNode, place: int) -> int | None:
    """Of a loop of a stage; None if it isn't constant."""
    domain = s[reader.op.output(0)].leaf_iter_vars[place].dom
    return None if domain is None else as_int(domain.extent)
