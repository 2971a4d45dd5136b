"""A program while its sketch is made: tree, trace and what the rules want to remember about tiled stages."""

from __future__ import annotations

from collections.abc import Mapping

from ..dataclass import dataclass, field, replace
from ..schedule.factors import Factor
from ..schedule.steps import Fuse, Reorder, SamplePerfectTile, Split, Step
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from .default import schedule_alone
from .sizes import opened


@dataclass(frozen=True)
class Tiling:
    """How a stage was tiled: `levels[n]` are the axes of level n, `samples` the sample of each root axis."""

    structure: str
    levels: tuple[tuple[int, ...], ...]
    samples: Mapping[int, int]


@dataclass(frozen=True)
class SketchState:
    """A trace, the tree it makes, and notes. Immutable: adding a step gives another state."""

    tree: ScheduleTree
    trace: Trace = field(default_factory=Trace)
    tilings: Mapping[int, Tiling] = field(default_factory=dict)
    cached: frozenset[int] = frozenset()
    finished: frozenset[int] = frozenset()
    rules: tuple[str, ...] = ()
    preferred: tuple[tuple[int, ...], ...] = ()  # what to try first of the open decisions that a rule prefers something for

    def add(self, step: Step) -> SketchState:
        """This program with one more step."""
        return replace(self, tree=step.apply(self.tree), trace=self.trace.append(step))

    def split(self, stage: int, axis: int, factors: tuple[Factor, ...]) -> tuple[SketchState, tuple[int, ...]]:
        """Split an axis; returns the state and the new axes."""
        first = len(self.tree[stage].axes)
        return self.add(Split(stage, axis, factors)), tuple(range(first, first + len(factors)))

    def fuse(self, stage: int, axes: tuple[int, ...]) -> tuple[SketchState, int]:
        """Fuse axes; returns the state and the fused axis (the axis itself if it is one)."""
        if len(axes) == 1:
            return self, axes[0]
        return self.add(Fuse(stage, axes)), len(self.tree[stage].axes)

    def reorder(self, stage: int, axes: tuple[int, ...]) -> SketchState:
        """Put all loops of a stage in order; nothing if they are."""
        return self if self.tree[stage].leaf == axes else self.add(Reorder(stage, axes))

    def sample_tile(self, stage: int, axis: int, parts: int, max_innermost: int) -> tuple[SketchState, int]:
        """Leave the tiling of an axis open; returns the state and the number of the sample."""
        return self.add(SamplePerfectTile(stage, axis, parts, max_innermost)), len(self.tree.samples)

    def scheduled(self, stage: int, target: Target) -> SketchState:
        """This program with a stage at the root scheduled by itself, the sizes open."""
        # A rule works on a schedule, which changes; only its trace comes back, replayed on this state, which doesn't.
        s = Schedule.going_on(self.tree)
        schedule_alone(s, s.tree[stage], target)
        return self.opened(s.trace, stage, *range(len(self.tree.stages), len(s.tree.stages)))

    def opened(self, trace: Trace, *finished: int) -> SketchState:
        """This program after the steps of a schedule that goes on from it, their decisions open."""
        steps, preferred = opened(trace)
        made = self
        for step in steps:
            made = made.add(step)
        return replace(made, preferred=(*self.preferred, *preferred), finished=self.finished | set(finished))

    def stage(self, number: int) -> StageNode:
        """A stage."""
        return self.tree[number]

    def note(self, rule: str) -> SketchState:
        """Remember that a rule was applied."""
        return replace(self, rules=(*self.rules, rule))
