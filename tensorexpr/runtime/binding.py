"""How the shapes and strides of arrays define and constrain the variables of a signature: a plan made once per function.

Every variable gets a slot. A step says what one number (an extent, a stride, a scalar argument) does: it must equal a
constant, it defines a slot, it must agree with one, or it fits an expression, which may be solved for one unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ..codegen.signature import BufferParam, ScalarParam, Signature
from ..dataclass import dataclass
from ..errors import CodegenError
from ..tir.dtype import int_limits, parse_dtype
from ..tir.expr import Add, BinaryExpr, Cast, Div, FloorDiv, FloorMod, IntImm, Max, Min, Mod, Mul, PrimExpr, Sub, Var
from ..tir.rewriting import variables

Values: TypeAlias = list[int]
Evaluate: TypeAlias = Callable[[Values], int]


def _truncated_quotient(a: int, b: int) -> int:
    # Python's
    # floors: -(-a
    # b) rounds the other way, towards 0 for a negative quotient.
    return -(-a // b) if (a < 0) != (b < 0) else a // b


_OPERATIONS: dict[type[BinaryExpr], Callable[[int, int], int]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Div: _truncated_quotient,
    Mod: lambda a, b: a - b * _truncated_quotient(a, b),
    Min: min,
    Max: max,
}
_SIGNS: dict[type[BinaryExpr], str] = {Add: "+", Sub: "-", Mul: "*", FloorDiv: "//", FloorMod: "%"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a number stands: extent or stride `axis` of a parameter, its offset (which is always 0), or the scalar parameter itself."""

    param: int
    kind: str
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Fixed:
    """The number must be `value`."""

    value: int


@dataclass(frozen=True, slots=True)
class Define:
    """The number defines a slot; it may be at most `limit`."""

    slot: int
    limit: int


@dataclass(frozen=True, slots=True)
class Match:
    """The number must equal what a slot holds already."""

    slot: int


@dataclass(frozen=True, slots=True)
class Solve:
    """The number is `coefficient * slot + rest`, which defines the slot."""

    slot: int
    coefficient: int
    rest: Evaluate
    expr: PrimExpr
    limit: int


@dataclass(frozen=True, slots=True)
class Formula:
    """The number must be what an expression of known slots gives."""

    evaluate: Evaluate
    expr: PrimExpr


Rule: TypeAlias = Fixed | Define | Match | Solve | Formula


@dataclass(frozen=True, slots=True)
class Step:
    """One number and what is asked of it."""

    place: Place
    rule: Rule


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in the order in which they can be taken, and the variable and the defining place of each slot.

    The slots of the signature's symbols come first, in their order.
    """

    steps: tuple[Step, ...]
    slots: tuple[Var, ...]
    origins: tuple[Place, ...]


def extents(param: BufferParam) -> tuple[PrimExpr, ...]:
    """The extents of the array for a buffer; the lanes of a vector element are one more dimension."""
    lanes = parse_dtype(param.dtype).lanes
    return param.shape if lanes == 1 else (*param.shape, IntImm("int32", lanes))


def text(expr: PrimExpr) -> str:
    """An integer expression as a message shows it."""
    match expr:
        case IntImm(value=value):
            return str(value)
        case Var():
            return expr.name
        case Cast():
            return text(expr.value)
        case BinaryExpr() if type(expr) in _SIGNS:
            return f"({text(expr.a)} {_SIGNS[type(expr)]} {text(expr.b)})"
    return str(expr)


def make_plan(signature: Signature) -> Plan:
    """Plan how the variables of a signature are found.

    Raises:
        CodegenError: if a variable can't be found from the arguments, or an expression can't be computed from them.
    """
    # Floats stand in no shape, so they get no slot.
    scalars = [param.var for param in signature.params if isinstance(param, ScalarParam) and not parse_dtype(param.dtype).is_float]
    slots = (*signature.symbols, *scalars)
    number = {var: index for index, var in enumerate(slots)}
    origins: dict[int, Place] = {}
    steps: list[Step] = []
    pending = list(_places(signature))
    # Plain variables first: of shapes (n + 1,) and (n,) the second defines n, and the first is compared.
    direct = [(place, expr) for place, expr in pending if isinstance(expr, (IntImm, Var))]
    deferred = [(place, expr) for place, expr in pending if not isinstance(expr, (IntImm, Var))]
    while direct or deferred:
        rest = []
        for place, expr in direct or deferred:
            rule = _rule(expr, number, origins, signature)
            if rule is None:
                rest.append((place, expr))
                continue
            if isinstance(rule, (Define, Solve)):
                origins[rule.slot] = place
            steps.append(Step(place, rule))
        if not direct and len(rest) == len(deferred):  # a round without progress
            break
        # Plain numbers take one round: each is a constant, defines its slot or is compared.
        direct, deferred = [], deferred if direct else rest
    unknown = [var.name for index, var in enumerate(slots) if index not in origins]
    if unknown:
        raise CodegenError(
            f"In {signature.name}: the arguments do not determine {', '.join(unknown)}; "
            "make each of them a dimension of some array, or a parameter"
        )
    return Plan(tuple(steps), slots, tuple(origins[index] for index in range(len(slots))))


def _places(signature: Signature) -> Iterator[tuple[Place, PrimExpr]]:
    for index, param in enumerate(signature.params):
        if isinstance(param, ScalarParam):
            if not parse_dtype(param.dtype).is_float:
                yield Place(index, "value"), param.var
            continue
        for axis, extent in enumerate(extents(param)):
            yield Place(index, "shape", axis), extent
        for axis, stride in enumerate(param.strides):
            yield Place(index, "stride", axis), stride
        if not isinstance(param.elem_offset, IntImm):
            yield Place(index, "offset"), param.elem_offset


def _rule(expr: PrimExpr, number: dict[Var, int], known: dict[int, Place], signature: Signature) -> Rule | None:
    """What is asked of a number that `expr` describes; None if too little is known yet."""
    if isinstance(expr, IntImm):
        return Fixed(expr.value)
    if isinstance(expr, Var):
        slot = number[expr]
        return Match(slot) if slot in known else Define(slot, _limit(expr))
    unknown = [var for var in variables(expr) if number[var] not in known]
    if not unknown:
        return Formula(_compile(expr, number, signature), expr)
    if len(unknown) == 1:
        parts = _linear(expr, unknown[0], number, signature)
        # A coefficient of 0 can't be divided by either.
        if parts is not None and parts[0]:  # n - n says nothing of n
            return Solve(number[unknown[0]], *parts, expr, _limit(unknown[0]))
    return None


def _limit(var: Var) -> int:
    return int_limits(var.dtype)[1]


def _linear(expr: PrimExpr, var: Var, number: dict[Var, int], signature: Signature) -> tuple[int, Evaluate] | None:
    """Coefficient and rest of `expr` as a linear function of `var`; None if it is none."""
    if expr is var:
        return 1, lambda values: 0
    if var not in variables(expr):
        return 0, _compile(expr, number, signature)
    match expr:
        case Cast():
            return _linear(expr.value, var, number, signature)
        # Constants stand on the right: the builders of expressions put them there.
        case Mul(b=IntImm(value=factor)):
            parts = _linear(expr.a, var, number, signature)
            return None if parts is None else (parts[0] * factor, lambda values: factor * parts[1](values))
        case Add() | Sub():
            left, right = (_linear(side, var, number, signature) for side in (expr.a, expr.b))
            if left is None or right is None:
                return None
            combine = _OPERATIONS[type(expr)]
            return combine(left[0], right[0]), lambda values: combine(left[1](values), right[1](values))
    return None


def _compile(expr: PrimExpr, number: dict[Var, int], signature: Signature) -> Evaluate:
    """A function from the slots to the value of an integer expression, in unlimited precision."""
    match expr:
        case IntImm(value=value):
            return lambda values: value
        case Var():
            return operator.itemgetter(number[expr])
        # Taken without its wrap: what a dtype can't hold, `limit` refuses where the variable is defined.
        case Cast():
            return _compile(expr.value, number, signature)
        case BinaryExpr() if type(expr) in _OPERATIONS:
            combine = _OPERATIONS[type(expr)]
            left, right = _compile(expr.a, number, signature), _compile(expr.b, number, signature)
            return lambda values: combine(left(values), right(values))
    raise CodegenError(
        f"In {signature.name}: the extent {text(expr)} can't be checked at a call; use +, -, *, //, %, min and max of variables"
    )
