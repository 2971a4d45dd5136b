"""Finished programs made sketches again: the sizes of tiles, vectors and parts that their steps hold become decisions.

Whatever size a split has, the program is legal and computes the same, so any schedule can be opened. What stays closed are
sizes that a layout is made of, since the splits that follow it have to fit it, and vectors of one register.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...schedule.steps import Annotate, BalancedSplit, RFactor, SampleCategorical, SampleTile, Split, Step, TransformLayout
from ...schedule.trace import Trace
from ...schedule.tree import FuseRelation, ScheduleTree, StageNode
from ...target import Target
from ...tir.arithmetic import as_int
from .register_plan import lanes_of
from .register_tiling import row_sizes

REGISTERS = (1, 2, 3, 4, 8, 16)  # of a vector, and of a block of vectors
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 28, 32)  # that are written out; 28 accumulators and what they are made from fit 32
SEVERAL = (1, 2, 3, 4, 6, 8)  # iterations of a loop that is neither a vector nor written out
DEPTHS = (1, 2, 3, 4, 8)  # parts of a sum


@dataclass(frozen=True)
class Opened:
    """A program with open sizes, and for each of them in order the one it had."""

    trace: Trace
    preferred: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class _Size:
    """A size that a split has: where it stands among the factors, and the extent of what is split."""

    step: Split | BalancedSplit
    place: int
    extent: int
    candidates: tuple[int, ...]
    of_root: bool

    @property
    def value(self) -> int:
        value = self.step.factors[self.place]
        assert isinstance(value, int)
        return value


def opened(trace: Trace, initial: ScheduleTree, target: Target) -> Opened:
    """The program of a trace without decisions, its sizes open.

    Balanced tiles of one size on several stages are one decision: one stage then fits the other.
    """
    sizes = dict(_sizes(trace, initial, target))
    steps: list[Step] = []
    preferred: list[tuple[int, ...]] = []
    shared: dict[int, tuple[int, int]] = {}  # size of balanced tiles -> sample, stage
    for number, step in enumerate(trace):
        size = sizes.get(number)
        if size is not None:
            sample, owner = shared.get(size.value, (len(preferred), size.step.stage))
            if not isinstance(step, BalancedSplit) or owner == size.step.stage:
                sample = len(preferred)
                steps.append(_sample(size))
                preferred.append((size.value,))
            if isinstance(step, BalancedSplit):
                shared.setdefault(size.value, (sample, size.step.stage))
            factors = list(size.step.factors)
            factors[size.place] = (sample, 0)
            steps.append(replace(size.step, factors=tuple(factors)))
        else:
            steps.append(step)
    return Opened(Trace(tuple(steps)), tuple(preferred))


def _sample(size: _Size) -> Step:
    """Sizes of a root axis are ordered; those of a part of one are any numbers."""
    if size.of_root and size.candidates[-1] <= size.extent:
        return SampleTile(size.step.stage, size.step.axis, size.candidates)
    return SampleCategorical(size.candidates)


def _sizes(trace: Trace, initial: ScheduleTree, target: Target) -> Iterator[tuple[int, _Size]]:
    """The sizes that may be opened, by the numbers of their steps."""
    fixed = {value for step in trace if isinstance(step, TransformLayout) for value in _numbers(step.mapping)}
    tree = initial
    for number, step in enumerate(trace):
        if isinstance(step, (Split, BalancedSplit)) and len(step.factors) == 2:
            stage = tree[step.stage]
            place = 0 if step.factors[0] is not None else 1
            value, extent = step.factors[place], _extents(stage).get(step.axis)
            if isinstance(value, int) and extent is not None and extent > 1:
                made = len(stage.axes) + place
                found = _candidates(step, place, value, extent, _use(trace.steps[number + 1 :], step.stage, made), stage, fixed, target)
                kept = tuple(sorted({size for size in (*found, value) if 1 <= size <= max(extent, value)}))
                if found and len(kept) > 1:
                    yield number, _Size(step, place, extent, kept, step.axis in stage.spatial or step.axis in stage.reduction)
        tree = step.apply(tree)


def _candidates(
    step: Step, place: int, value: int, extent: int, use: str, stage: StageNode, fixed: set[int], target: Target
) -> Sequence[int]:
    """Other sizes of what is used in some way; none if the size is fixed."""
    lanes = lanes_of(target, stage)
    assert isinstance(step, (Split, BalancedSplit))
    if place == 0:  # what is split again, or reduced in parts, is counted in constants
        return ()
    if isinstance(step, BalancedSplit):
        return row_sizes(extent, target.vector_registers)
    if value in fixed:
        return ()
    if use in ("vectorize", "rfactor", "split"):
        return [lanes * count for count in REGISTERS] if value % lanes == 0 and value > lanes else ()
    if use == "unroll":
        return ROWS if value <= ROWS[-1] else ()
    if stage.is_reduction(step.axis):
        return [-(-extent // parts) for parts in DEPTHS]
    return SEVERAL if value <= SEVERAL[-1] else ()


def _use(following: Sequence[Step], stage: int, axis: int) -> str:
    """What later steps make of a part of a split: the kind of a loop, "rfactor", "split", or "" where they leave it as it is."""
    for step in following:
        if isinstance(step, RFactor) and step.stage == stage:
            return "rfactor" if step.axis == axis else ""
        if isinstance(step, Annotate) and (step.stage, step.axis) == (stage, axis):
            return step.kind
        if isinstance(step, (Split, BalancedSplit)) and (step.stage, step.axis) == (stage, axis):
            return "split"
    return ""


def _extents(stage: StageNode) -> dict[int, int]:
    """The extents of the axes, as far as they are constants."""
    roots = (*stage.spatial, *stage.reduction)
    known = {axis: as_int(dom.extent) for axis in roots if (dom := stage.axes[axis].dom) is not None}
    found = {axis: extent for axis, extent in known.items() if extent is not None}
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            if all(part in found for part in relation.parts):
                found[relation.fused] = prod([found[part] for part in relation.parts])
            continue
        given = [None if factor is None else as_int(factor) for factor in relation.factors]
        if relation.parent not in found:
            continue
        rest = -(-found[relation.parent] // prod([factor for factor in given if factor is not None]))
        found.update({part: rest if factor is None else factor for part, factor in zip(relation.parts, given, strict=True)})
    return found


def _numbers(expression: object) -> Iterator[int]:
    """The constants of a layout's indices."""
    if isinstance(expression, int):
        yield expression
    elif isinstance(expression, tuple) and expression[:1] != ("axis",):
        for part in expression:
            yield from _numbers(part)


__all__ = ["Opened", "opened"]
