"""Derivatives of element expressions: one rule for each kind of node, in tables.

The derivative is taken with respect to one element that is read, from the operands up. It is built inside the arms of
`if_then_else`, so that it reads nothing that the expression itself would not read. None stands for a derivative that
is zero whatever the values: of integers, of steps such as `floor`, and of all that doesn't depend on the element.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..errors import DeclarationError
from ..tir import intrin
from ..tir.arithmetic import binary, cast, compare, const, negate
from ..tir.dtype import parse_dtype
from ..tir.expr import GE, LE, Add, Call, Cast, Div, FloatImm, Max, Min, Mul, PrimExpr, ProducerLoad, Select, Sub
from ..tir.rewriting import walk, without_lets
from .evaluation import children

Change = PrimExpr | None
_X = PrimExpr  # the operand of an intrinsic, and its result


def derivative(expr: PrimExpr, element: ProducerLoad) -> Change:
    """How `expr` changes with `element`, in the dtype of `expr`; None if not at all.

    Raises:
        DeclarationError: if an intrinsic without a known derivative depends on the element.
    """
    expr = without_lets(expr)
    changes: dict[PrimExpr, Change] = {}
    # operands first and each node once: shared subexpressions have one derivative, and deep ones need no recursion
    for node in walk(expr):
        if isinstance(node, PrimExpr):
            changes[node] = _change(node, tuple(changes[child] for child in children(node)), element)
    return changes[expr]


def _change(node: PrimExpr, operands: tuple[Change, ...], element: ProducerLoad) -> Change:
    if node is element:
        return const(1.0, node.dtype) if is_differentiable(node.dtype) else None
    if not is_differentiable(node.dtype) or all(operand is None for operand in operands) or isinstance(node, ProducerLoad):
        return None
    if isinstance(node, Call):
        return _call(node, operands)
    rule = _RULES.get(type(node))
    if rule is None:
        raise DeclarationError(
            f"te.gradient: {type(node).__name__} ({node}) has no derivative; known: {', '.join(k.__name__ for k in _RULES)}"
        )
    return rule(node, *operands)


def is_differentiable(dtype: str) -> bool:
    """True for floats: everything else changes by steps, and has gradient zero."""
    return parse_dtype(dtype).is_float


def plus(a: Change, b: Change) -> Change:
    """a + b."""
    if a is None or b is None:
        return b if a is None else a
    return binary(Add, a, b)


def times(change: Change, factor: PrimExpr) -> Change:
    """change * factor."""
    return None if change is None else chain(change, factor)


def chain(outer: PrimExpr, inner: PrimExpr) -> PrimExpr:
    """outer * inner, without multiplying by one."""
    if _is_one(inner):
        return outer
    return inner if _is_one(outer) else binary(Mul, outer, inner)


def _minus(change: Change) -> Change:
    return None if change is None else negate(change)


def _is_one(expr: PrimExpr) -> bool:
    return isinstance(expr, FloatImm) and expr.value == 1.0


def _either(condition: PrimExpr, yes: Change, no: Change, choose: Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]) -> Change:
    if yes is None and no is None:
        return None
    known = yes if yes is not None else no
    assert known is not None
    zero = const(0.0, known.dtype)
    first, second = zero if yes is None else yes, zero if no is None else no
    # equal expressions are one object: x + 1 or x + 2 needs no choice
    return first if first is second else choose(condition, first, second)


def _quotient(node: Div, a: Change, b: Change) -> Change:
    # (a / b) / b in place of a / (b * b), which overflows for a large b
    left = None if a is None else binary(Div, a, node.b)
    return left if b is None else plus(left, _minus(times(b, binary(Div, node, node.b))))


_RULES: dict[type[PrimExpr], Callable[..., Change]] = {
    Add: lambda node, a, b: plus(a, b),
    Sub: lambda node, a, b: plus(a, _minus(b)),
    Mul: lambda node, a, b: plus(times(a, node.b), times(b, node.a)),
    Div: _quotient,
    Max: lambda node, a, b: _either(compare(GE, node.a, node.b), a, b, Select),  # of equals, the first one counts
    Min: lambda node, a, b: _either(compare(LE, node.a, node.b), a, b, Select),
    Select: lambda node, c, a, b: _either(node.condition, a, b, Select),
    Cast: lambda node, a: None if a is None else cast(a, node.dtype),
}


def _number(value: float, like: PrimExpr) -> PrimExpr:
    return const(value, like.dtype)


def _sign(x: PrimExpr) -> PrimExpr:
    return Select(compare(GE, x, _number(0.0, x)), _number(1.0, x), _number(-1.0, x))


# The derivative of f(x), from the operand x and the result y.
_UNARY: dict[str, Callable[[_X, _X], PrimExpr]] = {
    "exp": lambda x, y: y,
    "exp2": lambda x, y: y * math.log(2),
    "exp10": lambda x, y: y * math.log(10),
    "log": lambda x, y: 1.0 / x,
    "log2": lambda x, y: 1.0 / (x * math.log(2)),
    "log10": lambda x, y: 1.0 / (x * math.log(10)),
    "log1p": lambda x, y: 1.0 / (x + 1.0),
    "sqrt": lambda x, y: 0.5 / y,
    "rsqrt": lambda x, y: y / x * -0.5,
    "sigmoid": lambda x, y: y * (1.0 - y),
    "tanh": lambda x, y: 1.0 - y * y,
    "erf": lambda x, y: intrin.exp(-(x * x)) * (2 / math.sqrt(math.pi)),
    "sin": lambda x, y: intrin.cos(x),
    "cos": lambda x, y: -intrin.sin(x),
    "tan": lambda x, y: y * y + 1.0,
    "asin": lambda x, y: 1.0 / intrin.sqrt(1.0 - x * x),
    "acos": lambda x, y: -1.0 / intrin.sqrt(1.0 - x * x),
    "atan": lambda x, y: 1.0 / (x * x + 1.0),
    "sinh": lambda x, y: intrin.cosh(x),
    "cosh": lambda x, y: intrin.sinh(x),
    "asinh": lambda x, y: 1.0 / intrin.sqrt(x * x + 1.0),
    "acosh": lambda x, y: 1.0 / intrin.sqrt(x * x - 1.0),
    "atanh": lambda x, y: 1.0 / (1.0 - x * x),
    "fabs": lambda x, y: _sign(x),
}


def _power(node: Call, a: Change, b: Change) -> Change:
    x, y = node.args
    # no logarithm for a constant exponent: it is NaN for a negative base, and x ** 2.0 has a derivative there
    by_exponent = None if b is None else times(b, binary(Mul, node, intrin.log(x)))
    return plus(times(a, y * intrin.power(x, y - 1.0)), by_exponent)


def _angle(node: Call, a: Change, b: Change) -> Change:
    y, x = node.args
    squares = x * x + y * y
    return plus(times(a, x / squares), _minus(times(b, y / squares)))


def _remainder(node: Call, a: Change, b: Change) -> Change:
    x, y = node.args
    return plus(a, _minus(times(b, intrin.trunc(x / y))))


_CALLS: dict[str, Callable[..., Change]] = {
    "if_then_else": lambda node, c, a, b: _either(node.args[0], a, b, intrin.if_then_else),
    "pow": _power,
    "atan2": _angle,
    "hypot": lambda node, a, b: plus(times(a, node.args[0] / node), times(b, node.args[1] / node)),
    "fmod": _remainder,
    "fma": lambda node, a, b, c: plus(plus(times(a, node.args[1]), times(b, node.args[0])), c),
}

_STEPS = frozenset({"floor", "ceil", "trunc", "round", "nearbyint"})  # constant but where they jump


def _call(node: Call, operands: tuple[Change, ...]) -> Change:
    name = node.op.removeprefix("tir.")
    if name in _STEPS:
        return None
    if name in _UNARY:
        return times(operands[0], _UNARY[name](node.args[0], node))
    if name in _CALLS:
        return _CALLS[name](node, *operands)
    known = ", ".join(sorted({*_UNARY, *_CALLS, *_STEPS}))
    raise DeclarationError(f"te.gradient: no derivative of the intrinsic {name} is known, in {node}; express it by others: {known}")
