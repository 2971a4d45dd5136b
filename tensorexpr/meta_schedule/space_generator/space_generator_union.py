"""`SpaceGeneratorUnion`: the design spaces of several generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...schedule.blocks import Schedule
from ...tir.function import IRModule
from ..origin import distinct, mark
from ..search_strategy.search_strategy import PopulationSpace
from ..tune_context import TuneContext
from .space_generator import FROM_TARGET, SpaceGenerator


class SpaceGeneratorUnion(SpaceGenerator, kind="union"):
    """All design spaces of several generators: written by hand, made by rules, templates with knobs.

    The search explores all; `space_of(record.trace)` says which one a program is of.

    Args:
        space_generators: the generators.
        sch_rules, postprocs, mutator_probs: as for every SpaceGenerator; they are used for all programs.
    """

    def __init__(
        self,
        space_generators: Sequence[SpaceGenerator],
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = list(space_generators)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Give the task to all generators."""
        for generator in self.space_generators:
            generator.adopt(context)

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """The design spaces of all generators, in their order. Where several give schedules, these are marked with their generator."""
        made = [list(generator.generate_design_space(mod)) for generator in self.space_generators]
        if sum(any(isinstance(space, Schedule) for space in spaces) for spaces in made) > 1:
            for name, spaces in zip(distinct([generator.space_name for generator in self.space_generators]), made, strict=True):
                for space in spaces:
                    if isinstance(space, Schedule):
                        mark(space, name)
        return [space for spaces in made for space in spaces]

    def clone(self) -> SpaceGeneratorUnion:
        """A union of clones."""
        other = super().clone()
        assert isinstance(other, SpaceGeneratorUnion)
        other.space_generators = [generator.clone() for generator in self.space_generators]
        return other
