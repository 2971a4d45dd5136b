"""Barriers between what one thread writes and another one reads in the same memory.

Statements are taken in order; a barrier stands before the first one that reads what was written, or writes what was read
or written, in `storage_scope` since the last barrier. A loop whose next iteration would do so has one at its start. What
each thread does to elements of its own needs none: `s[tx * 4 + i]` for i < 4, before and after. All barriers are those of a
block, except those of "warp": whoever waits for shared memory has waited for that of warps. Behind a wait for asynchronous
copies there is always one, as each thread has waited for its own copies only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ...errors import LoweringError
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Ramp, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, While, seq
from ..async_queues import BULK_PARITY, BULK_WAIT, COUNT, WAIT
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, pointer_scope, sub_statements, walk_statements
from .thread_places import Access, Kernel, kernel_of

_T = TypeVar("_T")
_SYNC = "tir.tvm_storage_sync"
_WAITS = (WAIT, BULK_WAIT)
_OF_BLOCKS = ("shared", "shared.dyn")  # all threads of a block wait for each other there
_LDMATRIX, _WGMMA, _BULK = "tir.ptx_ldmatrix", "tir.ptx_wgmma", "tir.ptx_cp_async_bulk_tensor"
_SAME: Mapping[Var, PrimExpr] = {}  # iteration


def ThreadSync(storage_scope: str) -> Pass:
    """`tvm_storage_sync(storage_scope)` wherever threads would race on memory of that scope.

    Args:
        storage_scope: "shared", "shared.dyn" or "warp".
    """

    return Pass("tir.ThreadSync", lambda func, ctx: thread_sync(func, storage_scope))


def thread_sync(func: PrimFunc, storage_scope: str) -> PrimFunc:
    """`func` with the barriers that memory of a scope needs; itself where it needs none."""
    return func.with_body(_Planner(storage_scope).kernels(func.body))


class _Planner:
    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._open: set[Access] = set()
        self._kernel = Kernel({}, {}, set())

    def kernels(self, stmt: Stmt) -> Stmt:
        """The statement with barriers in what threads run."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
            # A launch starts with nothing in shared memory that anyone waits for.
            self._open, self._kernel = set(), kernel_of(stmt)
            return replace(stmt, body=self._stmt(stmt.body))
        return map_stmt(stmt, self.kernels)

    def _stmt(self, stmt: Stmt) -> Stmt:
        if self._is_barrier(stmt):
            self._open = set()
            return stmt
        if isinstance(stmt, SeqStmt):
            return map_stmt(stmt, self._stmt)
        if isinstance(stmt, AttrStmt) and stmt.attr_key in _WAITS:
            return self._waited(stmt)
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

    def _waited(self, stmt: AttrStmt) -> Stmt:
        """What follows a wait for copies, behind the barrier that lets all threads see them."""
        count = stmt.body
        inner = count.body if isinstance(count, AttrStmt) and count.attr_key in (COUNT, BULK_PARITY) else count
        has_one = self._is_barrier(inner.seq[0] if isinstance(inner, SeqStmt) else inner)
        if self._scope not in _OF_BLOCKS or has_one:
            return map_stmt(stmt, self._stmt)
        self._open = set()
        body = seq(self._barrier(), self._stmt(inner))
        return replace(stmt, body=replace(count, body=body) if isinstance(count, AttrStmt) and inner is not count else body)

    def _branches(self, stmt: IfThenElse) -> Stmt:
        """A condition on which all threads agree: they meet at barriers in the branch that they take."""
        own = self._own(stmt)
        needed = self._clashes(own)
        before = own if needed else self._open | own
        self._open, cases = set(), []
        after: set[Access] = set()
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
        first, met = self._until_barrier(body)
        # The next iteration's start meets this one's end; without a barrier in between, those of earlier ones too.
        if self._clashes(first, {loop.loop_var: loop.loop_var + 1} if met else None):
            self._open = before
            body = seq(self._barrier(), self._stmt(loop.body))
        self._open = {access.leaving(loop.loop_var) for access in self._open}
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
        elif self._clashes(self._first(body), None):
            self._open = before
            body = seq(self._barrier(), self._stmt(loop.body))
        self._open |= before
        result = loop if body is loop.body else replace(loop, body=body)
        return seq(self._barrier(), result) if waits else result

    def _clashes(self, later: set[Access], values: Mapping[Var, PrimExpr] | None = _SAME) -> bool:
        """Whether something later may not overtake what was done since the last barrier.

        Args:
            values: what loops' variables are there; None for other iterations than this one.
        """
        return any(self._clash(one, other, values) for one in self._open for other in later)

    def _clash(self, one: Access, other: Access, values: Mapping[Var, PrimExpr] | None) -> bool:
        if one.by_engine and other.by_engine:
            return False  # one thread begins them all
        return (one.writes or other.writes) and self._kernel.meet(one, other, values)

    def _first(self, stmt: Stmt) -> set[Access]:
        """What happens before the first barrier."""
        return self._until_barrier(stmt)[0]

    def _until_barrier(self, stmt: Stmt) -> tuple[set[Access], bool]:
        """What happens before the first barrier, and whether there surely is one."""
        if self._is_barrier(stmt):
            return set(), True
        if isinstance(stmt, AttrStmt) and stmt.attr_key in _WAITS and self._scope in _OF_BLOCKS:
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

    def _own(self, stmt: Stmt) -> set[Access]:
        found: set[Access] = set()
        if isinstance(stmt, BufferStore) and pointer_scope(stmt.buffer.data) == self._scope:
            found.add(self._element(stmt.buffer.data, True, stmt.indices, stmt.buffer.dtype))
        for expr in own_expressions(stmt):
            if isinstance(expr, Call) and expr.op in (_LDMATRIX, _WGMMA, _BULK):
                found.update(self._matrix(expr) if expr.op == _LDMATRIX else self._parts(expr))
                continue
            for node in walk(expr):
                if isinstance(node, BufferLoad) and pointer_scope(node.buffer.data) == self._scope:
                    found.add(self._element(node.buffer.data, False, node.indices, node.buffer.dtype))
                elif isinstance(node, Call) and node.op in ("tir.tvm_access_ptr", "tir.address_of"):
                    # An address may be written through by whoever gets it, anywhere.
                    pointers = {n for n in walk(node) if isinstance(n, Var) and n.dtype == "handle" and pointer_scope(n) == self._scope}
                    found.update(Access(pointer, True) for pointer in pointers)
        return found

    def _element(self, pointer: Var, writes: bool, indices: Sequence[PrimExpr], dtype: str) -> Access:
        kind = parse_dtype(dtype)
        return Access(pointer, writes, self._kernel.place(indices), kind.itemsize * kind.lanes)

    def _matrix(self, call: Call) -> Iterator[Access]:
        """What a thread reads of shared memory for `ptx_ldmatrix`: the 16 bytes of a row, from where it points."""
        source = call.args[5]
        if isinstance(source, Call) and source.op == "tir.tvm_access_ptr" and isinstance(source.args[1], Var):
            if pointer_scope(source.args[1]) == self._scope:
                begin = source.args[2] + call.args[6]
                count = 16 // parse_dtype(call.dtype).itemsize
                yield self._element(source.args[1], False, (Ramp(begin, IntImm(begin.dtype, 1), count),), call.dtype)
            return
        yield from self._anywhere(source)

    def _parts(self, call: Call) -> Iterator[Access]:
        """What units read of shared memory for `ptx_wgmma`, or the copy engine writes: as much as the pointers say."""
        for source in (call.args[0],) if call.op == _BULK else (call.args[4], call.args[8]):
            is_part = isinstance(source, Call) and source.op == "tir.tvm_access_ptr" and isinstance(source.args[1], Var)
            count = as_int(source.args[3]) if is_part and isinstance(source, Call) else None
            if count is None or not isinstance(source, Call) or not isinstance(source.args[1], Var):
                yield from self._anywhere(source)
            elif pointer_scope(source.args[1]) == self._scope:
                begin = source.args[2]
                is_bulk = call.op == _BULK
                access = self._element(source.args[1], is_bulk, (Ramp(begin, IntImm(begin.dtype, 1), count),), call.dtype)
                yield replace(access, by_engine=is_bulk)

    def _anywhere(self, source: PrimExpr) -> Iterator[Access]:
        """Whatever memory an address is made of, at any place."""
        found = (node for node in walk(source) if isinstance(node, Var) and node.dtype == "handle")
        return (Access(node, True) for node in found if pointer_scope(node) == self._scope)

    def _all(self, stmt: Stmt) -> set[Access]:
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
