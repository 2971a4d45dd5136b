"""Products of expressions: flattening, recognising equal ones, and distributing over sums where that helps."""

from __future__ import annotations

from collections import Counter

from ..tir.expr import IntImm, Mul, PrimExpr
from .bounds import fits, plain_form, product_fits
from .facts import Facts
from .linear import Linear, constant_form

# Products of longer sums are left factored: an index with more terms than this helps no proof.
_EXPANSION_LIMIT = 24


def factors(atom: PrimExpr) -> list[PrimExpr]:
    """The factors of a product of expressions, left to right; one factor for anything else."""
    found: list[PrimExpr] = []
    stack = [atom]
    while stack:
        node = stack.pop()
        if isinstance(node, Mul) and is_product(node):
            stack += [node.b, node.a]
        else:
            found.append(node)
    return found


def product(terms: list[PrimExpr]) -> PrimExpr:
    """The product of expressions, left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = Mul(total, term)
    return total


def is_product(atom: PrimExpr) -> bool:
    """True for a product of two expressions, neither of them a constant."""
    return isinstance(atom, Mul) and not isinstance(atom.b, IntImm) and not isinstance(atom.a, IntImm)


def merge_products(form: Linear) -> Linear:
    """n*m counts as m*n: each product takes the shape in which it first appears."""
    # One product alone has no other shape to take.
    if sum(map(is_product, form.terms)) < 2:
        return form
    shapes: dict[frozenset[tuple[PrimExpr, int]], PrimExpr] = {}
    total = constant_form(form.constant)
    for atom, k in form.terms.items():
        shape = shapes.setdefault(frozenset(Counter(factors(atom)).items()), atom) if is_product(atom) else atom
        total = total.add(Linear({shape: k}))
    return total


def expand(facts: Facts, form: Linear) -> Linear | None:
    """The form with products distributed over sums; None if there is nothing to distribute or too much."""
    if not any(is_product(atom) and _has_sum(facts, atom) for atom in form.terms):
        return None
    total = constant_form(form.constant)
    for atom, k in form.terms.items():
        inner = expand_product(facts, [plain_form(facts, factor) for factor in factors(atom)]) if is_product(atom) else Linear({atom: 1})
        if inner is None or len(total.terms) > _EXPANSION_LIMIT:
            return None
        total = total.add(inner, k)
    return merge_products(total)


def products_hold(facts: Facts, form: Linear, free: bool = False) -> bool:
    """True if every product in the form is one over the integers: neither it nor a factor can wrap."""
    return all(_holds(facts, atom, free) for atom in form.terms if is_product(atom))


def _holds(facts: Facts, atom: PrimExpr, free: bool) -> bool:
    while isinstance(atom, Mul) and is_product(atom):
        if not product_fits(facts, atom, free) or not fits(facts, plain_form(facts, atom.b), atom.dtype, free):
            return False
        if is_product(atom.b):
            return _holds(facts, atom.b, free) and _holds(facts, atom.a, free)
        atom = atom.a
    return fits(facts, plain_form(facts, atom), atom.dtype, free)


def expand_exactly(facts: Facts, form: Linear, free: bool = False) -> Linear | None:
    """As `expand`, if the products hold over the integers before and after."""
    if not products_hold(facts, form, free):
        return None
    found = expand(facts, form)
    return found if found is not None and products_hold(facts, found, free) else None


def _has_sum(facts: Facts, atom: PrimExpr) -> bool:
    return any(factor not in plain_form(facts, factor).terms for factor in factors(atom))


def expand_product(facts: Facts, forms: list[Linear]) -> Linear | None:
    """The product of affine forms as a sum of products; None if it grows too long."""
    monomials: dict[tuple[PrimExpr, ...], int] = {(): 1}
    for form in forms:
        after: dict[tuple[PrimExpr, ...], int] = {}
        for done, k in monomials.items():
            for atom, factor in [*form.terms.items(), *(((None, form.constant),) if form.constant else ())]:
                # Flattened, so that (n*m)*k and n*(m*k) end as one monomial.
                key = done if atom is None else (*done, *factors(atom))
                after[key] = after.get(key, 0) + k * factor
        monomials = after
        if len(monomials) > _EXPANSION_LIMIT:
            return None
    constant = monomials.pop((), 0)
    total = constant_form(constant)
    # Monomials that have cancelled are still here, with 0.
    for key, k in monomials.items():
        total = total.add(Linear({product(list(key)): k} if k else {}))
    return merge_products(total)


def divide(facts: Facts, form: Linear, divisor: PrimExpr) -> tuple[Linear, Linear]:
    """form = divisor * quotient + rest, taking the terms in which `divisor` is a factor."""
    quotient, rest = constant_form(0), constant_form(form.constant)
    wanted = Counter(factors(divisor))
    for atom, k in form.terms.items():
        present = Counter(factors(atom))
        if wanted <= present:  # as multisets: n*n divides n*n*m, not n*m
            left = _removed(factors(atom), wanted)
            quotient = quotient.add(plain_form(facts, product(left)).scale(k) if left else constant_form(k))
        else:
            rest = rest.add(Linear({atom: k}))
    return quotient, rest


def _removed(present: list[PrimExpr], wanted: Counter[PrimExpr]) -> list[PrimExpr]:
    """`present` without the factors of `wanted`."""
    todo = Counter(wanted)
    left = []
    for factor in present:
        if todo[factor] > 0:
            todo[factor] -= 1
        else:
            left.append(factor)
    return left
