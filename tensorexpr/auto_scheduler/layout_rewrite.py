"""What becomes of inputs whose layout is free: constant weights, say, that may be packed once, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from ..errors import TuningError
from ..schedule.layout_rewrite import as_declared, with_given_layouts, with_transform_stages
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree
from ..target import Target, TargetLike


class LayoutRewriteOption(IntEnum):
    """How programs take the inputs that a computation lists under `attrs={"layout_free_placeholders": [B]}`.

    NO_REWRITE: as they were declared.
    INSERT_TRANSFORM_STAGE: as they were declared; the program may copy them into the layout in which it reads them.
    REWRITE_FOR_PRE_TRANSFORMED: in that layout. Whoever calls packs them, once for all calls.
    """

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: TargetLike, in_relay_integration: bool = False) -> LayoutRewriteOption:
        """The option for a target where the user names none.

        Args:
            target: what programs are for.
            in_relay_integration: a compiler of whole models calls, which packs constants itself.
        """
        if in_relay_integration:
            return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        is_cpu = Target(target).kind.name == "llvm"
        return LayoutRewriteOption.INSERT_TRANSFORM_STAGE if is_cpu else LayoutRewriteOption.NO_REWRITE


def checked_option(option: Any, where: str) -> LayoutRewriteOption:
    """The option that a user named, as a member or a number.

    Raises:
        TuningError: if it is none.
    """
    known = {int(member): member for member in LayoutRewriteOption}
    if isinstance(option, bool) or not isinstance(option, int) or int(option) not in known:
        listed = ", ".join(f"{number} ({member.name})" for number, member in known.items())
        raise TuningError(f"{where}: layout_rewrite_option is {option!r}; it is one of {listed}")
    return known[int(option)]


_REWRITES: Mapping[LayoutRewriteOption, Callable[[Trace, ScheduleTree], Trace]] = {
    LayoutRewriteOption.NO_REWRITE: lambda trace, tree: as_declared(trace),
    LayoutRewriteOption.INSERT_TRANSFORM_STAGE: with_transform_stages,
    LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED: with_given_layouts,
}


def rewrite_layouts(trace: Trace, tree: ScheduleTree, option: LayoutRewriteOption) -> Trace:
    """The trace for an option: all of them compute the same, from inputs in different layouts.

    Args:
        trace: all decisions made.
        tree: the unscheduled program.
        option: how layout-free inputs are passed.
    """
    return _REWRITES[option](trace, tree)


__all__ = ["LayoutRewriteOption", "checked_option", "rewrite_layouts"]
