"""Random index expressions, and what the machine makes of them: the ground that the index algebra is tested on."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Mapping

from tensorexpr.arith import ConstIntBound, ModularSet
from tensorexpr.tir.dtype import int_limits, parse_dtype, scalar_dtype, wrap_int
from tensorexpr.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Range,
    Select,
    SizeVar,
    Sub,
    Var,
)

Value = int | tuple[int, ...]


class Undefined(Exception):
    """The expression divides by zero there."""


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _defined(op: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def divide(a: int, b: int) -> int:
        if b == 0:
            raise Undefined
        return op(a, b)

    return divide


EVALUATE: dict[type[PrimExpr], Callable[[int, int], int]] = {
    Add: operator.add, Sub: operator.sub, Mul: operator.mul, Min: min, Max: max,
    FloorDiv: _defined(operator.floordiv), FloorMod: _defined(operator.mod),
    Div: _defined(_truncdiv), Mod: _defined(lambda a, b: a - _truncdiv(a, b) * b),
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
    And: operator.and_, Or: operator.or_,
}  # fmt: skip


def lane(expr: PrimExpr, env: Mapping[Var, int], index: int = 0) -> int:
    """The value of one lane, as the machine computes it."""
    match expr:
        case IntImm(_, value):
            return value
        case Var():
            return env[expr]
        case Not(a):
            return 1 - lane(a, env, index)
        case Cast(dtype, value):
            found = lane(value, env, index)
            return int(found != 0) if parse_dtype(dtype).code == "bool" else wrap_int(found, scalar_dtype(dtype))
        case Ramp(base, stride, _):
            return wrap_int(lane(base, env) + index * lane(stride, env), scalar_dtype(expr.dtype))
        case Broadcast(value, _):
            return lane(value, env)
        case Select(condition, a, b) | Call(_, "tir.if_then_else", (condition, a, b)):
            return lane(a if lane(condition, env, index) else b, env, index)
        case Call(_, "tir.likely", (a,)):
            return lane(a, env, index)
        case Call(dtype, "tir.shift_right", (a, b)):
            return lane(a, env, index) >> lane(b, env, index)
        case Call(dtype, "tir.bitwise_and", (a, b)):
            return wrap_int(lane(a, env, index) & lane(b, env, index), scalar_dtype(dtype))
        case BinaryExpr(a, b) | CmpExpr(a, b) | LogicalExpr(a, b):
            value = EVALUATE[type(expr)](lane(a, env, index), lane(b, env, index))
            return wrap_int(int(value), scalar_dtype(expr.dtype))
    raise AssertionError(f"no evaluation of {type(expr).__name__}")


def evaluate(expr: PrimExpr, env: Mapping[Var, int]) -> Value:
    """The value of an expression: an integer, or one per lane."""
    lanes = parse_dtype(expr.dtype).lanes
    return lane(expr, env) if lanes == 1 else tuple(lane(expr, env, index) for index in range(lanes))


# Random programs: a handful of variables over small ranges (negative ones included) and expressions of them.
BINARY = (Add, Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)
COMPARE = (EQ, NE, LT, LE, GT, GE)
CONSTANTS = (-16, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 32)


def random_expr(rng: random.Random, variables: list[Var], depth: int, dtype: str) -> PrimExpr:
    """An integer expression of the dtype, built without folding."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            return IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype))
        return rng.choice(variables)
    roll = rng.random()
    if roll < 0.12:
        arms = [random_expr(rng, variables, depth - 1, dtype) for _ in range(2)]
        condition = random_condition(rng, variables, depth - 1, dtype)
        return Select(condition, *arms) if rng.random() < 0.5 else Call(dtype, "tir.if_then_else", (condition, *arms))
    op = rng.choice(BINARY)
    left = random_expr(rng, variables, depth - 1, dtype)
    if roll < 0.2:
        return Cast(dtype, Cast(rng.choice(("int8", "uint8", "int32", "int64")), left))
    if roll < 0.23:
        return Call(dtype, rng.choice(("tir.shift_right", "tir.bitwise_and")), (left, IntImm(dtype, rng.choice((0, 1, 2, 7)))))
    if op in (Mul, FloorDiv, FloorMod, Div, Mod) and rng.random() < 0.85:
        return op(left, IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype)))
    return op(left, random_expr(rng, variables, depth - 1, dtype))


def random_condition(rng: random.Random, variables: list[Var], depth: int, dtype: str) -> PrimExpr:
    """A bool expression."""
    if depth > 0 and rng.random() < 0.3:
        left, right = (random_condition(rng, variables, depth - 1, dtype) for _ in range(2))
        return Not(left) if rng.random() < 0.3 else rng.choice((And, Or))(left, right)
    depth = max(depth, 1) if rng.random() < 0.5 else 0
    found = rng.choice(COMPARE)(random_expr(rng, variables, depth, dtype), random_expr(rng, variables, depth, dtype))
    return Call("bool", "tir.likely", (found,)) if rng.random() < 0.1 else found


def random_ranges(rng: random.Random, dtype: str) -> dict[Var, Range]:
    """Three variables with small ranges, some of them touching the ends of the dtype."""
    least, most = int_limits(dtype)
    found = {}
    for name in "xyz":
        extent = rng.choice((1, 2, 3, 4, 6, 8))
        low = max(rng.choice((0, 0, 0, -3, -8, -20, 5, 16)), least)
        if rng.random() < 0.1:
            low = rng.choice((least, most - extent + 1))
        found[Var(name, dtype)] = Range.from_min_extent(IntImm(dtype, low), IntImm(dtype, extent))
    return found


def points(ranges: Mapping[Var, Range]) -> list[dict[Var, int]]:
    """All assignments of variables with constant ranges."""
    spans = [range(int(r.min), int(r.min) + int(r.extent)) for r in ranges.values()]  # type: ignore[call-overload]
    return [dict(zip(ranges, values, strict=True)) for values in itertools.product(*spans)]


def assert_same_value(before: PrimExpr, after: PrimExpr, envs: list[dict[Var, int]]) -> None:
    """Both evaluate alike wherever the first one has a value."""
    assert before.dtype == after.dtype
    for env in envs:
        try:
            expected = evaluate(before, env)
        except Undefined:
            continue
        assert evaluate(after, env) == expected, describe(before, after, env)


def describe(before: PrimExpr, after: PrimExpr, env: Mapping[Var, int]) -> str:
    """A failure, to be read."""
    return f"{before}\n became {after}\n differs at { ({v.name: x for v, x in env.items()}) }"


def some(envs: list[dict[Var, int]], rng: random.Random, count: int = 40) -> list[dict[Var, int]]:
    """A sample."""
    return envs if len(envs) <= count else rng.sample(envs, count)


def values(expr: PrimExpr, envs: list[dict[Var, int]]) -> list[int | None]:
    """The value at each point; None where there is none."""
    found: list[int | None] = []
    for env in envs:
        try:
            found.append(lane(expr, env))
        except Undefined:
            found.append(None)
    return found


def random_affine(rng: random.Random, variables: list[Var], dtype: str) -> PrimExpr:
    """A sum of multiples of variables."""
    total: PrimExpr = IntImm(dtype, rng.randint(-5, 5))
    for var in rng.sample(variables, rng.randint(1, 3)):
        total = total + var * rng.choice((-3, -2, -1, 1, 1, 2, 4))
    return total


def random_vector(rng: random.Random, variables: list[Var], depth: int, dtype: str, lanes: int) -> PrimExpr:
    """A vector of ramps, broadcasts and what is computed of them."""
    if depth == 0:
        base = random_expr(rng, variables, rng.choice((0, 1)), dtype)
        stride = IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype)) if rng.random() < 0.8 else rng.choice(variables)
        return Ramp(base, stride, lanes) if rng.random() < 0.6 else Broadcast(base, lanes)
    op = rng.choice((*BINARY, FloorDiv, FloorMod))
    left = random_vector(rng, variables, depth - 1, dtype, lanes)
    if op in (FloorDiv, FloorMod) and rng.random() < 0.8:
        return op(left, Broadcast(IntImm(dtype, rng.choice((2, 3, 4, 8))), lanes))
    right = random_vector(rng, variables, depth - 1, dtype, lanes)
    return Select(rng.choice(COMPARE)(left, right), right, left) if rng.random() < 0.1 else op(left, right)


class Loops:
    """Loops of symbolic extent, expressions of their variables, and points of the nest."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.factor = rng.choice((2, 3, 4))
        self.n, self.m = (SizeVar("n") if rng.random() < 0.5 else Var("n")), SizeVar("m")
        i, j, io, ii, x = (Var(name) for name in ("i", "j", "io", "ii", "x"))
        outer = (self.n + (self.factor - 1)) // self.factor if rng.random() < 0.7 else self.n // self.factor
        rows = {i: (0, self.n), j: (rng.choice((0, -2)), self.m), io: (0, outer), ii: (0, self.factor), x: (rng.choice((0, -5)), 4)}
        self.ranges = {var: Range.from_min_extent(low, extent) for var, (low, extent) in rows.items()}
        self.envs = [env for _ in range(60) if (env := self._point()) is not None]

    def _point(self) -> dict[Var, int] | None:
        env = {self.n: self.rng.randint(1, 7), self.m: self.rng.randint(1, 6)}
        for var, dom in self.ranges.items():
            low, extent = lane(dom.min, env), lane(dom.extent, env)
            if extent <= 0:
                return None
            env[var] = self.rng.randrange(low, low + extent)
        return env

    def index(self, depth: int) -> PrimExpr:
        """An integer expression."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            constant = IntImm("int32", rng.choice((-3, -1, 0, 1, 2, 4, self.factor, self.factor - 1, 2 * self.factor)))
            return constant if rng.random() < 0.25 else rng.choice([*self.ranges, self.n, self.m])
        op = rng.choice((Add, Add, Add, Sub, Sub, Mul, Mul, FloorDiv, FloorMod, Min, Max, Div, Mod))
        left = self.index(depth - 1)
        if op in (Mul, FloorDiv, FloorMod, Div, Mod) and rng.random() < 0.95:
            constants = [IntImm("int32", c) for c in (self.factor, self.factor, 2 * self.factor, 2, 3, -self.factor, 8)]
            return op(left, rng.choice([*constants, self.n, self.m, self.n + 1]))
        return op(left, self.index(depth - 1))

    def condition(self, depth: int) -> PrimExpr:
        """A bool expression."""
        found: PrimExpr = self.rng.choice((*COMPARE, LT, LT))(self.index(depth), self.index(depth))
        if self.rng.random() < 0.3:
            found = self.rng.choice((And, Or))(found, self.condition(depth))
        return Not(found) if self.rng.random() < 0.2 else found


def random_map(rng: random.Random, iters: Mapping[Var, Range]) -> list[PrimExpr]:
    """Indices made by fusing iterators and splitting what came of it, now and then wrongly."""
    order = list(iters.items())
    rng.shuffle(order)
    fused: PrimExpr = IntImm("int32", 0)
    for var, dom in order:
        fused = fused * dom.extent + (var - dom.min)
    total = 1
    for dom in iters.values():
        total *= int(dom.extent)  # type: ignore[call-overload]
    inner = rng.choice([d for d in range(1, total + 1) if total % d == 0] + [total // 2 + 1])
    shift, scale = rng.choice((0, 0, 4)), rng.choice((1, 1, 3))
    indices = [FloorDiv(fused, IntImm("int32", inner)) * scale + shift, FloorMod(fused, IntImm("int32", inner))]
    return [fused] if rng.random() < 0.3 else indices


def holds_bound(bound: ConstIntBound, value: int) -> bool:
    """True if the value is within the bounds, which may be open."""
    above = bound.min_value == ConstIntBound.NEG_INF or bound.min_value <= value
    return above and (bound.max_value == ConstIntBound.POS_INF or value <= bound.max_value)


def holds_congruence(found: ModularSet, value: int) -> bool:
    """True if the value is in the set."""
    return (value - found.base) % found.coeff == 0 if found.coeff else value == found.base


def random_pieces(rng: random.Random, x: PrimExpr) -> PrimExpr:
    """A sum of multiples of quotients and remainders of one expression, many of which fit together."""
    a, b = rng.choice((2, 3, 4)), rng.choice((2, 3, 5))
    total: PrimExpr = IntImm(x.dtype, rng.choice((0, 0, 1, -2)))
    for piece, scale in ((x // (a * b), a * b), (x // a % b, a), (x % a, 1), (x // a, a), (x % (a * b), 1), (x, 1)):
        if rng.random() < 0.5:
            total = total + piece * (scale * rng.choice((1, 1, 1, -1, 2)))
    return total


def random_product(rng: random.Random, variables: list[Var]) -> PrimExpr:
    """Sums of products of sums."""
    dtype = variables[0].dtype
    one = IntImm(dtype, 1)  # a Python 1 would make int32 of smaller types
    total: PrimExpr = IntImm(dtype, rng.choice((0, 1, -3)))
    for _ in range(rng.choice((1, 2, 2))):
        a, b, c = (rng.choice(variables) for _ in range(3))
        term = rng.choice((a * b, (a + b) * c, (a - one) * (b + c), a * (b * c)))
        total = total + term * IntImm(dtype, rng.choice((1, 1, -1, 2)))
    return total
