"""The rewrite rules, one module per kind of node. A rule returns None for "no change".

Operands are simplified when a rule sees its node. Rules for scalars of integer type assume nothing about overflow that
`bounds.fits` doesn't confirm; floats are never touched beyond the exact folds of the builders.
"""

from __future__ import annotations

from collections.abc import Callable

from ...tir import expr as tir
from ...tir.dtype import parse_dtype
from ..bounds import limits_of
from ..facts import Facts
from ..linear import is_scalar_int
from . import boolean, cast, comparison, minmax, select, truncation
from .affine import multiply, rewrite_affine
from .floordiv import floordiv
from .floormod import floormod
from .vector import ELEMENTWISE, Simplify, rewrite_vector

Rule = Callable[..., tir.PrimExpr | None]

# Integer arithmetic and comparisons of integers, all scalar.
_INTEGER_RULES: dict[type[tir.PrimExpr], Rule] = {
    tir.Mul: multiply,
    tir.FloorDiv: floordiv,
    tir.FloorMod: floormod,
    tir.Div: truncation.truncdiv,
    tir.Mod: truncation.truncmod,
    tir.Min: minmax.extremum,
    tir.Max: minmax.extremum,
    tir.EQ: comparison.equality,
    tir.NE: comparison.equality,
    tir.LT: comparison.order,
    tir.LE: comparison.order,
    tir.GT: comparison.order,
    tir.GE: comparison.order,
}

# Rules that hold for every dtype; those of bools say themselves that they want one lane.
_GENERAL_RULES: dict[type[tir.PrimExpr], Rule] = {
    tir.And: boolean.connective,
    tir.Or: boolean.connective,
    tir.Not: boolean.negation,
    tir.Select: select.select,
    tir.Call: select.call,
    tir.Cast: cast.cast,
    tir.Let: select.let,
    tir.Ramp: select.ramp,
    tir.Broadcast: select.broadcast,
}


def rewrite_node(facts: Facts, node: tir.PrimExpr, simplify: Simplify) -> tir.PrimExpr | None:
    """One rule applied to a node whose operands are simplified already; `simplify` serves rules that change the facts."""
    kind = type(node)
    if isinstance(node, ELEMENTWISE) and parse_dtype(node.dtype).lanes > 1:
        found = rewrite_vector(facts, node, simplify)
        if found is not None or kind in (tir.And, tir.Or, tir.Not):
            return found
    rule = _GENERAL_RULES.get(kind)
    if rule is None:
        rule = _INTEGER_RULES.get(kind)
        if rule is None or not is_scalar_int(node.a.dtype if isinstance(node, tir.CmpExpr) else node.dtype):
            return None
        low, high = limits_of(facts, node)
        if low == high:
            return tir.IntImm(node.dtype, low)
    return rule(facts, node)


__all__ = ["Rule", "rewrite_affine", "rewrite_node"]
