"""Sampling steps: values that a search decides. While the decision is open the value is a variable, and the schedule a sketch."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...tir.expr import IntImm, PrimExpr, Var
from ..naming import PythonNames
from ..tree import ScheduleTree, StageNode
from .base import StageStep, Step, check_leaf, stage_of


def _with_sample(tree: ScheduleTree, decision: tuple[int, ...] | None, parts: int, stem: str) -> ScheduleTree:
    values: tuple[PrimExpr, ...]
    if decision is None:
        values = tuple(Var(f"{stem}{len(tree.samples)}_{part}", "int32") for part in range(parts))
    else:
        values = tuple(IntImm("int32", value) for value in decision)
    return replace(tree, samples=(*tree.samples, values))


@dataclass(frozen=True, slots=True)
class Sampled:
    """The value of a sampling step that has one: what a split takes as its factor, decided or open."""

    sample: int


@dataclass(frozen=True)
class SamplePerfectTile(StageStep):
    """Factors of a loop's extent, outermost first, whose product is the extent; the last is at most `max_innermost`.

    The value has `parts` entries. The loop itself stays as it is until a Split uses them.
    """

    code: ClassVar[str] = "sample_perfect_tile"
    axis: int
    parts: int
    max_innermost: int
    decision: tuple[int, ...] | None = None

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with one more sample, which stands for its factors in later steps.

        Raises:
            ScheduleError: for no root axis of constant extent, less than two parts, or a decision that doesn't multiply to the extent.
        """
        stage = stage_of(tree, self.stage, "sample_perfect_tile")
        check_leaf(stage, self.axis, "sample_perfect_tile")
        extent = constant_extent(stage, self.axis, "sample_perfect_tile")
        if self.parts < 2:
            raise stage.refused(f"sample_perfect_tile makes at least 2 parts, not {self.parts}")
        if self.decision is not None:
            self._check_decision(stage, extent)
        return _with_sample(tree, self.decision, self.parts, "tile")

    def _check_decision(self, stage: StageNode, extent: int) -> None:
        decision = self.decision or ()
        if len(decision) != self.parts or prod(decision) != extent or min(decision) < min(extent, 1):
            raise stage.refused(f"{list(decision)} is no tiling of {extent} in {self.parts} parts; their product must be {extent}")
        if decision[-1] > self.max_innermost:
            raise stage.refused(f"the innermost tile {decision[-1]} is above the limit of {self.max_innermost}")

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return []


@dataclass(frozen=True)
class SampleCategorical(Step):
    """One of some integers. `decision` is the index of the choice."""

    code: ClassVar[str] = "sample_categorical"
    candidates: tuple[int, ...]
    decision: int | None = None

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with one more sample, which stands for the chosen number in later steps.

        Raises:
            ScheduleError: for no candidates, or a decision that is no place among them.
        """
        if not self.candidates:
            raise ScheduleError("sample_categorical needs at least one candidate")
        if self.decision is None:
            return _with_sample(tree, None, 1, "choice")
        if not 0 <= self.decision < len(self.candidates):
            raise ScheduleError(f"sample_categorical: decision {self.decision} of {len(self.candidates)} candidates")
        return _with_sample(tree, (self.candidates[self.decision],), 1, "choice")

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return []


@dataclass(frozen=True)
class SampleTile(StageStep):
    """The size of an axis' tile, one of `sizes`, whether or not it divides the extent. `decision` is the size.

    The value has one entry. The loop itself stays as it is until a split uses it: a balanced one (`BalancedSplit`), whose
    tiles differ by at most one, or a plain one, whose last tile is guarded.
    """

    code: ClassVar[str] = "sample_tile"
    axis: int
    sizes: tuple[int, ...]
    decision: int | None = None

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with one more sample, which stands for the size in later steps.

        Raises:
            ScheduleError: for no root axis of constant extent, sizes out of order or range, or a decision that is none of them.
        """
        stage = stage_of(tree, self.stage, "sample_tile")
        check_leaf(stage, self.axis, "sample_tile")
        name, extent = stage.axes[self.axis].name, constant_extent(stage, self.axis, "sample_tile")
        if not self.sizes or list(self.sizes) != sorted(set(self.sizes)) or not 1 <= self.sizes[0] <= self.sizes[-1] <= max(1, extent):
            raise stage.refused(f"sample_tile of {name!r} takes ascending sizes from 1 to {extent}, not {list(self.sizes)}")
        if self.decision is not None and self.decision not in self.sizes:
            raise stage.refused(f"{self.decision} is no tile of {name!r}; sizes: {', '.join(map(str, self.sizes))}")
        return _with_sample(tree, None if self.decision is None else (self.decision,), 1, "tile")

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return []


def constant_extent(stage: StageNode, axis: int, primitive: str) -> int:
    """The extent of a root axis.

    Raises:
        ScheduleError: if the axis is none, or its extent no constant.
    """
    dom = stage.axes[axis].dom
    if dom is None or not isinstance(dom.extent, IntImm):
        raise stage.refused(f"{primitive} needs a root axis of constant extent, not {stage.axes[axis].name!r}")
    return dom.extent.value


Sampling = SamplePerfectTile | SampleCategorical | SampleTile
