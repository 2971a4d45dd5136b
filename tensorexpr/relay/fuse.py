"""FuseOps of Relay: what one kernel computes becomes a function with the attribute "Primitive", called where it stands."""

from __future__ import annotations

from typing import Any

from ..lower.passes import ModulePass, deep_recursion
from ..relax import expr as graph
from ..relax import transform as on_graphs
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .expr import Attrs, Call, Function, Tuple, Var
from .from_graph import from_graph
from .lets import known_info
from .parameter_types import with_parameter_types
from .to_graph import to_graph
from .ty import type_of
from .visitor import ExprMutator

_PRIMITIVE = "Primitive"
# Marks of code generators and devices, and calls of functions, are no kernels of their own.
_NONE = ("annotation.", "relax.call_")


def _is_primitive(func: Any) -> bool:
    return isinstance(func, Function) and _PRIMITIVE in func.attrs


class _InPlace(ExprMutator):
    """Calls of functions of the module in their places, and operators that no function holds in functions of their own."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self._mod = mod

    def visit_function(self, fn: Function) -> Any:
        """What is a kernel, or a code generator's, already stays as it is."""
        return fn if _is_primitive(fn) or "Compiler" in fn.attrs else super().visit_function(fn)

    def visit_call(self, call: Any) -> Any:
        """A call of a function."""
        made = super().visit_call(call)
        if isinstance(made.op, GlobalVar) and _is_primitive(callee := self._mod[made.op]):
            return Call(callee, made.args)
        if isinstance(made.op, Op) and not str(made.op).startswith(_NONE):
            return _alone(call, made)
        return made


def _alone(call: Any, made: Any) -> Any:
    """A function of one operator: arrays are its parameters, numbers stand in it. Types are those of what was made of operands."""
    given: dict[Any, Any] = {}

    def param(arg: Any, value: Any) -> Any:
        if isinstance(arg, graph.Tuple):
            fields = value.fields if isinstance(value, graph.Tuple) else arg.fields
            return Tuple([param(one, other) for one, other in zip(arg.fields, fields, strict=True)])
        if isinstance(arg, graph.Constant) and arg.data.ndim == 0:
            return arg
        if value not in given:
            given[value] = Var(f"p{len(given)}", type_of(known_info(value)))
        return given[value]

    inside = [param(arg, value) for arg, value in zip(call.args, made.args, strict=True)]
    func = Function(tuple(given.values()), Call(call.op, inside, call.attrs), None, (), Attrs({_PRIMITIVE: 1}))
    return Call(func, list(given))


def FuseOps(fuse_opt_level: int = -1) -> ModulePass:
    """A pass: each kernel as a function that is called where it stands, of several operators where one kernel computes them.

        squeeze(exp(add(x, 1)))   ->   fn (p, Primitive=1) { squeeze(exp(add(p, 1))) }(x)

    Args:
        fuse_opt_level: 0 for a function for each operator; -1 for the level of the current context. See `relax.transform.FuseOps`.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        typed = mod.clone()
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                typed.update_func(var, with_parameter_types(func))
        whole = from_graph(on_graphs.FuseOps(fuse_opt_level, bind_numbers=True)(on_graphs.Normalize()(to_graph(typed))))
        kept: dict[Any, Any] = {}
        with deep_recursion:
            for var, func in whole.functions_items():
                if not _is_primitive(func) or var.name_hint in mod:
                    kept[var] = _InPlace(whole).visit(func) if isinstance(func, Function) else func
        return IRModule(kept, whole.attrs, whole.global_infos)

    return ModulePass("FuseOps", lambda func, ctx: func, 0, by_user=False, module_func=on_module)
