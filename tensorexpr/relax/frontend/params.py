"""Parameters of imported models, which their functions bring along."""

from __future__ import annotations

from typing import Any

from ...tir.function import IRModule
from ..expr import Function


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[Any]]]:
    """A module without the values of parameters in its functions' attributes "params", and these values.

    Returns:
        the module, and NDArrays by the names of functions, in the order of the last parameters.
    """
    made = mod.clone()
    found: dict[str, list[Any]] = {}
    for var, func in mod.functions_items():
        if isinstance(func, Function) and "params" in func.attrs:
            found[var.name_hint] = list(func.attrs["params"])
            made.update_func(var, func.without_attr("params"))
    return made, found
