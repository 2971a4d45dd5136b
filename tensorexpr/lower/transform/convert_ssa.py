"""Every variable defined once."""

from __future__ import annotations

from ...tir.expr import Let, Var
from ...tir.function import IRModule, PrimFunc
from ...tir.rewriting import Node, walk
from ...tir.scopes import buffer_vars, parts
from ...tir.stmt import Stmt
from ...tir.stmt_functor import renew_defs
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import Copier, map_stmt
from .decorators import unused


def ConvertSSA() -> Pass:
    """Fresh variables for what is defined a second time, in a function or in another one of the module."""

    def convert(mod: IRModule, ctx: PassContext) -> IRModule:
        seen: set[Var] = set()
        return mod.map_functions(lambda func: _converted(func, seen) if isinstance(func, PrimFunc) else func)

    return ModulePass("tir.ConvertSSA", unused, module_func=convert, by_user=False)


def _converted(func: PrimFunc, seen: set[Var]) -> PrimFunc:
    buffers = list(func.buffer_map.values())
    outside = dict.fromkeys([*func.params, *(b.data for b in buffers), *(v for b in buffers for v in buffer_vars(b))])
    if seen.intersection(outside):
        func = renew_defs(func)
        seen.update(func.params)
        return func
    seen.update(outside)
    return func.with_body(_Renamer(seen).stmt(func.body))


class _Renamer:
    def __init__(self, seen: set[Var]) -> None:
        self._seen = seen

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement; where it defines what was defined before, a copy with fresh variables."""
        own = set(parts(stmt).defines) | {node.var for node in walk_own(stmt) if isinstance(node, Let)}
        if own & self._seen:
            stmt = Copier({}).stmt(stmt)
            own = set(parts(stmt).defines)
        self._seen |= own
        return map_stmt(stmt, self.stmt)


def walk_own(stmt: Stmt) -> list[Node]:
    """The nodes of the expressions that stand directly in `stmt`."""
    return [node for expr in parts(stmt).exprs for node in walk(expr)]
