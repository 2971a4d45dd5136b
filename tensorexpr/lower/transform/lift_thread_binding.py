"""Thread bindings around all that runs in these threads.

with block:                                       for threadIdx_x in thread_binding(8):
    for i in thread_binding(8, "threadIdx.x"): f  ->      with block: f; g
    for j in thread_binding(8, "threadIdx.x"): g
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dataclass import dataclass, field, replace
from ...tir.attrs import FrozenMap
from ...tir.expr import IterVar, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import For, ForKind, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, sub_statements


def LiftThreadBinding() -> Pass:
    """Loops bound to threads out of blocks and sequences: one for each tag, in the innermost loop around all loops of that tag.

    Annotations of later ones count where several say something else.
    """
    return Pass("tir.LiftThreadBinding", _run)


def _run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    return func if func.attrs.get("from_legacy_te_schedule") else func.with_body(_lifted(func.body))


def _tag(stmt: Stmt) -> str | None:
    bound = isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING and stmt.thread_binding is not None
    return stmt.thread_binding.thread_tag if bound else None  # type: ignore[attr-defined]


def _lifted(stmt: Stmt) -> Stmt:
    """Each outermost bound loop with the bindings inside of it where they belong."""
    if _tag(stmt) is None:
        return map_stmt(stmt, _lifted)
    found: dict[str, _Binding] = {}
    variables: dict[Var, PrimExpr] = {}
    for loop, path in _bound_loops(stmt, ()):
        tag = _tag(loop) or ""
        one = found.setdefault(tag, _Binding(loop, path, Var(tag.replace(".", "_"), loop.loop_var.dtype)))
        one.path = tuple(a for a, b in zip(one.path, path, strict=False) if a is b)
        one.annotations.update(loop.annotations)
        variables[loop.loop_var] = one.var
    return Renaming(variables, folding=False).apply(_placed(stmt, list(found.values())))


@dataclass
class _Binding:
    """The binding of a tag: its first loop, the loops around all of them, and the variable that they share."""

    loop: For
    path: tuple[For, ...]
    var: Var
    annotations: dict[str, object] = field(default_factory=dict)

    def around(self, body: Stmt) -> Stmt:
        """The one loop."""
        axis = IterVar(None, Var("", self.var.dtype), IterVar.THREAD_INDEX, _tag(self.loop) or "")
        low, extent = self.loop.min, self.loop.extent
        return For(self.var, low, extent, ForKind.THREAD_BINDING, body, axis, FrozenMap(self.annotations))


def _bound_loops(stmt: Stmt, around: tuple[For, ...]) -> Iterator[tuple[For, tuple[For, ...]]]:
    """The bound loops in a statement with the loops around them, themselves included."""
    if isinstance(stmt, For):
        around = (*around, stmt)
        if _tag(stmt) is not None:
            yield stmt, around
    for inner in sub_statements(stmt):
        yield from _bound_loops(inner, around)


def _placed(stmt: Stmt, bindings: list[_Binding]) -> Stmt:
    """The statement with the bindings in the bodies of the loops where they belong, and no others."""
    result = map_stmt(stmt, lambda inner: _placed(inner, bindings))
    if not isinstance(stmt, For) or not isinstance(result, For):
        return result
    body = result.body
    for one in reversed(bindings):
        if one.path[-1] is stmt:
            body = one.around(body)
    return body if _tag(stmt) is not None else replace(result, body=body)
