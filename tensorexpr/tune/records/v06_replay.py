"""The transform steps of a v0.6 log as a trace of ours.

Stages are numbered there by their place in the order, iterators by their place among a stage's loops; here both have
ids that never change. Loops may be fused or split there after something was computed at them; here compute_at comes
last, so where stages are attached is remembered, follows the loops, and is said at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ...errors import RecordError, ScheduleError
from ...schedule.steps import (
    Annotate,
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Fuse,
    Pragma,
    Reorder,
    RFactor,
    Split,
    Step,
    StorageAlign,
)
from ...schedule.trace import Trace
from ...schedule.tree import Inline, ScheduleTree
from .v06 import V06Step
from .v06_extents import cut_tiles

_UNROLL = "auto_unroll_max_step"
_LOOP_KINDS = {0: "serial", 1: "unroll", 2: "vectorize", 3: "parallel"}
_THREADS = {4: "vthread", 5: "blockIdx.x", 6: "threadIdx.x", 7: "blockIdx.y", 8: "threadIdx.y", 9: "blockIdx.z", 10: "threadIdx.z"}


def replay_v06(steps: Sequence[V06Step], tree: ScheduleTree) -> Trace:
    """The trace that does to a program what the steps of a log did.

    Args:
        steps: of one line.
        tree: the unscheduled program of the line's workload.

    Raises:
        RecordError: naming the step that can't be replayed, and why.
    """
    replay = _Replay(steps, tree)
    for number, step in enumerate(steps):
        try:
            _HANDLERS[step.code](replay, **step.fields)
        except (RecordError, ScheduleError) as error:
            raise RecordError(f"step {number} ({step.code}) of the log can't be replayed: {error}") from None
    try:
        return cut_tiles(replay.finished(), tree)
    except ScheduleError as error:
        raise RecordError(f"the places where stages are computed can't be replayed: {error}") from None


class _Replay:
    """The program while steps are replayed. `attached`: stage -> the stage and axis at which it is computed."""

    def __init__(self, source: Sequence[V06Step], tree: ScheduleTree) -> None:
        self.source = source
        self.tree = tree
        self.steps: list[Step] = []
        self.attached: dict[int, tuple[int, int]] = {}

    def add(self, step: Step) -> None:
        self.tree = step.apply(self.tree)
        self.steps.append(step)

    def stage(self, place: int) -> int:
        if place >= len(self.tree.order):
            raise RecordError(f"no stage {place}; the program has {len(self.tree.order)} stages here")
        return self.tree.order[place]

    def axis(self, stage: int, place: int) -> int:
        leaf = self.tree[stage].leaf
        if place >= len(leaf):
            raise RecordError(f"{self.tree[stage].name} has no iterator {place}; it has {len(leaf)}: {self.tree[stage].axis_names()}")
        return leaf[place]

    def move(self, stage: int, old: Sequence[int], new: int) -> None:
        """What was computed at an axis that is gone is computed at its successor."""
        # only values change, so that the table may be walked meanwhile
        for other, (target, axis) in self.attached.items():
            if target == stage and axis in old:
                self.attached[other] = (stage, new)

    def lengths(self, number: int) -> list[int]:
        """The sizes of a split before."""
        if number >= len(self.source) or self.source[number].code != "SP":
            raise RecordError(f"step {number} is no split to follow")
        return list(self.source[number].fields["lengths"])

    def finished(self) -> Trace:
        for stage in reversed(self.tree.order):
            if stage in self.attached:
                self.add(ComputeAt(stage, *self.attached[stage]))
        return Trace(tuple(self.steps))


def _split(replay: _Replay, stage: int, iter: int, lengths: Sequence[int], inner_to_outer: bool) -> None:
    number = replay.stage(stage)
    axis = replay.axis(number, iter)
    if not lengths:
        return
    # new axes get the next ids, outermost first
    first = len(replay.tree[number].axes)
    replay.add(Split(number, axis, (None, *lengths) if inner_to_outer else (*lengths, None)))
    # what was computed in the body of the loop is in that of its innermost part
    replay.move(number, (axis,), first + len(lengths))


def _sp(replay: _Replay, stage: int, iter: int, extent: int, lengths: list[int], inner_to_outer: int) -> None:
    _split(replay, stage, iter, lengths, bool(inner_to_outer))


def _fsp(replay: _Replay, stage: int, iter: int, source: int, n_split: int) -> None:
    lengths = replay.lengths(source)
    if n_split > len(lengths) + 1:
        raise RecordError(f"it follows step {source} for {n_split} parts, but that has {len(lengths)}")
    _split(replay, stage, iter, [*lengths[: n_split - 1], prod(lengths[n_split - 1 :])], True)


def _ffsp(replay: _Replay, stage: int, iter: int, sources: list[int], level: int, factor_or_nparts: int) -> None:
    sizes = [replay.lengths(source) for source in sources]
    if not sizes or any(level >= len(lengths) for lengths in sizes):
        raise RecordError(f"it follows level {level} of steps {sources}, which have no such level")
    _split(replay, stage, iter, [prod(lengths[level] for lengths in sizes)], bool(factor_or_nparts))


def _fu(replay: _Replay, stage: int, iters: list[int]) -> None:
    number = replay.stage(stage)
    axes = tuple(replay.axis(number, place) for place in iters)
    if len(axes) == 1:
        return
    if not axes:
        raise RecordError("it fuses no iterators")
    fused = len(replay.tree[number].axes)
    replay.add(Fuse(number, axes))
    replay.move(number, axes, fused)


def _re(replay: _Replay, stage: int, order: list[int]) -> None:
    number = replay.stage(stage)
    if sorted(order) != list(range(len(replay.tree[number].leaf))):
        raise RecordError(f"{order} is no order of the {len(replay.tree[number].leaf)} iterators of {replay.tree[number].name}")
    replay.add(Reorder(number, tuple(replay.axis(number, place) for place in order)))


def _an(replay: _Replay, stage: int, iter: int, annotation: int) -> None:
    number = replay.stage(stage)
    axis = replay.axis(number, iter)
    if annotation in _LOOP_KINDS:
        replay.add(Annotate(number, axis, _LOOP_KINDS[annotation]))
    elif annotation in _THREADS:
        tag = _THREADS[annotation]
        replay.add(Bind(number, axis, tag, tag, None))
    else:
        raise RecordError("it calls for an intrinsic without naming it; tensorize the axis by hand")


def _pr(replay: _Replay, stage: int, iter: int, pragma: str) -> None:
    number = replay.stage(stage)
    name, _, value = pragma.partition("$")
    if name != _UNROLL or not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise RecordError(f"the pragma {pragma[:60]!r} has no equal here; the one known is '{_UNROLL}$' and a number")
    axis = replay.axis(number, iter)
    replay.add(Pragma(number, axis, _UNROLL, int(value)))
    replay.add(Pragma(number, axis, "unroll_explicit", True))


def _sa(replay: _Replay, stage: int, iter: int, factor: int, offset: int) -> None:
    number = replay.stage(stage)
    replay.add(StorageAlign(number, replay.axis(number, iter), factor, offset))


def _ca(replay: _Replay, stage: int, target: int, target_iter: int) -> None:
    number, at = replay.stage(stage), replay.stage(target)
    axis = replay.axis(at, target_iter)
    # the trace has said that it is inlined: it must have loops of its own before it can be put anywhere
    if isinstance(replay.tree[number].attach, Inline):
        replay.add(ComputeRoot(number))
    replay.attached[number] = (at, axis)


def _ci(replay: _Replay, stage: int) -> None:
    number = replay.stage(stage)
    replay.attached.pop(number, None)
    replay.add(ComputeInline(number))


def _cr(replay: _Replay, stage: int) -> None:
    number = replay.stage(stage)
    # a place that was only remembered is forgotten; no step says it yet
    if replay.attached.pop(number, None) is None:
        replay.add(ComputeRoot(number))


def _chr(replay: _Replay, stage: int, scope: str, readers: list[int]) -> None:
    replay.add(CacheRead(replay.stage(stage), scope, tuple(replay.stage(place) for place in readers)))


def _chw(replay: _Replay, stage: int, scope: str) -> None:
    number = replay.stage(stage)
    _check_empty(replay, number, "cache_write")
    replay.add(CacheWrite(number, scope))


def _rf(replay: _Replay, stage: int, iter: int, factor_iter: int) -> None:
    number = replay.stage(stage)
    _check_empty(replay, number, "rfactor")
    replay.add(RFactor(number, replay.axis(number, iter), factor_iter))


def _check_empty(replay: _Replay, stage: int, primitive: str) -> None:
    # both primitives give the stage other axes, on which remembered places would mean other loops
    inside = [replay.tree[other].name for other, (target, _) in replay.attached.items() if target == stage]
    if inside:
        raise RecordError(f"{primitive} of {replay.tree[stage].name}, at whose loops {', '.join(inside)} is computed already")


_HANDLERS: Mapping[str, Callable[..., Any]] = {
    "AN": _an,
    "FU": _fu,
    "PR": _pr,
    "RE": _re,
    "SP": _sp,
    "FSP": _fsp,
    "FFSP": _ffsp,
    "SA": _sa,
    "CA": _ca,
    "CI": _ci,
    "CR": _cr,
    "CHR": _chr,
    "CHW": _chw,
    "RF": _rf,
}
