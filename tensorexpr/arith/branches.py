"""Selections whose arms are simplified under their condition, and where that would be too dear."""

from __future__ import annotations

from ..tir.dtype import parse_dtype
from ..tir.expr import Call, PrimExpr, Select
from ..tir.rewriting import children
from .facts import Facts

_DEPTH = 24  # selections within one another that are simplified under all their conditions
# Under another condition everything in an arm is simplified anew. What occurs in both arms, or in an arm and its condition,
# is so at every level: selections that share operands would take 2**depth steps.
_WEIGHT = 64


def is_branch(node: PrimExpr) -> bool:
    """True for a choice between two values."""
    return isinstance(node, Select) or (isinstance(node, Call) and node.op == "tir.if_then_else")


def is_scoped(facts: Facts, node: PrimExpr, depth: int) -> bool:
    """True for a choice whose arms are to be simplified under its condition, `depth` of which have been entered."""
    if not is_branch(node) or depth >= _DEPTH:
        return False
    condition: PrimExpr = children(node)[0]  # type: ignore[assignment]
    return parse_dtype(condition.dtype).lanes == 1 and _weight(facts, node) <= _WEIGHT


def _weight(facts: Facts, expr: PrimExpr) -> int:
    """How many choices there are in an expression, each as often as it occurs; a number above the limit stands for all above."""
    memo = facts.weights
    stack = [expr]
    while stack:
        node = stack[-1]
        inner: tuple[PrimExpr, ...] = children(node)  # type: ignore[assignment]
        missing = [child for child in inner if child not in memo]
        if missing:
            stack.extend(missing)
            continue
        memo[node] = min(sum(memo[child] for child in inner) + int(is_branch(node)), _WEIGHT + 1)
        stack.pop()
    return memo[expr]
