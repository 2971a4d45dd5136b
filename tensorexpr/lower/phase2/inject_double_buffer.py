"""Fill one of two copies of a buffer for the next iteration of a loop while the other is read.

What `storage_flatten` marks `double_buffer_scope` moves out of its loop, with room for two copies. The statements that
fill it run one iteration ahead:

    for i in n:                        A[2 * 8] = allocate
        A[8] = allocate                A[...] = f(0)
        A[...] = f(i)         ->       for i in n - 1:
        B[i] = g(A[...])                   A[(i + 1) % 2 * 8 + ...] = f(i + 1)
                                           B[i] = g(A[i % 2 * 8 + ...])
                                       B[n - 1] = g(A[(n - 1) % 2 * 8 + ...])

With `split_loop` 0 the loop keeps all its iterations and a guard `i + 1 < n`; with an even number it is unrolled by that,
so that the copy is a constant in each. A buffer whose filling reads what the loop itself makes stays as it is.

A mark of 3 or more asks for as many copies, which are filled as many iterations ahead as there are others. Where the current target
copies into shared memory asynchronously, fillings there are groups of copies that each iteration waits for:

    for i in n:
        wait for all groups but the newest N - 2:
            group: if i + N - 1 < n: A[(i + N - 1) % N * 8 + ...] = f(i + N - 1)
            B[i] = g(A[i % N * 8 + ...])

Copies in bulk are groups that an mbarrier for each of the N counts. Where matrix units multiply what is read, an iteration waits for the
products of the one before it only, whose copy is therefore filled an iteration later (`products_under_way`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ...dataclass import dataclass, replace
from ...errors import LoweringError
from ...target import Target
from ...target.chips import ASYNC_COPIES, capability
from ...tir.arithmetic import as_int, floordiv, floormod
from ...tir.attrs import EMPTY, FrozenMap
from ...tir.device_intrin import device_call
from ...tir.expr import Call, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import NOP, Allocate, AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, seq
from ..async_queues import BULK_BARRIERS, BULK_COPY, BULK_GROUP, BULK_PARITY, BULK_WAIT, COMMIT, COPY, COUNT, WAIT
from ..context import PassContext
from ..copies import Copies, allocated, has_effect, has_pointers
from ..options import InjectDoubleBufferConfig
from ..products_under_way import may_stay_under_way, one_behind
from ..rebuild import Copier, FreeVars, map_stmt, own_expressions, pointer_scope, walk_statements

SCOPE = "double_buffer_scope"
_logger = logging.getLogger(__name__)


def inject_double_buffer(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with its double buffers made; itself if there are none.

    Raises:
        LoweringError: for an option `split_loop` that is neither 0, 1 nor even.
    """
    if not any(isinstance(stmt, Allocate) and SCOPE in stmt.annotations for stmt in walk_statements(func.body)):
        return func
    split = ctx.option(InjectDoubleBufferConfig).split_loop
    if split < 0 or (split > 1 and split % 2):
        raise LoweringError(f"tir.InjectDoubleBuffer: split_loop is 0, 1 or an even number, not {split}")
    return func.with_body(_unmarked(_Injector(split).stmt(func.body)))


def _unmarked(stmt: Stmt) -> Stmt:
    """`stmt` without marks that nothing came of."""
    if isinstance(stmt, Allocate) and SCOPE in stmt.annotations:
        kept = {key: value for key, value in stmt.annotations.items() if key != SCOPE}
        return replace(stmt, body=_unmarked(stmt.body), annotations=FrozenMap(kept) if kept else EMPTY)
    return map_stmt(stmt, _unmarked)


@dataclass(frozen=True)
class _Plan:
    """A loop's body taken apart: marked allocations, what fills them, and all the rest in its order."""

    buffers: tuple[Allocate, ...]
    filling: tuple[Stmt, ...]
    rest: Stmt


def _plan(stmt: Stmt) -> _Plan:
    """Follow the allocations around the end of a body."""
    if isinstance(stmt, Allocate) and SCOPE in stmt.annotations:
        statements = stmt.body.seq if isinstance(stmt.body, SeqStmt) else (stmt.body,)
        writers = [n for n, inner in enumerate(statements) if stmt.buffer_var in _written(inner)]
        if not writers:
            return _Plan((), (), stmt)
        # All up to the last store into the buffer is its filling, for one moved ahead without the rest could miss values it reads.
        first, inner = statements[: writers[-1] + 1], _plan(seq(*statements[writers[-1] + 1 :]))
        return _Plan((stmt, *inner.buffers), (*first, *inner.filling), inner.rest)
    if isinstance(stmt, Allocate):
        inner = _plan(stmt.body)
        return _Plan(inner.buffers, inner.filling, replace(stmt, body=inner.rest)) if inner.buffers else _Plan((), (), stmt)
    if isinstance(stmt, SeqStmt):
        inner = _plan(stmt.seq[-1])
        return _Plan(inner.buffers, inner.filling, seq(*stmt.seq[:-1], inner.rest)) if inner.buffers else _Plan((), (), stmt)
    return _Plan((), (), stmt)


def _written(stmt: Stmt) -> set[Var]:
    return {inner.buffer.data for inner in walk_statements(stmt) if isinstance(inner, BufferStore)}


class _Injector:
    def __init__(self, split: int) -> None:
        self._split = split
        self._free = FreeVars()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with the double buffers of its loops, inner ones first."""
        result = map_stmt(stmt, self.stmt)
        if isinstance(result, For) and result.kind is ForKind.SERIAL:
            plan = _plan(result.body)
            if plan.buffers and self._may_run_ahead(result, plan):
                return self._overlapped(result, plan)
            for buffer in plan.buffers:
                _logger.debug("%s stays single in the loop %s", buffer.buffer_var.name, result.loop_var.name)
        return result

    def _may_run_ahead(self, loop: For, plan: _Plan) -> bool:
        """True if the filling depends on nothing that the rest of the loop makes, and makes nothing but its buffers."""
        # Of a loop that never runs neither the first filling nor the last reading may happen.
        if isinstance(loop.extent, IntImm) and loop.extent.value <= 0:
            return False
        filled = {stmt.buffer_var for stmt in plan.buffers}
        inside = [inner for stmt in plan.filling for inner in walk_statements(stmt)]
        private = {data for stmt in plan.filling for data in allocated(stmt)}
        if any(map(has_effect, inside)):
            return False
        if not {inner.buffer.data for inner in inside if isinstance(inner, BufferStore)} <= filled | private:
            return False
        # A pointer to the buffer says nothing of which copy is meant.
        if any(has_pointers(stmt, filled) for stmt in (*plan.filling, plan.rest)):
            return False
        # The filling of i + 1 comes before the rest of i: neither may see what the other writes.
        made = _written(plan.rest) | allocated(plan.rest)
        if not made.isdisjoint(self._used(inside) | filled):
            return False
        # The allocation moves out of the loop, where the variable has no value.
        sizes = [expr for stmt in plan.buffers for expr in own_expressions(stmt)]
        return loop.loop_var not in self._used_by(sizes) and made.isdisjoint(self._used_by(sizes))

    def _used(self, statements: Iterable[Stmt]) -> set[Var]:
        return self._used_by(expr for stmt in statements for expr in own_expressions(stmt))

    def _used_by(self, exprs: Iterable[PrimExpr]) -> set[Var]:
        return {var for expr in exprs for var in self._free(expr)}

    def _overlapped(self, loop: For, plan: _Plan) -> Stmt:
        count = max(2, *(as_int(stmt.annotations[SCOPE]) or 0 for stmt in plan.buffers))
        is_async = _copies_asynchronously() and all(pointer_scope(stmt.buffer_var) in _SHARED for stmt in plan.buffers)
        filled = {stmt.buffer_var for stmt in plan.buffers}
        is_bulk = is_async and all(_is_bulk(stmt) for stmt in plan.filling)
        behind = is_async and count > 2 and may_stay_under_way(plan.rest, loop.loop_var, filled)
        after: Stmt = NOP
        if behind:
            rest, after = one_behind(plan.rest)
            plan = replace(plan, rest=rest)
        ahead = _Overlap(loop, plan, Copies(count), is_async, is_bulk, int(behind))
        allocations = [ahead.copies.multiplied(stmt) for stmt in plan.buffers]
        guarded = self._split == 0 or is_async or count > 2
        result = seq(*ahead.begun(), ahead.guarded() if guarded else ahead.peeled(self._split), *([] if after is NOP else [after]))
        if is_bulk:
            result = AttrStmt(0, BULK_BARRIERS, IntImm("int32", count), result)
        # The first filling and the last reading stand outside of the loop: without iterations they must not run.
        if not isinstance(loop.extent, IntImm):
            result = IfThenElse(loop.extent > 0, result)
        for allocation in reversed(allocations):
            result = replace(allocation, body=result)
        return result


_ZERO = IntImm("int32", 0)
_SHARED = ("shared", "shared.dyn")


def _is_bulk(stmt: Stmt) -> bool:
    """Whether a statement is nothing but copies in bulk."""
    while isinstance(stmt, For):
        stmt = stmt.body
    if isinstance(stmt, SeqStmt):
        return all(map(_is_bulk, stmt.seq))
    return isinstance(stmt, AttrStmt) and stmt.attr_key == BULK_COPY


def _by_engine(stmt: Stmt, turn: PrimExpr) -> Stmt:
    """Copies in bulk as the calls that make them and tell the barrier of a turn; from here on nobody needs their loops."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == BULK_COPY and isinstance(stmt.value, Call):
        described, into, *starts = stmt.value.args
        assert isinstance(into, Call)
        return Evaluate(device_call("ptx_cp_async_bulk_tensor", into.args[0].dtype, into, 0, described, turn, *starts))
    return map_stmt(stmt, lambda inner: _by_engine(inner, turn))


def _copies_asynchronously() -> bool:
    target = Target.current(allow_none=True)
    return target is not None and target.kind.name == "cuda" and capability(target.arch) >= ASYNC_COPIES


@dataclass(frozen=True)
class _Overlap:
    """The pieces of a loop whose iterations fill for the next one."""

    loop: For
    plan: _Plan
    copies: Copies
    is_async: bool
    is_bulk: bool = False
    behind: int = 0  # iterations whose products are still read

    @property
    def distance(self) -> int:
        """How many iterations ahead is filled."""
        return self.copies.count - 1 - self.behind

    def fill(self, iteration: PrimExpr, turn: PrimExpr) -> Stmt:
        """Fill copy `turn` for an iteration."""
        made = self.copies.redirected(Copier({self.loop.loop_var: iteration}).stmt(seq(*self.plan.filling)), turn)
        if self.is_bulk:
            return _by_engine(made, turn)
        return AttrStmt(0, COPY, IntImm("int32", 1), made) if self.is_async else made

    def begun(self) -> Iterator[Stmt]:
        """What fills the first copies before the loop."""
        for number in range(self.distance):
            filling = self.fill(self.loop.min + number, IntImm("int32", number))
            extent = as_int(self.loop.extent)
            if number and extent is None:
                filling = IfThenElse(self.loop.extent > number, filling)
            elif number and extent is not None and number >= extent:
                filling = NOP
            yield self._group(filling, IntImm("int32", number))

    def _group(self, filling: Stmt, turn: PrimExpr) -> Stmt:
        """Copies that are waited for together; a turn without any is a group too, as waits count groups."""
        if self.is_bulk:
            return AttrStmt(0, BULK_GROUP, turn, filling)
        return AttrStmt(0, COMMIT, _ZERO, filling) if self.is_async else filling

    def read(self, iteration: PrimExpr, turn: PrimExpr) -> Stmt:
        """The rest of an iteration, from copy `turn`."""
        return self.copies.redirected(Copier({self.loop.loop_var: iteration}).stmt(self.plan.rest), turn)

    def _turn(self, iteration: PrimExpr) -> PrimExpr:
        return floormod(iteration - self.loop.min, self.copies.count)

    def _step(self, iteration: PrimExpr) -> Stmt:
        # Different copies, so their order makes no difference to the values.
        return seq(self.fill(iteration + 1, self._turn(iteration + 1)), self.read(iteration, self._turn(iteration)))

    def guarded(self) -> Stmt:
        """All iterations; all but the last ones fill ahead."""
        loop, var, end = self.loop, self.loop.loop_var, self.loop.min + self.loop.extent
        ahead = var + self.distance
        filling = IfThenElse(ahead < end, self.fill(ahead, self._turn(ahead)))
        body = seq(self._group(filling, self._turn(ahead)), self.read(var, self._turn(var)))
        if self.is_bulk:
            parity = floormod(floordiv(var - loop.min, self.copies.count), 2)
            body = AttrStmt(0, BULK_WAIT, self._turn(var), AttrStmt(0, BULK_PARITY, parity, body))
        elif self.is_async:
            # The groups of later iterations may be under way; that of this one, and none before it, is waited for.
            body = AttrStmt(0, WAIT, _ZERO, AttrStmt(0, COUNT, IntImm("int32", self.distance - 1), body))
        return replace(loop, body=body)

    def peeled(self, group: int) -> Stmt:
        """All iterations but the last, in groups with constant turns, what the groups leave, and the last one, which only reads."""
        loop, var = self.loop, self.loop.loop_var
        count = loop.extent - 1
        done = floordiv(count, group) * group if group > 1 else IntImm(var.dtype, 0)
        end = loop.min + count
        main = replace(loop, min=loop.min + done, extent=count - done, body=self._step(var))
        last = self.read(end, self._turn(end))
        if group == 1:
            return seq(main, last)
        outer = Var(f"{var.name}.outer", var.dtype)
        steps: list[Stmt] = []
        for number in range(group):
            # Groups are even, so each starts with copy 0, and the turn is known without the group's number.
            now, turn, other = loop.min + outer * group + number, IntImm("int32", number % 2), IntImm("int32", (number + 1) % 2)
            steps += [self.fill(now + 1, other), self.read(now, turn)]
        return seq(replace(loop, loop_var=outer, min=IntImm(var.dtype, 0), extent=floordiv(count, group), body=seq(*steps)), main, last)
