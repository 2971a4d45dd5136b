"""The largest integer that divides every term of a sum of indices as it is written: 6 for `(x*2 + y)*6 - 12`."""

from __future__ import annotations

from math import gcd

from ..tir.expr import Add, IntImm, Mul, PrimExpr, Sub


def common_factor(expr: PrimExpr) -> int:
    """The factor, at least 0; 0 for the constant 0, which every integer divides."""
    match expr:
        case IntImm(_, value):
            return abs(value)
        case Mul(a, IntImm(_, scale)):
            return abs(scale) * common_factor(a)
        case Add(a, b) | Sub(a, b):
            return gcd(common_factor(a), common_factor(b))
    return 1


def divided(expr: PrimExpr, factor: int) -> PrimExpr:
    """The expression divided by one of the divisors of its common factor, in the same shape."""
    match expr:
        case IntImm(dtype, value):
            return IntImm(dtype, value // factor)
        case Mul(a, IntImm(dtype, scale)):
            outside = gcd(scale, factor)
            inner = a if outside == factor else divided(a, factor // outside)
            return inner if scale == outside else Mul(inner, IntImm(dtype, scale // outside))
        case Add(a, b) | Sub(a, b):
            return type(expr)(divided(a, factor), divided(b, factor))
    raise ValueError(f"{factor} does not divide {expr}")
