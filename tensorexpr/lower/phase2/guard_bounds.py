"""Where guards hold: the affine side of `loop_partition`.

A guard is a comparison of integers that all variables of some loops enter. Its worst case over the inner loops says for
which values of an outer variable it holds throughout, its best case for which it can hold at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...arith import Linear, linear_form, relax
from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, replace
from ...te.affine_access import unclamped
from ...tir.arithmetic import floordiv, maximum, minimum
from ...tir.expr import GE, GT, LE, LT, And, BufferLoad, Call, CmpExpr, IntImm, Max, Min, PrimExpr, Range, Var
from ...tir.intrin import likely
from ...tir.rewriting import walk
from ...tir.stmt import For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..rebuild import FreeVars, operands, own_expressions, sub_statements
from ..scopes import inside_loop

_COMPARISONS = (LT, LE, GT, GE)
_INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition and the loops between the one in question and the condition, outermost first."""

    condition: CmpExpr
    inner: tuple[For, ...]


def conjuncts(condition: PrimExpr, hinted: bool = False) -> Iterator[tuple[PrimExpr, bool]]:
    """The parts of a conjunction, each with whether it is hinted as likely."""
    if isinstance(condition, And):
        yield from conjuncts(condition.a, hinted)
        yield from conjuncts(condition.b, hinted)
    elif isinstance(condition, Call) and condition.op == "tir.likely":
        yield from conjuncts(condition.args[0], True)
    else:
        yield condition, hinted


def guards(body: Stmt, every: bool, free: FreeVars, values: bool = False, clamps: bool = False) -> Iterator[Guard]:
    """The affine comparisons that guard statements in `body`, and values if `values` says so: the likely ones, or every one,
    and then those of values too; with `clamps` those that keep an index of a vector at its ends. What reads memory, or what a let inside
    the body binds, can't be decided outside."""
    stack: list[tuple[Stmt, tuple[For, ...], frozenset[Var]]] = [(body, (), frozenset())]
    while stack:
        stmt, inner, bound = stack.pop()
        conditions: list[PrimExpr] = []
        if isinstance(stmt, For):
            inner = (*inner, stmt)
        elif isinstance(stmt, LetStmt):
            bound |= {stmt.var}
        elif isinstance(stmt, IfThenElse):
            conditions.append(stmt.condition)
        if every or values:
            conditions += [call.args[0] for expr in own_expressions(stmt) for call in lazy_values(expr)]
        lanes = {loop.loop_var for loop in inner if loop.kind is ForKind.VECTORIZED} if clamps else set()
        if lanes:
            conditions += [likely(end) for end in ends_of_clamps(stmt) if not lanes.isdisjoint(free(end))]
        for condition in conditions:
            for part, hinted in conjuncts(condition):
                if not (hinted or every) or not isinstance(part, _COMPARISONS) or part.a.dtype not in _INDEX_DTYPES:
                    continue
                # The loop is cut where the condition changes, outside of the body, so it must mean the same there.
                if free(part).isdisjoint(bound) and not free.touches_memory(part):
                    yield Guard(part, inner)
        stack.extend((child, inner, bound) for child in reversed(list(sub_statements(stmt))))


def ends_of_clamps(stmt: Stmt) -> Iterator[CmpExpr]:
    """Where the indices of a statement's loads are within the constant ends at which they are kept.

    Example:
        X[max(min(x + k - 2, 191), 0)]: x + k - 2 >= 0, and x + k - 2 <= 191. Neighbours along x are neighbours in memory there.
    """
    for expr in own_expressions(stmt):
        for load in walk(expr):
            for index in load.indices if isinstance(load, BufferLoad) else ():
                for node in walk(index):
                    match node:
                        case Max(inner, IntImm() as end) | Max(IntImm() as end, inner):
                            yield GE(unclamped(inner), end)
                        case Min(inner, IntImm() as end) | Min(IntImm() as end, inner):
                            yield LE(unclamped(inner), end)


def lazy_values(root: PrimExpr) -> Iterator[Call]:
    """The if_then_else calls in an expression."""
    stack, seen = [root], set[PrimExpr]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            if isinstance(expr, Call) and expr.op == "tir.if_then_else":
                yield expr
            stack.extend(operands(expr))


def hints_values(stmt: Stmt) -> bool:
    """True if a value that the statement itself computes is chosen by a condition that is hinted as likely."""
    calls = (call for expr in own_expressions(stmt) for call in lazy_values(expr))
    return any(hinted for call in calls for _, hinted in conjuncts(call.args[0]))


def excess(condition: CmpExpr) -> Linear:
    """The form that is <= 0 where the comparison holds."""
    a, b = (condition.b, condition.a) if isinstance(condition, (GT, GE)) else (condition.a, condition.b)
    # Of integers, a < b is a - b + 1 <= 0.
    return linear_form(a).sub(linear_form(b)).shift(int(isinstance(condition, (LT, GT))))


class GuardBounds:
    """Questions about guards under what the analyzer knows."""

    def __init__(self, analyzer: Analyzer, free: FreeVars) -> None:
        self._analyzer = analyzer
        self._free = free

    def vars(self, form: Linear) -> set[Var]:
        """The variables of a form."""
        return set().union(*(self._free(atom) for atom in form.terms))

    def with_live_loops(self, found: Iterable[Guard]) -> list[Guard]:
        """The guards between loops that are cut to the iterations in which something runs; partition will cut them so."""
        known: dict[int, For] = {}

        # Once for each loop: several guards stand in one, and must see the same range.
        def cut(loop: For) -> For:
            if id(loop) not in known:
                live = self.live_range(loop)
                bounds = None if live is None or live[0] >= live[1] else (IntImm(loop.min.dtype, v) for v in (live[0], live[1] - live[0]))
                known[id(loop)] = loop if bounds is None else replace(loop, min=next(bounds), extent=next(bounds))
            return known[id(loop)]

        return [Guard(guard.condition, tuple(map(cut, guard.inner))) for guard in found]

    def worst_case(self, guard: Guard) -> Linear | None:
        """A form such that the guard holds for all iterations of the inner loops wherever the form is <= 0."""
        condition = guard.condition
        form = excess(condition)
        # From the inside out: an inner loop's bounds may need the variables of the loops around it, which come next.
        for loop in reversed(guard.inner):
            factor = form.coefficient_of(loop.loop_var)
            if factor:
                last = linear_form(loop.min).add(linear_form(loop.extent)).shift(-1)
                form = form.without(loop.loop_var).add(last if factor > 0 else linear_form(loop.min), factor)
        inner = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in guard.inner}
        if self.vars(form).isdisjoint(inner):
            return form
        # A variable inside another term, as j in (i * 4 + j) // 8, leaves what intervals say, which is less exact.
        interval = relax(excess(condition).to_expr(condition.a.dtype), inner, self._analyzer)
        if interval is None:
            return None
        form = linear_form(interval.max)
        return form if self.vars(form).isdisjoint(inner) else None

    def bound(self, loop: For, factor: int, rest: Linear, dtype: str) -> PrimExpr | None:
        """The value below which (positive factor), or from which on, factor*v + rest <= 0; within the loop's range."""
        if factor > 0:
            # v <= -rest / factor rounded down, or v >= rest / -factor rounded up.
            value = floordiv(rest.scale(-1).to_expr(dtype), factor) + 1
        else:
            value = floordiv(rest.shift(-factor - 1).to_expr(dtype), -factor)
        value = self._constant_or(self._analyzer.simplify(value)).astype(loop.loop_var.dtype)
        if isinstance(loop.extent, IntImm) and not isinstance(value, IntImm) and loop.kind is not ForKind.PARALLEL:
            return None  # a loop of constant extent is better guarded than of variable extent: it can be unrolled
        begin, end = loop.min, loop.min + loop.extent
        # A bound outside of the loop's range would make the parts run iterations that the loop hasn't.
        if not self._analyzer.known_less_equal(value, end):
            value = minimum(value, end)
        if not self._analyzer.known_less_equal(begin, value):
            value = maximum(value, begin)
        return self._analyzer.simplify(value)

    def _constant_or(self, expr: PrimExpr) -> PrimExpr:
        bound = self._analyzer.const_int_bound(expr)
        return IntImm(expr.dtype, bound.min_value) if bound.min_value == bound.max_value else expr

    def live_range(self, loop: For) -> tuple[int, int] | None:
        """The part [begin, end) of a constant loop outside which no statement of its body runs, if that is less than all."""
        # A vector loop keeps its lanes: which of them run is for masks to say.
        if not isinstance(loop.min, IntImm) or not isinstance(loop.extent, IntImm) or loop.kind is ForKind.VECTORIZED:
            return None
        if bound_tag(loop) in HARDWARE_TAGS:  # as many as the grid has, whatever some of them have to do
            return None
        whole = (loop.min.value, loop.min.value + loop.extent.value)
        with inside_loop(self._analyzer, loop):
            found = self._live(loop.body, loop.loop_var, whole)
        return None if found == whole else found

    def _live(self, stmt: Stmt, var: Var, whole: tuple[int, int]) -> tuple[int, int]:
        """The values of `var` in `whole` for which `stmt` may do something."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return self._live(stmt.body, var, whole)
        if isinstance(stmt, SeqStmt):
            parts = [(low, high) for low, high in (self._live(part, var, whole) for part in stmt.seq) if low < high]
            return (min(low for low, _ in parts), max(high for _, high in parts)) if parts else (whole[0], whole[0])
        # With an else case something happens for every value.
        if not isinstance(stmt, IfThenElse) or stmt.else_case is not None:
            return whole
        low, high = whole
        for part, hinted in conjuncts(stmt.condition):
            if hinted and isinstance(part, _COMPARISONS) and var in self._free(part) and part.a.dtype in _INDEX_DTYPES:
                form = excess(part)
                factor = form.coefficient_of(var)
                rest = form.without(var)
                if factor and var not in self.vars(rest):
                    # The guard is factor * var + rest <= 0: with the least that rest can be, no value beyond the bound passes.
                    least = self._analyzer.const_int_bound(rest.to_expr(part.a.dtype)).min_value
                    if factor > 0:
                        high = min(high, -least // factor + 1)
                    else:
                        low = max(low, -(-least // -factor))
        return low, max(low, high)
