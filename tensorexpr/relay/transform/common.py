"""What passes on Relay's modules are made of: functions of each function, of each call, or of the module's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...lower.passes import ModulePass, deep_recursion
from ...relax import expr as graph
from ...relax.transform.passes import pass_decorator
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ..expr import Function
from ..from_graph import from_graph
from ..inference import typed
from ..to_graph import to_graph
from ..visitor import ExprMutator

Rewrite = Callable[[Any], Any]


function_pass = pass_decorator("transform_function", lambda transform, called: transform, Function)
function_pass.__doc__ = """A decorator that makes a pass of f(func, mod, ctx), or of a class with a method `transform_function` of these."""


def each_function(name: str, run: Callable[[Function, IRModule], Any], opt_level: int = 0, is_typed: bool = False) -> ModulePass:
    """A pass on each function of Relay; with `is_typed` on what the types of variables are known of."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        mod = typed(mod) if is_typed else mod
        made = mod.clone()
        with deep_recursion:
            for var, func in mod.functions_items():
                if isinstance(func, Function):
                    made.update_func(var, run(func, mod))
        return made

    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=on_module)


def each_call(name: str, rewrite: Rewrite, opt_level: int = 0, base: type[ExprMutator] = ExprMutator, is_typed: bool = False) -> ModulePass:
    """A pass that puts another expression in place of calls: what `rewrite` returns, unless it is None; `base` rewrites all else."""

    class _Calls(base):  # type: ignore[misc, valid-type]
        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            found = rewrite(made) if isinstance(made, graph.Call) and isinstance(made.op, Op) else None
            return made if found is None else found

    return each_function(name, lambda func, mod: _Calls().visit(func), opt_level, is_typed)


def on_graph(name: str, opt_level: int, *passes: Any) -> ModulePass:
    """A pass of Relay that is one of graphs, or several.

    Args:
        name: of it.
        opt_level: of it.
        passes: on modules of graphs, in order.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = to_graph(mod)
        for one in passes:
            made = one(made)
        return from_graph(made)

    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=on_module)


__all__ = ["Rewrite", "each_call", "each_function", "function_pass", "on_graph"]
