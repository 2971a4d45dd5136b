"""`compile`: whatever a module holds, graphs or tensor functions."""

from __future__ import annotations

from typing import Any

from ..relax.build import build as build_graphs
from ..relax.expr import Function
from ..runtime.build import build as build_functions
from ..target import TargetLike
from ..tir.function import IRModule


def compile(mod: Any, target: TargetLike | None = None, *, relax_pipeline: Any = "default", tir_pipeline: Any = "default") -> Any:
    """Compile a module, or one function, to machine code.

    Args:
        mod: an IRModule, a function of a graph or a tensor function.
        target: what to compile for; the current target, or this machine.
        relax_pipeline, tir_pipeline: for graphs; see `relax.build`.

    Returns:
        For graphs an executable, which goes into a `relax.VirtualMachine`; else a module of functions.

    Raises:
        DeclarationError, LoweringError, ScheduleError, CodegenError, TargetError: from the steps.
    """
    functions: list[Any] = [func for _, func in mod.functions_items()] if isinstance(mod, IRModule) else [mod]
    if any(isinstance(func, Function) for func in functions):
        return build_graphs(mod, target, relax_pipeline=relax_pipeline, tir_pipeline=tir_pipeline)
    return build_functions(mod, target=target)
