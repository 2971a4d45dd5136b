"""Inline: functions that ask for it stand where they are called.

def @half[Inline=1](%x) { multiply(%x, 0.5f) }    def @main(%y) { @half(%y) }    def @main(%y) { multiply(%y, 0.5f) }
"""

from __future__ import annotations

from typing import Any

from ..lower.passes import ModulePass
from ..tir.function import GlobalVar, IRModule
from .expr import Function
from .to_graph import callees_first, recursive
from .visitor import ExprMutator, substitute, walk


def _asks(func: Any) -> bool:
    """Whether a function asks to be inlined; what others compute stays a function."""
    wish = func.attrs.get("Inline") if isinstance(func, Function) else None
    return bool(int(getattr(wish, "value", wish or 0))) and "Compiler" not in func.attrs


class _Inliner(ExprMutator):
    """Puts bodies in place of calls.

    Args:
        bodies: functions by name.
    """

    def __init__(self, bodies: dict[str, Function]) -> None:
        super().__init__()
        self._bodies = bodies
        self.used: set[str] = set()

    def visit_call(self, call: Any) -> Any:
        """The body of a function that asks for it, with the arguments in place of parameters."""
        made = super().visit_call(call)
        func = self._bodies.get(made.op.name_hint) if isinstance(made.op, GlobalVar) else None
        if func is None:
            return made
        self.used.add(made.op.name_hint)
        return substitute(func.body, dict(zip(func.params, made.args, strict=True)))


def Inline() -> ModulePass:
    """Functions with the attribute "Inline" where they are called, which they leave for; not those that call themselves."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        looping = set(recursive(mod))
        bodies: dict[str, Function] = {}
        used: set[str] = set()
        for name in callees_first(mod):
            func: Any = mod[name]
            if not isinstance(func, Function):
                continue
            inliner = _Inliner(bodies)
            func = inliner.visit(func)
            used |= inliner.used
            made.update_func(name, func)
            if _asks(func) and name not in looping:
                bodies[name] = func
        mentioned = {node.name_hint for _, func in made.functions_items() for node in walk(func) if isinstance(node, GlobalVar)}
        kept: dict[Any, Any] = {
            var: func for var, func in made.functions_items() if var.name_hint not in used or var.name_hint in mentioned
        }
        return IRModule(kept, dict(mod.attrs), type_definitions=mod.type_definitions)

    return ModulePass("Inline", lambda func, ctx: func, 0, by_user=False, module_func=on_module)


__all__ = ["Inline"]
