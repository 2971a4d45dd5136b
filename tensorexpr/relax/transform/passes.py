"""What the passes of graphs have in common: a name as users know it, and functions rewritten one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import PassError
from ...lower.passes import ModulePass
from ...tir.function import IRModule
from ..expr import BindingBlock, DataflowBlock, DataflowVar, Function
from ..visitor import Mutator


def graph_pass(name: str, run: Callable[[IRModule], IRModule], opt_level: int = 0) -> ModulePass:
    """A pass on whole modules."""
    return ModulePass(name, lambda func, ctx: func, opt_level, by_user=False, module_func=lambda mod, ctx: run(mod))


def each_function(name: str, run: Callable[[Function, IRModule], Function], opt_level: int = 0) -> ModulePass:
    """A pass on the functions of graphs; tensor functions that these add to the module are kept."""

    def on_module(mod: IRModule) -> IRModule:
        made = mod.clone()
        # Over the module as it was: functions that `run` adds to the new one aren't visited.
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                new: Any = run(func, made)
                if new is not func:
                    made.update_func(var, new)
        return made

    return graph_pass(name, on_module, opt_level)


Transform = Callable[[Any, IRModule, Any], Any]


def pass_decorator(method: str, on_function: Callable[[Transform, str], Transform], kind: Any = Function) -> Callable[..., Any]:
    """A decorator that makes passes of functions, or of classes with a method of this name, whose objects are passes then.

    Args:
        method: of classes.
        on_function: what to do with a function, by what the user wrote and the name of the pass.
        kind: the functions that are rewritten: those of graphs, or of Relay.
    """

    def decorate(pass_func: Any = None, opt_level: int = 0, name: str | None = None, required: Any = None, traceable: bool = False) -> Any:
        def make(target: Any) -> Any:
            called = name or target.__name__
            if isinstance(target, type):
                return lambda *args, **kwargs: make_one(getattr(target(*args, **kwargs), method), called)
            return make_one(target, called)

        def make_one(transform: Transform, called: str) -> ModulePass:
            run = on_function(transform, called)

            def on_module(mod: IRModule, ctx: Any) -> IRModule:
                made = mod.clone()
                for var, func in mod.functions_items():
                    if isinstance(func, kind):
                        new: Any = run(func, made, ctx)
                        if not isinstance(new, kind):
                            language = "relax" if kind is Function else "relay"
                            raise PassError(
                                f"pass {called} returned {type(new).__name__} for function {var.name_hint!r}, not a {language}.Function"
                            )
                        made.update_func(var, new)
                return made

            return ModulePass(called, lambda func, ctx: func, opt_level, tuple(required or ()), True, traceable, on_module)

        return make if pass_func is None else make(pass_func)

    return decorate


def _on_blocks(transform: Transform, called: str) -> Transform:
    """A transformation of dataflow blocks as one of functions."""

    def run(func: Function, mod: IRModule, ctx: Any) -> Function:
        return _Blocks(lambda block: transform(block, mod, ctx), called).function(func)

    return run


class _Blocks(Mutator):
    """Replaces dataflow blocks, those of branches and inner functions too."""

    def __init__(self, transform: Callable[[DataflowBlock], Any], called: str) -> None:
        super().__init__()
        self._transform, self._called = transform, called

    def block(self, block: BindingBlock) -> BindingBlock:
        """What the transformation makes of a dataflow block; other blocks are rewritten inside."""
        made = super().block(block)
        if not isinstance(made, DataflowBlock):
            return made
        new = self._transform(made)
        if not isinstance(new, DataflowBlock):
            raise PassError(f"pass {self._called} returned {type(new).__name__} for a dataflow block")
        lost = {b.var for b in made.bindings if not isinstance(b.var, DataflowVar)} - {b.var for b in new.bindings}
        if lost:
            names = ", ".join(sorted(var.name_hint for var in lost))
            raise PassError(f"pass {self._called} lost {names}, which what follows the dataflow block may use")
        return new


function_pass = pass_decorator("transform_function", lambda transform, called: transform)
dataflowblock_pass = pass_decorator("transform_dataflowblock", _on_blocks)
function_pass.__name__, dataflowblock_pass.__name__ = "function_pass", "dataflowblock_pass"
function_pass.__doc__ = """A decorator for a pass of a user: `pass_func(func, mod, ctx)` returns the new function of the graph.

A class with `transform_function(self, func, mod, ctx)` becomes one whose objects are passes.

Raises:
    PassError: for what returns no function.
"""
dataflowblock_pass.__doc__ = """A decorator for a pass of a user: `pass_func(block, mod, ctx)` returns the new dataflow block.

A class with `transform_dataflowblock(self, block, mod, ctx)` becomes one whose objects are passes. Variables that outlive the block stay.

Raises:
    PassError: for what returns no dataflow block, or loses a variable that outlives it.
"""
