"""The default rules of a target one by one, by the names of releases of 2022: `multi_level_tiling(target)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import TuningError
from ...target import Target, TargetLike
from .. import schedule_rule as rules
from ..space_generator.space_generator import FROM_TARGET, resolved
from .space_generation import get_rules


def _only(kind: type, which: int = 0) -> Callable[[TargetLike], Any]:
    def rule(target: TargetLike) -> Any:
        """The rule as it is for a target.

        Raises:
            TuningError: if the rules of the target have none.
        """
        name = Target(target).kind.name
        found = [one for one in resolved(FROM_TARGET, name, rules.ScheduleRule) if isinstance(one, kind)]
        if not found:
            raise TuningError(f"the default rules for {name!r} have no {kind.__name__}")
        return found[which]

    return rule


add_rfactor, apply_custom_rule, auto_bind = map(_only, (rules.AddRFactor, rules.ApplyCustomRule, rules.AutoBind))
cross_thread_reduction, multi_level_tiling = map(_only, (rules.CrossThreadReduction, rules.MultiLevelTiling))
parallel_vectorize_unroll, random_compute_location = map(_only, (rules.ParallelizeVectorizeUnroll, rules.RandomComputeLocation))
auto_inline, auto_inline_after_tiling = _only(rules.AutoInline), _only(rules.AutoInline, -1)

__all__ = [
    "add_rfactor", "apply_custom_rule", "auto_bind", "auto_inline", "auto_inline_after_tiling", "cross_thread_reduction", "get_rules",
    "multi_level_tiling", "parallel_vectorize_unroll", "random_compute_location",
]  # fmt: skip
