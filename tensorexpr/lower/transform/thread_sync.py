"""Barriers between what one thread writes and another one reads in the same memory.

Statements are taken in order; a barrier stands before the first one that reads what was written, or writes what was read
or written, in `storage_scope` since the last barrier. A loop whose next iteration would do so has one at its start. What
each thread does to elements of its own needs none: `s[tx * 4 + i]` for i < 4, before and after. All barriers are those of a
block, except those of "warp": whoever waits for shared memory has waited for that of warps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from ...arith import detect_linear_equation
from ...errors import LoweringError
from ...tir.arithmetic import as_int, nested_operands
from ...tir.expr import EQ, LT, And, BufferLoad, Call, FloorMod, IterVar, PrimExpr, Ramp, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, variables, walk
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, While, seq
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, pointer_scope, sub_statements, walk_statements

_T = TypeVar("_T")
Array = np.ndarray[Any, np.dtype[Any]]
_SYNC = "tir.tvm_storage_sync"
_OF_BLOCKS = ("shared", "shared.dyn")  # all threads of a block wait for each other there
_MANY = 2**31  # threads, where nobody says how many
_COUNTED = 1 << 20  # accesses of elements, at most


def ThreadSync(storage_scope: str) -> Pass:
    """`tvm_storage_sync(storage_scope)` wherever threads would race on memory of that scope.

    Args:
        storage_scope: "shared", "shared.dyn" or "warp".
    """

    return Pass("tir.ThreadSync", lambda func, ctx: thread_sync(func, storage_scope))


def thread_sync(func: PrimFunc, storage_scope: str) -> PrimFunc:
    """`func` with the barriers that memory of a scope needs; itself where it needs none."""
    return func.with_body(_Planner(storage_scope).kernels(func.body))


@dataclass(frozen=True)
class _Place:
    """The indices `base + sum(steps * threads) + x` of a thread, for all x = low + sum(step * n) with n < count of `digits`.

    `threads` says how many there are along each axis; those come there of which a condition says so.
    """

    steps: tuple[int, ...]
    threads: tuple[int, ...]
    base: PrimExpr
    low: int
    digits: tuple[tuple[int, int], ...] = ()

    @property
    def high(self) -> int:
        """The largest x."""
        return self.low + sum(step * (count - 1) for step, count in self.digits)


@dataclass(frozen=True)
class _Access:
    """A read or write behind a pointer, and where if that is known."""

    pointer: Var
    writes: bool
    place: _Place | None = None


@dataclass(frozen=True)
class _Kernel:
    """The threads that share memory with how many there are, the constant ranges of loops, and what else is defined in them."""

    threads: dict[Var, int]
    loops: dict[Var, tuple[int, int]]
    others: set[Var]

    def place(self, indices: Sequence[PrimExpr]) -> _Place | None:
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
        constant = {**self.loops, **periods}
        used = set(variables(index))
        if used & self.others or any(isinstance(node, (BufferLoad, Ramp)) for node in walk(index)):
            return None
        loops = [var for var in constant if var in used]
        terms = detect_linear_equation(index, [*self.threads, *loops])
        steps = [as_int(term) for term in terms[:-1]]
        if not terms or None in steps:
            return None
        numbers = [step or 0 for step in steps]
        own = len(self.threads)
        ranges = [*lanes, *((step, *constant[var]) for step, var in zip(numbers[own:], loops, strict=True))]
        base, shift = terms[-1], as_int(terms[-1]) or 0
        # A negative step turns the range round.
        low = shift + sum(min(step * first, step * last) for step, first, last in ranges)
        digits = tuple(sorted((abs(step), last - first + 1) for step, first, last in ranges))
        return _Place(tuple(numbers[:own]), tuple(self.threads.values()), base - shift, low, digits)

    def under(self, condition: PrimExpr) -> _Kernel:
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

    def _periods(self, index: PrimExpr) -> tuple[PrimExpr, dict[Var, tuple[int, int]]]:
        """An index with a variable for each remainder that all threads have in common, such as a buffer's half, and its range."""
        found: dict[Var, tuple[int, int]] = {}

        def rule(node: Node) -> Node:
            if not isinstance(node, FloorMod) or (period := as_int(node.b) or 0) < 1 or not self.is_uniform(node.a):
                return node
            var = Var("period", node.dtype)
            found[var] = (0, period - 1)
            return var

        changed = post_order_rewrite(index, rule) if any(isinstance(node, FloorMod) for node in walk(index)) else index
        assert isinstance(changed, PrimExpr)
        return changed, found

    def is_uniform(self, condition: PrimExpr) -> bool:
        """Whether all threads that share memory find the same: `bx < 3` or `k > 0` of a constant loop k, not `tx < 3` or `n[0] > 2`."""
        varying = self.threads.keys() | self.others
        return not any(isinstance(node, (BufferLoad, Call)) or (isinstance(node, Var) and node in varying) for node in walk(condition))

    def are_apart(self, one: _Place, other: _Place) -> bool:
        """Whether different threads access different elements at two places."""
        # Of another base: which thread meets which element isn't told by the constants alone.
        if one.base is not other.base:
            return False
        return (one.steps == other.steps and _steps_apart(one, other)) or _elements_apart(one, other)


def _steps_apart(one: _Place, other: _Place) -> bool:
    """Whether the steps of the threads alone keep them apart at two places, however many threads there are."""
    # Smallest step first: one beyond all that the smaller ones reach keeps threads apart (x + 4 * y with 4 threads x: 3 < 4).
    reach = max(one.high, other.high) - min(one.low, other.low)
    for step, count in sorted(zip(map(abs, one.steps), map(max, one.threads, other.threads), strict=True)):
        if count > 1 and step <= reach:
            return False
        reach += step * (count - 1)
    return True


@lru_cache(maxsize=1024)
def _elements_apart(one: _Place, other: _Place) -> bool:
    """Whether different threads access different elements, by counting them; False where they are too many to count."""
    if max(math.prod(place.threads) * math.prod(count for _, count in place.digits) for place in (one, other)) > _COUNTED:
        return False
    counts = list(map(max, one.threads, other.threads))
    numbering = [math.prod(counts[number + 1 :]) for number in range(len(counts))]
    (first, owners), (second, others) = (
        (
            _counted(zip(place.steps, place.threads, strict=True))[:, None] + _counted(place.digits) + place.low,
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


def _counted(terms: Iterable[tuple[int, int]]) -> Array:
    """sum(step * n) for all n < count, the last term fastest."""
    total = np.zeros(1, np.int64)
    for step, count in terms:
        total = (total[:, None] + step * np.arange(count)).ravel()
    return total


def _kernel(stmt: Stmt) -> _Kernel:
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
    return _Kernel(threads, loops, others)


class _Planner:
    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._open: set[_Access] = set()
        self._kernel = _Kernel({}, {}, set())

    def kernels(self, stmt: Stmt) -> Stmt:
        """The statement with barriers in what threads run."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            # A launch starts with nothing in shared memory that anyone waits for.
            self._open, self._kernel = set(), _kernel(stmt)
            return replace(stmt, body=self._stmt(stmt.body))
        return map_stmt(stmt, self.kernels)

    def _stmt(self, stmt: Stmt) -> Stmt:
        if self._is_barrier(stmt):
            self._open = set()
            return stmt
        if isinstance(stmt, SeqStmt):
            return map_stmt(stmt, self._stmt)
        if isinstance(stmt, For) and stmt.kind is not ForKind.VECTORIZED:
            return self._loop(stmt)
        if isinstance(stmt, While):
            return self._while(stmt)
        if isinstance(stmt, IfThenElse) and self._kernel.is_uniform(stmt.condition):
            return self._branches(stmt)
        # A divergent branch gets its barrier in front: one inside would wait for threads that never come.
        atomic = isinstance(stmt, (IfThenElse, For))  # a vector loop is one access of its thread
        whole = self._all(stmt) if atomic or not list(sub_statements(stmt)) else self._own(stmt)
        needed = self._clashes(whole)
        if needed:
            self._open = set()
        if isinstance(stmt, IfThenElse):
            self._check_divergent(stmt)
        self._open.update(whole)
        result = stmt if atomic else map_stmt(stmt, self._stmt)
        return seq(self._barrier(), result) if needed else result

    def _branches(self, stmt: IfThenElse) -> Stmt:
        """A condition on which all threads agree: they meet at barriers in the branch that they take."""
        own = self._own(stmt)
        needed = self._clashes(own)
        before = own if needed else self._open | own
        self._open, cases = set(), []
        after: set[_Access] = set()
        for case in (stmt.then_case, stmt.else_case):
            self._open = set(before)
            cases.append(None if case is None else self._in_case(stmt, case, self._stmt))
            after |= self._open  # nobody knows which one was taken; without an else, none
        self._open = after
        changed = cases[0] is not stmt.then_case or cases[1] is not stmt.else_case
        result = IfThenElse(stmt.condition, cases[0] or stmt.then_case, cases[1]) if changed else stmt
        return seq(self._barrier(), result) if needed else result

    def _check_divergent(self, stmt: IfThenElse) -> None:
        """Refuse accesses that would need a barrier where some threads are absent, unless the branch has barriers of its own."""
        calls = (node for inner in walk_statements(stmt) for expr in own_expressions(inner) for node in walk(expr))
        if any(isinstance(node, Call) and node.op == _SYNC for node in calls):
            return
        outer = self._open
        for case in (stmt.then_case, stmt.else_case):
            self._open = set()
            if case is not None and self._in_case(stmt, case, self._stmt) is not case:
                raise LoweringError(
                    f"ThreadSync: threads exchange {self._scope} memory under `{stmt.condition}`, which not all of them need to reach; "
                    "a barrier there would never be passed. Take the exchange out of the branch, or split it into two"
                )
        self._open = outer

    def _loop(self, loop: For) -> Stmt:
        own = self._own(loop)
        # One barrier in front of the loop instead of one in each of its iterations.
        waits = self._clashes(own | self._first(loop.body))
        if waits:
            self._open = set()
        self._open |= own
        before = set(self._open)
        body = self._stmt(loop.body)
        # Planned twice where it clashes: the barrier at the start changes what is open for all behind it.
        if self._clashes(self._first(body)):  # the next iteration's start meets this one's end
            self._open = before
            body = seq(self._barrier(), self._stmt(loop.body))
        if not as_int(loop.extent):
            self._open |= before  # of no iterations, it has no barrier either
        result = loop if body is loop.body else replace(loop, body=body)
        return seq(self._barrier(), result) if waits else result

    def _while(self, loop: While) -> Stmt:
        own = self._own(loop)
        waits = self._clashes(own)
        if waits:
            self._open = set()
        self._open |= own
        before = set(self._open)
        body = self._stmt(loop.body)
        # The condition is read again behind the body, where no barrier at the body's start helps.
        if self._clashes(own):
            body = seq(body, self._barrier())
            self._open = set(own)
        elif self._clashes(self._first(body)):
            self._open = before
            body = seq(self._barrier(), self._stmt(loop.body))
        self._open |= before
        result = loop if body is loop.body else replace(loop, body=body)
        return seq(self._barrier(), result) if waits else result

    def _clashes(self, later: set[_Access]) -> bool:
        """Whether something later may not overtake what was done since the last barrier."""
        return any(self._clash(one, other) for one in self._open for other in later)

    def _clash(self, one: _Access, other: _Access) -> bool:
        if one.pointer is not other.pointer or not (one.writes or other.writes):
            return False
        return one.place is None or other.place is None or not self._kernel.are_apart(one.place, other.place)

    def _first(self, stmt: Stmt) -> set[_Access]:
        """What happens before the first barrier."""
        return self._until_barrier(stmt)[0]

    def _until_barrier(self, stmt: Stmt) -> tuple[set[_Access], bool]:
        """What happens before the first barrier, and whether there surely is one."""
        if self._is_barrier(stmt):
            return set(), True
        if isinstance(stmt, (IfThenElse, While)) or (isinstance(stmt, For) and not as_int(stmt.extent)):
            return self._all(stmt), False
        found = self._own(stmt)
        for part in sub_statements(stmt):
            inner, met = self._until_barrier(part)
            found |= inner
            if met:
                return found, True
        return found, False

    def _own(self, stmt: Stmt) -> set[_Access]:
        found: set[_Access] = set()
        if isinstance(stmt, BufferStore) and pointer_scope(stmt.buffer.data) == self._scope:
            found.add(_Access(stmt.buffer.data, True, self._kernel.place(stmt.indices)))
        for expr in own_expressions(stmt):
            for node in walk(expr):
                if isinstance(node, BufferLoad) and pointer_scope(node.buffer.data) == self._scope:
                    found.add(_Access(node.buffer.data, False, self._kernel.place(node.indices)))
                elif isinstance(node, Call) and node.op in ("tir.tvm_access_ptr", "tir.address_of"):
                    # An address may be written through by whoever gets it, anywhere.
                    pointers = {n for n in walk(node) if isinstance(n, Var) and n.dtype == "handle" and pointer_scope(n) == self._scope}
                    found.update(_Access(pointer, True) for pointer in pointers)
        return found

    def _all(self, stmt: Stmt) -> set[_Access]:
        found = self._own(stmt)
        for inner in sub_statements(stmt):
            found.update(self._in_case(stmt, inner, self._all))
        return found

    def _in_case(self, around: Stmt, stmt: Stmt, what: Callable[[Stmt], _T]) -> _T:
        """What `what` gives for a statement inside of another one, for those threads that come to it."""
        if not isinstance(around, IfThenElse) or stmt is not around.then_case:
            return what(stmt)
        outer, self._kernel = self._kernel, self._kernel.under(around.condition)
        result = what(stmt)
        self._kernel = outer
        return result

    def _is_barrier(self, stmt: Stmt) -> bool:
        if not isinstance(stmt, Evaluate) or not isinstance(stmt.value, Call) or stmt.value.op != _SYNC:
            return False
        scope = stmt.value.args[0]
        return isinstance(scope, StringImm) and (scope.value == self._scope or scope.value in _OF_BLOCKS)

    def _barrier(self) -> Stmt:
        return Evaluate(Call("int32", _SYNC, (StringImm(self._scope),)))
