"""Constant bounds of one node from those of its operands, over the integers: the table behind `bounds`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..tir import expr as tir
from ..tir.arithmetic import truncated
from ..tir.dtype import int_limits, scalar_dtype
from ..tir.expr import BinaryExpr, Call, Mul, PrimExpr, Ramp

Limits = tuple[int, int]
Known = Mapping[PrimExpr, Limits]
Rule = Callable[..., Limits]


def corners(op: Callable[[int, int], int], a: Limits, b: Limits) -> Limits:
    """The extremes of an operation that is monotone in each operand, in whatever direction."""
    values = [op(x, y) for x in a for y in b]
    return min(values), max(values)


def union(a: Limits, b: Limits) -> Limits:
    """The least bounds that hold both."""
    return min(a[0], b[0]), max(a[1], b[1])


def _whole(node: PrimExpr) -> Limits:
    return int_limits(scalar_dtype(node.dtype))


def _add(node: BinaryExpr, known: Known) -> Limits:
    (a, b), (c, d) = known[node.a], known[node.b]
    return a + c, b + d


def _sub(node: BinaryExpr, known: Known) -> Limits:
    (a, b), (c, d) = known[node.a], known[node.b]
    return a - d, b - c


def multiply(node: Mul, known: Known) -> Limits:
    """Bounds of a product."""
    return corners(lambda x, y: x * y, known[node.a], known[node.b])


def _divisors(b: Limits) -> set[int]:
    """The divisors at which a quotient can be extreme; division by 0 has no value."""
    # For divisors of one sign x / d is monotone in d, so the extremes lie at the ends of the interval and next to 0.
    low, high = b
    near = {d for d in (-1, 1) if low <= d <= high}
    return ({low, high} | near) - {0}


def _quotient(op: Callable[[int, int], int]) -> Rule:
    def bound(node: BinaryExpr, known: Known) -> Limits:
        values = [op(x, d) for x in known[node.a] for d in _divisors(known[node.b])]
        return (min(values), max(values)) if values else _whole(node)

    return bound


def _floormod(node: BinaryExpr, known: Known) -> Limits:
    (low, high), (least, most) = known[node.a], known[node.b]
    if least == most != 0 and low // least == high // least:  # within one period
        return low % least, high % least
    if least == most == 0:
        return _whole(node)
    if least > 0 and low >= 0:
        return 0, min(high, most - 1)  # x mod d is at most x, too
    # The remainder has the sign of the divisor and is smaller.
    return min(least + 1, 0), max(most - 1, 0)


def _truncmod(node: BinaryExpr, known: Known) -> Limits:
    (low, high), (least, most) = known[node.a], known[node.b]
    # The remainder has the sign of the dividend, is no larger than it, and smaller than the divisor.
    largest = max(abs(least), abs(most)) - 1
    return (max(min(low, 0), -largest), min(max(high, 0), largest)) if largest >= 0 else _whole(node)


def _minimum(node: BinaryExpr, known: Known) -> Limits:
    (a, b), (c, d) = known[node.a], known[node.b]
    return min(a, c), min(b, d)


def _maximum(node: BinaryExpr, known: Known) -> Limits:
    (a, b), (c, d) = known[node.a], known[node.b]
    return max(a, c), max(b, d)


def _ramp(node: Ramp, known: Known) -> Limits:
    (low, high), (least, most) = known[node.base], known[node.stride]
    # Lanes are linear in their number, so the first and the last are the extremes.
    last = node.lanes - 1
    return low + min(0, last * least), high + max(0, last * most)


def _shift_right(call: Call, known: Known) -> Limits:
    value, amounts = (known[arg] for arg in call.args)
    return corners(lambda x, y: x >> y, value, amounts) if amounts[0] >= 0 and amounts[1] <= 64 else _whole(call)


def _bitwise_and(call: Call, known: Known) -> Limits:
    # In two's complement `and` clears bits: with an operand that isn't negative the result is neither, and no larger than it.
    highs = [high for low, high in (known[arg] for arg in call.args) if low >= 0]
    return (0, min(highs)) if highs else _whole(call)


def _shift_left(call: Call, known: Known) -> Limits:
    value, amounts = (known[arg] for arg in call.args)
    return corners(lambda x, y: x << y, value, amounts) if amounts[0] >= 0 and amounts[1] <= 64 else _whole(call)


CALLS: dict[str, Rule] = {
    "tir.if_then_else": lambda call, known: union(known[call.args[1]], known[call.args[2]]),
    "tir.shift_left": _shift_left,
    "tir.shift_right": _shift_right,
    "tir.bitwise_and": _bitwise_and,
}

RULES: dict[type[PrimExpr], Rule] = {
    tir.Add: _add,
    tir.Sub: _sub,
    tir.Mul: multiply,
    tir.FloorDiv: _quotient(lambda a, b: a // b),
    tir.Div: _quotient(truncated),
    tir.FloorMod: _floormod,
    tir.Mod: _truncmod,
    tir.Min: _minimum,
    tir.Max: _maximum,
    tir.Select: lambda node, known: union(known[node.true_value], known[node.false_value]),
    tir.Cast: lambda node, known: known[node.value],
    tir.Ramp: _ramp,
    tir.Broadcast: lambda node, known: known[node.value],
    tir.Let: lambda node, known: known[node.body],
}


def operands(node: PrimExpr) -> tuple[PrimExpr, ...]:
    """The operands whose bounds the rule of a node asks for."""
    match node:
        case BinaryExpr(a, b) | tir.Select(_, a, b) | Ramp(a, b, _):
            return (a, b)
        case tir.Cast(_, a) | tir.Broadcast(a, _) | tir.Let(_, _, a):
            return (a,)
        case Call(_, op, args) if op in CALLS:
            return args
    return ()


def rule_of(node: PrimExpr) -> Rule | None:
    """The rule of a node's kind, or of its intrinsic."""
    return CALLS.get(node.op) if isinstance(node, Call) else RULES.get(type(node))
