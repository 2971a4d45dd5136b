"""Trim reduction loops to the iterations that do something.

`for k in n: if c(i, k): C[i] += ...` does nothing where c fails. If c bounds k by an affine comparison whose other terms are
fixed outside the loop, the comparison becomes a bound of the loop: `for k in max(0, ..) .. min(n, ..)`. This is what peels
the borders of a padded convolution and the empty half of a triangular product. Conditions of imperfect splits (`likely`)
are left to loop partition, which keeps extents constant; loops over elements keep theirs too, as tiles of constant size
live in registers. (Halide trims loops in the same way, and names the pass so.)
"""

from __future__ import annotations

from collections.abc import Iterator

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import floordiv, maximum, minimum
from ...tir.expr import GE, GT, LE, LT, Call, CmpExpr, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import likely
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, seq
from ..context import PassContext
from ..rebuild import FreeVars, map_stmt, walk_statements
from ..scopes import inside_loop, under_conditions
from .guard_bounds import conjuncts, excess

_INDEX_DTYPES = ("int32", "int64")


def trim_no_ops(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with reduction loops trimmed; itself if no condition bounds one."""
    if not any(isinstance(s, IfThenElse) for s in walk_statements(func.body)):
        return func
    return func.with_body(_Trimmer().stmt(func.body))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Comparisons that bound a loop's variable, and the values from which on and below which they hold."""

    conditions: frozenset[CmpExpr]
    lows: tuple[PrimExpr, ...]
    highs: tuple[PrimExpr, ...]


class _Trimmer:
    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._free = FreeVars()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its loops trimmed, outermost first."""
        if isinstance(stmt, For):
            # Outermost first: the new bounds are facts for the loops inside.
            trimmed = self._trimmed(stmt) if stmt.kind is ForKind.SERIAL else stmt
            with inside_loop(self._analyzer, trimmed):
                body = self.stmt(trimmed.body)
            return trimmed if body is trimmed.body else replace(trimmed, body=body)
        if isinstance(stmt, IfThenElse) and stmt.else_case is None:
            with under_conditions(self._analyzer, [stmt.condition]):
                then_case = self.stmt(stmt.then_case)
            return stmt if then_case is stmt.then_case else replace(stmt, then_case=then_case)
        return map_stmt(stmt, self.stmt)

    def _trimmed(self, loop: For) -> For:
        bounds = self._bounds(loop)
        if not bounds.conditions:
            return loop
        begin, end = loop.min, loop.min + loop.extent
        for low in bounds.lows:
            begin = maximum(begin, low)
        for high in bounds.highs:
            end = minimum(end, high)
        begin, end = self._analyzer.simplify(begin), self._analyzer.simplify(end)
        # Bounds cross where no iteration does anything, as in the empty rows of a triangle: the extent is 0 then, not less.
        if not self._analyzer.known_less_equal(begin, end):
            end = self._analyzer.simplify(maximum(end, begin))
        return replace(loop, min=begin, extent=self._analyzer.simplify(end - begin), body=_without(loop.body, bounds.conditions))

    def _bounds(self, loop: For) -> _Bounds:
        found: dict[CmpExpr, PrimExpr] = {}
        lows: list[PrimExpr] = []
        highs: list[PrimExpr] = []
        for condition in self._conditions(loop):
            form = excess(condition)
            factor = form.coefficient_of(loop.loop_var)
            rest = form.without(loop.loop_var)
            # In k
            # 2 + k the variable is also in a term that isn't linear in it.
            if not factor or any(loop.loop_var in self._free(atom) for atom in rest.terms):
                continue
            dtype = condition.a.dtype
            if factor > 0:
                # factor*k + rest <= 0 is k <= -rest
                # factor, and the end is one further.
                value = floordiv(rest.scale(-1).to_expr(dtype), factor) + 1
            else:
                value = floordiv(rest.shift(-factor - 1).to_expr(dtype), -factor)
            (highs if factor > 0 else lows).append(value.astype(loop.loop_var.dtype))
            found[condition] = value
        return _Bounds(frozenset(found), tuple(lows), tuple(highs)) if found and self._reduces(loop) else _Bounds(frozenset(), (), ())

    def _reduces(self, loop: For) -> bool:
        """True if the loop stores the same elements in every iteration."""
        stores = (s for s in walk_statements(loop.body) if isinstance(s, BufferStore))
        return all(loop.loop_var not in self._free(index) for store in stores for index in store.indices)

    def _conditions(self, loop: For) -> Iterator[CmpExpr]:
        """The comparisons under which everything in the loop stands and which mean the same at the loop."""
        inner: set[Var] = set()
        for stmt in _chain(loop.body):
            if isinstance(stmt, For):
                inner.add(stmt.loop_var)
            if not isinstance(stmt, IfThenElse):
                continue
            for part, hinted in conjuncts(stmt.condition):
                used = self._free(part)
                if hinted or not isinstance(part, (LT, LE, GT, GE)) or part.a.dtype not in _INDEX_DTYPES:
                    continue
                if loop.loop_var in used and used.isdisjoint(inner) and not self._free.touches_memory(part):
                    yield part


def _chain(stmt: Stmt) -> Iterator[Stmt]:
    """The statements around all that a statement does, outermost first."""
    while True:
        match stmt:
            case For() | AttrStmt():
                yield stmt
                stmt = stmt.body
            case IfThenElse(else_case=None):
                yield stmt
                stmt = stmt.then_case
            # Two statements that work have guards of their own, and the loop serves both.
            case SeqStmt() if len(working := [part for part in stmt.seq if not _is_hint(part)]) == 1:
                stmt = working[0]
            case _:
                return


def _is_hint(stmt: Stmt) -> bool:
    """Whether a statement only asks for cache lines ahead, which an iteration that does nothing needn't."""
    if isinstance(stmt, For):
        return _is_hint(stmt.body)
    if isinstance(stmt, SeqStmt):
        return all(map(_is_hint, stmt.seq))
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.prefetch"


def _without(stmt: Stmt, known: frozenset[CmpExpr]) -> Stmt:
    """The chain of statements without the conditions that are known."""
    match stmt:
        case For() | AttrStmt():
            return replace(stmt, body=_without(stmt.body, known))
        case IfThenElse(else_case=None):
            kept = [likely(part) if hinted else part for part, hinted in conjuncts(stmt.condition) if part not in known]
            inner = _without(stmt.then_case, known)
            return IfThenElse(all_of(*kept), inner) if kept else inner
        case SeqStmt():
            return seq(*(part if _is_hint(part) else _without(part, known) for part in stmt.seq))
    return stmt
