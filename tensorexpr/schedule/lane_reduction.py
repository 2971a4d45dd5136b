"""Which reductions may run in the lanes of a vector: those that combine two values by one operator, in any order."""

from __future__ import annotations

from ..te.combiner_laws import refuted_law
from ..tir.expr import Add, And, Max, Min, Mul, Or, Reduce
from .tree import StageNode

_OPERATORS = (Add, Mul, Max, Min, And, Or)


def why_not_in_lanes(stage: StageNode) -> str | None:
    """Why the terms of a stage's reduction can't be the lanes of a vector; None if they can."""
    body = stage.compute.body[0]
    if not isinstance(body, Reduce) or len(body.source) != 1:
        return "its reduction combines several values at once"
    combiner = body.combiner
    result, values = combiner.result[0], {combiner.lhs[0], combiner.rhs[0]}
    if not isinstance(result, _OPERATORS) or {result.a, result.b} != values:
        return f"its combiner {result} is no sum, product, maximum or minimum of its two values"
    broken = refuted_law(combiner, any_start=bool(body.init))
    return None if broken is None else f"its combiner can't be regrouped: {broken}"
