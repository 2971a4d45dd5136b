"""Where an expression's value comes from, which decides whether its arithmetic may be taken not to overflow."""

from __future__ import annotations

from functools import reduce
from operator import or_

from ..arith.facts import derive
from ..tir.expr import BinaryExpr, Cast, CmpExpr, IntImm, LogicalExpr, Not, PrimExpr, Select, SizeVar, Var
from ..tir.rewriting import children
from .facts import Facts
from .linear import Linear, is_scalar_int

SYMBOL = 1  # sizes and indices of symbolic range
FREE = 2  # variables that nothing is known about
DATA = 4  # loads, calls, floats: values that a program computes with, where wrapping is part of the meaning

_ARITHMETIC = (BinaryExpr, CmpExpr, LogicalExpr, Not, Select)
INDEX_DTYPES = ("int32", "int64")


def origin(facts: Facts, expr: PrimExpr) -> int:
    """The union of SYMBOL, FREE and DATA over everything that `expr` is made of; 0 if all is bounded by constants."""

    def rule(node: PrimExpr) -> int:
        inner = _operands(node)
        if inner is None:
            return DATA
        return _of_var(facts, node) if isinstance(node, Var) else reduce(or_, (facts.origins[child] for child in inner), 0)

    return derive(facts.origins, expr, lambda node: _operands(node) or (), rule)


def _operands(node: PrimExpr) -> tuple[PrimExpr, ...] | None:
    """The operands of index arithmetic; None for anything else."""
    if isinstance(node, (Var, IntImm)):
        return ()
    if isinstance(node, _ARITHMETIC):
        return children(node)  # type: ignore[return-value]
    if isinstance(node, Cast) and is_scalar_int(node.dtype) and is_scalar_int(node.value.dtype):
        return (node.value,)
    return None


def _of_var(facts: Facts, var: Var) -> int:
    if isinstance(var, SizeVar) or var in facts.symbols:
        return SYMBOL
    return 0 if var in facts.limits else FREE


def form_origin(facts: Facts, form: Linear) -> int:
    """The union over the atoms of a form."""
    flags = 0
    for atom in form.terms:
        flags |= origin(facts, atom)
    return flags
