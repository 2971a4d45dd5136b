"""`ApplyDefaultSchedule`: the pass that asks rules, in their order, for the schedule of each function."""

from __future__ import annotations

from collections.abc import Sequence

from ..lower.context import PassContext
from ..lower.passes import ModulePass
from ..lower.transform.decorators import unused
from ..target import Target
from ..tir.function import IRModule, PrimFunc
from .rule import ScheduleRule

_IS_SCHEDULED = "tir.is_scheduled"


def ApplyDefaultSchedule(*rules: ScheduleRule) -> ModulePass:
    """The pass that gives the tensor functions of a module the schedules of the first rules that have one.

    Functions with the attribute "tir.is_scheduled" stay, those that got a schedule have it. The target is the function's attribute, or
    the one in whose scope the pass runs.

    Args:
        rules: asked in this order. A function that none takes stays as it is.

    Raises:
        TargetError: when it runs, for a function without a target outside of any scope.
        LoweringError: when it runs, if a rule gives several schedules.
    """

    def apply(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.map_functions(lambda func: _scheduled(func, rules) if isinstance(func, PrimFunc) else func)

    return ModulePass("ApplyDefaultSchedule", unused, module_func=apply)


def _scheduled(func: PrimFunc, rules: Sequence[ScheduleRule]) -> PrimFunc:
    if func.attrs.get(_IS_SCHEDULED):
        return func
    given = func.attrs.get("target")
    target = given if isinstance(given, Target) else Target.current(allow_none=False)
    assert target is not None  # `current` refuses that
    for rule in rules:
        result = rule.scheduled(func, target)
        if result is not None:
            symbol = func.attrs.get("global_symbol")
            result = result.with_attr(_IS_SCHEDULED, True)
            return result.with_attr("global_symbol", symbol) if symbol else result.without_attr("global_symbol")
    return func
