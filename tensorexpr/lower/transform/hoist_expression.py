"""Conditions and bindings out of the loops that don't change them.

    for i:                                   for i:
        for j:                                   if i < 3:
            if i < 3 and j < 2: A[j] = 0  ->         for j:
                                                         if j < 2: A[j] = 0

An expression leaves the loops that its variables are not defined in, through other conditions, bindings and allocations
on the way. A sequence of statements stops it, as each of the others would have to be written twice; so does the launch
of threads, unless the context says otherwise. What reads memory, may trap or has effects stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Flag

from ...dataclass import dataclass, field
from ...tir.dtype import parse_dtype
from ...tir.expr import And, Call, Div, FloorDiv, FloorMod, IntImm, IterVar, Let, Mod, Or, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, For, IfThenElse, LetStmt, SeqStmt, Stmt
from ...tir.thread import bound_tag
from ..context import PassContext
from ..options import HoistExpressionConfig
from ..passes import Pass
from ..rebuild import Copier, FreeVars, map_expr, map_stmt, operands, own_expressions, sub_statements
from .remove_no_op import without_no_ops
from .simplify import is_pure, simplified


class HoistedConditionals(Flag):
    """The conditions that `HoistExpression` moves: the value of the option `hoisted_conditionals`."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = 15


class HoistedLetBindings(Flag):
    """The bindings that `HoistExpression` moves: the value of the option `hoisted_let_bindings`."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = 7


def HoistExpression() -> Pass:
    """Invariant conditions and bindings outside their loops, then simplified; `tir.HoistExpression` of the context says which.

    A condition of a branch without `else` moves alone; any other takes a copy of the loop along, for where it doesn't hold.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        config = ctx.option(HoistExpressionConfig)
        return hoisted(func, ctx, HoistedConditionals(config.hoisted_conditionals), HoistedLetBindings(config.hoisted_let_bindings))

    return Pass("tir.HoistExpression", run)


def hoisted(func: PrimFunc, ctx: PassContext, conditionals: HoistedConditionals, bindings: HoistedLetBindings) -> PrimFunc:
    """`func` with what `conditionals` and `bindings` name outside its loops, simplified and without what does nothing then."""
    # Planned first, moved afterwards: a condition further in may need a binding that the walk has passed already.
    plan = _Plan(conditionals, bindings)
    plan.stmt(func.body)
    return without_no_ops(simplified(func.with_body(_Mover(plan).stmt(func.body)), ctx), ctx)


@dataclass(eq=False)
class _Loop:
    """What moves in front of a loop: bindings, then conditions, each with whether the loop is needed where it doesn't hold."""

    lets: dict[Var, PrimExpr] = field(default_factory=dict)
    conditions: dict[PrimExpr, bool] = field(default_factory=dict)


class _Plan:
    """One walk that decides where everything goes; nothing is changed."""

    def __init__(self, conditionals: HoistedConditionals, bindings: HoistedLetBindings) -> None:
        self._conditionals, self._bindings = conditionals, bindings
        self.loops: dict[int, _Loop] = {}
        self._around: list[_Loop] = []
        self._barrier = 0  # the loops before this one can't be left
        self._depth: dict[Var, int] = {}  # the number of loops that a variable needs around it
        self._waiting: dict[Var, PrimExpr] = {}  # bindings that move if a condition needs them
        self._free = FreeVars()

    def moved(self) -> set[Var]:
        """The bindings that leave their places."""
        return {var for loop in self.loops.values() for var in loop.lets}

    def stmt(self, stmt: Stmt) -> None:
        """Plan for a statement and all in it."""
        match stmt:
            case For() if bound_tag(stmt) is not None and HoistedConditionals.UsingBlockVar not in self._conditionals:
                self._threads(stmt, stmt.loop_var)
            case For():
                self._expressions(stmt)
                self._around.append(self.loops.setdefault(id(stmt), _Loop()))
                self._depth[stmt.loop_var] = len(self._around)
                self.stmt(stmt.body)
                self._around.pop()
            # Of `A; if c: B` only B is under c: a loop around both can't move into the branch.
            case SeqStmt():
                with self._behind_barrier():
                    for inner in stmt.seq:
                        self.stmt(inner)
            case AttrStmt() if stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
                self._threads(stmt, stmt.node.var)
            case LetStmt():
                self._expr(stmt.value)
                self._bind(stmt.var, stmt.value, HoistedLetBindings.LetStmt)
                self.stmt(stmt.body)
            case IfThenElse():
                self._condition(stmt.condition, HoistedConditionals.IfElseStmt, stmt.else_case is not None)
                self._inside(stmt)
            case _:
                self._inside(stmt)

    @contextmanager
    def _behind_barrier(self) -> Iterator[None]:
        outer, self._barrier = self._barrier, len(self._around)
        yield
        self._barrier = outer

    def _threads(self, stmt: Stmt, var: Var) -> None:
        if HoistedConditionals.UsingBlockVar in self._conditionals:
            self._depth[var] = len(self._around)
            self._inside(stmt)
            return
        with self._behind_barrier():
            self._depth[var] = len(self._around) + 2**31  # it and what is made of it move nowhere
            self._inside(stmt)

    def _inside(self, stmt: Stmt) -> None:
        self._expressions(stmt)
        for inner in sub_statements(stmt):
            self.stmt(inner)

    def _expressions(self, stmt: Stmt) -> None:
        for expr in own_expressions(stmt):
            self._expr(expr)

    def _expr(self, expr: PrimExpr) -> None:
        match expr:
            case And() | Or():
                self._condition(expr.a, HoistedConditionals.BooleanExpression, True)
                self._condition(expr.b, HoistedConditionals.BooleanExpression, True)
            case Call() if expr.op == "tir.if_then_else":
                self._condition(expr.args[0], HoistedConditionals.IfElseExpr, True)
            case Let():
                self._bind(expr.var, expr.value, HoistedLetBindings.LetExpr)
        for operand in operands(expr):
            self._expr(operand)

    def _place(self, expr: PrimExpr) -> int:
        """How many loops have to stay around an expression; as many as there are if it can't move."""
        if not _may_stand_anywhere(expr):
            return len(self._around)
        return max((self._barrier, *(self._depth.get(var, 0) for var in self._free(expr))))

    def _condition(self, condition: PrimExpr, kind: HoistedConditionals, both: bool) -> None:
        place = self._place(condition)
        if kind not in self._conditionals or isinstance(condition, IntImm) or place >= len(self._around):
            return
        self._require(condition)
        known = self._around[place].conditions
        known[condition] = known.get(condition, False) or both

    def _require(self, expr: PrimExpr) -> None:
        """Move the bindings that `expr` is made of in front of it."""
        for var in self._free(expr):
            value = self._waiting.pop(var, None)
            if value is not None:
                self._require(value)
                self._around[self._depth[var]].lets[var] = value

    def _bind(self, var: Var, value: PrimExpr, kind: HoistedLetBindings) -> None:
        here, place = len(self._around), self._place(value)
        # Unless it moves, a binding needs the loops around it, and so does all that is made of it.
        self._depth[var] = here
        if place >= here:
            return
        if kind in self._bindings:
            self._depth[var] = place
            self._require(value)
            self._around[place].lets[var] = value
        elif HoistedLetBindings.RequiredByConditional in self._bindings:
            self._depth[var] = place
            self._waiting[var] = value


def _may_stand_anywhere(expr: PrimExpr) -> bool:
    """True for what has one value wherever it stands and can't trap."""
    # Moved out, a division may run where its guard kept it from doing so; by -1 the least integer overflows.
    divisions = (node for node in walk(expr) if isinstance(node, (Div, Mod, FloorDiv, FloorMod)) and parse_dtype(node.dtype).is_int)
    return is_pure(expr) and all(isinstance(node.b, IntImm) and node.b.value not in (0, -1) for node in divisions)


class _Mover:
    """Carries a plan out."""

    def __init__(self, plan: _Plan) -> None:
        self._loops = plan.loops
        self._moved = plan.moved()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with everything at its place."""
        if isinstance(stmt, LetStmt) and stmt.var in self._moved:
            return self.stmt(stmt.body)
        result = map_stmt(stmt, self.stmt, self._expr)
        loop = self._loops.get(id(stmt))
        if loop is None:
            return result
        for condition, both in reversed(loop.conditions.items()):
            result = IfThenElse(condition, result, Copier({}).stmt(result) if both else None)
        for var, value in reversed(loop.lets.items()):
            result = LetStmt(var, value, result)
        return result

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        if not self._moved:
            return expr
        return self._expr(expr.body) if isinstance(expr, Let) and expr.var in self._moved else map_expr(expr, self._expr)
