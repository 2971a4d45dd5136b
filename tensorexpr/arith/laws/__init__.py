"""The laws that `rewrite` applies, as tables of text, one module per kind of node."""

from __future__ import annotations

from functools import cache

from ...tir import expr as tir
from . import comparisons, extrema, floor, logic, products, sums, trunc, vectors
from .pattern import Law, laws

# What holds of indices: integers of 32 or 64 bits that don't overflow.
_INDEX: dict[type[tir.PrimExpr], str] = {
    tir.Add: sums.ADD,
    tir.Sub: sums.SUB,
    tir.Mul: products.MUL,
    tir.FloorDiv: floor.FLOORDIV,
    tir.FloorMod: floor.FLOORMOD,
    tir.Div: trunc.TRUNCDIV,
    tir.Mod: trunc.TRUNCMOD,
    tir.Min: extrema.MIN_ONLY + extrema.MIN,
    tir.Max: extrema.MAX_ONLY + extrema.mirrored(extrema.MIN),
    tir.EQ: comparisons.EQ,
    tir.LT: comparisons.LT,
}
# What holds of every dtype.
_GENERAL: dict[type[tir.PrimExpr], str] = {
    tir.Add: vectors.ADD,
    tir.Sub: vectors.SUB,
    tir.Mul: vectors.MUL,
    tir.FloorDiv: vectors.FLOORDIV,
    tir.FloorMod: vectors.FLOORMOD,
    tir.Div: vectors.TRUNCDIV,
    tir.Mod: vectors.TRUNCMOD,
    tir.Min: vectors.MIN,
    tir.Max: extrema.mirrored(vectors.MIN),
    tir.EQ: vectors.EQ,
    tir.LT: vectors.LT,
    tir.And: vectors.AND + logic.AND,
    tir.Or: vectors.OR + logic.OR,
    tir.Not: vectors.NOT + logic.NOT,
    tir.Select: vectors.SELECT + logic.SELECT,
    tir.Call: logic.IF_THEN_ELSE,
}


@cache
def general_laws(kind: type[tir.PrimExpr]) -> tuple[Law, ...]:
    """The laws of a kind of node that hold of every dtype."""
    return laws(_GENERAL.get(kind, ""))


@cache
def index_laws(kind: type[tir.PrimExpr]) -> tuple[Law, ...]:
    """The laws of a kind of node that hold of indices."""
    return laws(_INDEX.get(kind, ""))


@cache
def factoring_laws() -> tuple[Law, ...]:
    """The laws that take a common condition out of a disjunction."""
    return laws(logic.FACTORING)


__all__ = ["Law", "factoring_laws", "general_laws", "index_laws"]
