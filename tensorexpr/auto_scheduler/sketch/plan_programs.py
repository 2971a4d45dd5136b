"""Sketches of the programs that plans make: each plan as it is, its sizes opened."""

from __future__ import annotations

from dataclasses import replace

from ...schedule.te_schedule import Schedule
from ...schedule.tree import ScheduleTree
from ...spaces import scheduled_by_plans
from ...spaces.sizes import opened
from ...target import Target
from .state import SketchState

# The plans of a contraction that are tried: by their count of cycles, which is right to some 20 %.
ALTERNATIVES = 4


def plan_programs(state: SketchState, target: Target) -> list[SketchState]:
    """The programs of the best plans, the best first, each once."""
    made: list[SketchState] = []
    for alternative in range(ALTERNATIVES):
        s = Schedule(tuple(stage.origin for stage in state.tree.in_order() if stage.is_output))
        scheduled_by_plans(s, target, alternative)
        if not len(s.trace):
            return []
        program = opened(s.trace)
        if all(program.trace != other.trace for other in made):
            tree: ScheduleTree = program.trace.apply(state.tree)
            finished = frozenset(stage.id for stage in tree.stages)
            name = "Plan" if not alternative else f"Plan{alternative + 1}"
            made.append(replace(state, tree=tree, trace=program.trace, finished=finished, preferred=program.preferred).note(name))
    return made
