"""Sizes that a rule prefers and a search may change: decisions in the schedule, whose candidates a machine's registers bound.

A rule makes a schedule by the sizes that it prefers. Opened, the same trace is a sketch, whose preferred row is that schedule:

    s[C].split(i, factor=6)             rule without a choice
    s[C].split(i, factor=decided(s[C], i, 6, written_rows(target)))
        sample_tile(C, i, 1 2 .. 6 .. 14) = 6;  split(C, i, sample 0)           the schedule without trials
        sample_tile(C, i, 1 2 .. 6 .. 14);      split(C, i, sample 0)           the sketch

Whatever size such a split has, the program is legal and computes the same. Sizes that layouts are made of are no decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..arith.analyzer import Analyzer
from ..schedule.domain import axis_extents
from ..schedule.steps import Pragma, SampleCategorical, Sampled, SampleTile, Sampling, Step
from ..schedule.te_schedule import Schedule, Stage
from ..target import Target
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar
from .machine import VECTORS, lanes_of, vector_factor

Factor = int | Sampled
Candidates = Callable[[int], Iterable[int]]


def decided(stage: Stage, axis: IterVar, value: int, candidates: Candidates) -> Factor:
    """The preferred size of an axis' parts as a decision; the size itself where the extent leaves no other candidate.

    Args:
        stage: whose axis is to be split.
        axis: a loop, not yet split.
        value: what the rule prefers.
        candidates: other sizes by the extent; those above the extent are left out.
    """
    schedule: Schedule = stage._schedule
    node = schedule.tree[stage.id]
    place = stage._axis(axis, "split")
    extent = as_int(axis_extents(node, Analyzer())[place])
    # An open extent has no list of candidates that all fit it, and one iteration has no other size.
    if extent is None or extent < 2:
        return value
    # the preferred size is a candidate even above the extent
    sizes = tuple(sorted({size for size in (*candidates(extent), value) if 1 <= size <= max(extent, value)}))
    if len(sizes) < 2:
        return value
    # The sizes of a root axis are ordered; those of a part of one are any numbers.
    # A tile of 6 is like one of 7, and mutation may walk; of the part of a part the extent depends on another decision.
    of_root = (place in node.spatial or place in node.reduction) and sizes[-1] <= extent
    step = SampleTile(stage.id, place, sizes, value) if of_root else SampleCategorical(sizes, sizes.index(value))
    schedule.apply_step(step)
    return Sampled(len(schedule.tree.samples) - 1)


def decided_pragma(stage: Stage, axis: IterVar, key: str, value: int, candidates: Sequence[int]) -> None:
    """A hint on a loop whose number is a decision; `value` is preferred, and one of the candidates."""
    schedule: Schedule = stage._schedule
    schedule.apply_step(SampleCategorical(tuple(candidates), candidates.index(value)))
    schedule.apply_step(Pragma(stage.id, stage._axis(axis, "pragma"), key, (len(schedule.tree.samples) - 1, 0)))


def near(value: int, most: int) -> Candidates:
    """Half and twice a size, up to `most`: what is preferred was counted, and what is far from it wastes much."""
    return lambda _: [size for size in (value // 2, value, 2 * value) if 1 <= size <= most]


def registers(lanes: int, target: Target) -> Candidates:
    """Sizes in whole registers, of which half may be accumulators."""
    return lambda _: [lanes * count for count in (1, 2, 3, 4, 8, 16) if 2 * count <= target.vector_registers]


def written_rows(target: Target) -> Candidates:
    """Numbers of rows that are written out: each has a register at least."""
    return lambda _: [count for count in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 28, 32) if count <= target.vector_registers]


def vector_of(stage: Stage, axis: IterVar, extent: int, target: Target, most: int = VECTORS, lanes: int = 0) -> Factor:
    """The part of an axis to vectorise: up to `most` registers (see `vector_factor`); one register is no decision.

    `lanes` are those of a register, by default as many as it holds of the stage's results.
    """
    lanes = lanes or lanes_of(target, stage.op.output_dtype(0))
    value = vector_factor(extent, lanes, most)
    return decided(stage, axis, value, registers(lanes, target)) if value > lanes and value % lanes == 0 else value


def tile_vectors(target: Target) -> tuple[int, ...]:
    """Numbers of vectors NV for which a full register tile of MR rows computes as fast as it loads: 14x2, 9x3 and 6x4 in 32 registers.

    A step of the sum takes MR * NV multiply-adds and MR + NV loads. More vectors than rows would broadcast no element often enough.
    """
    machine = target.machine
    found = []
    for count in range(1, target.vector_registers):
        rows = machine.tile_rows(count)
        loads = (rows + count) / machine.loads_per_cycle
        if count < rows and loads <= rows * count / machine.fma_per_cycle:
            found.append(count)
    return tuple(found)


def balanced_rows(target: Target) -> Candidates:
    """The sizes of balanced tiles, each once. A tile of one vector has the most rows."""
    # 13 rows by 5 or by 6 are three tiles of at most 5 either way
    return lambda extent: {-(-extent // -(-extent // size)) for size in range(1, max(1, min(extent, target.machine.tile_rows(1))) + 1)}


def several(_: int) -> Iterable[int]:
    """Numbers of iterations of a loop that is neither a vector nor written out."""
    return (1, 2, 3, 4, 6, 8)


def parts(extent: int) -> Iterable[int]:
    """Lengths of the parts of a sum."""
    return [-(-extent // count) for count in (1, 2, 3, 4, 8)]


def opened(steps: Iterable[Step]) -> tuple[list[Step], list[tuple[int, ...]]]:
    """Steps of a schedule with their decisions open again, and for each of these in order what the rule prefers."""
    found: list[Step] = []
    preferred: list[tuple[int, ...]] = []
    for step in steps:
        if isinstance(step, Sampling) and step.decision is not None:
            preferred.append(_value(step, step.decision))
            step = replace(step, decision=None)
        found.append(step)
    return found, preferred


def _value(step: Sampling, decision: int | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(step, SampleCategorical):
        assert isinstance(decision, int)
        return (step.candidates[decision],)
    return (decision,) if isinstance(decision, int) else decision
