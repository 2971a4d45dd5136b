"""Check a schedule: reference, the interpreter at every phase, and the compiled code must agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..lower.pipeline import lower
from ..runtime.build import build
from ..schedule.te_schedule import Schedule
from ..te.operation import PlaceholderOp
from ..te.reference import evaluate
from ..te.tensor import Tensor
from ..te.tolerance import Tolerance, tolerance_of
from ..tir.dtype import to_numpy
from ..tir.interpreter import interpret
from .data import Array, random_inputs

PHASES = (0, 1, 2, 3)


class ScheduleMismatch(AssertionError):
    """A phase or the compiled code computes something else than the definition. The message is a program to repeat it."""


def assert_schedule_correct(
    schedule: Schedule, args: Sequence[Tensor], seed: int = 0, phases: Sequence[int] = PHASES, compiled: bool = True
) -> None:
    """Run a schedule in every way there is, on random data.

    Args:
        schedule: what to check.
        args: its inputs and outputs; constant shapes.
        seed: of the random inputs.
        phases: lowering phases after which the loop IR is interpreted.
        compiled: also build and call the machine code.

    Raises:
        ScheduleMismatch: at the first disagreement, with the phase, the worst element and the schedule.
    """
    inputs = random_inputs([t for t in args if isinstance(t.op, PlaceholderOp)], seed)
    results = [t for t in args if not isinstance(t.op, PlaceholderOp)]
    expected = dict(zip(results, evaluate(results, inputs), strict=True))
    for phase in phases:
        _compare(schedule, args, inputs, expected, partial(_interpret, schedule, args, phase), f"phase {phase}")
    if compiled:
        _compare(schedule, args, inputs, expected, partial(_call, schedule, args), "the compiled code")


def _interpret(schedule: Schedule, args: Sequence[Tensor], phase: int, arrays: list[Array]) -> None:
    interpret(lower(schedule, args, upto=phase)["main"], arrays)


def _call(schedule: Schedule, args: Sequence[Tensor], arrays: list[Array]) -> None:
    build(schedule, args, name="main")(*arrays)


def _compare(
    schedule: Schedule,
    args: Sequence[Tensor],
    inputs: dict[Tensor, Array],
    expected: dict[Tensor, Array],
    run: Callable[[list[Array]], object],
    where: str,
) -> None:
    arrays = [inputs[t].copy() if t in inputs else np.full(expected[t].shape, 113, to_numpy(t.dtype)) for t in args]
    try:
        run(arrays)
    except Exception as error:  # whatever goes wrong, the report says with which program
        raise ScheduleMismatch(f"{where}: {type(error).__name__}: {error}\n{describe(schedule, args)}") from error
    for tensor, array in zip(args, arrays, strict=True):
        if tensor in expected:
            allowed: Tolerance = tolerance_of(tensor)
            message = allowed.mismatch(array, expected[tensor])
            if message:
                raise ScheduleMismatch(f"{where}: {tensor.name}: {message}\n{describe(schedule, args)}")
        elif not np.array_equal(array, inputs[tensor], equal_nan=array.dtype.kind == "f"):
            raise ScheduleMismatch(f"{where}: the input {tensor.name} was overwritten\n{describe(schedule, args)}")


def describe(schedule: Schedule, args: Sequence[Tensor]) -> str:
    """The computation, the schedule as Python and its loops, to repeat a failure by hand."""
    shapes = ", ".join(f"{t.name}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in args)
    return f"args: {shapes}\n{schedule.as_python()}\n{schedule}\ntrace: {schedule.trace.to_json()}"
