"""Thread bindings around all that runs in these threads.

with block:                                       for threadIdx_x in thread_binding(8):
    for i in thread_binding(8, "threadIdx.x"): f  ->      with block: f; g
    for j in thread_binding(8, "threadIdx.x"): g
"""

from __future__ import annotations

from ...tir.expr import IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import For, ForKind, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements


def LiftThreadBinding() -> Pass:
    """Loops bound to threads out of blocks, loops and sequences, to right below the threads of the grid around them."""
    return Pass("tir.LiftThreadBinding", _run)


def _run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    return func if func.attrs.get("from_legacy_te_schedule") else func.with_body(_lift(func.body))


def _is_bound(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING and stmt.thread_binding is not None


def _tag(loop: For) -> str:
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""


def _lift(stmt: Stmt) -> Stmt:
    """Each outermost bound loop with what it holds bound around it."""
    if not _is_bound(stmt):
        return map_stmt(stmt, _lift)
    found: dict[str, For] = {}
    for one in walk_statements(stmt):
        if isinstance(one, For) and _is_bound(one):
            found.setdefault(_tag(one), one)
    names = {tag: Var(tag.replace(".", "_"), loop.loop_var.dtype) for tag, loop in found.items()}
    body = _without(stmt, names)
    for tag, loop in reversed(found.items()):
        binding = IterVar(None, Var("", loop.loop_var.dtype), IterVar.THREAD_INDEX, tag)
        body = For(names[tag], loop.min, loop.extent, ForKind.THREAD_BINDING, body, binding, loop.annotations)
    return body


def _without(stmt: Stmt, names: dict[str, Var]) -> Stmt:
    """The statement without bound loops, whose variables are those of `names`."""
    mapping: dict[Var, PrimExpr] = {}
    for one in walk_statements(stmt):
        if isinstance(one, For) and _is_bound(one):
            mapping[one.loop_var] = names[_tag(one)]

    def drop(inner: Stmt) -> Stmt:
        return drop(inner.body) if isinstance(inner, For) and _is_bound(inner) else map_stmt(inner, drop)

    return Renaming(mapping, folding=False).apply(drop(stmt))
