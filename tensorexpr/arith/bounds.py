"""Constant bounds of integer expressions, wrapping included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from ..tir.dtype import int_limits, parse_dtype, scalar_dtype
from ..tir.expr import (
    Add, BinaryExpr, Broadcast, Call, Cast, Div, FloorDiv, FloorMod, IntImm, Let, Max, Min, Mod, Mul, PrimExpr,
    Ramp, Select, SizeVar, Sub, Var,
)  # fmt: skip
from .facts import Facts, Limits
from .linear import Linear, atom_form, is_scalar_int, linear_form
from .origin import DATA, FREE, INDEX_DTYPES, SYMBOL, form_origin

POS_INF = (1 << 63) - 1
NEG_INF = -POS_INF
_WIDEST: Limits = (-(1 << 64), 1 << 64)


@dataclass(frozen=True, slots=True)
class ConstIntBound:
    """Inclusive bounds; `POS_INF` and `NEG_INF` stand for "unbounded"."""

    min_value: int
    max_value: int
    POS_INF: ClassVar[int] = POS_INF
    NEG_INF: ClassVar[int] = NEG_INF


@lru_cache(maxsize=None)
def dtype_limits(dtype: str) -> Limits:
    """The values of one lane of a dtype; for floats and handles an interval that no proof can use."""
    parsed = parse_dtype(dtype)
    return int_limits(scalar_dtype(dtype)) if parsed.is_int or parsed.code == "bool" else _WIDEST


def limits_of(facts: Facts, expr: PrimExpr) -> Limits:
    """Inclusive bounds of the machine value of `expr` (of every lane of a vector)."""
    memo = facts.bounds
    found = memo.get(expr)
    if found is not None:
        return found
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        missing = [child for child in _operands(facts, node) if child not in memo]
        if missing:
            stack.extend(missing)
            continue
        memo[node] = _with_facts(facts, node, _transfer(facts, node))
        stack.pop()
    return memo[expr]


def form_limits(facts: Facts, form: Linear) -> Limits:
    """Inclusive bounds of an affine form over the integers."""
    low = high = form.constant
    for atom, k in form.terms.items():
        below, above = limits_of(facts, atom)
        if k > 0:
            low, high = low + k * below, high + k * above
        else:
            low, high = low + k * above, high + k * below
    return low, high


def plain_form(facts: Facts, expr: PrimExpr) -> Linear:
    """The affine form of `expr`, equal to it modulo 2**bits only; memoised."""
    form = facts.forms.get(expr)
    if form is None:
        form = facts.forms[expr] = linear_form(expr)
    return form


def fits(facts: Facts, form: Linear, dtype: str, free: bool = False) -> bool:
    """True if the form's integer value is the machine value: it is within the dtype, or it is made of symbols.

    `free` accepts variables of which nothing is known as well.
    """
    if len(form.terms) == 1 and form.constant == 0 and 1 in form.terms.values():
        return True
    low, high = form_limits(facts, form)
    least, most = dtype_limits(dtype)
    return (least <= low and high <= most) or _is_index(facts, form, dtype, free)


def _is_index(facts: Facts, form: Linear, dtype: str, free: bool) -> bool:
    if dtype not in INDEX_DTYPES:
        return False
    flags = form_origin(facts, form)
    if flags & DATA:
        return False
    return bool(flags & (SYMBOL | FREE)) if free else flags == SYMBOL


def product_fits(facts: Facts, node: Mul, free: bool = False) -> bool:
    """True if the product of two operands' values is the machine value."""
    low, high = _corners(lambda x, y: x * y, limits_of(facts, node.a), limits_of(facts, node.b))
    least, most = dtype_limits(node.dtype)
    return (least <= low and high <= most) or _is_index(facts, Linear({node.a: 1, node.b: 1}), node.dtype, free)


def exact_form(facts: Facts, expr: PrimExpr, free: bool = False) -> Linear:
    """An affine form that equals `expr` over the integers: the expression itself as an atom if it might wrap."""
    form = plain_form(facts, expr)
    return form if fits(facts, form, expr.dtype, free) else atom_form(expr)


def exact_deep(facts: Facts, expr: PrimExpr) -> Linear:
    """As `exact_form`, looking through conversions between integer types that keep the value."""
    form = linear_form(expr, lambda cast: keeps_value(facts, cast))
    return form if fits(facts, form, expr.dtype) else atom_form(expr)


def keeps_value(facts: Facts, cast: Cast) -> bool:
    """True if an integer conversion keeps every value that its operand, taken as an affine form, can have."""
    inner = cast.value
    if not (is_scalar_int(cast.dtype) and is_scalar_int(inner.dtype)):
        return False
    low, high = limits_of(facts, inner)
    least, most = dtype_limits(cast.dtype)
    return least <= low and high <= most and fits(facts, plain_form(facts, inner), inner.dtype)


def _operands(facts: Facts, node: PrimExpr) -> tuple[PrimExpr, ...]:
    if isinstance(node, (Var, IntImm)):
        return ()
    if is_scalar_int(node.dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return tuple(form.terms)
    match node:
        case BinaryExpr(a, b) | Select(_, a, b):
            return (a, b)
        case Cast(_, value) | Broadcast(value, _):
            return (value,)
        case Ramp(base, stride, _):
            return (base, stride)
        case Call(_, op, args) if op in _CALLS:
            return args
        case Let(_, _, body):
            return (body,)
    return ()


def _with_facts(facts: Facts, node: PrimExpr, found: Limits) -> Limits:
    known = facts.limits.get(node)
    if known is None:
        return found
    low, high = max(found[0], known[0]), min(found[1], known[1])
    return (low, high) if low <= high else found


def _transfer(facts: Facts, node: PrimExpr) -> Limits:
    """The bounds of a node whose operands' bounds are in the memo."""
    dtype = node.dtype
    if isinstance(node, IntImm):
        return node.value, node.value
    if isinstance(node, Var):
        least, most = dtype_limits(dtype)
        return (max(least, 0), most) if isinstance(node, SizeVar) else (least, most)
    if is_scalar_int(dtype):
        form = plain_form(facts, node)
        if node not in form.terms:
            return _fit(facts, form_limits(facts, form), form, dtype)
    rule = _RULES.get(type(node))
    whole = dtype_limits(dtype)
    if rule is None or whole is _WIDEST:
        return whole
    low, high = rule(facts, node)
    return (low, high) if whole[0] <= low and high <= whole[1] else whole


def _fit(facts: Facts, found: Limits, form: Linear, dtype: str) -> Limits:
    """Bounds of the machine value, given those of the integer value."""
    least, most = dtype_limits(dtype)
    if least <= found[0] and found[1] <= most:
        return found
    if _is_index(facts, form, dtype, free=False):
        low, high = max(found[0], least), min(found[1], most)
        if low <= high:
            return low, high
    return least, most


def _corners(op: Callable[[int, int], int], a: Limits, b: Limits) -> Limits:
    values = [op(x, y) for x in a for y in b]
    return min(values), max(values)


def _mul(facts: Facts, node: Mul) -> Limits:
    found = _corners(lambda x, y: x * y, limits_of(facts, node.a), limits_of(facts, node.b))
    return _fit(facts, found, Linear({node.a: 1, node.b: 1}), node.dtype) if is_scalar_int(node.dtype) else found


def _add(facts: Facts, node: BinaryExpr) -> Limits:
    (a, b), (c, d) = limits_of(facts, node.a), limits_of(facts, node.b)
    return a + c, b + d


def _sub(facts: Facts, node: BinaryExpr) -> Limits:
    (a, b), (c, d) = limits_of(facts, node.a), limits_of(facts, node.b)
    return a - d, b - c


def _divisors(b: Limits) -> list[int]:
    """The divisors at which a quotient can be extreme, 0 left out; division by 0 has no value."""
    low, high = b
    return [d for d in {low, high, *((-1,) if low < 0 <= high else ()), *((1,) if low <= 0 < high else ())} if d]


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _quotient(op: Callable[[int, int], int]) -> Callable[[Facts, BinaryExpr], Limits]:
    def bound(facts: Facts, node: BinaryExpr) -> Limits:
        divisors = _divisors(limits_of(facts, node.b))
        if not divisors:
            return dtype_limits(node.dtype)
        values = [op(x, d) for x in limits_of(facts, node.a) for d in divisors]
        return min(values), max(values)

    return bound


def _floormod(facts: Facts, node: BinaryExpr) -> Limits:
    (low, high), (least, most) = limits_of(facts, node.a), limits_of(facts, node.b)
    if least == most != 0 and low // least == high // least:
        return low % least, high % least
    if least > 0 and low >= 0:
        return 0, min(high, most - 1)
    return min(least + 1, 0), max(most - 1, 0)


def _truncmod(facts: Facts, node: BinaryExpr) -> Limits:
    (low, high), (least, most) = limits_of(facts, node.a), limits_of(facts, node.b)
    largest = max(abs(least), abs(most)) - 1
    if largest < 0:
        return dtype_limits(node.dtype)
    return max(min(low, 0), -largest), min(max(high, 0), largest)


def _min(facts: Facts, node: BinaryExpr) -> Limits:
    (a, b), (c, d) = limits_of(facts, node.a), limits_of(facts, node.b)
    return min(a, c), min(b, d)


def _max(facts: Facts, node: BinaryExpr) -> Limits:
    (a, b), (c, d) = limits_of(facts, node.a), limits_of(facts, node.b)
    return max(a, c), max(b, d)


def _select(facts: Facts, node: Select) -> Limits:
    return _union(limits_of(facts, node.true_value), limits_of(facts, node.false_value))


def _union(a: Limits, b: Limits) -> Limits:
    return min(a[0], b[0]), max(a[1], b[1])


def _cast(facts: Facts, node: Cast) -> Limits:
    return limits_of(facts, node.value)


def _ramp(facts: Facts, node: Ramp) -> Limits:
    (low, high), (least, most) = limits_of(facts, node.base), limits_of(facts, node.stride)
    last = node.lanes - 1
    return low + min(0, last * least), high + max(0, last * most)


def _broadcast(facts: Facts, node: Broadcast) -> Limits:
    return limits_of(facts, node.value)


def _let(facts: Facts, node: Let) -> Limits:
    return limits_of(facts, node.body)


def _shift_right(facts: Facts, call: Call) -> Limits:
    amounts = limits_of(facts, call.args[1])
    if amounts[0] < 0 or amounts[1] > 64:
        return dtype_limits(call.dtype)
    return _corners(lambda x, y: x >> y, limits_of(facts, call.args[0]), amounts)


def _bitwise_and(facts: Facts, call: Call) -> Limits:
    sides = [limits_of(facts, arg) for arg in call.args]
    highs = [high for low, high in sides if low >= 0]
    return (0, min(highs)) if highs else dtype_limits(call.dtype)


_CALLS: dict[str, Callable[[Facts, Call], Limits]] = {
    "tir.if_then_else": lambda facts, call: _union(limits_of(facts, call.args[1]), limits_of(facts, call.args[2])),
    "tir.shift_right": _shift_right,
    "tir.bitwise_and": _bitwise_and,
}


def _call(facts: Facts, call: Call) -> Limits:
    rule = _CALLS.get(call.op)
    return rule(facts, call) if rule else dtype_limits(call.dtype)


_RULES: dict[type[PrimExpr], Callable[..., Limits]] = {
    Mul: _mul,
    Add: _add,
    Sub: _sub,
    FloorDiv: _quotient(lambda a, b: a // b),
    Div: _quotient(_truncdiv),
    FloorMod: _floormod,
    Mod: _truncmod,
    Min: _min,
    Max: _max,
    Select: _select,
    Cast: _cast,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Let: _let,
    Call: _call,
}
