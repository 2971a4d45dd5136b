"""`PostOrderApply`: the design spaces that schedule rules make, block by block."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ScheduleError, TuningError
from ...schedule.blocks import BlockRV, Schedule
from ...tir.function import IRModule
from ..postproc.blocks import has_root
from ..schedule_rule.schedule_rule import ScheduleRule
from ..search_strategy.search_strategy import PopulationSpace
from ..tune_context import TuneContext
from ..utils import fork_seed
from .space_generator import FROM_TARGET, SpaceGenerator

logger = logging.getLogger(__name__)


class PostOrderApply(SpaceGenerator, kind="post-order-apply"):
    """Applies each rule to each block, the root first and the others from the last to the first, in every way that the rules allow.

    A rule whose primitives are refused for a block (ScheduleError) is left out there, which the log says; the others go on. Another
    error of a rule ends the search: it is raised as it is, and the log says by which rule for which block. The root block is a block
    too: it has no loops, and `sch.get_sref(block).parent is None` tells it.

    Args:
        f_block_filter: takes a block; rules are applied where it gives True.
        sch_rules, postprocs, mutator_probs: as for every SpaceGenerator.
        rules: another name of sch_rules.
    """

    def __init__(
        self,
        f_block_filter: Callable[[Any], bool] | None = None,
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
        *,
        rules: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(list(rules) if rules is not None else sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter
        self._seed: int | None = None

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's seed."""
        self._seed = context.rand_state

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """All schedules that the rules make of a program."""
        rules = self.sch_rules if isinstance(self.sch_rules, list) else ScheduleRule.create("llvm")
        self._seed = fork_seed(self._seed, 1)[0]
        sch = Schedule(mod, seed=self._seed)
        # those of the program as it was: blocks that a rule makes, such as caches, aren't visited
        blocks = [block for block in _post_order(sch) if self.f_block_filter is None or self.f_block_filter(sch.get(block))]
        found = [sch]
        for rule in rules:
            found = _everywhere(rule, found, blocks)
        # design spaces keep only what their programs need: drawing a program replays all of its trace
        for one in found:
            one.simplify_trace()
        return found


def _everywhere(rule: ScheduleRule, schedules: Sequence[Schedule], blocks: Sequence[BlockRV]) -> list[Schedule]:
    """What a rule makes of schedules at all blocks, the last block first; the last of what a rule gives goes on first."""
    found: list[Schedule] = []
    stack = [(sch, len(blocks)) for sch in schedules]
    while stack:
        sch, left = stack.pop()
        if not left:
            found.append(sch)
            continue
        stack += [(after, left - 1) for after in _applied(rule, sch, blocks[left - 1])]
    return found


def _post_order(sch: Schedule) -> list[BlockRV]:
    """The blocks of all functions, inner ones before those around them, in the order of the text, roots after all in them."""
    asked = sch.copy()
    names: list[tuple[str, str]] = []

    def visit(block: BlockRV, func_name: str) -> None:
        for child in asked.get_child_blocks(block):
            visit(child, func_name)
            names.append((asked.get(child).name_hint, func_name))

    for var in sch.mod.get_global_vars():
        if has_root(sch, var.name_hint):
            visit(asked.get_block("root", var.name_hint), var.name_hint)
            names.append(("root", var.name_hint))
    return [sch.get_block(name, func_name) for name, func_name in names if names.count((name, func_name)) == 1]


def _applied(rule: ScheduleRule, sch: Schedule, block: BlockRV) -> list[Schedule]:
    """What a rule makes of a schedule at a block; the schedule as it was if the block is gone or the rule raises."""
    try:
        name = sch.get(block).name_hint
    except ScheduleError:  # another rule inlined it
        return [sch]
    # rules work in place: what one did before it was refused must not stay
    before = sch.copy()
    try:
        made = rule.apply(sch, block)
    except ScheduleError as error:
        logger.warning("%s is left out for block %s: %s", type(rule).__name__, name, str(error).partition("\n")[0])
        return [before]
    except Exception:
        logger.error("the schedule rule %s raised for block %s", type(rule).__name__, name)
        raise
    if not isinstance(made, (list, tuple)) or not all(isinstance(one, Schedule) for one in made):
        raise TuningError(f"the schedule rule {type(rule).__name__} gives a list of schedules, not {made!r}")
    return list(made)
