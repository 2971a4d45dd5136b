"""The function that a module starts with, marked."""

from __future__ import annotations

from ...tir.function import IRModule, PrimFunc
from ..context import PassContext
from ..passes import ModulePass, Pass
from .decorators import unused


def AnnotateEntryFunc() -> Pass:
    """`tir.is_entry_func` on the only function of a module, or on the only one that is seen from outside."""

    def annotate(mod: IRModule, ctx: PassContext) -> IRModule:
        items = mod.functions_items()
        chosen = items if len(items) == 1 else [(var, func) for var, func in items if "global_symbol" in func.attrs]
        if len(chosen) != 1 or not isinstance(chosen[0][1], PrimFunc):
            return mod
        entry = chosen[0][0]
        return IRModule({var: func.with_attr("tir.is_entry_func", True) if var == entry else func for var, func in items}, mod.attrs)

    return ModulePass("tir.AnnotateEntryFunc", unused, module_func=annotate, by_user=False)
