"""Quotients and remainders.

A numerator is an affine form that equals its machine value: either its bounds fit the dtype, or it is made of index
variables only (see `facts`). Every numerator that a rule writes must be one again.
"""

from __future__ import annotations

from math import gcd

from ...tir.dtype import int_limits
from ...tir.expr import BinaryExpr, Div, FloorDiv, FloorMod, IntImm, Mod, PrimExpr
from ..bounds import fits, form_limits, limits_of, plain_form
from ..exact import exact_form
from ..facts import Facts
from ..linear import Linear, atom_form, constant_form, is_scalar_int
from ..polynomial import divide, expand_exactly, is_product, products_hold
from ..proofs import known_nonnegative
from ..sympy_bridge import divide_polynomials


def floordiv(facts: Facts, node: FloorDiv) -> PrimExpr | None:
    """Rules of x // y."""
    if not is_scalar_int(node.dtype) or _is_zero(node.b):
        return None
    form = exact_form(facts, node.a, free=True)
    divisor = _constant(node)
    if divisor is None:
        return _symbolic_quotient(facts, form, node)
    if divisor < 0:
        return _by(facts, FloorDiv, form.scale(-1), -divisor, node.dtype)  # x // -c == -x // c
    for rule in (_aligned_quotient, _pulled_quotient, _nested_quotient):
        found = rule(facts, form, divisor, node)
        if found is not None:
            return found
    return None


def floormod(facts: Facts, node: FloorMod) -> PrimExpr | None:
    """Rules of x % y."""
    if not is_scalar_int(node.dtype) or _is_zero(node.b):
        return None
    form = exact_form(facts, node.a, free=True)
    divisor = _constant(node)
    if divisor is None:
        return _symbolic_remainder(facts, form, node)
    if divisor < 0:
        return _negated_remainder(facts, form, -divisor, node)
    reduced = _reduced(facts, form, divisor)
    found = _aligned_remainder(facts, reduced, divisor, node)
    if found is None and not reduced.same(form):
        found = _by(facts, FloorMod, reduced, divisor, node.dtype)
    return found


def truncdiv(facts: Facts, node: Div) -> PrimExpr | None:
    """x / y that truncates, as a floor division where signs are known."""
    if not is_scalar_int(node.dtype) or _is_zero(node.b):
        return None
    if _nonnegative(facts, node.a) and _positive(facts, node.b):
        return FloorDiv(node.a, node.b)
    divisor = _constant(node)
    if divisor is None:
        return None
    form = exact_form(facts, node.a, free=True)
    if all(k % divisor == 0 for k in (*form.terms.values(), form.constant)):
        # trunc(c*x / c) == x; the most negative number has no negative
        return _whole(facts, Linear({a: k // divisor for a, k in form.terms.items()}, form.constant // divisor), node.dtype)
    if form_limits(facts, form)[1] <= 0 and divisor > 0:
        return _minus(facts, FloorDiv, form.scale(-1), divisor, node.dtype)  # trunc(-x / c) == -(x // c)
    return None


def truncmod(facts: Facts, node: Mod) -> PrimExpr | None:
    """The remainder that goes with it; it has the sign of x and doesn't know that of y."""
    if not is_scalar_int(node.dtype) or _is_zero(node.b):
        return None
    if _nonnegative(facts, node.a) and _positive(facts, node.b):
        return FloorMod(node.a, node.b)
    divisor = _constant(node)
    if divisor is None:
        return None
    if divisor < 0 and -divisor <= int_limits(node.dtype)[1]:
        return Mod(node.a, IntImm(node.dtype, -divisor))  # truncmod(x, -c) == truncmod(x, c)
    form = exact_form(facts, node.a, free=True)
    if all(k % divisor == 0 for k in (*form.terms.values(), form.constant)):
        return IntImm(node.dtype, 0)
    if form_limits(facts, form)[1] <= 0 and divisor > 0:
        return _minus(facts, FloorMod, form.scale(-1), divisor, node.dtype)  # truncmod(-x, c) == -(x % c)
    return None


def _is_zero(expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def _constant(node: BinaryExpr) -> int | None:
    return node.b.value if isinstance(node.b, IntImm) else None


def _nonnegative(facts: Facts, expr: PrimExpr) -> bool:
    return limits_of(facts, expr)[0] >= 0 or known_nonnegative(facts, exact_form(facts, expr))


def _positive(facts: Facts, expr: PrimExpr) -> bool:
    return limits_of(facts, expr)[0] > 0 or known_nonnegative(facts, exact_form(facts, expr).shift(-1))


def _by(facts: Facts, op: type[BinaryExpr], form: Linear, divisor: int, dtype: str) -> PrimExpr | None:
    """op(form, divisor), if the form stands for its machine value and the divisor for itself."""
    if not fits(facts, form, dtype, free=True) or divisor > int_limits(dtype)[1]:
        return None
    return op(form.to_expr(dtype), IntImm(dtype, divisor))


def _whole(facts: Facts, form: Linear, dtype: str) -> PrimExpr | None:
    return form.to_expr(dtype) if fits(facts, form, dtype, free=True) else None


def _minus(facts: Facts, op: type[BinaryExpr], form: Linear, divisor: int, dtype: str) -> PrimExpr | None:
    inner = _by(facts, op, form, divisor, dtype)
    return None if inner is None else Linear({inner: -1}).to_expr(dtype)


def _split(facts: Facts, form: Linear, step: int) -> tuple[Linear, Linear] | None:
    """form = step * quotient + rest with 0 <= rest < step proved; None if the rest isn't known to stay in one step."""
    rest = Linear({a: k for a, k in form.terms.items() if k % step}, form.constant)
    low, high = form_limits(facts, rest)
    if low // step != high // step:
        return None
    quotient = Linear({a: k // step for a, k in form.terms.items() if k % step == 0}, low // step)
    return quotient, rest.shift(-(low // step) * step)


def _steps(form: Linear, divisor: int) -> list[int]:
    """What the divisor shares with coefficients, largest first; the divisor itself in front."""
    return sorted({gcd(k, divisor) for k in form.terms.values()} | {divisor}, reverse=True)


def _aligned_quotient(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(s*q + r) // (s*d) == q // d for 0 <= r < s."""
    for step in _steps(form, divisor):
        found = _split(facts, form, step) if step > 1 or divisor == 1 else None
        if found is not None and step == divisor:
            return found[0].to_expr(node.dtype)
        if found is not None:
            return _by(facts, FloorDiv, found[0], divisor // step, node.dtype)
    return None


def _pulled_quotient(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(c*q + r) // c == q + r // c."""
    whole = Linear({a: k // divisor for a, k in form.terms.items() if k % divisor == 0}, form.constant // divisor)
    if whole.is_constant and whole.constant == 0:
        return None
    rest = Linear({a: k for a, k in form.terms.items() if k % divisor}, form.constant % divisor)
    inner = _by(facts, FloorDiv, rest, divisor, node.dtype)
    return None if inner is None else Linear({inner: 1}).add(whole).to_expr(node.dtype)


def _nested_quotient(facts: Facts, form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(x // a + c) // b == (x + a*c) // (a*b);  (x % (a*b)) // a == (x // a) % b."""
    if len(form.terms) != 1:
        return None
    ((atom, k),) = form.terms.items()
    if k != 1 or not isinstance(atom, (FloorDiv, FloorMod)) or not isinstance(atom.b, IntImm) or atom.b.value <= 0:
        return None
    inner = atom.b.value
    if isinstance(atom, FloorDiv):
        numerator = exact_form(facts, atom.a, free=True).shift(inner * form.constant)
        return _by(facts, FloorDiv, numerator, inner * divisor, node.dtype)
    if form.constant or inner % divisor:
        return None
    return FloorMod(FloorDiv(atom.a, node.b), IntImm(node.dtype, inner // divisor))


def _reduced(facts: Facts, form: Linear, divisor: int) -> Linear:
    """(c*q + r) % c == r % c, and x % (a*c) counts as x."""
    total = constant_form(form.constant % divisor)
    for atom, k in form.terms.items():
        inner = atom_form(atom)
        if isinstance(atom, FloorMod) and isinstance(atom.b, IntImm) and atom.b.value and k * atom.b.value % divisor == 0:
            inner = exact_form(facts, atom.a, free=True)
        total = total.add(inner, k if abs(k) < divisor else k % divisor)
    constant = total.constant % divisor
    return Linear({a: k if abs(k) < divisor else k % divisor for a, k in total.terms.items() if k % divisor}, constant)


def _aligned_remainder(facts: Facts, form: Linear, divisor: int, node: FloorMod) -> PrimExpr | None:
    """(s*q + r) % (s*d) == s * (q % d) + r for 0 <= r < s."""
    for step in _steps(form, divisor):
        found = _split(facts, form, step) if step > 1 or divisor == 1 else None
        if found is None:
            continue
        quotient, rest = found
        if step == divisor:
            return rest.to_expr(node.dtype)
        inner = _by(facts, FloorMod, quotient, divisor // step, node.dtype)
        if inner is not None:
            return Linear({inner: step}).add(rest).to_expr(node.dtype)
    return None


def _negated_remainder(facts: Facts, form: Linear, divisor: int, node: FloorMod) -> PrimExpr | None:
    """x % -c == -(-x % c)."""
    return _minus(facts, FloorMod, form.scale(-1), divisor, node.dtype)


def _symbolic_quotient(facts: Facts, form: Linear, node: FloorDiv) -> PrimExpr | None:
    """(d*q + r) // d == q + r // d; the second quotient is 0 for 0 <= r < d. No sign of d is needed for r == 0."""
    if form.is_constant and form.constant == 0:
        return IntImm(node.dtype, 0)
    quotient, rest = _divided(facts, form, node.b)
    if rest.is_constant and rest.constant == 0:
        return _whole(facts, quotient, node.dtype)
    if _within(facts, rest, node.b):
        return _whole(facts, quotient, node.dtype)
    if (quotient.is_constant and quotient.constant == 0) or not fits(facts, rest, node.dtype, free=True):
        return None
    return quotient.add(Linear({FloorDiv(rest.to_expr(node.dtype), node.b): 1})).to_expr(node.dtype)


def _symbolic_remainder(facts: Facts, form: Linear, node: FloorMod) -> PrimExpr | None:
    """(d*q + r) % d == r % d, which is r for 0 <= r < d."""
    quotient, rest = _divided(facts, form, node.b)
    if (rest.is_constant and rest.constant == 0) or _within(facts, rest, node.b):
        return _whole(facts, rest, node.dtype)
    if (quotient.is_constant and quotient.constant == 0) or not fits(facts, rest, node.dtype, free=True):
        return None
    return FloorMod(rest.to_expr(node.dtype), node.b)


def _divided(facts: Facts, form: Linear, divisor: PrimExpr) -> tuple[Linear, Linear]:
    """Quotient and rest by the terms that hold the divisor as a factor, products distributed if that finds more."""
    below = plain_form(facts, divisor)
    if not (products_hold(facts, form, free=True) and products_hold(facts, below, free=True)):
        return constant_form(0), form
    plain = divide(facts, form, divisor)
    if _divides(plain):
        return plain
    expanded = expand_exactly(facts, form, free=True)
    if expanded is not None and _divides(found := divide(facts, expanded, divisor)):
        return found
    if (
        not any(map(is_product, form.terms))
        or len(below.terms) + bool(below.constant) < 2
        or not fits(facts, below, divisor.dtype, free=True)
    ):
        return plain
    polynomials = divide_polynomials(form.to_expr(divisor.dtype), divisor)  # (n*i + i + j) // (n + 1)
    if polynomials is None:
        return plain
    quotient, rest = (plain_form(facts, polynomial) for polynomial in polynomials)
    # A rest of as many terms could be divided again and again.
    return (quotient, rest) if len(rest.terms) < len(form.terms) and products_hold(facts, rest, free=True) else plain


def _divides(found: tuple[Linear, Linear]) -> bool:
    quotient = found[0]
    return not quotient.is_constant or quotient.constant != 0


def _within(facts: Facts, rest: Linear, divisor: PrimExpr) -> bool:
    """True if 0 <= rest < divisor is proved."""
    return known_nonnegative(facts, rest) and known_nonnegative(facts, exact_form(facts, divisor).sub(rest).shift(-1))
