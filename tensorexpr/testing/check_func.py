"""Check a function of the loop IR against the tensors that it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..te.tensor import Tensor
from ..tir.function import PrimFunc
from ..tir.interpreter import interpret
from ..tir.verify import verify_well_formed
from .check import PHASES, Lowering, expectation_of, problem_of
from .data import Array


class FuncMismatch(AssertionError):
    """A phase or the compiled code of a function computes something else than the tensors' definitions; the message ends with it."""


def assert_func_correct(
    func: PrimFunc,
    args: Sequence[Tensor],
    seed: int = 0,
    phases: Sequence[int] = PHASES,
    compiled: bool = True,
    sizes: Sequence[Mapping[Any, int]] = ({},),
) -> None:
    """Run a function in every way there is, on random data.

    Args:
        func: what to check.
        args: the tensors that its parameters stand for, in order.
        seed: of the random inputs.
        phases: lowering phases after which the loop IR is interpreted.
        compiled: also build and call the machine code.
        sizes: values of the variables in the shapes; what is lowered or built once runs with each.

    Raises:
        LoweringError: if the function is not well formed.
        FuncMismatch: at the first disagreement, with the phase, the worst element and the function as text.
    """
    verify_well_formed(func)
    expectations = [expectation_of(args, seed, values) for values in sizes]
    lowering = Lowering(func)
    for phase in (*phases, *([None] if compiled else [])):
        try:
            run = _runner(lowering, phase)
            found = (problem_of(args, *expectation, run) for expectation in expectations)
            problem = next((text for text in found if text), None)
        except Exception as error:  # whatever goes wrong, the report says in which function
            raise _mismatch(func, phase, f"{type(error).__name__}: {error}") from error
        if problem:
            raise _mismatch(func, phase, problem)


def _runner(lowering: Lowering, phase: int | None) -> Callable[[list[Array]], object]:
    if phase is None:
        module = lowering.build()
        return lambda arrays: module(*arrays)
    return partial(interpret, lowering.upto(phase))


def _mismatch(func: PrimFunc, phase: int | None, problem: str) -> FuncMismatch:
    where = "the compiled code" if phase is None else f"phase {phase}"
    return FuncMismatch(f"{where}: {problem}\nThe function is\n\n{func.script()}")
