"""Connectives."""

from __future__ import annotations

from ...tir.expr import EQ, GE, GT, LE, LT, NE, And, CmpExpr, Not, Or, PrimExpr
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import any as any_of
from ..facts import Facts
from ..linear import is_scalar_int

_OPPOSITE: dict[type[PrimExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT, EQ: NE, NE: EQ}


def _flat(node: And | Or) -> list[PrimExpr]:
    """The operands of a nest of one connective, repetitions dropped, in order."""
    kind, found, stack = type(node), {}, [node]
    while stack:
        current = stack.pop()
        if type(current) is kind:
            stack += [current.b, current.a]
        else:
            found[current] = None
    return list(found)


def conjunction(facts: Facts, node: And) -> PrimExpr | None:
    """a and a -> a."""
    if node.dtype != "bool":
        return None
    result = all_of(*_flat(node))
    return None if result is node else result


def disjunction(facts: Facts, node: Or) -> PrimExpr | None:
    """a or a -> a."""
    if node.dtype != "bool":
        return None
    result = any_of(*_flat(node))
    return None if result is node else result


def negation(facts: Facts, node: Not) -> PrimExpr | None:
    """not (a < b) -> a >= b on integers; NaN forbids it on floats."""
    inner = node.a
    if isinstance(inner, CmpExpr) and is_scalar_int(inner.a.dtype):
        return _OPPOSITE[type(inner)](inner.a, inner.b)
    return None
