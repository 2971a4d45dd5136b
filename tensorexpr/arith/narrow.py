"""Conditions made independent of variables: what implies them for every value that the variables take."""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.arithmetic import compare, convert, logical_and, logical_not, logical_or
from ..tir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CmpExpr, IntImm, Not, Or, PrimExpr, Range, Var
from ..tir.rewriting import variables
from .index_analyzer import Analyzer
from .int_set import IntervalSet, int_set_of, neg_inf, pos_inf

_OPPOSITE: dict[type[PrimExpr], type[CmpExpr]] = {LT: GE, GE: LT, GT: LE, LE: GT, EQ: NE, NE: EQ}


def narrow_predicate_expression(expr: PrimExpr, free_parameters: Mapping[Var, Range]) -> PrimExpr:
    """A condition without the free parameters that holds only where `expr` does for all their values.

    Args:
        expr: a condition: comparisons and connectives.
        free_parameters: the ranges of the variables to get rid of.
    """
    analyzer = Analyzer()
    for var, dom in free_parameters.items():
        analyzer.bind(var, dom)
    return _narrow(analyzer, convert(expr), free_parameters, positive=True)


def _narrow(analyzer: Analyzer, expr: PrimExpr, free: Mapping[Var, Range], positive: bool) -> PrimExpr:
    if variables(expr).isdisjoint(free):
        return expr if positive else logical_not(expr)
    match expr:
        case And(a, b) | Or(a, b):
            left, right = (_narrow(analyzer, x, free, positive) for x in (a, b))
            return (logical_and if isinstance(expr, And) is positive else logical_or)(left, right)  # not (a and b) is not a or not b
        case Not(a):
            return _narrow(analyzer, a, free, not positive)
        case Call(_, "tir.likely", (a,)):
            return _narrow(analyzer, a, free, positive)
        case CmpExpr(a, b):
            kind = type(expr) if positive else _OPPOSITE[type(expr)]
            return _comparison(kind, int_set_of(Analyzer(), a, free), int_set_of(Analyzer(), b, free))
    return IntImm("bool", 0)


def _comparison(kind: type[PrimExpr], a: IntervalSet, b: IntervalSet) -> PrimExpr:
    """The comparison at the ends where it is hardest to hold."""
    if kind in (LT, LE):
        return _compared(kind, a.max_value, b.min_value)
    if kind in (GT, GE):
        return _compared(kind, a.min_value, b.max_value)
    if kind is EQ:
        return logical_and(_compared(LE, a.max_value, b.min_value), _compared(GE, a.min_value, b.max_value))
    return logical_or(_compared(LT, a.max_value, b.min_value), _compared(GT, a.min_value, b.max_value))


def _compared(kind: type[PrimExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return IntImm("bool", 0) if {a, b} & {pos_inf(), neg_inf()} else compare(kind, a, b)
