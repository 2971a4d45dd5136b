"""Move conditions out of loops that don't change them: `for: if c: body` becomes `if c: for: body`.

Of a conjunction the invariant parts leave. Conditions that read memory stay, since the body may write it.
"""

from __future__ import annotations

from dataclasses import replace

from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import nested_operands
from ...tir.expr import And, PrimExpr
from ...tir.function import PrimFunc
from ...tir.stmt import For, IfThenElse, Stmt
from ..context import PassContext
from ..rebuild import Copier, FreeVars, map_stmt


def hoist_if_then_else(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with loop-invariant conditions outside their loops; itself if there are none."""
    return func.with_body(_hoisted(func.body, FreeVars()))


def _hoisted(stmt: Stmt, free: FreeVars) -> Stmt:
    result = map_stmt(stmt, lambda s: _hoisted(s, free))
    if not isinstance(result, For) or not isinstance(result.body, IfThenElse):
        return result
    loop, branch = result, result.body
    fixed = [c for c in nested_operands(branch.condition, And) if _is_fixed(c, loop, free)]
    if not fixed:
        return result
    rest = [c for c in nested_operands(branch.condition, And) if not _is_fixed(c, loop, free)]
    if branch.else_case is None:
        body = IfThenElse(all_of(*rest), branch.then_case) if rest else branch.then_case
        return IfThenElse(all_of(*fixed), replace(loop, body=body))
    if rest:  # the else branch runs where either part fails: split, it would have to be written twice
        return result
    otherwise = Copier({}).stmt(replace(loop, body=branch.else_case))
    return IfThenElse(branch.condition, replace(loop, body=branch.then_case), otherwise)


def _is_fixed(condition: PrimExpr, loop: For, free: FreeVars) -> bool:
    return loop.loop_var not in free(condition) and not free.touches_memory(condition)
