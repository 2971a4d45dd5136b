"""Vectors: an expression of ramps and broadcasts is its lane's scalar expression, with the lane's number as a variable.

The scalar rules, given that the number lies in [0, lanes), so hold for every lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...tir.dtype import parse_dtype, scalar_dtype, with_lanes
from ...tir.expr import Add, BinaryExpr, Broadcast, Cast, CmpExpr, IntImm, LogicalExpr, Mul, Not, PrimExpr, Ramp, Range, Select, Var
from ...tir.rewriting import map_children, variables
from ..bounds import plain_form
from ..constraints import bind_range
from ..exact import keeps_value
from ..facts import Facts
from ..linear import Linear, is_scalar_int
from ..polynomial import factors, product

ELEMENTWISE = (BinaryExpr, CmpExpr, LogicalExpr, Not, Select, Cast)
_DEPTH = 32
Simplify = Callable[[Facts, PrimExpr], PrimExpr]


class _NotLanewise(Exception):
    """The vector holds a load, a shuffle or a call, or ramps of several types."""


@cache
def lane_number(lanes: int, dtype: str) -> Var:
    """The variable that counts the lanes of vectors of this length."""
    return Var("lane", dtype)


def rewrite_vector(facts: Facts, node: PrimExpr, simplify: Simplify) -> PrimExpr | None:
    """An elementwise node on ramps and broadcasts, simplified as the scalar expression of its lanes."""
    lanes = parse_dtype(node.dtype).lanes
    try:
        dtypes = _ramp_dtypes(node)
        if len(dtypes) > 1:
            return None
        number = lane_number(lanes, dtypes.pop() if dtypes else "int32")
        scalar = _of_lane(node, number, _DEPTH)
    except _NotLanewise:
        return None
    inner = facts.scopes.get(number)
    if inner is None:
        dom = Range.from_min_extent(IntImm(number.dtype, 0), IntImm(number.dtype, lanes))
        inner = facts.scopes[number] = bind_range(facts, number, dom)
    result = _over_lanes(inner, simplify(inner, scalar), number, lanes)
    return None if result is node else result


def _ramp_dtypes(node: PrimExpr) -> set[str]:
    """The element types of the ramps in an elementwise expression."""
    found: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Ramp):
            found.add(current.base.dtype)
        elif isinstance(current, ELEMENTWISE):
            stack += [x for x in _operands(current) if parse_dtype(x.dtype).lanes > 1]
        elif not isinstance(current, Broadcast):
            raise _NotLanewise
    return found


def _operands(node: PrimExpr) -> tuple[PrimExpr, ...]:
    match node:
        case BinaryExpr(a, b) | CmpExpr(a, b) | LogicalExpr(a, b):
            return (a, b)
        case Select(condition, a, b):
            return (condition, a, b)
        case Not(a) | Cast(_, a):
            return (a,)
    raise _NotLanewise


def _of_lane(node: PrimExpr, number: Var, depth: int) -> PrimExpr:
    """The scalar expression of lane `number`."""
    if parse_dtype(node.dtype).lanes == 1:
        return node
    if isinstance(node, Broadcast):
        return node.value
    if isinstance(node, Ramp):
        return Add(node.base, Mul(number, node.stride))
    if depth == 0:
        raise _NotLanewise
    inner = [_of_lane(x, number, depth - 1) for x in _operands(node)]
    return Cast(scalar_dtype(node.dtype), inner[0]) if isinstance(node, Cast) else type(node)(*inner)


def _over_lanes(facts: Facts, scalar: PrimExpr, number: Var, lanes: int) -> PrimExpr:
    """The vector whose lane `number` is `scalar`."""
    if number not in variables(scalar):
        return Broadcast(scalar, lanes)
    found = _ramp(facts, scalar, number, lanes)
    if found is not None:
        return found
    if isinstance(scalar, Cast):
        return Cast(with_lanes(scalar.dtype, lanes), _over_lanes(facts, scalar.value, number, lanes))
    return map_children(scalar, lambda child: _over_lanes(facts, child, number, lanes))  # type: ignore[arg-type]


def _ramp(facts: Facts, scalar: PrimExpr, number: Var, lanes: int) -> Ramp | None:
    """The ramp of a scalar that is affine in the lane's number."""
    if not is_scalar_int(scalar.dtype):
        return None
    if isinstance(scalar, Cast) and keeps_value(facts, scalar):
        inner = _ramp(facts, scalar.value, number, lanes)
        if inner is None or not isinstance(inner.stride, IntImm):
            return None
        return Ramp(Cast(scalar.dtype, inner.base), IntImm(scalar.dtype, inner.stride.value), lanes)
    base = plain_form(facts, scalar)
    stride = Linear({})
    for atom, k in base.terms.items():
        if number in variables(atom):
            others = [factor for factor in factors(atom) if factor is not number]
            # lane*lane is no ramp, nor is a quotient of the lane's number.
            if len(others) != len(factors(atom)) - 1 or any(number in variables(other) for other in others):
                return None
            base = base.without(atom)
            stride = stride.add(Linear({product(others): k}) if others else Linear({}, k))
    return Ramp(base.to_expr(scalar.dtype), stride.to_expr(scalar.dtype), lanes)
