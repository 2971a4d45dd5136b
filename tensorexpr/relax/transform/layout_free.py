"""AttachAttrLayoutFreeBuffers: arguments of tensor functions that are weights in every call may have any layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...lower.passes import ModulePass
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ..expr import Call, Constant, Function, Tuple, Var
from ..visitor import walk
from .passes import graph_pass

LAYOUT_FREE = "layout_free_buffers"


def _calls(mod: IRModule) -> Iterator[tuple[str, set[int]]]:
    """Calls of tensor functions, with the arguments that are weights: constants, and parameters behind the inputs."""
    for _, func in mod.functions_items():
        if not isinstance(func, Function):
            continue
        count = int(func.attrs["num_input"]) if "num_input" in func.attrs else len(func.params)
        weights: set[Any] = set(func.params[count:])
        for node in walk(func.body):
            if isinstance(node, Call) and node.op == "relax.call_tir" and isinstance(node.args[0], GlobalVar):
                fields = node.args[1].fields if isinstance(node.args[1], Tuple) else ()
                places = {n for n, arg in enumerate(fields) if isinstance(arg, Constant) or (isinstance(arg, Var) and arg in weights)}
                yield node.args[0].name_hint, places


def AttachAttrLayoutFreeBuffers() -> ModulePass:
    """A pass: tensor functions get the attribute "layout_free_buffers", the arguments that are weights in all of their calls.

    Weights are constants, and the parameters of functions behind the first "num_input" ones.
    """

    def run(mod: IRModule) -> IRModule:
        found: dict[str, set[int]] = {}
        for name, places in _calls(mod):
            found[name] = found.get(name, places) & places
        made = mod.clone()
        for name, places in found.items():
            func: Any = mod[name]
            if places and isinstance(func, PrimFunc):
                made.update_func(name, func.with_attr(LAYOUT_FREE, sorted(places)))
        return made

    return graph_pass("AttachAttrLayoutFreeBuffers", run)
