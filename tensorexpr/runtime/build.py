"""`build`: from a schedule, function or module of the loop IR to a module of machine code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ArgumentError
from ..lower.context import PassContext
from ..target import Target, TargetLike
from ..target.kinds import DEVICE_KINDS, SOURCE_KINDS
from ..tir.function import IRModule, PrimFunc
from . import cache, engine
from .cache import Program
from .code import CompiledCode
from .module import Module
from .program_key import program_key

# PassContext's level -> LLVM's: 2 is the default of a context and means the whole of LLVM, 0 is for search candidates.
_LLVM_LEVELS = {0: 0, 1: 1}
_FINAL_LEVEL = 3


def build(
    inputs: Any,
    args: Sequence[Any] | None = None,
    target: TargetLike | None = None,
    target_host: TargetLike | None = None,
    runtime: Any = None,
    name: str | None = "default_function",
    binds: Mapping[Any, Any] | None = None,
) -> Module:
    """Compile to machine code, or find what an earlier build of the same program made on disk (`TENSOREXPR_CACHE=0` builds anew).

    Args:
        inputs: a te.Schedule, a PrimFunc, an IRModule, or a mapping from one target to an IRModule.
        args: for a schedule: tensors, variables and buffers, in the order of the function's parameters.
        target: what to compile for; the current target, or this machine.
        target_host: the same as the target's host.
        runtime: kept for programs that pass one; there is one runtime.
        name: the name of the function that a schedule or a PrimFunc without `global_symbol` becomes.
        binds: for a schedule: buffers to use for tensors.

    Raises:
        ArgumentError: for inputs of another kind.
        LoweringError, ScheduleError, CodegenError, TargetError: from the steps.
    """
    if isinstance(inputs, Mapping):
        target, inputs = _only_entry(inputs)
    chosen = Target.target_or_current(target)
    if target_host is not None:
        chosen = Target(chosen, target_host)
    if chosen.kind in DEVICE_KINDS:
        from .device_build import build_for_device  # not loaded for programs of CPUs

        return build_for_device(inputs, args, chosen, name, binds)  # type: ignore[return-value]  # it has what programs ask of one
    if chosen.kind in SOURCE_KINDS:
        from .c_build import build_c  # nor this for programs that print none

        return build_c(inputs, args, chosen, name, binds)
    chosen.check_built()
    start = time.perf_counter()
    symbol = symbol_of(inputs, name)
    key = program_key(inputs, args, symbol, binds, chosen)
    program = None if key is None else cache.fetch_program(key)
    if program is not None:
        return _compile(program, chosen, None, {"cache": time.perf_counter() - start})
    timings: dict[str, float] = {}
    program = _emit(lowered(inputs, args, symbol, binds, chosen, timings), chosen, timings)
    if key is not None:
        cache.keep_program(key, program)
    return _compile(program, chosen, None, timings)


def compile_functions(
    functions: Mapping[str, PrimFunc], target: Target, opt_level: int | None = None, timings: Mapping[str, float] | None = None
) -> Module:
    """Compile lowered functions (results of `lower`).

    Args:
        functions: by symbol.
        target: what to compile for.
        opt_level: LLVM's; that of the current PassContext if None.
        timings: seconds of earlier steps, kept with the module's.
    """
    target.check_built()
    seconds = dict(timings or {})
    return _compile(_emit(functions, target, seconds), target, opt_level, seconds)


def symbol_of(inputs: Any, name: str | None) -> str:
    """The name of the function that a schedule or a PrimFunc becomes: its own counts more than `name`, whose default is never None."""
    return str((isinstance(inputs, PrimFunc) and inputs.attrs.get("global_symbol")) or name or "default_function")


def lowered(
    inputs: Any, args: Sequence[Any] | None, name: str, binds: Mapping[Any, Any] | None, target: Target, timings: dict[str, float]
) -> dict[str, PrimFunc]:
    """The functions by symbol, lowered for the registers of a target."""
    # Not loaded where the cache has the program.
    from ..lower.pipeline import lower_for_cpu

    start = time.perf_counter()
    with target:  # passes ask for the current one
        module = lower_for_cpu(inputs, args, name, binds)
    timings["lower"] = time.perf_counter() - start
    return {str(var.name_hint): func for var, func in module.functions_items()}


def _emit(functions: Mapping[str, PrimFunc], target: Target, timings: dict[str, float]) -> Program:
    """The LLVM IR text of lowered functions, with their packed entries."""
    # Not loaded where the cache has the program.
    from ..codegen.emit import emit_module
    from .entries import entries_text

    check_any(functions)
    start = time.perf_counter()
    emitted = emit_module(functions, target, debug=bool(PassContext.current().config.get("tir.enable_debug")))
    text = f"{emitted.text}\n{entries_text(emitted.signatures.values())}"
    externs = emitted.externs
    if emitted.imports:
        from .imported_code import linked  # not worth its time for programs without

        text, defined = linked(text, emitted.imports, target)
        externs = tuple(name for name in externs if name not in defined)
    timings["emit"] = time.perf_counter() - start
    return Program(text, emitted.signatures, externs)


def check_any(functions: Mapping[str, PrimFunc]) -> None:
    """Refuse a module without functions.

    Raises:
        ArgumentError: if there is none.
    """
    if not functions:
        raise ArgumentError("build: the module holds no function to compile")


def _compile(program: Program, target: Target, opt_level: int | None, timings: dict[str, float]) -> Module:
    """The module of a program; `timings` are the seconds of earlier steps."""
    # Before LLVM runs, which takes longer.
    if program.externs:
        engine.check_externs(program.externs, target)
    level = _LLVM_LEVELS.get(PassContext.current().opt_level, _FINAL_LEVEL) if opt_level is None else opt_level
    compiled = cache.compile_text(program.text, target, level)
    for step, seconds in compiled.timings.items():
        timings[step] = timings.get(step, 0.0) + seconds
    return Module(CompiledCode(program.text, compiled.data, program.signatures, target, level, timings))


def _only_entry(inputs: Mapping[Any, Any]) -> tuple[Any, IRModule]:
    if len(inputs) != 1:
        raise ArgumentError(f"build: a mapping of targets to modules has one entry here, for the CPU; got {len(inputs)}")
    return next(iter(inputs.items()))
