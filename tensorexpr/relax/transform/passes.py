"""What the passes of graphs have in common: a name as users know it, and functions rewritten one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import PassError
from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ..expr import Function


def graph_pass(name: str, run: Callable[[IRModule], IRModule], opt_level: int = 0) -> ModulePass:
    """A pass on whole modules."""
    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=lambda mod, ctx: run(mod))


def each_function(name: str, run: Callable[[Function, IRModule], Function], opt_level: int = 0) -> ModulePass:
    """A pass on the functions of graphs; tensor functions that these add to the module are kept."""

    def on_module(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                new: Any = run(func, made)
                if new is not func:
                    made.update_func(var, new)
        return made

    return graph_pass(name, on_module, opt_level)


def function_pass(pass_func: Any = None, opt_level: int = 0, name: str | None = None, required: Any = None, traceable: bool = False) -> Any:
    """A decorator for a pass of a user: `pass_func(func, mod, ctx)` returns the new function of the graph.

    A class with `transform_function(self, func, mod, ctx)` becomes one whose objects are passes.

    Raises:
        PassError: for what returns no function.
    """

    def make(target: Any) -> Any:
        if isinstance(target, type):
            return lambda *args, **kwargs: make_one(target(*args, **kwargs).transform_function, name or target.__name__)
        return make_one(target, name or target.__name__)

    def make_one(transform: Callable[..., Any], called: str) -> ModulePass:
        def on_module(mod: IRModule, ctx: Any) -> IRModule:
            made = mod.clone()
            for var, func in mod.functions_items():
                if isinstance(func, Function):
                    new = transform(func, made, ctx)
                    if not isinstance(new, Function):
                        raise PassError(f"pass {called} returned {type(new).__name__} for function {var.name_hint!r}, not a relax.Function")
                    made.update_func(var, new)
            return made

        return ModulePass(called, lambda func, ctx: func, opt_level, tuple(required or ()), True, traceable, on_module)

    return make if pass_func is None else make(pass_func)
