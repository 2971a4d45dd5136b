"""The rewrite rules, one module per kind of node. A rule returns None for "no change".

Operands are simplified when a rule sees its node. Rules for scalars of integer type assume nothing about overflow that
`bounds.fits` doesn't confirm; floats are never touched beyond the exact folds of the builders.
"""

from __future__ import annotations

from collections.abc import Callable

from ...tir.dtype import parse_dtype
from ...tir.expr import (
    EQ, GE, GT, LE, LT, NE, And, Broadcast, Call, Cast, CmpExpr, Div, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, Not, Or, PrimExpr,
    Ramp, Select,
)  # fmt: skip
from ..bounds import limits_of
from ..facts import Facts
from ..linear import is_scalar_int
from . import boolean, cast, comparison, division, minmax, select
from .affine import multiply, rewrite_affine
from .vector import ELEMENTWISE, Simplify, rewrite_vector

Rule = Callable[..., PrimExpr | None]

# Integer arithmetic and comparisons of integers, all scalar.
_INTEGER_RULES: dict[type[PrimExpr], Rule] = {
    Mul: multiply,
    FloorDiv: division.floordiv,
    FloorMod: division.floormod,
    Div: division.truncdiv,
    Mod: division.truncmod,
    Min: minmax.extremum,
    Max: minmax.extremum,
    EQ: comparison.equality,
    NE: comparison.equality,
    LT: comparison.order,
    LE: comparison.order,
    GT: comparison.order,
    GE: comparison.order,
}

# Rules that hold for every dtype; those of bools say themselves that they want one lane.
_GENERAL_RULES: dict[type[PrimExpr], Rule] = {
    And: boolean.connective,
    Or: boolean.connective,
    Not: boolean.negation,
    Select: select.select,
    Call: select.call,
    Cast: cast.cast,
    Let: select.let,
    Ramp: select.ramp,
    Broadcast: select.broadcast,
}


def rewrite_node(facts: Facts, node: PrimExpr, simplify: Simplify) -> PrimExpr | None:
    """One rule applied to a node whose operands are simplified already; `simplify` serves rules that change the facts."""
    kind = type(node)
    if isinstance(node, ELEMENTWISE) and parse_dtype(node.dtype).lanes > 1:
        found = rewrite_vector(facts, node, simplify)
        if found is not None or kind in (And, Or, Not):
            return found
    rule = _GENERAL_RULES.get(kind)
    if rule is None:
        rule = _INTEGER_RULES.get(kind)
        if rule is None or not is_scalar_int(node.a.dtype if isinstance(node, CmpExpr) else node.dtype):
            return None
        low, high = limits_of(facts, node)
        if low == high:
            return IntImm(node.dtype, low)
    return rule(facts, node)


__all__ = ["Rule", "rewrite_affine", "rewrite_node"]
