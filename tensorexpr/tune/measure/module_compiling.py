"""The compiler of scheduled programs: lower, emit, compile. Runs in compile workers, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import RecordError
from ...lower.context import PassContext
from ...lower.plain_context import context_from_json
from ...target import Target
from ...tir.function import IRModule, PrimFunc
from ...tir.serialize.module_graph import module_from_graph
from .arg_info import entry_func
from .compiled import CompiledCandidate, Compiler
from .object_code import FUNCTION_NAME, compiled, lowered_for, warm_up


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """A compiler for programs on a target, with options of lowering."""
    target = Target(task["target"])
    warm_up(target)
    return ModuleCompiler(target, context_from_json(task.get("pass_options", {})))


class ModuleCompiler:
    """Compiles modules for one target, in one PassContext."""

    def __init__(self, target: Target, context: PassContext | None = None) -> None:
        self._target = target
        self._context = context or PassContext()

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
            lowered = lowered_for(self._target, IRModule({FUNCTION_NAME: _renamed(entry_func(module))}))
        timings = {"read": read - start, "lower": time.perf_counter() - read}
        return compiled(lowered, self._target, opt_level, timings)


def _renamed(func: PrimFunc) -> PrimFunc:
    """A function under the name that runners call: its symbol, not its key in a module, is what the code is called."""
    return func.with_attr("global_symbol", FUNCTION_NAME)
