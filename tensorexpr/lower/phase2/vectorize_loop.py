"""Turn VECTORIZED loops into vector code: the loop's variable becomes a ramp, everything that depends on it a vector.

A condition that differs between lanes becomes a mask on the loads and stores it guards. A loop inside stays a loop, with
a vector body. Storage allocated inside gets a slot per lane. What has no vector form runs lane by lane in a serial loop,
with the dtypes it had. Lanes are independent (the schedule made sure), so their statements may be interleaved.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from ...arith.analyzer import Analyzer
from ...tir.arithmetic import logical_and
from ...tir.dtype import parse_dtype, with_lanes
from ...tir.expr import Broadcast, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.reduction_laws import accumulation
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, seq
from ..context import PassContext
from ..lanes import broadcast, lanes_of
from ..rebuild import Copier, map_stmt, walk_statements
from ..scopes import inside_loop, under_conditions
from . import vector_reduction
from .guard_bounds import conjuncts
from .lane_masks import Mask
from .vector_values import NoVectorFormError, VectorValues


def vectorize_loop(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without VECTORIZED loops. With `tir.disable_vectorize` they become serial."""
    if not any(isinstance(s, For) and s.kind is ForKind.VECTORIZED for s in walk_statements(func.body)):
        return func
    given = frozenset(buffer.data for buffer in func.buffer_map.values())
    return func.with_body(_Vectorizer(not ctx.flag("tir.disable_vectorize"), given).stmt(func.body))


class _Vectorizer:
    """Finds the loops, innermost first; `given` are the arrays of the call."""

    def __init__(self, enabled: bool, given: frozenset[Var]) -> None:
        self._enabled, self._given = enabled, given
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without VECTORIZED loops."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                body = self.stmt(stmt.body)
            loop = stmt if body is stmt.body else replace(stmt, body=body)
            return self._vectorized(loop) if loop.kind is ForKind.VECTORIZED else loop
        if isinstance(stmt, IfThenElse):
            with under_conditions(self._analyzer, [stmt.condition]):
                then_case = self.stmt(stmt.then_case)
            else_case = stmt.else_case
            if else_case is not None:
                with under_conditions(self._analyzer, [~stmt.condition]):
                    else_case = self.stmt(else_case)
            if then_case is stmt.then_case and else_case is stmt.else_case:
                return stmt
            return IfThenElse(stmt.condition, then_case, else_case)
        return map_stmt(stmt, self.stmt)

    def _vectorized(self, loop: For) -> Stmt:
        if isinstance(loop.extent, IntImm) and loop.extent.value == 1:
            # A vector of one lane is a scalar.
            return Copier({loop.loop_var: loop.min}).stmt(loop.body)
        if not self._enabled or not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
            return replace(loop, kind=ForKind.SERIAL)
        return _Body(loop, self._analyzer, self._given).outermost(loop.body)


class _Body:
    """The body of one vector loop."""

    def __init__(self, loop: For, analyzer: Analyzer, given: frozenset[Var]) -> None:
        self._loop = loop
        self._values = VectorValues(loop, analyzer, given)
        self._analyzer = analyzer
        self._lanes = self._values.lanes
        self._written = {s.buffer.data for s in walk_statements(loop.body) if isinstance(s, BufferStore)}
        self._tied = 0  # inside statements whose vector variables or storage a scalar loop could not refer to

    def outermost(self, stmt: Stmt) -> Stmt:
        """The vector form of a statement, or a serial loop over the lanes if it has none."""
        try:
            return self._stmt(stmt, None)
        except NoVectorFormError:
            # A let or an allocation around is a vector already, which a scalar loop in its midst couldn't read: the loop around tries.
            if self._tied:
                raise
            loop = self._loop
            return Copier({}).stmt(replace(loop, kind=ForKind.SERIAL, body=stmt))

    def _each(self, stmt: Stmt, mask: Mask | None) -> Stmt:
        # A loop over the lanes would run all of them: under a mask only the whole branch can fall back to one.
        return self.outermost(stmt) if mask is None else self._stmt(stmt, mask)

    def _stmt(self, stmt: Stmt, mask: Mask | None) -> Stmt:
        match stmt:
            case BufferStore():
                return self._store(stmt, mask)
            case SeqStmt():
                return seq(*(self._each(s, mask) for s in stmt.seq))
            case IfThenElse():
                return self._branch(stmt, mask)
            case For() if stmt.kind is not ForKind.PARALLEL:
                return self._inner_loop(stmt, mask)
            case LetStmt():
                return self._let(stmt, mask)
            case Allocate():
                return self._allocate(stmt, mask)
            case AttrStmt() if not self._values.varies(stmt.value):
                return replace(stmt, body=self._each(stmt.body, mask))
            case DeclBuffer():
                return replace(stmt, body=self._each(stmt.body, mask))
            case Evaluate(value=IntImm()):
                return stmt
        raise NoVectorFormError(f"a {type(stmt).__name__} that differs between lanes")

    def _guarded(self, stmt: Stmt, mask: Mask | None) -> Stmt:
        """A scalar statement, run if any lane is."""
        some = None if mask is None else self._values.masks.some_lane(mask)
        if mask is not None and some is None:
            raise NoVectorFormError("a scalar statement under a mask of unknown shape")
        return stmt if some is None or isinstance(some, IntImm) else IfThenElse(some, stmt)

    def _store(self, stmt: BufferStore, mask: Mask | None) -> Stmt:
        values = self._values
        if stmt.predicate is not None or len(stmt.indices) != 1 or lanes_of(stmt.value) > 1:
            raise NoVectorFormError("a store that is a vector already")
        private = values.private(stmt.buffer)
        if private is None and not values.varies(stmt.indices[0]):
            if (reduced := self._reduced(stmt, mask)) is not None:
                return reduced
            # The last lane's value would have to win, and each lane would have to see what the one before it stored.
            if values.varies(stmt.value) or self._rereads(stmt.value):
                raise NoVectorFormError("lanes store to one element, one after the other")
            return self._guarded(stmt, mask)
        index = values.index(stmt.buffer, stmt.indices[0], mask)
        # In order, lane after lane, only the last value stays; a vector store has no such order.
        if isinstance(index, Broadcast):
            raise NoVectorFormError("all lanes store to one element")
        value = broadcast(values.expr(stmt.value, mask), self._lanes)
        return BufferStore(private or stmt.buffer, value, (index,), None if mask is None else mask.vector)

    def _reduced(self, stmt: BufferStore, mask: Mask | None) -> Stmt | None:
        """The accumulation of all lanes' terms, where the loop is a reduction and the statement one of its updates."""
        found = accumulation(stmt) if vector_reduction.is_reduction(self._loop) else None
        # A term that reads what the loop stores depends on the order of the lanes.
        if found is None or not self._values.masks.free(found[1]).isdisjoint(self._written):
            return None
        law, term = found
        lanes = broadcast(self._values.expr(term, mask), self._lanes)
        index = self._values.expr(stmt.indices[0], mask)
        return vector_reduction.combined(stmt, index, law, lanes, None if mask is None else mask.vector)

    def _rereads(self, value: PrimExpr) -> bool:
        """True if `value` reads what the loop writes: then storing it once isn't storing it in every lane."""
        return not self._values.masks.free(value).isdisjoint(self._written)

    def _branch(self, stmt: IfThenElse, mask: Mask | None) -> Stmt:
        values = self._values
        condition = values.expr(stmt.condition, mask)
        if isinstance(condition, Broadcast):
            condition = condition.value
        if isinstance(condition, IntImm):
            taken = stmt.then_case if condition.value else stmt.else_case
            return seq() if taken is None else self._each(taken, mask)
        if lanes_of(condition) == 1:
            with under_conditions(self._analyzer, [condition]):
                then_case = self._each(stmt.then_case, mask)
            return IfThenElse(condition, then_case, None if stmt.else_case is None else self._each(stmt.else_case, mask))
        if stmt.else_case is None and not values.masks.reads_memory(stmt.condition):
            # What all lanes share of a program's own condition stays a branch, which may leave loops; a mask of it would be made and
            # applied in each step. Guards of a tile's rows, which nearly always hold, join the mask instead: no branches in a tile.
            parts = list(conjuncts(stmt.condition))
            shared = [part for part, hinted in parts if not hinted and not values.masks.varies(part)]
            if shared:
                own = reduce(logical_and, [part for part, hinted in parts if hinted or values.masks.varies(part)])
                return self._branch(IfThenElse(reduce(logical_and, shared), IfThenElse(own, stmt.then_case)), mask)
            return self._stmt(stmt.then_case, values.masks.narrowed(mask, stmt.condition, condition))
        taken_lanes = Var("taken", condition.dtype)  # the branches may change what the condition reads
        then_case = self._stmt(stmt.then_case, values.masks.narrowed(mask, stmt.condition, taken_lanes))
        if stmt.else_case is not None:
            other = self._stmt(stmt.else_case, values.masks.narrowed(mask, ~stmt.condition, ~taken_lanes))
            then_case = seq(then_case, other)
        return LetStmt(taken_lanes, condition, then_case)

    def _inner_loop(self, loop: For, mask: Mask | None) -> Stmt:
        if self._values.varies(loop.min) or self._values.varies(loop.extent):
            raise NoVectorFormError("a loop whose bounds differ between lanes")
        low, extent = self._values.expr(loop.min, mask), self._values.expr(loop.extent, mask)
        with inside_loop(self._analyzer, loop):
            return replace(loop, min=low, extent=extent, body=self._each(loop.body, mask))

    def _let(self, stmt: LetStmt, mask: Mask | None) -> Stmt:
        value = self._values.expr(stmt.value, mask)
        if not self._values.varies(stmt.value):
            return LetStmt(stmt.var, value, self._each(stmt.body, mask))
        var = Var(stmt.var.name, with_lanes(stmt.var.dtype, self._lanes))
        self._values.define(stmt.var, var)
        return LetStmt(var, broadcast(value, self._lanes), self._tied_to(stmt.body, mask))

    def _allocate(self, stmt: Allocate, mask: Mask | None) -> Stmt:
        size = stmt.constant_size()
        if size is None or parse_dtype(stmt.dtype).lanes > 1:
            raise NoVectorFormError("storage of variable size inside a vector loop")
        # Lanes run at once, and each had the storage to itself.
        self._values.make_private(stmt.buffer_var, size)
        extents = (IntImm("int32", size * self._lanes),)
        return replace(stmt, extents=extents, body=self._tied_to(stmt.body, mask))

    def _tied_to(self, body: Stmt, mask: Mask | None) -> Stmt:
        self._tied += 1
        try:
            return self._each(body, mask)
        finally:
            self._tied -= 1
