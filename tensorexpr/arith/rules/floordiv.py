"""Quotients that floor."""

from __future__ import annotations

from ...tir.arithmetic import is_const_int
from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear
from .numerators import constant_of, divided_by, quotient_and_rest, steps_of
from .symbolic import symbolic_quotient


def floordiv(facts: Facts, node: FloorDiv) -> PrimExpr | None:
    """Rules of x // y."""
    if is_const_int(node.b, 0):
        return None
    form = exact_form(facts, node.a, free=True)
    divisor = constant_of(node.b)
    if divisor is None:
        return symbolic_quotient(facts, form, node)
    if divisor < 0:
        return divided_by(facts, FloorDiv, form.scale(-1), -divisor, node.dtype)  # x // -c == -x // c
    for rule in (_aligned, _pulled, _nested):
        found = rule(facts, form, divisor, node)
        if found is not None:
            return found
    return None


def _aligned(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(s*q + r) // (s*d) == q // d for 0 <= r < s."""
    for step in steps_of(form, divisor):
        found = quotient_and_rest(facts, form, step)
        if found is not None and step == divisor:
            return found[0].to_expr(node.dtype)
        if found is not None:
            return divided_by(facts, FloorDiv, found[0], divisor // step, node.dtype)
    return None


def _pulled(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(c*q + r) // c == q + r // c."""
    whole = Linear({a: k // divisor for a, k in form.terms.items() if k % divisor == 0}, form.constant // divisor)
    if whole.is_constant and whole.constant == 0:
        return None
    rest = Linear({a: k for a, k in form.terms.items() if k % divisor}, form.constant % divisor)
    inner = divided_by(facts, FloorDiv, rest, divisor, node.dtype)
    return None if inner is None else Linear({inner: 1}).add(whole).to_expr(node.dtype)


def _nested(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(x // a + c) // b == (x + a*c) // (a*b);  (x % (a*b)) // a == (x // a) % b."""
    if len(form.terms) != 1:
        return None
    ((atom, k),) = form.terms.items()
    if k != 1 or not isinstance(atom, (FloorDiv, FloorMod)) or not isinstance(atom.b, IntImm) or atom.b.value <= 0:
        return None
    inner = atom.b.value
    if isinstance(atom, FloorDiv):
        numerator = exact_form(facts, atom.a, free=True).shift(inner * form.constant)
        return divided_by(facts, FloorDiv, numerator, inner * divisor, node.dtype)
    if form.constant or inner % divisor:
        return None
    return FloorMod(FloorDiv(atom.a, node.b), IntImm(node.dtype, inner // divisor))
