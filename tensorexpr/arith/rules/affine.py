"""Sums and products: canonical order, equal products, and quotients that meet their remainders.

All of it holds modulo 2**bits, so it needs no proof that nothing overflows.
"""

from __future__ import annotations

from ...tir.dtype import int_limits
from ...tir.expr import FloorDiv, FloorMod, IntImm, Mul, PrimExpr
from ..bounds import plain_form
from ..facts import Facts
from ..linear import Linear
from ..polynomial import expand, factors, merge_products, product


def rewrite_affine(facts: Facts, node: PrimExpr, form: Linear) -> PrimExpr:
    """The canonical expression of an affine form over simplified atoms."""
    if any(isinstance(atom, (FloorDiv, FloorMod, Mul)) for atom in form.terms):
        form = _shorter(facts, _merge_remainders(facts, merge_products(form)))
    result = form.to_expr(node.dtype)
    return node if result is node else result


def _shorter(facts: Facts, form: Linear) -> Linear:
    """(a + b)*c - a*c -> b*c: products are distributed if that leaves fewer terms."""
    expanded = expand(facts, form)
    return expanded if expanded is not None and _length(expanded) < _length(form) else form


def _length(form: Linear) -> int:
    return len(form.terms) + bool(form.constant)


def _merge_remainders(facts: Facts, form: Linear) -> Linear:
    """Applies the laws of quotient and remainder until none fits."""
    while (merged := _merge_once(facts, form)) is not None:
        form = merged
    return form


def _merge_once(facts: Facts, form: Linear) -> Linear | None:
    for atom, k in form.terms.items():
        if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and atom.b.value != 0:
            c = atom.b.value
            for quotient in _quotients(atom.a, c):
                if form.terms.get(quotient) == k * c:  # k*c*(x // c) + k*(x % c) == k*x
                    return form.without(atom).without(quotient).add(plain_form(facts, atom.a), k)
            rest = _without_multiple(form.without(atom), plain_form(facts, atom.a), -k)
            if rest is not None:  # k*(x % c) - k*x == -k*c*(x // c)
                return rest.add(Linear({_quotients(atom.a, c)[-1]: 1}), -k * c)
        elif isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm) and atom.b.value != 0 and k % atom.b.value == 0:
            c = atom.b.value
            rest = _without_multiple(form.without(atom), plain_form(facts, atom.a), -k // c)
            if rest is not None:  # k*x - k*c*(x // c) == k*(x % c)
                return rest.add(Linear({FloorMod(atom.a, atom.b): 1}), -k // c)
    return None


def _quotients(x: PrimExpr, c: int) -> list[PrimExpr]:
    """The shapes that x // c takes when it is simplified."""
    found: list[PrimExpr] = [FloorDiv(x, IntImm(x.dtype, c))]
    if isinstance(x, FloorDiv) and isinstance(x.b, IntImm) and x.b.value > 0 and c > 0 and x.b.value * c <= int_limits(x.dtype)[1]:
        found.append(FloorDiv(x.a, IntImm(x.dtype, x.b.value * c)))  # (y // a) // c == y // (a*c)
    return found


def _without_multiple(form: Linear, part: Linear, k: int) -> Linear | None:
    """`form - k * part` if all terms of that multiple are there."""
    if k == 0 or part.is_constant or any(form.terms.get(atom) != k * factor for atom, factor in part.terms.items()):
        return None
    return form.add(part, -k)


def multiply(facts: Facts, node: Mul) -> PrimExpr | None:
    """(x*c) * y -> (x*y)*c; products lean to the left."""
    scale, found = 1, []
    for factor in factors(node):
        form = plain_form(facts, factor)
        if len(form.terms) == 1 and form.constant == 0:
            ((atom, k),) = form.terms.items()
            scale *= k
            found += factors(atom)
        elif form.is_constant:
            scale *= form.constant
        else:
            found.append(factor)
    result = Linear({product(found): scale} if found else {}, 0 if found else scale).to_expr(node.dtype)
    return None if result is node else result
