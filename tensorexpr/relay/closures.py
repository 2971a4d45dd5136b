"""Functions as values: LambdaLift makes functions of the module of them, EtaExpand functions of what is called elsewhere.

fn (%x) { fn (%y) { add(%x, %y) } }     def @lifted(%x) { fn (%y) { add(%x, %y) } }   fn (%x) { @lifted(%x) }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..lower.passes import ModulePass, deep_recursion
from ..tir.function import GlobalVar, IRModule
from .adt import Constructor
from .expr import Attrs, Call, Function, Let, Var
from .ty import type_of
from .visitor import ExprMutator, free_vars, substitute

_KEPT = ("Primitive", "Compiler", "Composite")  # what passes made, and others compile


class _Lifter(ExprMutator):
    """Puts calls of functions of a module in place of functions.

    Args:
        mod: gets them.
        name: of the function that they stand in.
    """

    def __init__(self, mod: Any, name: str) -> None:
        super().__init__()
        self._mod, self._name = mod, name

    def top(self, func: Function) -> Function:
        """A function of the module, which stays one."""
        body = self.visit(func.body)
        return func if body is func.body else replace(func, body=body)

    def visit_function(self, fn: Function) -> Any:
        """A function that isn't called by its own name."""
        return self._lifted(fn, None)

    def visit_let(self, let: Let) -> Any:
        """A function that is bound may call itself by the variable."""
        if not isinstance(let.value, Function) or let.var not in free_vars(let.value):
            return super().visit_let(let)
        value = self._lifted(let.value, let.var)
        return Let(let.var, value, self.visit(let.body))

    def _lifted(self, fn: Function, itself: Any) -> Any:
        if any(key in fn.attrs for key in _KEPT):
            return fn
        captured = [one for one in free_vars(fn) if one is not itself]
        number, name = 0, f"{self._name}_lifted"
        while name in self._mod:
            number += 1
            name = f"{self._name}_lifted{number}"
        var = GlobalVar(name)
        self._mod.update_func(var, fn)  # the name is taken from here on
        if itself is not None:
            self.memo_map[itself] = Call(var, captured) if captured else var
        body = self.visit(fn.body)
        self.memo_map.pop(itself, None)
        made = replace(fn, body=body)
        # A function of its own variables, which are others than those around.
        params = [Var(one.name_hint, one.struct_info_annotation) for one in captured]
        if not params:
            self._mod.update_func(var, made)
            return var
        inner = substitute(made, dict(zip(captured, params, strict=True)))
        self._mod.update_func(var, Function(tuple(params), inner, None, (), Attrs({"Closure": 1})))
        return Call(var, captured)


def LambdaLift() -> ModulePass:
    """Functions as values become functions of the module; of variables around them these return the function."""

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        with deep_recursion:
            for var, func in mod.functions_items():
                if isinstance(func, Function) and not any(key in func.attrs for key in _KEPT):
                    made.update_func(var, _Lifter(made, var.name_hint).top(func))
        return made

    return ModulePass("LambdaLift", lambda func, ctx: func, 1, by_user=False, module_func=on_module)


class _Expander(ExprMutator):
    """Puts functions in place of what is a value and isn't called there."""

    def __init__(self, mod: IRModule, constructors: bool, functions: bool) -> None:
        super().__init__()
        self._mod, self._constructors, self._functions = mod, constructors, functions

    def visit_call(self, call: Any) -> Any:
        """What is called stays."""
        if not isinstance(call.op, (GlobalVar, Constructor)):
            return super().visit_call(call)
        args = [self.visit(one) for one in call.args]
        return call if all(a is b for a, b in zip(args, call.args, strict=True)) else Call(call.op, args, call.attrs)

    def _around(self, callee: Any, types: Sequence[Any], ret: Any, type_params: Any) -> Function:
        params = tuple(Var(f"eta_expand_param{number}", one) for number, one in enumerate(types))
        return Function(params, Call(callee, params), ret, type_params)

    def visit_global_var(self, gvar: GlobalVar) -> Any:
        """A function that calls it."""
        func: Any = self._mod[gvar] if self._functions and gvar in self._mod else None
        if not isinstance(func, Function):
            return gvar
        types = [None if one.struct_info_annotation is None else type_of(one.struct_info) for one in func.params]
        return self._around(gvar, types, func.ret_type, func.type_params)

    def visit_constructor(self, c: Any) -> Any:
        """A function that makes its values."""
        if not self._constructors:
            return c
        definition: Any = self._mod[c.belong_to]
        return self._around(c, c.inputs, c.belong_to(*definition.type_vars), tuple(definition.type_vars))


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> ModulePass:
    """Functions around what is passed on without being called.

    Args:
        expand_constructor: around constructors: `fn (%h, %t) { Cons(%h, %t) }` for `Cons`.
        expand_global_var: around functions of the module: `fn (%x) { @f(%x) }` for `@f`.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, _Expander(mod, expand_constructor, expand_global_var).visit(func))
        return made

    return ModulePass("EtaExpand", lambda func, ctx: func, 1, by_user=False, module_func=on_module)


__all__ = ["EtaExpand", "LambdaLift"]
