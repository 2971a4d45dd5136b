"""From a module of graphs to an executable: operators become tensor functions, these get schedules and machine code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..runtime.build import build as build_functions
from ..support import give_back_memory
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from .analysis import check_well_formed
from .build_progress import Progress, Watch
from .expr import Function
from .kernel_cache import built_kernels
from .kernels import Packing
from .runtime.constants import with_shared_constants
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
        with chosen:
            return run_phases(whole, upto=upto)
    passes = pipeline if pipeline is not None else relax_pipeline
    # No name is left here for a module that is handed on: steps let go of weights that they have made others of.
    handed = [whole]
    del mod, whole
    if passes is not None:
        run = run_phases if passes == "default" else get_pipeline(passes) if isinstance(passes, str) else passes
        with chosen:  # loops of operators that write these themselves use the instructions that it has
            handed.append(run(handed.pop()))
        give_back_memory()  # of weights that are gone
    if tir_pipeline is None:
        return _as_given(handed.pop(), chosen, upto)
    if not isinstance(tir_pipeline, str):
        handed.append(tir_pipeline(handed.pop()))
    return _executable(handed.pop(), chosen, progress) if upto is None else _scheduled(handed.pop(), chosen, upto)


def _executable(graphs: IRModule, target: Target, progress: Progress) -> Executable:
    """Tensor functions get schedules and machine code, from disk where they were built before."""
    with Watch(progress) as watch:
        built = built_kernels(graphs, target, watch)
    if built is not None:
        packing = Packing(built.layouts)
        graphs = packing.placed(graphs)
        packing.fill()
        give_back_memory()  # of weights in layouts that are gone
    graphs = with_shared_constants(run_phases(graphs, LAST_GRAPH_PHASE + 1, max(PHASES)))
    if built is None:
        return Executable(graphs, None, target, {})
    return Executable(graphs, built.module, target, dict(built.origins), built.layouts)


def _scheduled(graphs: IRModule, target: Target, upto: int) -> IRModule:
    """The module after a phase, its tensor functions with their schedules."""
    from .kernel_schedules import kernels_of  # as of `kernel_cache`: what is found on disk needs no schedules

    made = kernels_of(graphs, target)
    packing = Packing({name: kernel.layouts for name, kernel in made.items()})
    graphs = packing.placed(graphs)
    packing.fill()
    functions = {name: kernel.func.with_attr("schedule.origin", kernel.origin) for name, kernel in made.items()}
    return _with_functions(run_phases(graphs, LAST_GRAPH_PHASE + 1, upto), functions)


def _as_given(graphs: IRModule, target: Target, upto: int | None) -> Executable | IRModule:
    """Tensor functions are built as they are, without schedules; with `upto` the module after that phase."""
    given = {var.name_hint: func for var, func in graphs.functions_items() if isinstance(func, PrimFunc)}
    graphs, origins = run_phases(graphs, LAST_GRAPH_PHASE + 1, max(PHASES) if upto is None else upto), dict.fromkeys(given, "as given")
    functions = {name: func.with_attr("global_symbol", name) for name, func in given.items()}
    if upto is not None:
        return _with_functions(graphs, functions)
    kernels = build_functions(IRModule(functions), target=target) if functions else None  # type: ignore[arg-type]
    return Executable(with_shared_constants(graphs), kernels, target, origins)


def _with_functions(graphs: IRModule, functions: Mapping[str, PrimFunc]) -> IRModule:
    for name, func in functions.items():
        graphs.update_func(name, func)
    return graphs
