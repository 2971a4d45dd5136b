"""From a module of graphs to an executable: operators become tensor functions, these get schedules and machine code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..runtime.build import build as build_functions
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from .analysis import check_well_formed
from .build_progress import Progress, Watch
from .expr import Function
from .kernel_cache import built_kernels
from .kernels import Packing
from .runtime.constants import give_back_memory
from .runtime.executable import Executable
from .transform.bind import BindParams
from .transform.pipeline import LAST_GRAPH_PHASE, PHASES, get_pipeline, run_phases


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
    upto: int | None = None,
    progress: Progress = None,
) -> Any:
    """Build a module of graphs.

    Args:
        mod: the module, or one function.
        target: what to build for; the current target, or this machine.
        params: values of parameters of "main" that become constants.
        relax_pipeline: passes on graphs: a name, a pass, or None for none. `pipeline` is its name up to 0.19.
        tir_pipeline: passes on tensor functions: a pass that gives them schedules; "default" for schedules by rules, None for none.
        exec_mode: "bytecode" or "compiled", which are the same here.
        system_lib: accepted.
        upto: a phase of the pipeline (`transform.pipeline`), after which the module is returned as it is then.
        progress: a function that gets a `BuildProgress` for each kernel that is made; True for a line about them, False for none. By
            default there is one if stderr is a terminal, unless a PassContext has the option "relax.build.progress" at 0.

    Returns:
        An Executable; an IRModule with `upto`.

    Raises:
        TypeMismatchError: for what is no module of graphs.
        DeclarationError, LoweringError, CodegenError, TargetError: from the steps.
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise DeclarationError(f'relax.build: exec_mode is "bytecode" or "compiled", not {exec_mode!r}')
    if not isinstance(mod, (IRModule, Function)):
        raise TypeMismatchError(f"relax.build takes an IRModule or a relax.Function, not {type(mod).__name__}")
    # Before the passes: a target that there isn't is an error at once.
    chosen = Target.target_or_current(target)
    whole = IRModule.from_expr(mod) if not isinstance(mod, IRModule) else mod
    check_well_formed(whole)
    if params:
        whole = BindParams("main", params)(whole)
    if upto is not None and upto not in PHASES:
        raise DeclarationError(f"relax.build(upto={upto!r}): the phases are {', '.join(map(str, PHASES))}")
    if upto is not None and upto <= LAST_GRAPH_PHASE:
        return run_phases(whole, upto=upto)
    one = pipeline if pipeline is not None else relax_pipeline
    if one is not None:
        # No name is left here for the module that is given: passes let go of weights that they have made others of.
        handed, run = [whole], run_phases if one == "default" else get_pipeline(one) if isinstance(one, str) else one
        del mod, whole
        whole = run(handed.pop())
        give_back_memory()  # of weights that are gone
    if tir_pipeline is not None and not isinstance(tir_pipeline, str):
        whole = tir_pipeline(whole)
    last = max(PHASES) if upto is None else upto
    if tir_pipeline is None:
        given = {var.name_hint: func for var, func in whole.functions_items() if isinstance(func, PrimFunc)}
        whole, origins = run_phases(whole, LAST_GRAPH_PHASE + 1, last), dict.fromkeys(given, "as given")
        functions = {name: func.with_attr("global_symbol", name) for name, func in given.items()}
        if upto is None:
            kernels = build_functions(IRModule(functions), target=chosen) if functions else None  # type: ignore[arg-type]
            return Executable(whole, kernels, chosen, origins)
    elif upto is not None:
        from .kernel_schedules import kernels_of  # as of `kernel_cache`: what is found on disk needs no schedules

        made = kernels_of(whole, chosen)
        packing = Packing({name: kernel.layouts for name, kernel in made.items()})
        whole = packing.placed(whole)
        packing.fill()
        functions = {name: kernel.func.with_attr("schedule.origin", kernel.origin) for name, kernel in made.items()}
        whole = run_phases(whole, LAST_GRAPH_PHASE + 1, last)
    else:
        with Watch(progress) as watch:
            built = built_kernels(whole, chosen, watch)
        if built is not None:
            packing = Packing(built.layouts)
            whole = packing.placed(whole)
            packing.fill()
            give_back_memory()  # of weights in layouts that are gone
        whole = run_phases(whole, LAST_GRAPH_PHASE + 1, last)
        return (
            Executable(whole, None, chosen, {})
            if built is None
            else Executable(whole, built.module, chosen, dict(built.origins), built.layouts)
        )
    for name, func in functions.items():
        whole.update_func(name, func)
    return whole
