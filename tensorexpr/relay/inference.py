"""Types of what a module's functions return, and of variables that Lets bind, as the graph of the module knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..lower.passes import deep_recursion
from ..tir.function import GlobalVar, IRModule
from .expr import Function, Let, Var
from .generics import is_generic
from .lets import known_info
from .parameter_types import with_parameter_types
from .to_graph import to_graph
from .ty import FuncType, type_of
from .visitor import SameTypes, free_vars


class _Typed(SameTypes):
    """States the types of variables that Lets bind, those of their values, and of functions of the module.

    Args:
        functions: types by name.
    """

    def __init__(self, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self._functions = functions

    def visit_global_var(self, gvar: GlobalVar) -> GlobalVar:
        """A function of the module, with its type."""
        found = self._functions.get(gvar.name_hint)
        return gvar if found is None or gvar.type_annotation == found else GlobalVar(gvar.name_hint, found)

    def visit_call(self, call: Any) -> Any:
        """Arguments first: parameters of a function that is called where it stands have their types."""
        for param, arg in zip(call.op.params, call.args, strict=False) if isinstance(call.op, Function) else ():
            found = type_of(known_info(self.visit(arg))) if param.struct_info_annotation is None else None
            if found is not None:
                self.memo_map[param] = Var(param.name_hint, found)
        return super().visit_call(call)

    def visit_let(self, let: Let) -> Any:
        """The value first, whose own variables have types then; but a function that is bound may use the variable."""
        uses_itself = isinstance(let.value, Function) and let.var in free_vars(let.value)
        value = let.value if uses_itself else self.visit(let.value)
        found = type_of(known_info(value)) if let.var.struct_info_annotation is None else None
        if found is not None:
            self.memo_map[let.var] = Var(let.var.name_hint, found)
        return super().visit_let(let)


def _returned(signatures: dict[str, Any], known: IRModule, name: str) -> Any:
    """What a function returns: as its graph knows it, but where that is an object of a type of the module."""
    info, stated = known[name].ret_struct_info, signatures[name].ret  # type: ignore[attr-defined]
    return stated if is_generic(stated) else info


def _signature(func: Function) -> Any:
    """The type of a function; None where parts of it aren't known."""
    types = *(type_of(param.struct_info) for param in func.params), func.ret_type
    return None if None in types else FuncType(types[:-1], types[-1], func.type_params)


def typed(mod: IRModule) -> IRModule:
    """A module with the types of each function's result, and of variables.

    Raises:
        DeclarationError, TypeMismatchError: for operands that don't fit.
    """
    signatures: dict[str, Any] = {}
    made, known = mod.clone(), to_graph(mod, None, signatures)
    with deep_recursion:
        functions: dict[str, Any] = {}
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                returned = func.ret_type or type_of(_returned(signatures, known, var.name_hint))
                functions[var.name_hint] = replace(with_parameter_types(func), ret_type=returned)
        mutator = _Typed({name: _signature(func) for name, func in functions.items()})
        for name, func in functions.items():
            made.update_func(name, replace(mutator.visit(func), ret_type=func.ret_type))
    return made


__all__ = ["typed"]
