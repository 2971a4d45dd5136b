"""The compiler of candidates: replay the trace, lower, emit, compile. Runs in compile workers, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...codegen.emit import emit_module
from ...codegen.signature import BufferParam, Signature
from ...errors import CodegenError
from ...lower.context import PassContext
from ...lower.pipeline import lower
from ...lower.plain_context import context_from_json
from ...runtime import engine
from ...runtime.entries import entries_text, entry_name
from ...schedule.axis_expression import encode
from ...schedule.given_layouts import given_inputs
from ...schedule.te_schedule import Schedule
from ...schedule.trace import Trace
from ...schedule.tree import AxisExpression
from ...target import Target
from ...te.operation import PlaceholderOp
from ...te.serialize import dag_from_json
from ...te.tensor import Tensor
from ...tir.expr import IntImm
from .compiled import ArrayArgument, CompiledCandidate, Compiler
from .spills import spills_in_object

FUNCTION_NAME = "main"


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """A compiler for the candidates of a task, which holds the DAG of its arguments, the target, and options of lowering."""
    context = context_from_json(task.get("pass_options", {}))
    compiler = CandidateCompiler(dag_from_json(task["dag"]), Target(task["target"]), context)
    compiler.warm_up()
    return compiler


class CandidateCompiler:
    """Compiles schedules of the computation with the arguments `args`, inputs and outputs, for one target, in one PassContext."""

    def __init__(self, args: Sequence[Tensor], target: Target, context: PassContext | None = None) -> None:
        self._context = context or PassContext()
        self._args = list(args)
        self._target = target
        self._outputs = tuple(tensor.op for tensor in args if not isinstance(tensor.op, PlaceholderOp))

    def warm_up(self) -> None:
        """Import LLVM and make it ready, so that the first candidate doesn't pay for it."""
        engine.compile_text("define void @warm_up() {\n  ret void\n}\n", self._target, 0)

    def __call__(self, trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
        """Object code of the program that a trace makes.

        Raises:
            RecordError, ScheduleError, LoweringError: if it makes none.
            CodegenError: if there is no code for it.
        """
        start = time.perf_counter()
        schedule = Schedule(self._outputs, Trace.from_json(list(trace)))
        replayed = time.perf_counter()
        with self._context:
            module = lower(schedule, schedule.arguments(self._args), FUNCTION_NAME)
        lowered = time.perf_counter()
        emitted = emit_module({FUNCTION_NAME: module[FUNCTION_NAME]}, self._target)
        signature = emitted.signatures[FUNCTION_NAME]
        text = f"{emitted.text}\n{entries_text([signature])}"
        written = time.perf_counter()
        made = engine.compile_text(text, self._target, opt_level)
        timings = {
            "replay": replayed - start,
            "lower": lowered - replayed,
            "emit": written - lowered,
            **made.timings,
        }
        arguments = _arguments(signature, [_layout(schedule, arg) for arg in self._args])
        return CompiledCandidate(
            made.data, entry_name(FUNCTION_NAME), arguments, signature.errors, timings, spills_in_object(made.data), text.count("\n")
        )


def _layout(schedule: Schedule, arg: Tensor) -> tuple[AxisExpression, ...] | None:
    """The layout in which an input is passed, if it isn't its own."""
    if arg not in given_inputs(schedule.tree):
        return None
    layout = schedule.layout_of(arg)
    numbers = {var: axis for axis, var in enumerate(layout.initial_indices)}
    return tuple(encode(index, numbers) for index in layout.final_indices)


def _arguments(signature: Signature, layouts: Sequence[tuple[AxisExpression, ...] | None]) -> tuple[ArrayArgument, ...]:
    arrays = []
    for param, layout in zip(signature.params, layouts, strict=True):
        if not isinstance(param, BufferParam) or signature.symbols:
            raise CodegenError(f"candidates are measured on arrays of constant shape; {param.name} is none")
        shape = tuple(extent.value for extent in param.shape if isinstance(extent, IntImm))
        arrays.append(ArrayArgument(param.name, param.dtype, shape, layout))
    return tuple(arrays)
