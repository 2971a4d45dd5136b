"""Where the threads of a kernel access memory that they share, and whether different ones meet there.

An index is a sum of steps of threads, of loops and lanes with known ranges, and of turns: `k % 2 * 512` of a loop k says which of two
copies of a buffer an iteration uses. Accesses of one iteration to other turns are apart, as are those of the next one, a turn further.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...arith import detect_linear_equation
from ...arith.index_analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import as_int, nested_operands
from ...tir.expr import EQ, LT, Add, And, BufferLoad, Call, FloorDiv, FloorMod, IntImm, IterVar, Mul, PrimExpr, Ramp, Sub, Var
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import Node, post_order_rewrite, substitute, variables, walk
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, For, Stmt
from ..rebuild import map_expr, walk_statements

Array = np.ndarray[Any, np.dtype[Any]]
_MANY = 2**31  # threads, where nobody says how many
_COUNTED = 1 << 20  # accesses of elements, at most
_NUMBERS = {Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide, FloorMod: np.mod}


@dataclass(frozen=True)
class Place:
    """The indices `base + sum(steps * threads) + lanes[thread] + x` of a thread, for all x = low + sum(step * n), n < count of `digits`.

    `threads` says how many there are along each axis; those come there of which a condition says so. `lanes` is what isn't
    linear in them, such as `tx % 4 * 40`, by thread, those of the last axis side by side; empty for zeros.
    `turns` are the digits (step, period) that are remainders of an expression which all threads have in common.
    """

    steps: tuple[int, ...]
    threads: tuple[int, ...]
    base: PrimExpr
    low: int
    digits: tuple[tuple[int, int], ...] = ()
    lanes: tuple[int, ...] = ()
    turns: tuple[tuple[int, int, PrimExpr], ...] = ()

    @property
    def high(self) -> int:
        """The largest x."""
        return self.low + sum(step * (count - 1) for step, count in self.digits)

    @property
    def reach(self) -> tuple[int, int]:
        """The least and the largest index of any thread, but for the base."""
        ends = [step * (count - 1) for step, count in zip(self.steps, self.threads, strict=True)]
        least, most = (min(self.lanes), max(self.lanes)) if self.lanes else (0, 0)
        return self.low + least + sum(min(end, 0) for end in ends), self.high + most + sum(max(end, 0) for end in ends)

    def in_units(self, size: int) -> Place:
        """The same place, counted in parts of elements of which `size` make one."""
        if size == 1:
            return self
        return Place(
            tuple(step * size for step in self.steps),
            self.threads,
            self.base if as_int(self.base) == 0 else self.base * size,
            self.low * size,
            tuple(sorted([*((step * size, count) for step, count in self.digits), (1, size)])),
            tuple(lane * size for lane in self.lanes),
            tuple((step * size, period, turn) for step, period, turn in self.turns),
        )

    def other_turn(self, other: Place, later: Mapping[Var, PrimExpr]) -> bool:
        """Whether both take turns among copies that are apart, and not the same turn; `later` are values of loops at the other place."""
        for step, period, turn in self.turns:
            for _, _, theirs in (one for one in other.turns if one[:2] == (step, period)):
                spans = [(place.reach[0], place.reach[1] - step * (period - 1)) for place in (self, other)]
                distance = as_int(Analyzer().simplify(substitute(theirs, dict(later)) - turn))
                within = max(high for _, high in spans) - min(low for low, _ in spans) < step
                if within and distance is not None and distance % period:
                    return True
        return False


@dataclass(frozen=True)
class Access:
    """A read or write behind a pointer, and where if that is known."""

    pointer: Var
    writes: bool
    place: Place | None = None
    bytes: int = 0  # of an element
    by_engine: bool = False  # a copy in bulk

    def leaving(self, loop: Var) -> Access:
        """The access behind a loop, whose turn nobody knows there."""
        if self.place is None or not any(loop in variables(turn) for _, _, turn in self.place.turns):
            return self
        return replace(self, place=replace(self.place, turns=()))


@dataclass(frozen=True)
class Kernel:
    """The threads that share memory with how many there are, the constant ranges of loops, and what else is defined in them."""

    threads: dict[Var, int]
    loops: dict[Var, tuple[int, int]]
    others: set[Var]

    def place(self, indices: Sequence[PrimExpr]) -> Place | None:
        """Where a thread accesses memory; None if that is not a matter of constants."""
        if len(indices) != 1:
            return None
        index, lanes = indices[0], []
        if isinstance(index, Ramp):
            stride = as_int(index.stride)
            if stride is None:
                return None
            lanes, index = [(stride, 0, index.lanes - 1)], index.base
        index, periods = self._periods(index)
        constant = {**self.loops, **{var: (0, as_int(turn.b) - 1) for var, turn in periods.items()}}  # type: ignore[operator]
        if set(variables(index)) & self.others or any(isinstance(node, (BufferLoad, Ramp)) for node in walk(index)):
            return None
        index, shared_out = self._shared_out(index)
        used = set(variables(index))
        loops = [var for var in (*constant, *shared_out) if var in used]
        terms = detect_linear_equation(index, [*self.threads, *loops])
        steps = [as_int(term) for term in terms[:-1]]
        if not terms or None in steps:
            return None
        numbers = [step or 0 for step in steps]
        own = len(self.threads)
        found = dict(zip(loops, numbers[own:], strict=True))
        ranges = [*lanes, *((step, *constant[var]) for var, step in found.items() if var in constant)]
        turns = tuple((found[var], as_int(turn.b) or 0, turn.a) for var, turn in periods.items() if found.get(var, 0) > 0)
        places = sum((found[var] * numbering for var, numbering in shared_out.items() if var in found), np.zeros(1, np.int64))
        base, shift = terms[-1], as_int(terms[-1]) or 0
        # A negative step turns the range round.
        low = shift + sum(min(step * first, step * last) for step, first, last in ranges)
        digits = tuple(sorted((abs(step), last - first + 1) for step, first, last in ranges))
        shared = tuple(places.tolist()) if len(places) > 1 else ()
        return Place(tuple(numbers[:own]), tuple(self.threads.values()), base - shift, low, digits, shared, turns)

    def _shared_out(self, index: PrimExpr) -> tuple[PrimExpr, dict[Var, Array]]:
        """An index with a variable for each quotient or remainder of threads alone, and its value for each of them."""
        found: dict[Var, Array] = {}
        divided = any(isinstance(node, (FloorDiv, FloorMod)) for node in walk(index))
        if not divided or not self.threads or math.prod(self.threads.values()) > _COUNTED:
            return index, found
        grid = np.indices(tuple(self.threads.values()), np.int64).reshape(len(self.threads), -1)
        values = dict(zip(self.threads, grid, strict=True))

        def of_threads(expr: PrimExpr) -> PrimExpr:
            if isinstance(expr, (FloorDiv, FloorMod)) and (numbers := _evaluated(expr, values)) is not None:
                var = Var("lanes", expr.dtype)
                found[var] = numbers
                return var
            return map_expr(expr, of_threads)

        return of_threads(index), found

    def under(self, condition: PrimExpr) -> Kernel:
        """The kernel with those threads alone that find a condition true, as far as it says `tx < 4` or `tx == 0`."""
        threads = dict(self.threads)
        for one in nested_operands(condition, And):
            told = one.args[0] if isinstance(one, Call) and one.op == "tir.likely" else one
            if not isinstance(told, (LT, EQ)) or not isinstance(told.a, Var) or told.a not in threads:
                continue
            most = as_int(told.b)
            if most is not None and (isinstance(told, LT) or most == 0):
                threads[told.a] = max(1, min(threads[told.a], most))
        return replace(self, threads=threads)

    def _periods(self, index: PrimExpr) -> tuple[PrimExpr, dict[Var, FloorMod]]:
        """An index with a variable for each remainder that all threads have in common, such as the turn of a buffer's copies."""
        found: dict[Var, FloorMod] = {}

        def rule(node: Node) -> Node:
            if not isinstance(node, FloorMod) or (as_int(node.b) or 0) < 1 or not self.is_uniform(node.a):
                return node
            var = Var("period", node.dtype)
            found[var] = node
            return var

        changed = post_order_rewrite(index, rule) if any(isinstance(node, FloorMod) for node in walk(index)) else index
        assert isinstance(changed, PrimExpr)
        return changed, found

    def is_uniform(self, condition: PrimExpr) -> bool:
        """Whether all threads that share memory find the same: `bx < 3` or `k > 0` of a constant loop k, not `tx < 3` or `n[0] > 2`."""
        varying = self.threads.keys() | self.others

        def differs(node: Node) -> bool:
            if isinstance(node, Call):
                return node.op not in INTRINSICS or not INTRINSICS[node.op].pure
            return isinstance(node, BufferLoad) or (isinstance(node, Var) and node in varying)

        return not any(map(differs, walk(condition)))

    def meet(self, one: Access, other: Access, later: Mapping[Var, PrimExpr] | None) -> bool:
        """Whether different threads may come to one place by two accesses, also to elements of different sizes behind one pointer.

        Args:
            later: as of `are_apart`.
        """
        if one.pointer is not other.pointer:
            return False
        if one.place is None or other.place is None or not one.bytes or not other.bytes:
            return True
        unit = math.gcd(one.bytes, other.bytes)
        return not self.are_apart(one.place.in_units(one.bytes // unit), other.place.in_units(other.bytes // unit), later)

    def are_apart(self, one: Place, other: Place, later: Mapping[Var, PrimExpr] | None) -> bool:
        """Whether different threads access different elements at two places.

        Args:
            later: the values that loops have at the other place; None if that is in any other iteration.
        """
        # Of another base: which thread meets which element isn't told by the constants alone.
        if one.base is not other.base:
            return False
        if one.reach[1] < other.reach[0] or other.reach[1] < one.reach[0]:
            return True
        if later is not None and one.other_turn(other, later):
            return True
        return (one.steps == other.steps and not (one.lanes or other.lanes) and _steps_apart(one, other)) or _elements_apart(one, other)


def _steps_apart(one: Place, other: Place) -> bool:
    """Whether the steps of the threads alone keep them apart at two places, however many threads there are."""
    # Smallest step first: one beyond all that the smaller ones reach keeps threads apart (x + 4 * y with 4 threads x: 3 < 4).
    reach = max(one.high, other.high) - min(one.low, other.low)
    for step, count in sorted(zip(map(abs, one.steps), map(max, one.threads, other.threads), strict=True)):
        if count > 1 and step <= reach:
            return False
        reach += step * (count - 1)
    return True


@lru_cache(maxsize=1024)
def _elements_apart(one: Place, other: Place) -> bool:
    """Whether different threads access different elements, by counting them; False where they are too many to count."""
    if max(math.prod(place.threads) * math.prod(count for _, count in place.digits) for place in (one, other)) > _COUNTED:
        return False
    counts = list(map(max, one.threads, other.threads))
    numbering = [math.prod(counts[number + 1 :]) for number in range(len(counts))]
    (first, owners), (second, others) = (
        (
            (_counted(zip(place.steps, place.threads, strict=True)) + (np.array(place.lanes) if place.lanes else 0))[:, None]
            + _counted(place.digits)
            + place.low,
            _counted(zip(numbering, place.threads, strict=True))[:, None],
        )
        for place in (one, other)
    )
    least = min(first.min(), second.min())
    size = int(max(first.max(), second.max()) - least) + 1
    # Of each element the first and the last thread that comes to it at one place, beside the threads at the other.
    lowest, highest = np.full(size, math.prod(counts)), np.full(size, -1)
    np.minimum.at(lowest, first - least, owners)
    np.maximum.at(highest, first - least, owners)
    met = second - least
    return not bool(((highest[met] >= 0) & ((lowest[met] != others) | (highest[met] != others))).any())


def _evaluated(expr: PrimExpr, values: Mapping[Var, Array]) -> Array | None:
    """An integer expression of some variables alone, for many values of them; None if it has others."""
    match expr:
        case Var():
            return values.get(expr)
        case IntImm(value=value):
            return np.full(1, value, np.int64)
        case Add() | Sub() | Mul() | FloorDiv() | FloorMod():
            a, b = _evaluated(expr.a, values), _evaluated(expr.b, values)
            if a is None or b is None or (isinstance(expr, (FloorDiv, FloorMod)) and not b.all()):
                return None
            return np.asarray(_NUMBERS[type(expr)](a, b))
    return None


def _counted(terms: Iterable[tuple[int, int]]) -> Array:
    """sum(step * n) for all n < count, the last term fastest."""
    total = np.zeros(1, np.int64)
    for step, count in terms:
        total = (total[:, None] + step * np.arange(count)).ravel()
    return total


def kernel_of(stmt: Stmt) -> Kernel:
    """The threads and loops of a kernel."""
    threads: dict[Var, int] = {}
    loops: dict[Var, tuple[int, int]] = {}
    others: set[Var] = set()
    for one in walk_statements(stmt):
        tag = one.node.thread_tag if isinstance(one, AttrStmt) and isinstance(one.node, IterVar) else ""
        if isinstance(one, AttrStmt) and isinstance(one.node, IterVar) and tag.startswith(("blockIdx", "threadIdx")):
            count = as_int(one.value)
            if tag.startswith("blockIdx"):  # of the threads that share memory it is the same number
                continue
            threads[one.node.var] = _MANY if count is None else count
        elif isinstance(one, For) and (extent := as_int(one.extent)) and (low := as_int(one.min)) is not None:
            loops[one.loop_var] = (low, low + extent - 1)
        else:
            others.update(var for var in parts(one).defines if var.dtype != "handle")
    return Kernel(threads, loops, others)
