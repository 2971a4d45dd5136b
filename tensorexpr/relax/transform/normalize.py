"""Normalize, and names of functions: NormalizeGlobalVar, AttachGlobalSymbol."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..expr import ExternFunc, Function
from ..visitor import Mutator
from .passes import each_function, graph_pass
from .rewriting import Rewriter


def Normalize() -> ModulePass:
    """A pass: every call, element and choice has a variable of its own, so operands are variables, constants and tuples of these."""
    return each_function("Normalize", lambda func, mod: Rewriter({}).function(func))


class _Renamer(Mutator):
    """Functions of a module by other names."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def rewrite(self, expr: Any) -> Any:
        """The variable of a function by its new name."""
        if isinstance(expr, GlobalVar) and self._names.get(expr.name_hint, expr.name_hint) != expr.name_hint:
            return GlobalVar(self._names[expr.name_hint])
        return expr


def renamed(mod: IRModule, names: dict[str, str]) -> IRModule:
    """A module whose functions have other names, where they are called too."""
    made = IRModule(attrs=mod.attrs, global_infos=mod.global_infos)
    for var, func in mod.functions_items():
        new: Any = _Renamer(names).function(func) if isinstance(func, Function) else func
        made.update_func(names.get(var.name_hint, var.name_hint), new)
    return made


def NormalizeGlobalVar() -> ModulePass:
    """A pass: functions are called as their "global_symbol" says; private ones of such a name get another."""

    def run(mod: IRModule) -> IRModule:
        functions: dict[str, Any] = {var.name_hint: func for var, func in mod.functions_items()}
        names = {name: str(func.attrs["global_symbol"]) for name, func in functions.items() if "global_symbol" in func.attrs}
        # Public names come first: they are promises, private ones are not.
        taken = set(names.values())
        for name in functions:
            if name not in names:
                names[name], number = name, 0
                while names[name] in taken:
                    number += 1
                    names[name] = f"{name}_{number}"
                taken.add(names[name])
        return mod if all(a == b for a, b in names.items()) else renamed(mod, names)

    return graph_pass("NormalizeGlobalVar", run)


def AttachGlobalSymbol() -> ModulePass:
    """A pass: every function has its name as "global_symbol", so all are visible outside of the module."""

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if not isinstance(func, ExternFunc) and func.attrs.get("global_symbol") != var.name_hint:
                made.update_func(var, func.with_attr("global_symbol", var.name_hint))
        return made

    return graph_pass("AttachGlobalSymbol", run)
