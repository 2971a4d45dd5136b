"""Lowered functions to object code that measuring processes load: what compilers of candidates do alike."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.emit import emit_module
from ...codegen.signature import BufferParam, Signature
from ...errors import CodegenError
from ...lower.pipeline import lower, lower_for_cpu
from ...runtime import engine
from ...runtime.device_build import build_for_device
from ...runtime.device_export import described_parts
from ...runtime.entries import entries_text, entry_name
from ...schedule.tree import AxisExpression
from ...target import Target
from ...target.kinds import DEVICE_KINDS
from ...tir.expr import IntImm
from ...tir.function import IRModule
from .compiled import ArrayArgument, CompiledCandidate
from .spills import spills_in_object

FUNCTION_NAME = "main"

Layout = tuple[AxisExpression, ...]


def warm_up(target: Target) -> None:
    """Import LLVM and make it ready, so that the first candidate doesn't pay for it."""
    text = "define void @warm_up() {\n  ret void\n}\n"
    if target.kind in DEVICE_KINDS:
        engine.emit_assembly(text, target)
        return
    engine.compile_text(text, target, 0)


def lowered_for(target: Target, inputs: Any, args: Sequence[Any] | None = None) -> IRModule:
    """A schedule or a module of one function `FUNCTION_NAME` as `compiled` takes it: the target's threads, or loops of a CPU.

    Raises:
        LoweringError: as `lower`.
    """
    return (lower if target.kind in DEVICE_KINDS else lower_for_cpu)(inputs, args, FUNCTION_NAME)


def compiled(
    lowered: IRModule, target: Target, opt_level: int, timings: Mapping[str, float], layouts: Sequence[Layout | None] | None = None
) -> CompiledCandidate:
    """Object code of the lowered function `FUNCTION_NAME`; of a GPU the text of its kernels, with what their launches need.

    Args:
        opt_level: of LLVM's IR passes.
        timings: seconds of the steps before, by name.
        layouts: in which each argument is passed; None for its own.

    Raises:
        CodegenError: if there is no code for it, or it takes anything but arrays of constant shape.
    """
    if target.kind in DEVICE_KINDS:
        return _kernels(lowered, target, timings, layouts)
    start = time.perf_counter()
    emitted = emit_module({FUNCTION_NAME: lowered[FUNCTION_NAME]}, target)
    signature = emitted.signatures[FUNCTION_NAME]
    text = f"{emitted.text}\n{entries_text([signature])}"
    written = time.perf_counter()
    made = engine.compile_text(text, target, opt_level)
    steps = {**timings, "emit": written - start, **made.timings}
    arguments = arguments_of(signature, layouts)
    spills, lines = spills_in_object(made.data), text.count("\n")
    return CompiledCandidate(made.data, entry_name(FUNCTION_NAME), arguments, tuple(signature.errors), steps, spills, lines)


def _kernels(lowered: IRModule, target: Target, timings: Mapping[str, float], layouts: Sequence[Layout | None] | None) -> CompiledCandidate:
    module = build_for_device(lowered, None, target, FUNCTION_NAME, None)
    text, described = described_parts(module)
    arguments = arguments_of(module[FUNCTION_NAME].signature, layouts)
    data = json.dumps([text, described]).encode()
    # what a kernel spills is known where it is loaded
    return CompiledCandidate(data, FUNCTION_NAME, arguments, (), {**timings, **module.timings}, 0, module.code.llvm.count("\n"))


def arguments_of(signature: Signature, layouts: Sequence[Layout | None] | None = None) -> tuple[ArrayArgument, ...]:
    """The arrays that a function takes.

    Args:
        layouts: in which each is passed; None for its own.

    Raises:
        CodegenError: if it takes anything else, or arrays of symbolic shapes.
    """
    arrays = []
    for param, layout in zip(signature.params, layouts or [None] * len(signature.params), strict=True):
        if not isinstance(param, BufferParam) or signature.symbols:
            raise CodegenError(f"programs are measured on arrays of constant shape; {param.name} is none")
        shape = tuple(extent.value for extent in param.shape if isinstance(extent, IntImm))
        arrays.append(ArrayArgument(param.name, param.dtype, shape, layout))
    return tuple(arrays)
