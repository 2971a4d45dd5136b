"""`build`: from a schedule, function or module of the loop IR to a module of machine code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.emit import emit_module
from ..errors import ArgumentError
from ..lower.context import PassContext
from ..lower.pipeline import lower
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from . import engine
from .code import CompiledCode
from .entries import entries_text
from .module import Module

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
    """Compile to machine code.

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
    start = time.perf_counter()
    module = lower(inputs, args, name or "default_function", binds)
    lowered = time.perf_counter()
    functions = {name: func for name, func in ((str(var.name_hint), func) for var, func in module.functions_items())}
    return compile_functions(functions, chosen, timings={"lower": lowered - start})


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
    if not functions:
        raise ArgumentError("build: the module holds no function to compile")
    start = time.perf_counter()
    emitted = emit_module(functions, target)
    if emitted.externs:
        engine.check_externs(emitted.externs, target)
    text = f"{emitted.text}\n{entries_text(emitted.signatures.values())}"
    emit = time.perf_counter() - start
    level = _LLVM_LEVELS.get(PassContext.current().opt_level, _FINAL_LEVEL) if opt_level is None else opt_level
    compiled = engine.compile_text(text, target, level)
    seconds = {**(timings or {}), "emit": emit, **compiled.timings}
    return Module(CompiledCode(text, compiled.data, emitted.signatures, target, level, seconds))


def _only_entry(inputs: Mapping[Any, Any]) -> tuple[Any, IRModule]:
    if len(inputs) != 1:
        raise ArgumentError(f"build: a mapping of targets to modules has one entry here, for the CPU; got {len(inputs)}")
    return next(iter(inputs.items()))
