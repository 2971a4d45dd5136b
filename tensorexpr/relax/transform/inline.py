"""InlinePrivateFunctions: calls of functions that nothing outside sees become their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule
from ..analysis import remove_all_unused
from ..expr import Binding, BindingBlock, Call, DataflowVar, Function, If, Var
from ..relations import bind_symbols
from ..struct_info import StructInfo
from ..visitor import Mutator, walk
from .canonicalize import canonical
from .passes import graph_pass
from .rewriting import Rewriter
from .simple import DeadCodeElimination

_KERNELS = ("Primitive", "Composite", "Codegen")  # attributes of functions that stand for one kernel


class _Copy(Mutator):
    """A body with variables of its own."""

    def __init__(self, variables: Any, symbols: Any, in_dataflow: bool) -> None:
        super().__init__(variables, symbols)
        # The body's bindings come to stand in the caller's block, and end with it if it is one of dataflow.
        self._kind: type[Var] | None = DataflowVar if in_dataflow else Var

    def define(self, var: Var, info: StructInfo) -> Var:
        """A new variable, in inner blocks of the same kind."""
        self._variables[var] = made = (self._kind or type(var))(var.name_hint, info)
        return made

    def block(self, block: BindingBlock) -> BindingBlock:
        """An inner block, as of a branch."""
        outer, self._kind = self._kind, None
        made = super().block(block)
        self._kind = outer
        return made


class _Inliner(Rewriter):
    """Puts bodies in place of calls."""

    def __init__(self, bodies: dict[str, Function]) -> None:
        super().__init__({})
        self._bodies = bodies

    def rewrite(self, expr: Any) -> Any:
        """The value of the function's body, whose bindings stand in front."""
        if not isinstance(expr, Call) or not isinstance(expr.op, GlobalVar) or expr.op.name_hint not in self._bodies:
            return expr
        func = self._bodies[expr.op.name_hint]
        if self._in_dataflow and any(isinstance(binding.value, (If, Function)) for binding in func.body.bindings()):
            return expr  # dataflow blocks have neither
        symbols: dict[Any, Any] = {}
        for param, arg in zip(func.params, expr.args, strict=True):
            bind_symbols(param.struct_info, arg.struct_info, symbols)
        copy = _Copy(dict(zip(func.params, expr.args, strict=True)), symbols, self._in_dataflow)
        for block in func.body.blocks:
            for binding in block.bindings:
                made: list[Binding] = copy.binding(binding)
                self._pending += made
                self.bound.update((one.var, one.value) for one in made)
        return copy.visit(func.body.body)


def _called(func: Any) -> set[str]:
    return {node.name_hint for node in walk(func) if isinstance(node, GlobalVar)}


def inlinable(mod: IRModule) -> dict[str, Function]:
    """Private functions of graphs that don't call themselves, callees first."""
    graphs: dict[str, Function] = {v.name_hint: f for v, f in mod.functions_items() if isinstance(f, Function)}  # type: ignore[misc]
    callees = {name: _called(func) & graphs.keys() for name, func in graphs.items()}
    found: dict[str, Function] = {}
    waiting = [n for n, f in graphs.items() if "global_symbol" not in f.attrs and not any(key in f.attrs for key in _KERNELS)]
    while waiting:
        ready = [name for name in waiting if callees[name].isdisjoint(waiting)]
        if not ready:
            return found  # the rest call each other
        found.update((name, graphs[name]) for name in ready)
        waiting = [name for name in waiting if name not in ready]
    return found


def InlinePrivateFunctions() -> ModulePass:
    """A pass: bodies in place of calls of private functions, which go; those that call themselves stay."""

    def run(mod: IRModule) -> IRModule:
        bodies = inlinable(mod)
        if not bodies:
            return mod
        made = mod.clone()
        # Callees come first, so a body is free of calls before others take it in.
        for name in bodies:
            bodies[name] = _inlined(bodies[name], bodies)
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                new: Any = bodies[var.name_hint] if var.name_hint in bodies else _inlined(func, bodies)
                if new is not func:
                    made.update_func(var, new)
        entries = [var.name_hint for var in mod.get_global_vars() if var.name_hint not in bodies]
        return DeadCodeElimination(entries)(made)

    return graph_pass("InlinePrivateFunctions", run)


def inline_functions(func: Function, function_map: Mapping[str | GlobalVar, Function]) -> Function:
    """A function with the bodies of others in place of their calls.

    Args:
        func: the function.
        function_map: the others, by name; those that these call are inlined where they are in it, too.

    Raises:
        DeclarationError: for a value that is no function of a graph.
    """
    bodies = {key.name_hint if isinstance(key, GlobalVar) else key: one for key, one in function_map.items()}
    odd = [name for name, one in bodies.items() if not isinstance(one, Function)]
    if odd:
        raise DeclarationError(f"inline_functions: {odd[0]} is no function of a graph")
    for _ in range(len(bodies) + 1):  # recursive ones stay calls in the end
        func = _inlined(func, bodies)
    return func


def _inlined(func: Function, bodies: dict[str, Function]) -> Function:
    made = _Inliner(bodies).function(func)
    return func if made is func else remove_all_unused(canonical(made))


Function.inline_functions = inline_functions  # type: ignore[attr-defined]
