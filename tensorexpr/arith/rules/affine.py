"""Sums: canonical order, and quotients that meet their remainders."""

from __future__ import annotations

from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr
from ..bounds import plain_form
from ..facts import Facts
from ..linear import Linear


def rewrite_affine(facts: Facts, node: PrimExpr, form: Linear) -> PrimExpr:
    """The canonical expression of an affine form over simplified atoms."""
    merged = _merge_remainders(facts, form)
    result = merged.to_expr(node.dtype)
    return node if result is node else result


def _merge_remainders(facts: Facts, form: Linear) -> Linear:
    """k*c*(x // c) + k*(x % c) -> k*x."""
    for atom, k in form.terms.items():
        if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and atom.b.value != 0:
            for quotient, factor in form.terms.items():
                if isinstance(quotient, FloorDiv) and quotient.a is atom.a and quotient.b is atom.b and factor == k * atom.b.value:
                    rest = form.without(atom).without(quotient)
                    return _merge_remainders(facts, rest.add(plain_form(facts, atom.a), k))
    return form
