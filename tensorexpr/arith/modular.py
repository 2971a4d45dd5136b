"""Congruences: every value of an expression is `coeff * q + base` for some integer q."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

from ..arith.facts import derive
from ..dataclass import dataclass
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, Cast, Div, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, PrimExpr, Select, Var
from ..tir.rewriting import substitute
from .bounds import fits, limits_of, plain_form, product_fits
from .exact import keeps_value
from .facts import Facts
from .linear import Linear, is_scalar_int

Congruence = tuple[int, int]
_ANYTHING: Congruence = (1, 0)


@dataclass(frozen=True, slots=True)
class ModularSet:
    """The integers `coeff * q + base`; coeff 0 means the constant `base`, coeff 1 anything."""

    coeff: int
    base: int


def congruence_of(facts: Facts, expr: PrimExpr) -> Congruence:
    """(coeff, base) of a scalar integer expression's machine value."""
    return derive(facts.modular, expr, lambda node: _operands(facts, node), lambda node: _transfer(facts, node))


def form_congruence(facts: Facts, form: Linear) -> Congruence:
    """(coeff, base) of an affine form over the integers."""
    # gcd(0, m) is m: constants take no part.
    coeff, base = 0, form.constant
    for atom, k in form.terms.items():
        inner, rest = congruence_of(facts, atom)
        coeff, base = gcd(coeff, k * inner), base + k * rest
    return _normal(coeff, base)


def _normal(coeff: int, base: int) -> Congruence:
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def meet(a: Congruence, b: Congruence) -> Congruence:
    """The congruence of what satisfies both (the Chinese remainder theorem); the first if nothing does."""
    if a[0] == 0 or b[0] == 0:
        return a if a[0] == 0 else b
    step = gcd(a[0], b[0])
    if (a[1] - b[1]) % step:
        return a
    whole = a[0] * b[0] // step
    # a1 + a0*shift = b1 (mod b0), divided by what a0 and b0 share; modulo 1 there is no inverse to ask for.
    shift = (b[1] - a[1]) // step * pow(a[0] // step, -1, b[0] // step) if b[0] // step > 1 else 0
    return _normal(whole, a[1] + a[0] * shift)


def _join(a: Congruence, b: Congruence) -> Congruence:
    # 4*q + 1 or 6*q + 3: odd is all that they share, gcd(4, 6, 2).
    return _normal(gcd(a[0], b[0], a[1] - b[1]), a[1])


def _operands(facts: Facts, node: PrimExpr) -> tuple[PrimExpr, ...]:
    if isinstance(node, (Var, IntImm)) or not is_scalar_int(node.dtype):
        return ()
    form = plain_form(facts, node)
    if node not in form.terms:
        return tuple(form.terms)
    match node:
        case Mul(a, b) | Min(a, b) | Max(a, b) | Select(_, a, b):
            return (a, b)
        case FloorDiv(a, IntImm()) | FloorMod(a, IntImm()) | Div(a, IntImm()) | Mod(a, IntImm()):
            return (a,)
        case Call(_, "tir.shift_right" | "tir.bitwise_and", (a, IntImm())):
            return (a,)
        case Let():
            return (_unbound(node),)
        case Cast():
            return (_converted(facts, node),)
    return ()


def _unbound(node: Let) -> PrimExpr:
    return substitute(node.body, {node.var: node.value})


def _converted(facts: Facts, node: Cast) -> PrimExpr:
    """What is converted; of indices through floats too, which hold them."""
    inner = node.value
    if facts.index and isinstance(inner, Cast) and not is_scalar_int(inner.dtype):
        return inner.value
    return inner


def _transfer(facts: Facts, node: PrimExpr) -> Congruence:
    if isinstance(node, IntImm):
        return 0, node.value
    known = facts.congruences.get(node)
    if known is not None:
        return known
    if isinstance(node, Var):
        value = facts.values.get(node)
        return _ANYTHING if value is None else congruence_of(facts, value)
    if not is_scalar_int(node.dtype):
        return _ANYTHING
    form = plain_form(facts, node)
    if node not in form.terms:
        found = form_congruence(facts, form)
        return found if facts.index or fits(facts, form, node.dtype, free=True) else _wrapped(found, node.dtype)
    law = _LAWS.get(type(node))
    return _ANYTHING if law is None else law(facts, node)


def _wrapped(found: Congruence, dtype: str) -> Congruence:
    """The congruence that survives a reduction modulo 2**bits."""
    # A wrap adds a multiple of 2**bits: of 6*q in an int8 only that it is even survives.
    return _normal(gcd(found[0], 1 << parse_dtype(dtype).bits), found[1])


# What each kind of node makes of the congruences of its operands, which are in the memo.


def _of_product(facts: Facts, node: Mul) -> Congruence:
    (m, r), (n, s) = facts.modular[node.a], facts.modular[node.b]
    # (m*p + r) * (n*q + s): all but r*s are multiples of m*n, m*s or n*r.
    found = _normal(gcd(m * n, m * s, n * r), r * s)
    return found if facts.index or product_fits(facts, node, free=True) else _wrapped(found, node.dtype)


def _of_extremum(facts: Facts, node: Min | Max) -> Congruence:
    return _join(facts.modular[node.a], facts.modular[node.b])


def _of_select(facts: Facts, node: Select) -> Congruence:
    return _join(facts.modular[node.true_value], facts.modular[node.false_value])


def _of_quotient(facts: Facts, node: FloorDiv | Div) -> Congruence:
    """Exact where the divisor divides the modulus; a truncated one rounds the other way below 0."""
    if not isinstance(node.b, IntImm) or node.b.value <= 0:
        return _ANYTHING
    c, (coeff, base) = node.b.value, facts.modular[node.a]
    floored = isinstance(node, FloorDiv) or base == 0 or limits_of(facts, node.a)[0] >= 0
    return _normal(coeff // c, base // c) if coeff % c == 0 and floored else _ANYTHING


def _of_floored_remainder(facts: Facts, node: FloorMod) -> Congruence:
    if not isinstance(node.b, IntImm) or not node.b.value:
        return _ANYTHING
    c, (coeff, base) = node.b.value, facts.modular[node.a]
    step = gcd(coeff, c)
    return (0, base % c) if step == abs(c) and not facts.index else _normal(step, base)  # TVM keeps the modulus


def _of_truncated_remainder(facts: Facts, node: Mod) -> Congruence:
    if not isinstance(node.b, IntImm) or not node.b.value:
        return _ANYTHING
    coeff, base = facts.modular[node.a]
    step = gcd(coeff, node.b.value)
    return _normal(step, base) if base % step == 0 or limits_of(facts, node.a)[0] >= 0 else _ANYTHING


def _of_call(facts: Facts, node: Call) -> Congruence:
    match node:
        case Call(_, "tir.shift_right", (a, IntImm(_, places))):
            coeff, base = facts.modular[a]
            return _normal(coeff >> places, base >> places) if coeff % (1 << places) == 0 else _ANYTHING
        # x & (2**n - 1) is x % 2**n, for negative x too.
        case Call(_, "tir.bitwise_and", (a, IntImm(_, mask))) if mask > 0 and mask & (mask + 1) == 0:
            coeff, base = facts.modular[a]
            return _normal(gcd(coeff, mask + 1), base)
    return _ANYTHING


def _of_binding(facts: Facts, node: Let) -> Congruence:
    return facts.modular[_unbound(node)]


def _of_cast(facts: Facts, node: Cast) -> Congruence:
    return facts.modular[_converted(facts, node)] if facts.index or keeps_value(facts, node) else _ANYTHING


_LAWS: dict[type[PrimExpr], Callable[[Facts, Any], Congruence]] = {
    Mul: _of_product,
    Min: _of_extremum,
    Max: _of_extremum,
    Select: _of_select,
    FloorDiv: _of_quotient,
    Div: _of_quotient,
    FloorMod: _of_floored_remainder,
    Mod: _of_truncated_remainder,
    Call: _of_call,
    Let: _of_binding,
    Cast: _of_cast,
}
