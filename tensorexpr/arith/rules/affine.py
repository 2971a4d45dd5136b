"""Sums and products: canonical order, equal products, and quotients that meet their remainders.

Most of it holds modulo 2**bits, so it needs no proof that nothing overflows; what opens extrema and conversions does.
"""

from __future__ import annotations

from collections import Counter

from ...tir.dtype import int_limits
from ...tir.expr import Cast, FloorDiv, FloorMod, IntImm, Max, Min, Mul, PrimExpr
from ..bounds import fits, plain_form
from ..exact import exact_form, keeps_value
from ..facts import Facts
from ..linear import Linear, atom_form, constant_form
from ..polynomial import expand, factors, is_product, merge_products, product
from .floordiv import floordiv
from .floormod import reduced


def rewrite_affine(facts: Facts, node: PrimExpr, form: Linear) -> PrimExpr:
    """The canonical expression of an affine form over simplified atoms."""
    kinds = {type(atom) for atom in form.terms}
    if kinds & _MERGING:
        form = _merge_remainders(facts, merge_products(form))
    if kinds & _OPENING:
        form = _opened(facts, form, node.dtype)
    result = form.to_expr(node.dtype)
    return node if result is node else result


_MERGING = {FloorDiv, FloorMod, Mul}
_OPENING = {Mul, Cast, Min, Max}


def _opened(facts: Facts, form: Linear, dtype: str) -> Linear:
    """The form with products distributed, conversions or extrema opened, if that leaves fewer terms."""
    for rule in (_distributed, _widened, _into_extremum):
        found = rule(facts, form, dtype)
        if found is not None and _length(found) < _length(form):
            return found
    return form


def _length(form: Linear) -> int:
    return len(form.terms) + bool(form.constant)


def _distributed(facts: Facts, form: Linear, dtype: str) -> Linear | None:
    """(a + b)*c - a*c -> b*c, and (x//n + y//n)*n + x%n + y%n -> x + y."""
    found = expand(facts, form)
    met = found is not None and any(isinstance(atom, FloorMod) for atom in found.terms)
    return _merge_remainders(facts, found) if found is not None and met else found


def _widened(facts: Facts, form: Linear, dtype: str) -> Linear | None:
    """int64(a + 1) - int64(a) -> 1, for conversions that keep the value of what they convert."""
    total = constant_form(form.constant)
    for atom, k in form.terms.items():
        if isinstance(atom, Cast) and keeps_value(facts, atom):
            inner = plain_form(facts, atom.value)
            total = total.add(Linear({Cast(dtype, x): c for x, c in inner.terms.items()}, inner.constant), k)
        else:
            total = total.add(atom_form(atom), k)
    return total


def _into_extremum(facts: Facts, form: Linear, dtype: str) -> Linear | None:
    """min(a + 32, n) - a -> min(32, n - a), where one side becomes a constant and nothing overflows."""
    for atom, k in form.terms.items():
        if not isinstance(atom, (Min, Max)) or abs(k) != 1:
            continue
        rest = form.without(atom)
        sides = [rest.add(exact_form(facts, side), k) for side in (atom.a, atom.b)]
        if rest.terms and any(side.is_constant for side in sides) and all(fits(facts, form, dtype) for form in (rest, *sides)):
            kind = type(atom) if k == 1 else (Max if isinstance(atom, Min) else Min)
            return atom_form(kind(sides[0].to_expr(dtype), sides[1].to_expr(dtype)))
    return None


def _merge_remainders(facts: Facts, form: Linear) -> Linear:
    """Applies the laws of quotient and remainder until none fits."""
    while (merged := _merge_once(facts, form)) is not None:
        form = merged
    return form


def _merge_once(facts: Facts, form: Linear) -> Linear | None:
    for atom, k in form.terms.items():
        if isinstance(atom, FloorMod):
            merged = _merge_remainder(facts, form, atom, k)
        elif isinstance(atom, FloorDiv) and isinstance(atom.b, IntImm):
            merged = _merge_quotient(facts, form, atom, k, atom.b.value)
        else:
            continue
        if merged is not None:
            return merged
    return None


def _merge_quotient(facts: Facts, form: Linear, atom: FloorDiv, k: int, c: int) -> Linear | None:
    """k*x - k*c*(x // c) == k*(x % c)."""
    if c == 0 or k % c:
        return None
    rest = _without_multiple(form.without(atom), plain_form(facts, atom.a), -k // c)
    return None if rest is None else rest.add(Linear({FloorMod(atom.a, atom.b): 1}), -k // c)


def _merge_remainder(facts: Facts, form: Linear, atom: FloorMod, k: int) -> Linear | None:
    rest = form.without(atom)
    if not isinstance(atom.b, IntImm):
        whole = Counter((FloorDiv(atom.a, atom.b), *factors(atom.b)))
        for other, factor in rest.terms.items():
            if factor == k and is_product(other) and Counter(factors(other)) == whole:  # k*(x // y)*y + k*(x % y) == k*x
                return rest.without(other).add(plain_form(facts, atom.a), k)
        return None
    c = atom.b.value
    if c == 0:
        return None
    for quotient in _quotients(atom.a, c):
        if rest.terms.get(quotient) == k * c:  # k*c*(x // c) + k*(x % c) == k*x
            return rest.without(quotient).add(plain_form(facts, atom.a), k)
        for other, factor in rest.terms.items():
            if factor == k * c and _is_quotient(facts, other, atom.a, c):  # k*c*(y // c) + k*(x % c) == k*y where y % c == x % c
                assert isinstance(other, FloorDiv)
                return rest.without(other).add(plain_form(facts, other.a), k)
            if factor == k * c and isinstance(other, FloorMod) and _joins(other.b, c):
                # k*c*((y // c) % d) + k*(x % c) == k*(y % (c*d)) where y % c == x % c
                whole_of = atom.a if other.a is quotient else other.a.a if _is_quotient(facts, other.a, atom.a, c) else None  # type: ignore[attr-defined]
                if whole_of is not None:
                    joined = FloorMod(whole_of, IntImm(atom.dtype, c * other.b.value))  # type: ignore[attr-defined]
                    return rest.without(other).add(atom_form(joined), k)
    if any(factor == k * c for factor in rest.terms.values()):
        # What divides a divisor goes: of x = o*64 + i below 64 more, 3136*(o // 49) + x % 3136 is x, as x // 3136 is o // 49.
        simplified = floordiv(facts, FloorDiv(atom.a, atom.b))
        if simplified is not None and rest.terms.get(simplified) == k * c:
            return rest.without(simplified).add(plain_form(facts, atom.a), k)
    without = _without_multiple(rest, plain_form(facts, atom.a), -k)
    if without is None:
        return None
    return without.add(atom_form(_quotients(atom.a, c)[-1]), -k * c)  # k*(x % c) - k*x == -k*c*(x // c)


def _is_quotient(facts: Facts, atom: PrimExpr, x: PrimExpr, c: int) -> bool:
    """True if `atom` is y // c of a y that differs from x by a multiple of c, as remainders are simplified to smaller x."""
    if not isinstance(atom, FloorDiv) or not isinstance(atom.b, IntImm) or atom.b.value != c:
        return False
    apart = reduced(facts, plain_form(facts, atom.a).sub(plain_form(facts, x)), c)
    return apart.constant == 0 and not apart.terms


def _joins(divisor: PrimExpr, c: int) -> bool:
    """True if a remainder by c and one by the divisor make one by their product."""
    return isinstance(divisor, IntImm) and divisor.value > 0 and c > 0 and divisor.value * c <= int_limits(divisor.dtype)[1]


def _quotients(x: PrimExpr, c: int) -> list[PrimExpr]:
    """The shapes that x // c takes when it is simplified."""
    found: list[PrimExpr] = [FloorDiv(x, IntImm(x.dtype, c))]
    if isinstance(x, FloorDiv) and isinstance(x.b, IntImm) and min(x.b.value, c) > 0 and x.b.value * c <= int_limits(x.dtype)[1]:
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
