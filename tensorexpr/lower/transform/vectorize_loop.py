"""VECTORIZED loops as vector code, the way TVM has it: any number of dimensions, scalable lanes, no masks by default.

The pipeline's own `phase2.vectorize_loop` masks; here a branch that differs between lanes becomes a serial loop (named
`<var>_s`) around it, or, with `tir.enable_buffer_level_predication` or on a target with SVE, predicates on the accesses.
"""

from __future__ import annotations

from dataclasses import replace

from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...target import Target
from ...tir.expr import Call, IntImm
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, For, ForKind, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt
from .vector_body import VectorBody

_PREDICATION = "tir.enable_buffer_level_predication"


def VectorizeLoop(enable_vectorize: bool = True) -> Pass:
    """VECTORIZED loops as vector code.

    Args:
        enable_vectorize: False makes them serial loops.

    Raises:
        LoweringError: when it runs, for a loop whose extent is no constant (nor, on a target with SVE, a multiple of
            vscale), that starts elsewhere than at 0, or that holds a while loop or scalable vectors already.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if not enable_vectorize:
            return func.with_body(_serial(func.body))
        return func.with_body(_Vectorizer(ctx, func.attrs.get("target")).stmt(func.body))

    return Pass("tir.VectorizeLoop", run)


def _serial(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _serial)
    return replace(result, kind=ForKind.SERIAL) if isinstance(result, For) and result.kind is ForKind.VECTORIZED else result


class _Vectorizer:
    """Finds the loops, outermost first, and knows the target around them."""

    def __init__(self, ctx: PassContext, target: Target | None) -> None:
        self._ctx = ctx
        self._target = target or Target.current()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without VECTORIZED loops."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == "target" and isinstance(stmt.node, Target):
            outer, self._target = self._target, stmt.node
            try:
                return map_stmt(stmt, self.stmt)
            finally:
                self._target = outer
        if isinstance(stmt, For) and stmt.kind is ForKind.VECTORIZED:
            return self._loop(stmt)
        return map_stmt(stmt, self.stmt)

    def _loop(self, loop: For) -> Stmt:
        if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
            raise LoweringError(f"the vectorized loop over {loop.loop_var.name} starts at {loop.min}; vectorized loops start at 0")
        scalable = _mentions_vscale(loop)
        sve = self._has_sve()
        if not isinstance(loop.extent, IntImm) and not (scalable and sve):
            target = "(nullptr)" if self._target is None else str(self._target)
            raise LoweringError(
                f"Failed to vectorize loop with extent {Analyzer().simplify(loop.extent)} for target {target}: "
                "vectors have a constant number of lanes, or a multiple of vscale on targets with SVE"
            )
        predicated = self._ctx.config.get(_PREDICATION)
        body = VectorBody(loop, sve if predicated is None else bool(predicated))
        return body.outermost(loop.body)

    def _has_sve(self) -> bool:
        return self._target is not None and "+sve" in self._target.mattr


def _mentions_vscale(loop: For) -> bool:
    return any(isinstance(node, Call) and node.op == "tir.vscale" for node in walk(loop.extent))
