"""Private functions put where they are called."""

from __future__ import annotations

from ...tir.block import Block
from ...tir.expr import Call, PrimExpr, Var
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import DeclBuffer, Evaluate, LetStmt, Stmt
from ...tir.stmt_functor import Renaming, renew_defs
from ..context import PassContext
from ..passes import ModulePass, Pass
from ..rebuild import map_stmt, pointer_like, pointer_scope, walk_statements
from .decorators import unused


def InlinePrivateFunctions() -> Pass:
    """Functions without `global_symbol` in place of their calls, and gone where no call is left.

    Calls that are statements are inlined, of functions that take no buffers, hold no blocks, don't call themselves and are for
    the same target as their caller.
    """

    def inline(mod: IRModule, ctx: PassContext) -> IRModule:
        inliner = _Inliner({var: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)})
        results = {var: inliner.function(var) for var in inliner.functions}
        kept = {var: func for var, func in results.items() if "global_symbol" in func.attrs}
        waiting = list(kept.values())
        while waiting:  # what is still called by what is seen from outside
            for var in callees_of(waiting.pop()):
                if var in results and var not in kept:
                    kept[var] = results[var]
                    waiting.append(results[var])
        return IRModule({var: kept[var] for var in results if var in kept}, mod.attrs)

    return ModulePass("tir.InlinePrivateFunctions", unused, module_func=inline, by_user=False)


def callees_of(func: PrimFunc) -> set[GlobalVar]:
    """The functions of its module that a function calls."""
    if func.has_later_body:  # made of tensors, which call none
        return set()
    ops: list[object] = [node.op for node in walk(func.body) if isinstance(node, Call)]
    return {op for op in ops if isinstance(op, GlobalVar)}


class _Inliner:
    def __init__(self, functions: dict[GlobalVar, PrimFunc]) -> None:
        self.functions = functions
        self._done: dict[GlobalVar, PrimFunc] = {}
        self._recursive = {var for var in functions if self._reaches(var, var)}

    def _reaches(self, start: GlobalVar, goal: GlobalVar) -> bool:
        seen: set[GlobalVar] = set()
        waiting = [start]
        while waiting:
            for var in callees_of(self.functions[waiting.pop()]):
                if var == goal:
                    return True
                if var in self.functions and var not in seen:
                    seen.add(var)
                    waiting.append(var)
        return False

    def function(self, var: GlobalVar) -> PrimFunc:
        """The function with what it calls inlined."""
        if var not in self._done:
            func = self.functions[var]
            self._done[var] = func if var in self._recursive else func.with_body(self._stmt(func.body, func))
        return self._done[var]

    def _stmt(self, stmt: Stmt, caller: PrimFunc) -> Stmt:
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and isinstance(stmt.value.op, GlobalVar):
            callee = self.functions.get(stmt.value.op)
            if callee is not None and self._may_inline(stmt.value.op, callee, caller):
                return _inlined(self.function(stmt.value.op), stmt.value.args)
        return map_stmt(stmt, lambda inner: self._stmt(inner, caller))

    def _may_inline(self, var: GlobalVar, callee: PrimFunc, caller: PrimFunc) -> bool:
        if "global_symbol" in callee.attrs or callee.buffer_map or var in self._recursive:
            return False
        mine, other = caller.attrs.get("target"), callee.attrs.get("target")
        if other is not None and str(mine) != str(other):
            return False
        return not any(isinstance(stmt, Block) for stmt in walk_statements(callee.body))


def _inlined(func: PrimFunc, args: tuple[PrimExpr, ...]) -> Stmt:
    """The body for these arguments. Buffers stand on variables, so a pointer that is computed is bound to one first."""
    fresh = renew_defs(func)
    mapping: dict[Var, PrimExpr] = dict(zip(fresh.params, args, strict=True))
    pointers = {param: arg for param, arg in mapping.items() if param.dtype == "handle" and not isinstance(arg, Var)}
    body = _bound(fresh.body, pointers)
    return Renaming({param: arg for param, arg in mapping.items() if param not in pointers}, folding=True).apply(body)


def _bound(stmt: Stmt, pointers: dict[Var, PrimExpr]) -> Stmt:
    """Every declaration over a computed pointer inside a binding of its own."""
    if isinstance(stmt, DeclBuffer) and stmt.buffer.data in pointers:
        old = stmt.buffer.data
        var = pointer_like(old, pointer_scope(old), stmt.buffer.dtype)
        renamed = Renaming({old: var}, folding=False).apply(DeclBuffer(stmt.buffer, _bound(stmt.body, pointers)))
        return LetStmt(var, pointers[old], renamed)
    return map_stmt(stmt, lambda inner: _bound(inner, pointers), lambda expr: _in_expr(expr, pointers))


def _in_expr(expr: PrimExpr, pointers: dict[Var, PrimExpr]) -> PrimExpr:
    return Renaming(pointers, folding=False).apply(expr) if any(node in pointers for node in walk(expr) if isinstance(node, Var)) else expr
