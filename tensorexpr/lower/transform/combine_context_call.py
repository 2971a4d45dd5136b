"""Contexts of threads asked for once: `tvm_thread_context(ctx)` as a name that is let where a thread of control begins.

for j in T.parallel(8):                       ctx_cache_: T.handle = ctx
    f(T.tvm_thread_context(ctx), j)       ->  for j in T.parallel(8):
                                                  f(ctx_cache_, j)
"""

from __future__ import annotations

from ...target import Target
from ...tir.expr import Call, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite, variables, walk
from ...tir.scopes import parts
from ...tir.stmt import AttrStmt, For, ForKind, LetStmt, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt

_CONTEXT = "tir.tvm_thread_context"


def CombineContextCall() -> Pass:
    """One binding of each context per function of the host, parallel loop, launch of threads and scope of a coprocessor's operations.

    A context that depends on what is defined within stays where it is asked for.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        asked = _runs_on_host(func) and any(isinstance(node, Call) and node.op == _CONTEXT for node in walk(func.body))
        return func.with_body(_Combiner().scope(func.body)) if asked else func

    return Pass("tir.CombineContextCall", run)


def _runs_on_host(func: PrimFunc) -> bool:
    target = func.attrs.get("target")
    return bool(func.attrs.get("tir.is_host_func")) or (isinstance(target, Target) and "cpu" in target.keys)


class _Combiner:
    def __init__(self) -> None:
        self._names: dict[PrimExpr, Var] = {}
        self._inner: set[Var] = set()  # defined since the scope began

    def scope(self, stmt: Stmt) -> Stmt:
        """The statement below bindings of the contexts in it."""
        outer, self._names, self._inner = (self._names, self._inner), {}, set()
        result = self._children(stmt)
        for context, name in reversed(self._names.items()):
            result = LetStmt(name, context, result)
        self._names, self._inner = outer
        return result

    def _stmt(self, stmt: Stmt) -> Stmt:
        return self.scope(stmt) if _begins_thread(stmt) else self._children(stmt)

    def _children(self, stmt: Stmt) -> Stmt:
        self._inner.update(parts(stmt).defines)
        return map_stmt(stmt, self._stmt, self._expr)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            if not isinstance(node, Call) or node.op != _CONTEXT or variables(node.args[0]) & self._inner:
                return None
            return self._names.setdefault(node.args[0], Var("ctx_cache_", "handle"))

        return post_order_rewrite(expr, rule)


def _begins_thread(stmt: Stmt) -> bool:
    if isinstance(stmt, For):
        return stmt.kind is ForKind.PARALLEL
    return isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "coproc_uop_scope")
