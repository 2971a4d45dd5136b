"""LiftTransformParams: what is computed from weights alone becomes a function of its own, which runs once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.attrs import FrozenMap
from ...tir.function import IRModule
from ...tir.structural import structural_equal
from ..analysis import is_pure, remove_all_unused
from ..expr import Binding, DataflowBlock, DataflowVar, Function, If, SeqExpr, Tuple, Var, VarBinding
from ..struct_info import symbols_of
from ..visitor import Mutator, walk
from .parameters import bundled
from .passes import graph_pass


def _variables(expr: Any) -> list[Var]:
    return [node for node in walk(expr) if isinstance(node, Var)]


def _liftable(func: Function) -> list[Binding]:
    """Bindings of dataflow blocks that depend on weights alone, and on some."""
    known: set[Var] = set(func.params[int(func.attrs["num_input"]) :])
    found: list[Binding] = []
    for block in func.body.blocks:
        for binding in block.bindings:
            read = _variables(binding.value)
            is_plain = isinstance(binding, VarBinding) and not isinstance(binding.value, (If, Function)) and is_pure(binding.value)
            if isinstance(block, DataflowBlock) and is_plain and read and known.issuperset(read):
                known.add(binding.var)
                found.append(binding)
    return found


def lifted(func: Function, name: str) -> tuple[Function, Function]:
    """A function that takes transformed weights, and the one that transforms them, from a tuple to a tuple.

    Raises:
        DeclarationError: if shapes of weights have symbols.
    """
    count = int(func.attrs["num_input"])
    weights, moved = func.params[count:], _liftable(func)
    # The transform is called without inputs, which might give symbols their values.
    if any(symbols_of(param.struct_info) for param in weights):
        raise DeclarationError(f"LiftTransformParams: weights of {name} have shapes with symbols: bind these first (BindSymbolicVars)")
    gone = {binding.var for binding in moved}
    rest = [binding for binding in func.body.bindings() if binding.var not in gone]
    read = {var for binding in rest for var in _variables(binding.value)} | set(_variables(func.body.body))
    kept = [one for one in (*weights, *(binding.var for binding in moved)) if one in read]
    inner = {binding.var: DataflowVar(binding.var.name_hint, binding.var.struct_info) for binding in moved}
    renamer = Mutator(inner)
    bindings = [VarBinding(inner[binding.var], renamer.visit(binding.value)) for binding in moved]
    result = Var("output_tuple", Tuple(tuple(kept)).struct_info)
    whole = DataflowBlock((*bindings, VarBinding(result, renamer.visit(Tuple(tuple(kept))))))
    transform = bundled(Function(weights, SeqExpr((whole,), result), attrs=FrozenMap({"num_input": 0})), "model_params")
    # Parameters are plain variables; what was computed may have been one of a dataflow block.
    params = {one: Var(one.name_hint, one.struct_info) for one in kept}
    blocks = tuple(type(block)(tuple(b for b in block.bindings if b.var not in gone)) for block in func.body.blocks)
    body = SeqExpr(tuple(block for block in blocks if block.bindings), func.body.body)
    left = Mutator(params).function(replace(func, params=func.params[:count], body=body))
    return replace(left, params=(*left.params, *params.values())), remove_all_unused(transform)


def LiftTransformParams(shared_transform: bool | Sequence[str] = False) -> ModulePass:
    """A pass: of functions with "num_input" what depends on weights alone goes into `<name>_transform_params`.

    That one takes the weights as a tuple, and returns those that the function takes now: used weights, then what was computed.

    Args:
        shared_transform: one `transform_params` for all such functions, or those of these names; they have to transform weights alike.

    Raises:
        DeclarationError: if functions that shall share transform weights differently.
    """

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        shared: Function | None = None
        for var, func in mod.functions_items():
            if not isinstance(func, Function) or "num_input" not in func.attrs:
                continue
            left, transform = lifted(func, var.name_hint)
            is_shared = shared_transform is True or (not isinstance(shared_transform, bool) and var.name_hint in shared_transform)
            if is_shared and shared is not None and not structural_equal(shared, transform):
                raise DeclarationError(f"LiftTransformParams: {var.name_hint} transforms its weights otherwise than functions before it")
            name = "transform_params" if is_shared else f"{var.name_hint}_transform_params"
            shared = transform if is_shared else shared
            made.update_func(var, left)
            made.update_func(name, transform.with_attr("global_symbol", name))
        return made

    return graph_pass("LiftTransformParams", run)
