"""min and max that a part of a cut loop decides: in tiles below r, min(tile, r) is the tile."""

from __future__ import annotations

from ...arith.analyzer import Analyzer
from ...tir.expr import Max, Min, PrimExpr
from ...tir.stmt import Stmt
from ..rebuild import map_expr, map_stmt, operands, own_expressions, walk_statements


class Extrema:
    """Settles min and max under what the analyzer knows at the moment."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._contains: dict[PrimExpr, bool] = {}

    def occur(self, root: Stmt) -> bool:
        """True if a statement computes with min or max of integers anywhere."""
        return any(self._has(expr) for stmt in walk_statements(root) for expr in own_expressions(stmt))

    def _has(self, expr: PrimExpr) -> bool:
        known = self._contains.get(expr)
        if known is None:
            own = isinstance(expr, (Min, Max)) and expr.dtype in ("int32", "int64")
            known = self._contains[expr] = own or any(self._has(operand) for operand in operands(expr))
        return known

    def settled(self, expr: PrimExpr) -> PrimExpr:
        """`expr` without the min and max of integers that are decided; the integer expressions around them are simplified."""
        if not self._has(expr):
            return expr
        if expr.dtype in ("int32", "int64"):
            return self._index(expr)
        return map_expr(expr, self.settled)

    def settled_in(self, stmt: Stmt) -> Stmt:
        """A statement with all its expressions settled by what is known outside it."""
        return map_stmt(stmt, self.settled_in, self.settled) if self.occur(stmt) else stmt

    def _index(self, expr: PrimExpr) -> PrimExpr:
        result = self._decided(expr)
        # A decided minimum lets the sums around it cancel.
        return expr if result is expr else self._analyzer.simplify(result)

    def _decided(self, expr: PrimExpr) -> PrimExpr:
        if not self._has(expr):
            return expr
        result = map_expr(expr, self._decided)
        if isinstance(result, (Min, Max)):
            if self._analyzer.known_less_equal(result.a, result.b):
                return result.a if isinstance(result, Min) else result.b
            if self._analyzer.known_less_equal(result.b, result.a):
                return result.b if isinstance(result, Min) else result.a
        return result
