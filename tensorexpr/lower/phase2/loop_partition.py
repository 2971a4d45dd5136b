"""Cut loops where their guards start or stop to hold, so that the main part runs without any.

A guard of an imperfect split holds for all but the last iterations of some loop. The worst case of the guard over the
loops further in is an affine condition on that loop's variable, hence an interval of iterations that need no guard:
one body for it, one for what is left on either side. Parallel loops, and conditions that aren't affine in the variable
(fused axes), keep one loop that chooses between the two bodies: a second parallel region would cost more than the test.
Where two axes of a fused loop have guards, each edge has a body, in which the number of its block is a constant:

    for f in parallel(64):                          if f < 56 and f % 8 < 7: ...
        if f // 8 * 4 + i < 30:             ->      else if f < 56: if f // 8 * 4 + i < 30 becomes true, f % 8 becomes 7
            if f % 8 * 4 + j < 31: ...              else: f // 8 becomes 7, and i < 2
Vector loops are never cut: their guards become masks. The program may grow by a bounded factor.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field, replace
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import maximum, minimum
from ...tir.attrs import FrozenMap
from ...tir.expr import Call, CmpExpr, FloorDiv, FloorMod, IntImm, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.intrin import if_then_else, likely
from ...tir.stmt import NOP, BufferStore, Evaluate, For, ForKind, IfThenElse, Stmt, is_no_op, seq
from ..context import PassContext
from ..options import LoopPartitionConfig
from ..pragmas import PARTITION_HINT
from ..rebuild import Copier, FreeVars, map_expr, map_stmt, walk_statements
from ..scopes import inside_loop, under_conditions
from .extrema import Extrema
from .guard_bounds import Guard, GuardBounds, conjuncts, ends_of_clamps, guards, hints_values, lazy_values

# Stores and calls that any program may grow by: a multiple of a single store's size would forbid its first cut.
_SMALL_PROGRAM = 64


def loop_partition(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with guarded loops cut into parts; itself if there are no guards."""
    option = ctx.option(LoopPartitionConfig)
    if not option.partition_const_loop and not any(_is_candidate(s) for s in walk_statements(func.body)):
        return func
    return func.with_body(_Partitioner(option, _leaves(func.body), _shape_facts(func)).whole(func.body))


def drop_proved_guards(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without the guards of splits that always hold; its loops stay as they are."""
    if not any(_is_candidate(stmt) for stmt in walk_statements(func.body)):
        return func
    return func.with_body(_Partitioner(LoopPartitionConfig(), 0, _shape_facts(func), cuts=False).whole(func.body))


def _shape_facts(func: PrimFunc) -> list[PrimExpr]:
    """No symbolic extent of a parameter is negative."""
    extents = {extent: None for buffer in func.buffer_map.values() for extent in buffer.shape if not isinstance(extent, IntImm)}
    return [extent >= 0 for extent in extents]


def _is_candidate(stmt: Stmt) -> bool:
    return (
        isinstance(stmt, IfThenElse)
        or (isinstance(stmt, For) and PARTITION_HINT in stmt.annotations)
        or hints_values(stmt)
        or _clamps(stmt)
    )


def _clamps(stmt: Stmt) -> bool:
    """Whether a vector loop reads at indices that are held between ends."""
    is_vector = isinstance(stmt, For) and stmt.kind is ForKind.VECTORIZED
    return is_vector and any(next(ends_of_clamps(inner), None) is not None for inner in walk_statements(stmt))


def _leaves(stmt: Stmt) -> int:
    return sum(isinstance(s, (BufferStore, Evaluate)) for s in walk_statements(stmt))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where a loop's guards all hold: in [low, high) of its variable, or, if that is no interval, where the `tests` of all do.

    `again`: these are some of the guards only, and both parts may be cut once more for the others.
    """

    guards: tuple[CmpExpr, ...]
    low: PrimExpr | None
    high: PrimExpr | None
    tests: tuple[PrimExpr, ...]
    again: bool = False

    @property
    def test(self) -> PrimExpr:
        """All tests as one."""
        return all_of(*self.tests)


@dataclass(slots=True)
class _Found:
    """What several guards ask of one loop: those that always hold, bound the variable, or hold where a test does."""

    always: list[CmpExpr] = field(default_factory=list)
    lows: list[PrimExpr] = field(default_factory=list)
    highs: list[PrimExpr] = field(default_factory=list)
    bounding: dict[CmpExpr, PrimExpr] = field(default_factory=dict)
    upper: set[CmpExpr] = field(default_factory=set)
    testing: dict[CmpExpr, PrimExpr] = field(default_factory=dict)


class _CopierOfOneBlock(Copier):
    """A copier that knows which quotients and remainders of fused variables can have one value only."""

    def __init__(self, mapping: dict[Var, PrimExpr], analyzer: Analyzer) -> None:
        super().__init__(mapping)
        self._analyzer = analyzer

    def _copied(self, expr: PrimExpr) -> PrimExpr:
        result = super()._copied(expr)
        # Of a plain variable: f // 8 and f % 8, which number the blocks of a fused axis.
        if isinstance(result, (FloorDiv, FloorMod)) and isinstance(result.a, Var):
            bound = self._analyzer.const_int_bound(result)
            if bound.min_value == bound.max_value:
                return IntImm(result.dtype, bound.min_value)
        return result


class _Partitioner:
    def __init__(self, option: LoopPartitionConfig, leaves: int, facts: Sequence[PrimExpr] = (), cuts: bool = True) -> None:
        self._cuts = cuts
        self._analyzer = Analyzer()
        for fact in facts:
            with self._analyzer.constraint_scope(fact):
                # The scope takes its fact back at its end; what is known of shapes holds for the whole function.
                known = self._analyzer.facts
            self._analyzer.facts = known
        self._free = FreeVars()
        self._bounds = GuardBounds(self._analyzer, self._free)
        self._all_guards = option.partition_const_loop
        self._extrema: Extrema | None = None
        self._values = False
        self._growth = max(_SMALL_PROGRAM, leaves * (option.max_growth - 1))
        self._assumed: set[PrimExpr] = set()

    def whole(self, root: Stmt) -> Stmt:
        """The body of a function with its loops partitioned."""
        extrema = Extrema(self._analyzer)
        self._extrema = extrema if extrema.occur(root) else None
        self._values = any(hints_values(stmt) for stmt in walk_statements(root))
        return self.stmt(root)

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with its loops partitioned."""
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, IfThenElse):
            return self._branch(stmt)
        return map_stmt(stmt, self.stmt, self._expr if self._decides_values else None)

    @property
    def _decides_values(self) -> bool:
        return self._all_guards or self._values or self._extrema is not None

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        """A value without the conditions and extrema that are decided here."""
        if self._extrema is not None:
            expr = self._extrema.settled(expr)
        if not (self._all_guards or self._values) or next(lazy_values(expr), None) is None:
            return expr
        result = map_expr(expr, self._expr)
        if not isinstance(result, Call) or result.op != "tir.if_then_else":
            return result
        condition, true_value, false_value = result.args
        parts = list(conjuncts(condition))
        # One part that is false decides, whatever the others need.
        if any(self._is_known(~part, hint) for part, hint in parts):
            return false_value
        kept = [(part, hint) for part, hint in parts if part not in self._assumed and not self._is_known(part, hint)]
        if len(kept) == len(parts):
            return result
        return if_then_else(all_of(*(likely(part) if hint else part for part, hint in kept)), true_value, false_value)

    def _branch(self, stmt: IfThenElse) -> Stmt:
        """The guard without what is known here; unless asked for, only hinted conditions are worth the proof."""
        parts = list(conjuncts(stmt.condition))
        kept = [(part, hint) for part, hint in parts if part not in self._assumed and not self._is_known(part, hint)]
        if any(self._is_known(~part, hint) for part, hint in kept):
            return NOP if stmt.else_case is None else self.stmt(stmt.else_case)
        if not kept:
            return self.stmt(stmt.then_case)
        condition = stmt.condition if len(kept) == len(parts) else all_of(*(likely(part) if hint else part for part, hint in kept))
        # The else case gets no fact: that a conjunction fails says of no part that it does.
        with under_conditions(self._analyzer, [condition]):
            then_case = self.stmt(stmt.then_case)
        else_case = None if stmt.else_case is None else self.stmt(stmt.else_case)
        if condition is stmt.condition and then_case is stmt.then_case and else_case is stmt.else_case:
            return stmt
        if is_no_op(then_case) and else_case is None:
            return NOP
        return IfThenElse(condition, then_case, else_case)

    def _is_known(self, condition: PrimExpr, hint: bool) -> bool:
        return (hint or self._all_guards) and self._analyzer.known_true(condition)

    def _loop(self, loop: For) -> Stmt:
        if not self._cuts:
            return self._whole(loop)
        if PARTITION_HINT not in loop.annotations:
            return self._cut_loop(loop)
        # The hint asks for guards without `likely`, too: inside as well, where most of them stand.
        outer, self._all_guards = self._all_guards, True
        kept = FrozenMap({key: value for key, value in loop.annotations.items() if key != PARTITION_HINT})
        result = self._cut_loop(replace(loop, annotations=kept))
        self._all_guards = outer
        return result

    def _cut_loop(self, loop: For) -> Stmt:
        if self._extrema is not None:
            # Before the guards are looked at: a minimum that is decided may decide them.
            with inside_loop(self._analyzer, loop):
                loop = replace(loop, body=self._extrema.settled_in(loop.body))
        # Iterations in which nothing runs go first: without them the guards may hold throughout, and there is nothing to cut.
        live = self._bounds.live_range(loop)
        if live is not None:
            begin, extent = (IntImm(loop.min.dtype, value) for value in (live[0], live[1] - live[0]))
            if extent.value <= 0:
                return NOP
            if extent.value == 1 and not loop.annotations:
                return self.stmt(Copier({loop.loop_var: begin}).stmt(loop.body))
            loop = replace(loop, min=begin, extent=extent)
        cut = self._find_cut(loop)
        if cut is None:
            return self._whole(loop)
        # Those that are assumed further out must stay assumed when this loop is done.
        known = [guard for guard in cut.guards if guard not in self._assumed]
        self._assumed.update(known)
        # No test is left: all guards of the cut hold in every iteration, and the loop stays whole.
        result = self._whole(loop) if isinstance(cut.test, IntImm) else self._parts(loop, cut, known)
        self._assumed.difference_update(known)
        return result

    def _whole(self, loop: For) -> Stmt:
        with inside_loop(self._analyzer, loop):
            body = self.stmt(loop.body)
        if is_no_op(body):
            return NOP
        return loop if body is loop.body else replace(loop, body=body)

    def _parts(self, loop: For, cut: _Cut, known: list[CmpExpr]) -> Stmt:
        interval = cut.low is not None or cut.high is not None
        begin, end = loop.min, loop.min + loop.extent
        low = begin if cut.low is None else cut.low
        high = end if cut.high is None else cut.high
        if loop.kind is ForKind.PARALLEL or not interval:
            return self._chosen(loop, cut, known, Range.from_min_extent(low, high - low) if interval else None)
        # A part may decide extrema, as those in the starts of balanced tiles, and with them more guards.
        settles = self._extrema is not None and all(isinstance(bound, IntImm) for bound in (low, high, loop.extent))
        again = cut.again or settles
        main = replace(loop, min=low, extent=self._analyzer.simplify(high - low))
        body = self._cut_loop(main) if again else self._whole(main)
        before = NOP if cut.low is None else self._rest(loop, begin, low, again)
        after = NOP if cut.high is None else self._rest(loop, high, end, again)
        return seq(before, body, after)

    def _rest(self, loop: For, begin: PrimExpr, end: PrimExpr, again: bool) -> Stmt:
        """A guarded copy of the loop for [begin, end)."""
        extent = self._analyzer.simplify(end - begin)
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NOP
        # An annotation asks for something of the loop, so a loop has to be left.
        if isinstance(extent, IntImm) and extent.value == 1 and not loop.annotations:
            return self.stmt(Copier({loop.loop_var: begin}).stmt(loop.body))
        # A fresh variable makes the copy's guards other expressions than those that are assumed for the main part.
        copied = Copier({}).stmt(replace(loop, min=begin, extent=extent))
        assert isinstance(copied, For)
        return self._cut_loop(copied) if again else self._whole(copied)

    def _chosen(self, loop: For, cut: _Cut, known: list[CmpExpr], interval: Range | None) -> Stmt:
        """One loop around `if test: main body else: guarded body`; a shorter loop if the else part does nothing."""
        with inside_loop(self._analyzer, loop):
            with under_conditions(self._analyzer, [cut.test]):
                main = self.stmt(loop.body)
            self._assumed.difference_update(known)
            # In the same loop the rest may have the very same guards, and there they don't always hold: none may be assumed.
            rest = self._remainder(loop, cut, interval)
        if is_no_op(rest) and interval is not None:
            return replace(loop, min=interval.min, extent=self._analyzer.simplify(interval.extent), body=main)
        return replace(loop, body=IfThenElse(cut.test, main, None if is_no_op(rest) else rest))

    def _remainder(self, loop: For, cut: _Cut, interval: Range | None) -> Stmt:
        """The guarded body where the test fails; a single iteration that is left is a constant."""
        # 2**n combinations, less the one in which all hold (the main body) and the one body that the rest has anyway.
        growth = _leaves(loop.body) * ((1 << len(cut.tests)) - 2)
        if interval is None and len(cut.tests) > 1 and growth <= self._growth:
            # Paid before the bodies are made, as loops inside of them draw on the same account.
            self._growth -= growth
            return self._edges(loop, cut.tests)
        mapping: dict[Var, PrimExpr] = {}
        with under_conditions(self._analyzer, [~cut.test]):
            left = self._analyzer.const_int_bound(loop.loop_var)
            if interval is not None and left.min_value == left.max_value:
                mapping[loop.loop_var] = IntImm(loop.loop_var.dtype, left.min_value)
            return self.stmt(Copier(mapping).stmt(loop.body))

    def _edges(self, loop: For, tests: Sequence[PrimExpr], one_fails: bool = True) -> Stmt:
        """The body for every combination of tests that hold or don't; with `one_fails` but for the one in which all hold."""
        if not tests:
            return self.stmt(_CopierOfOneBlock({}, self._analyzer).stmt(loop.body))
        test, *others = tests
        # Under the tests that failed before, this one may be decided.
        if self._analyzer.known_true(~test):
            return self._edges(loop, others, False)
        with under_conditions(self._analyzer, [~test]):
            failed = self._edges(loop, others, False)
        # All tests before this one hold, so this one fails: to ask it would add a branch that is never taken.
        if one_fails and not others:
            return failed
        with under_conditions(self._analyzer, [test]):
            held = self._edges(loop, others, one_fails)
        return NOP if is_no_op(held) and is_no_op(failed) else IfThenElse(test, held, None if is_no_op(failed) else failed)

    def _find_cut(self, loop: For) -> _Cut | None:
        if loop.kind in (ForKind.VECTORIZED, ForKind.THREAD_BINDING):
            return None
        found_guards = guards(loop.body, self._all_guards, self._free, self._values, clamps=self._extrema is not None)
        open_guards = [guard for guard in found_guards if guard.condition not in self._assumed]
        if not open_guards:
            return None
        found = _Found()
        with inside_loop(self._analyzer, loop):
            for guard in self._bounds.with_live_loops(open_guards):
                self._consider(loop, guard, found)
        return self._chosen_cut(loop, found)

    def _chosen_cut(self, loop: For, found: _Found) -> _Cut | None:
        """The cut that serves most guards within what the program may still grow; parallel loops test, others prefer an interval."""
        tests = {**found.bounding, **found.testing} if loop.kind is ForKind.PARALLEL else found.bounding or found.testing
        low = high = None
        # Only if all tests are bounds does an interval say everything.
        if len(tests) == len(found.bounding):
            low, high = self._joined(maximum, found.lows), self._joined(minimum, found.highs)
        both = low is not None and high is not None
        # One copy of the body for each side on which something is left.
        growth = _leaves(loop.body) * (2 if both else 1)
        if both and self._is_crossed(loop, low, high) and growth <= self._growth:
            # i >= 4 and i < 3 in 7 iterations: cut at 3, then both parts have one border. One copy now, theirs are counted with their cuts.
            self._growth -= growth // 2
            tests = {guard: test for guard, test in tests.items() if guard in found.upper}
            return _Cut((*found.always, *tests), None, high, tuple(tests.values()), again=True)
        # Bounds that may cross would make an extent below 0, and the rests would overlap.
        may_cross = low is not None and high is not None and not self._analyzer.known_less(low, high)
        if tests and (growth > self._growth or may_cross):
            tests, low, high = {}, None, None
        if tests:
            self._growth -= growth
        settled = (*found.always, *tests)
        return _Cut(settled, low, high, tuple(dict.fromkeys(tests.values()))) if settled else None

    def _is_crossed(self, loop: For, low: PrimExpr | None, high: PrimExpr | None) -> bool:
        """True if a serial loop has no iteration without guards, as each is at one border or at both."""
        if loop.kind is not ForKind.SERIAL or not isinstance(low, IntImm) or not isinstance(high, IntImm):
            return False
        inside = self._analyzer.known_less(loop.min, high) and self._analyzer.known_less(high, loop.min + loop.extent)
        return inside and high.value <= low.value

    def _joined(self, op: object, bounds: list[PrimExpr]) -> PrimExpr | None:
        if not bounds:
            return None
        total = bounds[0]
        for bound in bounds[1:]:
            total = op(total, bound)  # type: ignore[operator]
        return self._analyzer.simplify(total)

    def _consider(self, loop: For, guard: Guard, found: _Found) -> None:
        """Note what `guard` needs of the loop's variable, if that leaves a main part worth having."""
        worst = self._bounds.worst_case(guard)
        if worst is None:
            return
        dtype = guard.condition.a.dtype
        test = worst.to_expr(dtype) <= 0
        if self._analyzer.known_true(test):
            found.always.append(guard.condition)
        # Not the loop to cut, or one in which the worst case always fails: no iteration would be without a guard.
        elif loop.loop_var not in self._bounds.vars(worst) or self._analyzer.known_true(~test):
            return
        # The variable is in another term, too, as in i // 8 * 4 + i: the condition can't be solved for it.
        elif loop.loop_var in self._bounds.vars(worst.without(loop.loop_var)):
            if self._spares_tests(guard):
                found.testing[guard.condition] = self._analyzer.simplify(test)
        else:
            factor = worst.coefficient_of(loop.loop_var)
            value = self._bounds.bound(loop, factor, worst.without(loop.loop_var), dtype)
            if value is not None:
                (found.highs if factor > 0 else found.lows).append(value)
                if factor > 0:
                    found.upper.add(guard.condition)
                found.bounding[guard.condition] = self._analyzer.simplify(test)
            elif self._spares_tests(guard):
                found.testing[guard.condition] = self._analyzer.simplify(test)

    def _spares_tests(self, guard: Guard) -> bool:
        """True if testing a guard's worst case further out replaces several tests inside."""
        used = self._free(guard.condition)
        return any(inner.loop_var in used for inner in guard.inner)
