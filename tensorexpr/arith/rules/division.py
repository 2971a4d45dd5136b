"""Quotients and remainders by a positive constant; the other divisors are left alone unless a law needs no sign."""

from __future__ import annotations

from math import gcd

from ...tir.dtype import int_limits
from ...tir.expr import BinaryExpr, Div, FloorDiv, FloorMod, IntImm, Mod, PrimExpr
from ..bounds import exact_form, form_limits, limits_of
from ..facts import Facts
from ..linear import Linear, constant_form, is_scalar_int


def _divisor(node: BinaryExpr) -> int | None:
    """The constant positive divisor of a scalar integer division."""
    return node.b.value if isinstance(node.b, IntImm) and node.b.value > 0 and is_scalar_int(node.dtype) else None


def _by(op: type[BinaryExpr], form: Linear, divisor: int, dtype: str) -> PrimExpr:
    return op(form.to_expr(dtype), IntImm(dtype, divisor))


def _split(facts: Facts, form: Linear, step: int) -> tuple[Linear, Linear] | None:
    """form = step * quotient + rest with 0 <= rest < step proved; None if the rest isn't known to stay in one step."""
    multiples = Linear({a: k // step for a, k in form.terms.items() if k % step == 0}, 0)
    rest = Linear({a: k for a, k in form.terms.items() if k % step}, form.constant)
    low, high = form_limits(facts, rest)
    if low // step != high // step:
        return None
    return multiples.shift(low // step), rest.shift(-(low // step) * step)


def _steps(form: Linear, divisor: int) -> list[int]:
    """The divisors of `divisor` that some coefficients share, largest first."""
    return sorted({gcd(k, divisor) for k in form.terms.values()} | {divisor}, reverse=True)


def floordiv(facts: Facts, node: FloorDiv) -> PrimExpr | None:
    """Rules of x // c."""
    divisor = _divisor(node)
    if divisor is None:
        return None
    form = exact_form(facts, node.a, free=True)
    for step in _steps(form, divisor):
        found = _split(facts, form, step) if step > 1 else None
        if found is not None:
            # (s*q + r) // (s*d) == q // d for 0 <= r < s
            quotient = found[0]
            return quotient.to_expr(node.dtype) if step == divisor else _by(FloorDiv, quotient, divisor // step, node.dtype)
    pulled = _pull_multiples(form, divisor, node)
    return _nested(form, divisor, node) if pulled is None else pulled


def _pull_multiples(form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(c*q + r) // c == q + r // c."""
    whole = Linear({a: k // divisor for a, k in form.terms.items() if k % divisor == 0}, form.constant // divisor)
    if whole.is_constant and whole.constant == 0:
        return None
    rest = Linear({a: k for a, k in form.terms.items() if k % divisor}, form.constant % divisor)
    return whole.add(Linear({_by(FloorDiv, rest, divisor, node.dtype): 1})).to_expr(node.dtype)


def _nested(form: Linear, divisor: int, node: FloorDiv) -> PrimExpr | None:
    """(x // a + c) // b == (x + a*c) // (a*b);  (x % (a*b)) // a == (x // a) % b."""
    if len(form.terms) != 1:
        return None
    (atom, k), = form.terms.items()
    if k != 1 or not isinstance(atom, (FloorDiv, FloorMod)) or (inner := _divisor(atom)) is None:
        return None
    if isinstance(atom, FloorDiv):
        if inner * divisor > int_limits(node.dtype)[1] or form.constant:
            return None
        return FloorDiv(atom.a, IntImm(node.dtype, inner * divisor))
    if form.constant or inner % divisor:
        return None
    return FloorMod(FloorDiv(atom.a, node.b), IntImm(node.dtype, inner // divisor))


def floormod(facts: Facts, node: FloorMod) -> PrimExpr | None:
    """Rules of x % c."""
    divisor = _divisor(node)
    if divisor is None:
        return None
    form = exact_form(facts, node.a, free=True)
    reduced = _reduce(facts, form, divisor)
    for step in _steps(reduced, divisor):
        found = _split(facts, reduced, step) if step > 1 else None
        if found is not None:
            # (s*q + r) % (s*d) == s * (q % d) + r for 0 <= r < s
            quotient, rest = found
            if step == divisor:
                return rest.to_expr(node.dtype)
            inner = _by(FloorMod, quotient, divisor // step, node.dtype)
            return rest.add(Linear({inner: step})).to_expr(node.dtype) if rest.is_constant else Linear({inner: step}).add(rest).to_expr(node.dtype)
    return None if reduced.same(form) else _by(FloorMod, reduced, divisor, node.dtype)


def _reduce(facts: Facts, form: Linear, divisor: int) -> Linear:
    """(c*q + r) % c == r % c, and x % (a*c) counts as x."""
    total = constant_form(form.constant % divisor)
    for atom, k in form.terms.items():
        if isinstance(atom, FloorMod) and (inner := _divisor(atom)) is not None and k * inner % divisor == 0:
            total = total.add(exact_form(facts, atom.a, free=True), k)
        elif abs(k) >= divisor:
            total = total.add(Linear({atom: k % divisor} if k % divisor else {}))
        else:
            total = total.add(Linear({atom: k}))
    return total


def truncdiv(facts: Facts, node: Div) -> PrimExpr | None:
    """Both operands known non-negative: truncation is flooring."""
    return FloorDiv(node.a, node.b) if _truncates_as_floors(facts, node) else None


def truncmod(facts: Facts, node: Mod) -> PrimExpr | None:
    """Both operands known non-negative: truncation is flooring."""
    return FloorMod(node.a, node.b) if _truncates_as_floors(facts, node) else None


def _truncates_as_floors(facts: Facts, node: BinaryExpr) -> bool:
    if not is_scalar_int(node.dtype):
        return False
    return limits_of(facts, node.a)[0] >= 0 and limits_of(facts, node.b)[0] > 0


