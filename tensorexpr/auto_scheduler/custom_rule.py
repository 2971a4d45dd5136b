"""Sketch rules of your own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TuningError
from ..spaces.state import SketchState
from .loop_state import State
from .sketch.rule import Meet, RuleOptions, SketchRule

if TYPE_CHECKING:
    from .policy import SketchPolicy


class PreloadCustomSketchRule:
    """A rule that is tried before all others: give it to `SketchPolicy(init_search_callbacks=[...])`.

    Args:
        meet_condition_func: (policy, state, stage_id) -> 0 to leave the stage to other rules, 1 to apply this one and go on
            with others, 2 to apply this one only.
        apply_func: (policy, state, stage_id) -> a list of [state, next stage_id]; -1 says that all stages are done.
        rule_name: for logs.

    States are `State.state_object`; stage_id counts stages from producers to consumers.
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Callable[[Any, Any, int], int],
        apply_func: Callable[[Any, Any, int], Sequence[Sequence[Any]]],
        rule_name: str = "CustomSketchRule",
    ) -> None:
        self.meet_condition_func = meet_condition_func
        self.apply_func = apply_func
        self.rule_name = rule_name

    def rule(self, policy: SketchPolicy) -> SketchRule:
        """The rule for one policy's search."""
        return _CustomRule(self, policy)


class _CustomRule(SketchRule):
    def __init__(self, source: PreloadCustomSketchRule, policy: SketchPolicy) -> None:
        self._source, self._policy = source, policy

    @property
    def name(self) -> str:
        return self._source.rule_name

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """What the caller's condition says, asked as `meet_condition_func(policy, state, stage_id)`.

        Raises:
            TuningError: if it says anything but 0, 1 or 2.
        """
        # users count stages by their place, which steps such as cache_write move; our numbers stay
        answer = self._source.meet_condition_func(self._policy, state, state.tree.order.index(stage))
        if answer not in (0, 1, 2):
            raise TuningError(
                f"sketch rule {self.name}: the condition gave {answer!r}; it gives 0 (leave), 1 (apply) or 2 (apply this only)"
            )
        return Meet(answer)

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """The programs that the caller's rule makes, as pairs of a state and the number of the stage to go on with.

        Raises:
            TuningError: if it gives something else.
        """
        made = []
        for entry in self._source.apply_func(self._policy, state, state.tree.order.index(stage)):
            after, following = entry[0], int(entry[1])
            after = after.state_object if isinstance(after, State) else after
            if not isinstance(after, SketchState):
                raise TuningError(f"sketch rule {self.name}: a program is a State or its state_object, not {after!r}")
            made.append((after, after.tree.order[following] if 0 <= following < len(after.tree.order) else None))
        return made
