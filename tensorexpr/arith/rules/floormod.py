"""Remainders that go with flooring quotients."""

from __future__ import annotations

from ...tir.arithmetic import is_const_int
from ...tir.expr import FloorMod, IntImm, PrimExpr
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear, atom_form, constant_form
from ..modular import form_congruence
from .numerators import constant_of, divided_by, negated, quotient_and_rest, steps_of
from .symbolic import symbolic_remainder


def floormod(facts: Facts, node: FloorMod) -> PrimExpr | None:
    """Rules of x % y."""
    if is_const_int(node.b, 0):
        return None
    form = exact_form(facts, node.a, free=True)
    divisor = constant_of(node.b)
    if divisor is None:
        return symbolic_remainder(facts, form, node)
    if divisor < 0:
        return negated(facts, FloorMod, form.scale(-1), -divisor, node.dtype)  # x % -c == -(-x % c)
    if facts.congruences:
        coeff, base = form_congruence(facts, form)
        if coeff % divisor == 0:  # under the condition x % 8 == 3, x % 4 == 3
            return IntImm(node.dtype, base % divisor)
    smaller = reduced(facts, form, divisor)
    found = _aligned(facts, smaller, divisor, node)
    if found is None and not smaller.same(form):
        found = divided_by(facts, FloorMod, smaller, divisor, node.dtype)
    return found


def reduced(facts: Facts, form: Linear, divisor: int) -> Linear:
    """A form with the same remainder by a positive divisor and smaller coefficients: (c*q + r) % c == r % c, and x % (a*c) counts as x."""
    total = constant_form(form.constant)
    for atom, k in form.terms.items():
        inner = atom_form(atom)
        if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and atom.b.value and k * atom.b.value % divisor == 0:
            inner = exact_form(facts, atom.a, free=True)
        total = total.add(inner, k)
    return Linear({a: k if abs(k) < divisor else k % divisor for a, k in total.terms.items() if k % divisor}, total.constant % divisor)


def _aligned(facts: Facts, form: Linear, divisor: int, node: FloorMod) -> PrimExpr | None:
    """(s*q + r) % (s*d) == s * (q % d) + r for 0 <= r < s."""
    for step in steps_of(form, divisor):
        found = quotient_and_rest(facts, form, step)
        if found is None:
            continue
        quotient, rest = found
        if step == divisor:
            return rest.to_expr(node.dtype)
        inner = divided_by(facts, FloorMod, quotient, divisor // step, node.dtype)
        if inner is not None:
            return Linear({inner: step}).add(rest).to_expr(node.dtype)
    return None
