"""Compute what a loop doesn't change in front of it: loads, divisions and calls, bound by a let.

Only values that each iteration computes anyway leave, only out of loops that run at least once, and only as many as
registers can hold. Index arithmetic stays: code generation places its terms loop by loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...arith.analyzer import Analyzer
from ...tir.dtype import parse_dtype
from ...tir.expr import And, BufferLoad, Call, Div, Let, Or, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import intrinsic_of
from ...tir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, While
from ..context import PassContext
from ..rebuild import FreeVars, map_stmt, operands, own_expressions, pointer_scope, sub_statements, walk_statements, with_values
from ..register_file import RegisterFile
from ..scopes import inside_loop


def hoist_expression(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with invariant values in front of their loops; itself if there are none."""
    return func.with_body(_Hoister(RegisterFile.of(func), func.body).stmt(func.body))


_OPERANDS = 4
"""Registers that a loop over a register tile needs besides the tile."""


class _Hoister:
    def __init__(self, registers: RegisterFile, root: Stmt) -> None:
        self._registers = registers
        self._free = FreeVars()
        self._analyzer = Analyzer()
        self._budget = registers.count // 4  # the rest is for what the loops work with
        self._tiles: dict[Var, int] = {}
        for stmt in walk_statements(root):
            if isinstance(stmt, Allocate) and pointer_scope(stmt.buffer_var) == "register":
                self._tiles[stmt.buffer_var] = (stmt.constant_size() or 0) * registers.needed(stmt.dtype)

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with invariant values in front of its loops."""
        if not isinstance(stmt, For):
            return map_stmt(stmt, self.stmt)
        # Outer loops first: a value that leaves both needs one register, not one for each.
        lets = self._invariants(stmt)
        result: Stmt = replace(stmt, body=with_values(stmt.body, lets)) if lets else stmt
        with inside_loop(self._analyzer, stmt):
            result = map_stmt(result, self.stmt)
        cost = sum(self._registers.needed(value.dtype) for value in lets)
        # Behind the loop its values' registers are free again.
        self._budget += cost
        for value, var in reversed(lets.items()):
            result = LetStmt(var, value, result)
        return result

    def _runs(self, loop: For) -> bool:
        return self._analyzer.known_true(loop.extent > 0)

    def _invariants(self, loop: For) -> dict[PrimExpr, Var]:
        """The values worth computing in front of `loop`, each with the variable that will hold it. Takes their registers."""
        if loop.kind is not ForKind.SERIAL or not self._budget or not self._runs(loop):
            return {}
        body = _Body(loop, self._free)
        # Accumulators that this loop works on, which have to stay in registers throughout.
        tiles = sum(self._tiles.get(data, 0) for data in body.changing)
        # A value that pushes an accumulator out to the stack costs more in every iteration than computing it again.
        budget = min(self._budget, self._registers.count - tiles - _OPERANDS)
        found: dict[PrimExpr, Var] = {}
        for expr in body.surely_computed(self._runs):
            for value in body.invariant_parts(expr):
                needed = self._registers.needed(value.dtype)
                if value not in found and needed <= budget:
                    budget -= needed
                    self._budget -= needed
                    found[value] = Var("fixed", value.dtype)
        return found


class _Body:
    """What a loop's body binds and writes."""

    def __init__(self, loop: For, free: FreeVars) -> None:
        self._loop = loop
        self._free = free
        self.changing: set[Var] = {loop.loop_var}
        for stmt in walk_statements(loop.body):
            match stmt:
                case For():
                    self.changing.add(stmt.loop_var)
                case LetStmt():
                    self.changing.add(stmt.var)
                case BufferStore():
                    self.changing.add(stmt.buffer.data)
                case Allocate():
                    self.changing.add(stmt.buffer_var)
                case Evaluate():  # may write whatever it is given
                    self.changing |= {var for var in free(stmt.value) if var.dtype == "handle"}

    def surely_computed(self, runs: Callable[[For], bool]) -> Iterator[PrimExpr]:
        """The expressions that every iteration of the loop evaluates."""
        stack = [self._loop.body]
        while stack:
            stmt = stack.pop()
            # Its condition and body may never be evaluated, and what it tests changes in its course.
            if isinstance(stmt, While):
                continue
            yield from own_expressions(stmt)
            # What may not run must not be moved: a load in front of the loop would happen though its guard says no.
            if not isinstance(stmt, IfThenElse) and (not isinstance(stmt, For) or runs(stmt)):
                stack.extend(reversed(list(sub_statements(stmt))))

    def invariant_parts(self, root: PrimExpr) -> Iterator[PrimExpr]:
        """The largest parts of an expression that the loop doesn't change and that cost something."""
        stack = [root]
        while stack:
            expr = stack.pop()
            # Integers without loads are addresses mostly: LLVM moves them itself and folds them into the accesses.
            if isinstance(expr, Let) or (not self._free.touches_memory(expr) and parse_dtype(expr.dtype).is_int):
                continue
            if self._free(expr).isdisjoint(self.changing):
                if self._is_costly(expr):
                    yield expr
                continue
            lazy = isinstance(expr, (And, Or)) or (isinstance(expr, Call) and expr.op == "tir.if_then_else")
            parts = list(operands(expr))
            stack.extend(parts[:1] if lazy else parts)

    def _is_costly(self, root: PrimExpr) -> bool:
        """True for what reads memory (not registers), divides floats or calls a function, without side effects."""
        costly = False
        stack = [root]
        while stack:
            expr = stack.pop()
            if isinstance(expr, BufferLoad):
                if expr.buffer.scope() == "register":
                    return False
                costly = True
            elif isinstance(expr, Call):
                row = intrinsic_of(expr)
                if not row.pure or expr.op == "tir.call_pure_extern":
                    return False
                costly = costly or row.kind == "float"
            elif isinstance(expr, Div) and parse_dtype(expr.dtype).is_float:
                costly = True
            stack.extend(operands(expr))
        return costly
