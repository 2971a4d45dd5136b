"""From a module of graphs to an executable: operators become tensor functions, these get schedules and machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import DeclarationError, ScheduleError
from ..lower.passes import ModulePass
from ..lower.pipeline import lower
from ..runtime.build import build as build_functions
from ..spaces.default import default_schedule
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from .expr import Function
from .runtime.executable import Executable
from .tensor_function import plain_tensors
from .transform.bind import BindParams
from .transform.legalize import LegalizeOps
from .transform.simple import DeadCodeElimination, FoldConstant

Pipeline = Callable[[IRModule], IRModule]


def default_pipeline(mod: IRModule) -> IRModule:
    """What `build` does to graphs: constants are computed, operators become tensor functions, what nothing uses goes."""
    for one in (FoldConstant(), LegalizeOps(), DeadCodeElimination()):
        mod = one(mod)
    return mod


_PIPELINES: dict[str, Callable[..., Pipeline]] = {
    "default": lambda: default_pipeline,
    "default_build": lambda: default_pipeline,
    "zero": lambda: default_pipeline,
}


def get_pipeline(name: str = "zero", **kwargs: Any) -> Any:
    """The passes of a name, as one.

    Raises:
        DeclarationError: for a name that there isn't, naming those that are there.
    """
    if name not in _PIPELINES:
        raise DeclarationError(f"no pipeline {name!r}; there are {', '.join(sorted(_PIPELINES))}")
    made = _PIPELINES[name](**kwargs)
    return (
        made
        if isinstance(made, ModulePass)
        else ModulePass(name, lambda func, ctx: func, by_user=False, module_func=lambda mod, ctx: made(mod))
    )


def register_pipeline(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a function that returns a pipeline, under a name.

    Raises:
        DeclarationError: if the name is taken.
    """

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        if name in _PIPELINES:
            raise DeclarationError(f"a pipeline {name!r} is registered already")
        _PIPELINES[name] = make
        return make

    return register


def scheduled(func: PrimFunc, name: str, target: Target) -> tuple[PrimFunc, str]:
    """A tensor function with a schedule, and where that comes from.

    A function whose loops are those that its computation has by default gets one by rules; loops that somebody wrote otherwise stay.
    """
    try:
        tensors = plain_tensors(func)
        s = default_schedule(tensors, target)
        with target:
            return lower(s, tensors, name)[name], "rule"
    except (DeclarationError, ScheduleError) as error:
        return func.with_attr("global_symbol", name), f"as given: {error}"


def build(
    mod: IRModule | Function,
    target: TargetLike | None = None,
    params: Mapping[Any, Any] | None = None,
    relax_pipeline: Any = "default",
    tir_pipeline: Any = "default",
    exec_mode: str = "bytecode",
    *,
    pipeline: Any = None,
    system_lib: bool | None = None,
) -> Executable:
    """Build a module of graphs.

    Args:
        mod: the module, or one function.
        target: what to build for; the current target, or this machine.
        params: values of parameters of "main" that become constants.
        relax_pipeline: passes on graphs: a name, a pass, or None for none. `pipeline` is its name up to 0.19.
        tir_pipeline: passes on tensor functions: a pass that gives them schedules; "default" for schedules by rules, None for none.
        exec_mode: "bytecode" or "compiled", which are the same here.
        system_lib: accepted.

    Raises:
        DeclarationError, LoweringError, CodegenError, TargetError: from the steps.
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise DeclarationError(f'relax.build: exec_mode is "bytecode" or "compiled", not {exec_mode!r}')
    chosen = Target.target_or_current(target)
    whole = IRModule.from_expr(mod) if not isinstance(mod, IRModule) else mod  # type: ignore[arg-type]
    if params:
        whole = BindParams("main", params)(whole)
    for one in (pipeline if pipeline is not None else relax_pipeline,):
        if one is not None:
            whole = (get_pipeline(one) if isinstance(one, str) else one)(whole)
    if tir_pipeline is not None and not isinstance(tir_pipeline, str):
        whole = tir_pipeline(whole)
    functions: dict[str, PrimFunc] = {}
    origins: dict[str, str] = {}
    for var, func in whole.functions_items():
        if isinstance(func, PrimFunc):
            name = var.name_hint
            plain = func.with_attr("global_symbol", name), "as given"
            functions[name], origins[name] = scheduled(func, name, chosen) if tir_pipeline is not None else plain
    kernels = build_functions(IRModule(functions), target=chosen) if functions else None  # type: ignore[arg-type]
    return Executable(whole, kernels, chosen, origins)
