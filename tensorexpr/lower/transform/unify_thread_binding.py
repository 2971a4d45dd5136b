"""One variable for each thread axis, wherever it is bound.

    for i in T.thread_binding(8, "threadIdx.x"): ...; for j in T.thread_binding(8, "threadIdx.x"): ...
->  threadIdx_x = T.launch_thread("threadIdx.x", 8): ...; ...   the same variable in both
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...arith import Analyzer
from ...errors import LoweringError
from ...tir.expr import IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, For, ForKind, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt

_VIRTUAL = ("vthread", "vthread.x", "vthread.y", "vthread.z")


def UnifyThreadBinding() -> Pass:
    """Loops bound to threads as "thread_extent" attributes of one axis per tag; functions lowered from te stay.

    Raises:
        LoweringError: when it runs, where one tag is bound with different extents.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if func.attrs.get("from_legacy_te_schedule"):
            return func
        return func.with_body(_Unifier().stmt(func.body))

    return Pass("tir.UnifyThreadBinding", run)


class _Unifier:
    def __init__(self) -> None:
        self._axes: dict[str, IterVar] = {}
        self._open: list[str] = []  # tags that hold here
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with one variable for each tag."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "virtual_thread") and isinstance(stmt.node, IterVar):
            return self._bound(stmt.node.var, stmt.node.thread_tag, stmt.value, stmt.body, {}, stmt.node)
        if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING and stmt.thread_binding is not None:
            return self._bound(stmt.loop_var, stmt.thread_binding.thread_tag, stmt.extent, stmt.body, dict(stmt.annotations), stmt.thread_binding)
        return map_stmt(stmt, self.stmt)

    def _bound(self, var: Var, tag: str, extent: PrimExpr, body: Stmt, annotations: dict[str, Any], origin: IterVar) -> Stmt:
        virtual = tag in _VIRTUAL
        axis = self._axis(tag, var.dtype, extent, virtual, origin)
        value = axis.var
        body = Renaming({var: value}, folding=False).apply(body)
        nested = tag in self._open and not virtual
        self._open.append(tag)
        result = self.stmt(body)
        self._open.pop()
        if not nested:
            result = AttrStmt(axis, "virtual_thread" if virtual else "thread_extent", _extent(axis), result)
        for key, mark in annotations.items():
            result = AttrStmt(axis, key, mark, result)
        return result

    def _axis(self, tag: str, dtype: str, extent: PrimExpr, virtual: bool, origin: IterVar) -> IterVar:
        known = self._axes.get(tag)
        if known is not None and not virtual:
            if not self._analyzer.can_prove_equal(_extent(known), extent):
                raise LoweringError(f"{tag} is bound with extent {_extent(known)} and with {extent}; one kernel launches one number of threads")
            return known
        low = origin.dom.min if origin.dom is not None else type(extent)("int32", 0)  # type: ignore[call-arg]
        axis = replace(origin, dom=Range(low, extent), var=Var(tag.replace(".", "_") if not virtual else tag, dtype), iter_type=IterVar.THREAD_INDEX, thread_tag=tag)
        self._axes[tag] = axis
        return axis


def _extent(axis: IterVar) -> PrimExpr:
    assert axis.dom is not None
    return axis.dom.extent


