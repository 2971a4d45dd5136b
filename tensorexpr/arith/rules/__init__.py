"""The rewrite rules, one module per kind of node. A rule returns None for "no change"."""

from __future__ import annotations

from collections.abc import Callable

from ...tir.expr import (
    EQ, GE, GT, LE, LT, NE, And, Call, Cast, Div, FloorDiv, FloorMod, Max, Min, Mod, Not, Or, PrimExpr, Select,
)  # fmt: skip
from ..facts import Facts
from . import boolean, cast, comparison, division, minmax, select
from .affine import rewrite_affine

Rule = Callable[[Facts, PrimExpr], PrimExpr | None]

_RULES: dict[type[PrimExpr], Callable[..., PrimExpr | None]] = {
    FloorDiv: division.floordiv,
    FloorMod: division.floormod,
    Div: division.truncdiv,
    Mod: division.truncmod,
    Min: minmax.minimum,
    Max: minmax.maximum,
    EQ: comparison.equality,
    NE: comparison.equality,
    LT: comparison.order,
    LE: comparison.order,
    GT: comparison.order,
    GE: comparison.order,
    And: boolean.conjunction,
    Or: boolean.disjunction,
    Not: boolean.negation,
    Select: select.select,
    Call: select.call,
    Cast: cast.cast,
}


def rewrite_node(facts: Facts, node: PrimExpr) -> PrimExpr | None:
    """One rule applied to a node whose operands are simplified already."""
    rule = _RULES.get(type(node))
    return rule(facts, node) if rule else None


__all__ = ["Rule", "rewrite_affine", "rewrite_node"]
