"""The compiler of scheduled programs: lower, emit, compile. Runs in compile workers, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.emit import emit_module
from ...codegen.signature import BufferParam, Signature
from ...errors import CodegenError, RecordError
from ...lower.context import PassContext
from ...lower.pipeline import lower
from ...lower.plain_context import context_from_json
from ...runtime import engine
from ...runtime.entries import entries_text, entry_name
from ...target import Target
from ...tir.expr import IntImm
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_from_graph
from ...tune.measure.compiled import ArrayArgument, CompiledCandidate, Compiler
from ...tune.measure.spills import spills_in_object
from ..arg_info import entry_func

FUNCTION_NAME = "main"


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """A compiler for programs on a target, with options of lowering."""
    compiler = ModuleCompiler(Target(task["target"]), context_from_json(task.get("pass_options", {})))
    compiler.warm_up()
    return compiler


class ModuleCompiler:
    """Compiles modules for one target, in one PassContext."""

    def __init__(self, target: Target, context: PassContext | None = None) -> None:
        self._target = target
        self._context = context or PassContext()

    def warm_up(self) -> None:
        """Import LLVM and make it ready, so that the first program doesn't pay for it."""
        engine.compile_text("define void @warm_up() {\n  ret void\n}\n", self._target, 0)

    def __call__(self, trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
        """Object code of a program.

        Args:
            trace: the program's text alone.
            opt_level: of LLVM's IR passes.

        Raises:
            RecordError, LoweringError: if there is none.
            CodegenError: if there is no code for it.
        """
        if len(trace) != 1 or not isinstance(trace[0], str):
            raise RecordError("a program to build is one text")
        start = time.perf_counter()
        module = module_from_graph(trace[0])
        read = time.perf_counter()
        with self._target, self._context:
            lowered = lower(IRModule({FUNCTION_NAME: entry_func(module)}))
        done = time.perf_counter()
        emitted = emit_module({FUNCTION_NAME: lowered[FUNCTION_NAME]}, self._target)
        signature = emitted.signatures[FUNCTION_NAME]
        text = f"{emitted.text}\n{entries_text([signature])}"
        written = time.perf_counter()
        made = engine.compile_text(text, self._target, opt_level)
        timings = {"read": read - start, "lower": done - read, "emit": written - done, **made.timings}
        spills = spills_in_object(made.data)
        entry, lines = entry_name(FUNCTION_NAME), text.count("\n")
        return CompiledCandidate(made.data, entry, arguments_of(signature), tuple(signature.errors), timings, spills, lines)


def arguments_of(signature: Signature) -> tuple[ArrayArgument, ...]:
    """The arrays that a function takes.

    Raises:
        CodegenError: if it takes anything else, or arrays of symbolic shapes.
    """
    arrays = []
    for param in signature.params:
        if not isinstance(param, BufferParam) or signature.symbols:
            raise CodegenError(f"programs are measured on arrays of constant shape; {param.name} is none")
        arrays.append(ArrayArgument(param.name, param.dtype, tuple(e.value for e in param.shape if isinstance(e, IntImm))))
    return tuple(arrays)
