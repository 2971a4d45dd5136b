"""What the rules of quotients and remainders share.

A numerator is an affine form that equals its machine value: either its bounds fit the dtype, or it is made of index
variables only (see `facts`). Every numerator that a rule writes must be one again.
"""

from __future__ import annotations

from math import gcd

from ...tir.dtype import int_limits
from ...tir.expr import BinaryExpr, IntImm, PrimExpr
from ..bounds import fits, form_limits
from ..facts import Facts
from ..linear import Linear


def constant_of(expr: PrimExpr) -> int | None:
    """The value of a constant divisor."""
    return expr.value if isinstance(expr, IntImm) else None


def divided_by(facts: Facts, op: type[BinaryExpr], form: Linear, divisor: int, dtype: str) -> PrimExpr | None:
    """op(form, divisor), if the form stands for its machine value and the divisor for itself."""
    if not fits(facts, form, dtype, free=True) or divisor > int_limits(dtype)[1]:
        return None
    return op(form.to_expr(dtype), IntImm(dtype, divisor))


def negated(facts: Facts, op: type[BinaryExpr], form: Linear, divisor: int, dtype: str) -> PrimExpr | None:
    """-op(form, divisor), if that can be written."""
    inner = divided_by(facts, op, form, divisor, dtype)
    return None if inner is None else Linear({inner: -1}).to_expr(dtype)


def written(facts: Facts, form: Linear, dtype: str) -> PrimExpr | None:
    """The form as an expression, if it stands for its machine value."""
    return form.to_expr(dtype) if fits(facts, form, dtype, free=True) else None


def quotient_and_rest(facts: Facts, form: Linear, step: int) -> tuple[Linear, Linear] | None:
    """form = step * quotient + rest with 0 <= rest < step proved; None if the rest isn't known to stay in one step."""
    rest = Linear({a: k for a, k in form.terms.items() if k % step}, form.constant)
    low, high = form_limits(facts, rest)
    if low // step != high // step:
        return None
    quotient = Linear({a: k // step for a, k in form.terms.items() if k % step == 0}, low // step)
    return quotient, rest.shift(-(low // step) * step)


def steps_of(form: Linear, divisor: int) -> list[int]:
    """What the divisor shares with coefficients, largest first, the divisor itself in front; 1 only if that is it."""
    shared = {gcd(k, divisor) for k in form.terms.values()} | {divisor}
    return sorted((step for step in shared if step > 1 or divisor == 1), reverse=True)
