"""What a sketch rule is. Rules are tried in order on each stage, from the last stage to the first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum

from ...dataclass import dataclass
from ...spaces.state import SketchState
from ...target import Target
from ..layout_rewrite import LayoutRewriteOption


class Meet(IntEnum):
    """What a rule says to a stage."""

    SKIP = 0
    APPLY = 1
    APPLY_AND_SKIP_REST = 2


@dataclass(frozen=True)
class RuleOptions:
    """What all rules may ask for.

    Args:
        target: what the programs are for.
        structure: the levels of multi-level tiling, S for all spatial axes and R for all reduction axes.
        max_innermost: the largest innermost tile.
        only_ansor: leave out what Ansor has no rule for: whole plans, register tiles with packed operands, sums over lanes.
        layout_rewrite: how programs take inputs whose layout is free.
    """

    target: Target
    structure: str = "SSRSRS"
    max_innermost: int = 64
    only_ansor: bool = False
    layout_rewrite: LayoutRewriteOption = LayoutRewriteOption.INSERT_TRANSFORM_STAGE

    @property
    def caller_packs(self) -> bool:
        """True if whoever calls brings inputs of free layout into the one that the program wants."""
        return self.layout_rewrite is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED


class SketchRule(ABC):
    """One way to go on with a program at one stage."""

    @property
    def name(self) -> str:
        """The rule's name in logs."""
        return type(self).__name__

    @abstractmethod
    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Whether the rule has something to do at a stage."""

    @abstractmethod
    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """The programs the rule makes, each with the stage to go on with (None when all are done)."""


def previous(state: SketchState, stage: int) -> int | None:
    """The stage before `stage` in the order."""
    place = state.tree.order.index(stage)
    return state.tree.order[place - 1] if place else None
