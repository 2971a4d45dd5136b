"""Branches that may as well always be taken: what they do where their condition doesn't hold changes nothing.

    if i > 0: A[0] = A[0] + i * i     ->  A[0] = A[0] + i * i        i is 0 where the condition is false
    if c: A[i] = 1; else: A[i] = 1    ->  A[i] = 1

Then the local tiles of the pipeline's own pass of that name.
"""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import substitute, variables, walk
from ...tir.stmt import BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, is_no_op, seq
from ...tir.structural import structural_equal
from ..context import PassContext
from ..element_flow import ElementFlow, is_never_read, with_stored_values
from ..options import ReduceBranchingThroughOvercomputeConfig
from ..passes import Pass
from ..phase2.reduce_branching_through_overcompute import reduce_branching_through_overcompute
from ..rebuild import map_stmt
from ..scopes import inside_loop, under_conditions
from .simplify import stores_what_is_there


def ReduceBranchingThroughOvercompute() -> Pass:
    """Conditions dropped where computing more is proved to be harmless, and local tiles computed whole. For the end of phase 1."""

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        body = _Reducer().stmt(func.body)
        if ctx.option(ReduceBranchingThroughOvercomputeConfig).use_dataflow_analysis:
            body = _with_flow(body)
        return reduce_branching_through_overcompute(func.with_body(body), ctx)

    return Pass("tir.ReduceBranchingThroughOvercompute", run)


def _with_flow(body: Stmt) -> Stmt:
    """One branch dropped at a time: what it then stores may be what another one's proof was about."""
    while True:
        reducer = _Reducer(ElementFlow(body), ElementFlow(body, backwards=True))
        after = reducer.stmt(body)
        if after is body:
            return body
        body = after


class _Reducer:
    def __init__(self, stored: ElementFlow | None = None, unread: ElementFlow | None = None) -> None:
        self._analyzer = Analyzer()
        self._stored, self._unread = stored, unread
        self._done = False

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with fewer branches."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return map_stmt(stmt, self.stmt)
        result = map_stmt(stmt, self.stmt)
        if not isinstance(result, IfThenElse) or self._done:
            return result
        if result.else_case is not None:
            same = structural_equal(_stripped(result.then_case), _stripped(result.else_case))
            return result.then_case if same else result
        with under_conditions(self._analyzer, [~result.condition]):
            if not self._changes_nothing(result.then_case):
                return result
        self._done = self._stored is not None
        return result.then_case

    def _changes_nothing(self, stmt: Stmt) -> bool:
        if isinstance(stmt, SeqStmt):
            return all(map(self._changes_nothing, stmt.seq))
        if not isinstance(stmt, BufferStore) or stmt.predicate is not None:
            return isinstance(stmt, Evaluate) and is_no_op(stmt)
        if not all(self._inside(node) for node in (stmt, *walk(stmt)) if isinstance(node, (BufferLoad, BufferStore))):
            return False
        value, indices = self._known(stmt.value), tuple(map(self._known, stmt.indices))
        if self._stored is None or self._unread is None:
            return stores_what_is_there(BufferStore(stmt.buffer, value, indices))
        value = self._analyzer.simplify(with_stored_values(value, self._stored.known(stmt), self._analyzer))
        return stores_what_is_there(BufferStore(stmt.buffer, value, indices)) or is_never_read(
            BufferStore(stmt.buffer, value, indices), self._unread.known(stmt), self._analyzer
        )

    def _inside(self, access: BufferLoad | BufferStore) -> bool:
        """Whether an access stays within its buffer, also where the condition doesn't hold."""
        return all(
            self._analyzer.known_nonnegative(index) and self._analyzer.known_less(index, extent)
            for index, extent in zip(map(self._known, access.indices), access.buffer.shape, strict=True)
        )

    def _known(self, expr: PrimExpr) -> PrimExpr:
        """The expression with the values of variables that can have only one here."""
        values: dict[Var, PrimExpr] = {}
        for var in variables(expr):
            bound = self._analyzer.const_int_bound(var) if var.dtype in ("int32", "int64") else None
            if bound is not None and bound.min_value == bound.max_value:
                values[var] = IntImm(var.dtype, int(bound.min_value))
        return self._analyzer.simplify(substitute(expr, values))


def _stripped(stmt: Stmt) -> Stmt:
    return seq(*stmt.seq) if isinstance(stmt, SeqStmt) else stmt
