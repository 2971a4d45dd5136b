"""Computations that stand in several places, done once and given a name.

    A[0] = (x + y) * (x + y)               cse_var_2 = x + y
    A[1] = (x + y) * (x + y) + 1    ->     cse_var_1 = cse_var_2 * cse_var_2
                                           A[0] = cse_var_1
                                           A[1] = cse_var_1 + 1

Each is named in front of the outermost statement that does it more than once and where its variables have their values, larger
ones first. What depends on memory, calls or might divide by zero stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar, cast

from ...arith.index_analyzer import Analyzer
from ...tir.expr import (
    Broadcast,
    BufferLoad,
    Call,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mod,
    PrimExpr,
    Ramp,
    StringImm,
    Var,
)
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, children, post_order_rewrite, variables, walk
from ...tir.scopes import parts
from ...tir.stmt import LetStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, own_expressions, walk_statements

_N = TypeVar("_N", bound=Node)
_LEAVES = (Var, IntImm, FloatImm, StringImm)
_STAYING = (Call, BufferLoad, Let)
_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


def CommonSubexprElimTIR(enable_cse_tir: bool = True, identify_equiv_terms: bool = False) -> Pass:
    """Repeated computations as `cse_var_1`, `cse_var_2`, ...

    Args:
        enable_cse_tir: False leaves functions as they are.
        identify_equiv_terms: computations that simplify to the same count as the same.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_Eliminator(identify_equiv_terms).stmt(func.body)) if enable_cse_tir else func

    return Pass("tir.CommonSubexprElimTIR", run)


class _Eliminator:
    def __init__(self, equivalent: bool) -> None:
        self._key: Callable[[PrimExpr], PrimExpr] = Analyzer().simplify if equivalent else lambda expr: expr
        self._count = 0

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with names for what it repeats."""
        bound = {var for inner in walk_statements(stmt) for var in _defined(inner)}
        lets: list[tuple[Var, PrimExpr]] = []
        waiting = _Computations(self._key)
        for inner in walk_statements(stmt):
            for expr in own_expressions(inner):
                for found in _largest(expr):
                    waiting.add(found)
        for expr, count in waiting:
            # What uses a variable bound in here is named further in, where that one has a value.
            if count > 1 and not variables(expr) & bound:
                self._count += 1
                var = Var(f"cse_var_{self._count}", expr.dtype)
                stmt = self._replaced(stmt, expr, var)
                # Larger computations that were named before may hold this one.
                lets = [(name, self._replaced(value, expr, var)) for name, value in lets]
                lets.append((var, expr))
            for part in children(expr):
                if isinstance(part, PrimExpr):
                    for found in _largest(part):
                        waiting.add(found)
        result = map_stmt(stmt, self.stmt)
        # The smallest were named last and so stand outermost: the larger ones are made of them.
        for var, value in lets:
            result = LetStmt(var, value, result)
        return result

    def _replaced(self, node: _N, expr: PrimExpr, var: Var) -> _N:
        key = self._key(expr)

        def rule(n: Node) -> Node | None:
            same = n is expr or (isinstance(n, PrimExpr) and n.dtype == expr.dtype and _may_be_named(n) and self._key(n) is key)
            return var if same else None

        return cast(_N, post_order_rewrite(node, rule))


class _Computations:
    """Computations and how often they are done, larger ones first; more may be added while it is walked."""

    def __init__(self, key: Callable[[PrimExpr], PrimExpr]) -> None:
        self._key = key
        self._order: list[PrimExpr] = []
        self._counts: dict[PrimExpr, int] = {}

    def add(self, expr: PrimExpr) -> None:
        """One more `expr`."""
        key = self._key(expr)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] == 1:
            size = _size(expr)
            # Behind those of its size, so that of equal ones the first in the text is named first.
            place = next((n for n, other in enumerate(self._order) if _size(other) < size), len(self._order))
            self._order.insert(place, expr)

    def __iter__(self) -> Iterator[tuple[PrimExpr, int]]:
        place = 0
        while place < len(self._order):
            expr = self._order[place]
            yield expr, self._counts[self._key(expr)]
            place += 1


def _defined(stmt: Stmt) -> Iterator[Var]:
    """The variables that a statement binds, in its expressions too."""
    yield from parts(stmt).defines
    for expr in own_expressions(stmt):
        yield from (node.var for node in walk(expr) if isinstance(node, Let))


def _largest(expr: PrimExpr) -> Iterator[PrimExpr]:
    """The largest parts of an expression that may have names."""
    if _may_be_named(expr):
        yield expr
        return
    for part in children(expr):
        if isinstance(part, PrimExpr):
            yield from _largest(part)


@lru_cache(4096)
def _may_be_named(expr: PrimExpr) -> bool:
    if isinstance(expr, (*_LEAVES, Ramp, Broadcast)):
        return False
    # Stores change what loads give, and a division in front of its condition could be one by 0.
    return not any(isinstance(node, _STAYING) or (isinstance(node, _DIVISIONS) and not _by_constant(node)) for node in walk(expr))


def _by_constant(node: Div | Mod | FloorDiv | FloorMod) -> bool:
    return isinstance(node.b, FloatImm) or (isinstance(node.b, IntImm) and node.b.value != 0)


@lru_cache(4096)
def _size(expr: PrimExpr) -> int:
    return 1 + sum(_size(part) for part in children(expr) if isinstance(part, PrimExpr))
