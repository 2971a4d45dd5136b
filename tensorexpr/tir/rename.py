"""Functions of a module by other names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError
from .expr import Call
from .function import GlobalVar, IRModule, PrimFunc
from .rewriting import Node, post_order_rewrite


def renamed(mod: IRModule, names: Mapping[str, str]) -> IRModule:
    """`mod` with functions renamed where they are defined and called; public ones get the name as their symbol.

    Raises:
        DeclarationError: if two functions would have one name.
    """

    def called(node: Node) -> Node | None:
        op: Any = node.op if isinstance(node, Call) else None
        if not isinstance(node, Call) or not isinstance(op, GlobalVar) or op.name_hint not in names:
            return None
        return Call(node.dtype, GlobalVar(names[op.name_hint]), node.args)  # type: ignore[arg-type]

    found: dict[str | GlobalVar, PrimFunc] = {}
    for var, func in mod.functions_items():
        name = names.get(var.name_hint, var.name_hint)
        if name in found:
            raise DeclarationError(f"replace_global_vars: two functions would be called {name!r}")
        made = func.with_body(post_order_rewrite(func.body, called))
        symbol = func.attrs.get("global_symbol")
        found[name] = replace(made, attrs=made.attrs.set(global_symbol=name)) if symbol == var.name_hint and name != symbol else made
    return IRModule(found, mod.attrs, mod.global_infos)
