"""Which reductions may run in the lanes of a vector: those that combine two values by one operator, in any order."""

from __future__ import annotations

from ..te.combiner_laws import is_componentwise, refuted_law
from ..tir.expr import Reduce
from ..tir.reduction_laws import law_of_one
from .tree import StageNode


def why_not_in_lanes(stage: StageNode) -> str | None:
    """Why the terms of a stage's reduction can't be the lanes of a vector; None if they can.

    Several values may be reduced at once, such as a sum and a sum of squares, where none of them depends on another.
    """
    body = stage.compute.body[0]
    if not isinstance(body, Reduce) or not is_componentwise(body.combiner):
        return "its reduction combines several values at once"
    combiner = body.combiner
    for index, result in enumerate(combiner.result):
        # A tree of lanes is emitted as one instruction for each half; for any other function there is none.
        if law_of_one(combiner, index) is None:
            return f"its combiner {result} is no sum, product, maximum or minimum of its two values"
    # The tree takes the terms in another order than the loop, which only a commutative and associative operator allows.
    broken = refuted_law(combiner, any_start=bool(body.init))
    return None if broken is None else f"its combiner can't be regrouped: {broken}"
