"""DropSubnormals: weights of sums of products that are below the least normal number are zero.

    conv(x, [0.5, 1e-41, ...]) + [3e-39, ...]        ->        conv(x, [0.5, 0, ...]) + [0, ...]

Weight decay leaves such numbers where a channel has died: a quarter of the weights of a detector of text. A multiply-add that meets one
takes a hundred times as long, and the sums that it leaves are met by the next layer. What is dropped is less than 1.2e-38 times the
data, which shows in sums of data beyond 1e30 only. Constants elsewhere stay: a least number under a logarithm has a purpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...lower.passes import ModulePass
from ..expr import Call, Constant, const
from .fold_scale import ANCHORS
from .rewriting import Rewriter, Rules, rule_pass

_LEAST = np.finfo(np.float32).smallest_normal


def _without(graph: Rewriter, operand: Any) -> Constant | None:
    """A constant without its subnormal numbers; None if it has none, or is no float32 constant."""
    found = graph.value(operand)
    values = found.view() if isinstance(found, Constant) else None
    if values is None or values.dtype != np.float32:
        return None
    dropped = (np.abs(values) < _LEAST) & (values != 0)
    return const(np.where(dropped, np.float32(0), values)) if dropped.any() else None


def _replaced(graph: Rewriter, call: Call, places: tuple[int, ...]) -> Call | None:
    new = {place: made for place in places if (made := _without(graph, call.args[place])) is not None}
    args = tuple(new.get(place, arg) for place, arg in enumerate(call.args))
    return Call(call.op, args, call.attrs, call.sinfo_args) if new else None


def _factors(graph: Rewriter, call: Call) -> Call | None:
    """Factors of a sum of products."""
    return _replaced(graph, call, (0, 1))


def _summand(graph: Rewriter, call: Call) -> Call | None:
    """What is added to a sum of products."""
    places = tuple(place for place in (0, 1) if graph.call(call.args[1 - place], *ANCHORS) is not None)
    return _replaced(graph, call, places)


RULES: Rules = {**{name: [_factors] for name in ANCHORS}, "relax.add": [_summand]}


def DropSubnormals() -> ModulePass:
    """A pass: float32 weights and biases below the least normal number, 1.2e-38, are zero."""
    return rule_pass("DropSubnormals", RULES)
