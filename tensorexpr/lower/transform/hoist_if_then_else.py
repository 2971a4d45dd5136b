"""The conditions of branches out of the loops that don't change them, and nothing else: a part of `HoistExpression`."""

from __future__ import annotations

from ...tir.function import PrimFunc
from ..context import PassContext
from ..options import HoistIfThenElseConfig
from ..passes import Pass
from .hoist_expression import HoistedConditionals, HoistedLetBindings, hoisted


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """Invariant conditions outside their loops; those on thread axes where `support_block_scope_hosting` allows it.

    Args:
        variant: "basic" leaves conditions on thread axes whatever the context says.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        conditionals = HoistedConditionals.IfElseStmt
        if variant != "basic" and ctx.option(HoistIfThenElseConfig).support_block_scope_hosting:
            conditionals |= HoistedConditionals.UsingBlockVar
        return hoisted(func, ctx, conditionals, HoistedLetBindings.Never)

    return Pass("tir.HoistIfThenElse", run)
