"""Functions for code generators of others: what is registered as relay.ext.NAME makes them, and a graph calls them by name."""

from __future__ import annotations

from typing import Any

from ..errors import DeclarationError
from ..relax.external import EXTERNAL, code_generator, external_functions
from ..tir.function import IRModule
from .expr import Function
from .to_graph import to_graph

_PREFIX = "relay.ext."


def graph_with_external(mod: IRModule) -> IRModule:
    """A module as one of graphs, in which functions with the attribute "Compiler" are what their code generators make of them.

    A generator "mine" is a function registered as "relay.ext.mine". It gets one function of Relay, and returns a module, or a mapping from
    names to functions, with one for its "global_symbol": that takes the tensors of the arguments and then those of the results, into
    which it writes.

    Raises:
        DeclarationError: for a generator that there isn't, or that makes no function of the symbol.
    """
    marked: dict[str, Any] = {v.name_hint: f for v, f in mod.functions_items() if isinstance(f, Function) and "Compiler" in f.attrs}
    if not marked:
        return to_graph(mod)
    made = []
    for name, func in marked.items():
        target = str(func.attrs["Compiler"])
        symbol = str(func.attrs.get("global_symbol", name))
        generated = code_generator(_PREFIX, target)(func.with_attr("global_symbol", symbol))
        if symbol not in external_functions([generated]):
            raise DeclarationError(
                f"the code generator {target!r} made no function {symbol!r}; it returns a module, or a mapping from names to functions, "
                "with one for the global_symbol of the function that it gets"
            )
        made.append(generated)
    whole = to_graph(mod, {name: str(func.attrs.get("global_symbol", name)) for name, func in marked.items()})
    kept: dict[Any, Any] = {var: func for var, func in whole.functions_items() if var.name_hint not in marked}
    return IRModule(kept, {**whole.attrs, EXTERNAL: (*whole.attrs.get(EXTERNAL, ()), *made)}, whole.global_infos)
