"""Simpler expressions and fewer statements, as a pass of its own: what the pipeline's does, and what stands in TVM's."""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer, Extension
from ...tir.arithmetic import logical_and
from ...tir.block import Block
from ...tir.dtype import parse_dtype
from ...tir.expr import And, BufferLoad, Call, CmpExpr, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import walk
from ...tir.stmt import NOP, AttrStmt, BufferStore, IfThenElse, LetStmt, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..element_flow import ElementFlow, Fact, with_stored_values
from ..options import SimplifyConfig
from ..passes import Pass
from ..phase1.simplify import Simplifier
from ..rebuild import map_expr


def Simplify() -> Pass:
    """Simpler expressions under the loops and conditions around them.

    Branches that are decided go, integers that are let stand where they are used, and so do stores of what is there already. Loops of
    one iteration stay (their variable doesn't).
    """
    return Pass("tir.Simplify", simplified)


def simplified(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` as `Simplify` leaves it."""
    return func.with_body(_Named(ctx, func.body).stmt(func.body))


def stores_what_is_there(stmt: BufferStore) -> bool:
    """True for `A[i] = A[i]`."""
    value = stmt.value
    if not isinstance(value, BufferLoad) or value.buffer is not stmt.buffer or stmt.predicate is not None:
        return False
    return all(a is b for a, b in zip(value.indices, stmt.indices, strict=True))


def is_pure(expr: PrimExpr) -> bool:
    """True if evaluating `expr` does nothing and gives the same wherever it stands."""
    return not any(isinstance(node, BufferLoad) or (isinstance(node, Call) and not _is_pure_call(node)) for node in walk(expr))


def _is_pure_call(call: Call) -> bool:
    row = INTRINSICS.get(call.op)
    return row is not None and row.pure


class _Named(Simplifier):
    def __init__(self, ctx: PassContext, body: Stmt) -> None:
        super().__init__(ctx)
        config = ctx.option(SimplifyConfig)
        self._fills_in, self._decides = config.propagate_knowns_to_simplify_expressions, config.propagate_knowns_to_prove_conditional
        self._flow = ElementFlow(body) if self._fills_in or self._decides else None
        self._facts: tuple[Fact, ...] = ()
        self._analyzer: Analyzer = Analyzer()  # forms and assumptions are TVM's
        self._analyzer.enabled_extensions = _extensions(config)
        self._keep_trivial = True

    def stmt(self, stmt: Stmt) -> Stmt:
        """The simplified statement."""
        if self._flow is not None:
            self._facts = self._flow.known(stmt)
        if isinstance(stmt, LetStmt) and parse_dtype(stmt.var.dtype).is_int and is_pure(stmt.value):
            return self.stmt(Renaming({stmt.var: self.expr(stmt.value)}, folding=True).apply(stmt.body))
        match stmt:
            case AttrStmt() if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
                with self._analyzer.scope():
                    self._bind(stmt.node.var, Range(IntImm(stmt.value.dtype, 0), stmt.value))
                    return super().stmt(stmt)
            case Block():
                with self._analyzer.scope():
                    for axis in stmt.iter_vars:
                        if axis.dom is not None:
                            self._bind(axis.var, axis.dom)
                    return super().stmt(stmt)
        result = super().stmt(stmt)
        return NOP if isinstance(result, BufferStore) and stores_what_is_there(result) else result

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The simplified expression, of what is stored instead of what is loaded if the context says so."""
        return super().expr(self._with_values(expr) if self._fills_in and self._facts else expr)

    def _branch(self, stmt: IfThenElse) -> Stmt:
        if self._decides and self._facts:
            decided = self._decided(stmt.condition)
            stmt = stmt if decided is stmt.condition else IfThenElse(decided, stmt.then_case, stmt.else_case)
        return super()._branch(stmt)

    def _decided(self, condition: PrimExpr) -> PrimExpr:
        """The condition without comparisons that stored values decide, each where those before it hold."""
        if isinstance(condition, And):
            left = self._decided(condition.a)
            with self._analyzer.constraint_scope(left):
                right = self._decided(condition.b)
            return condition if left is condition.a and right is condition.b else logical_and(left, right)
        if isinstance(condition, CmpExpr):
            known = self._analyzer.simplify(self._with_values(condition))
            return known if isinstance(known, IntImm) else condition
        return map_expr(condition, self._decided) if condition.dtype == "bool" and not isinstance(condition, BufferLoad) else condition

    def _with_values(self, expr: PrimExpr) -> PrimExpr:
        return with_stored_values(expr, self._facts, self._analyzer)

    def _bind(self, var: Var, dom: Range) -> None:
        self._analyzer.bind(var, dom, allow_override=True)


def _extensions(config: SimplifyConfig) -> Extension:
    """What the analyzer tries beyond its usual rewrites."""
    found = Extension.NoExtensions
    for flag, asked in (
        (Extension.TransitivelyProveInequalities, config.transitively_prove_inequalities),
        (Extension.ConvertBooleanToAndOfOrs, config.convert_boolean_to_and_of_ors),
        (Extension.ApplyConstraintsToBooleanBranches, config.apply_constraints_to_boolean_branches),
    ):
        found |= flag if asked else Extension.NoExtensions
    return found
