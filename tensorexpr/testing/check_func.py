"""Check a function of the loop IR against the tensors that it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..lower.device.launches import has_threads
from ..te.tensor import Tensor
from ..tir.function import PrimFunc
from ..tir.verify import verify_well_formed
from .check import EMULATOR, PHASES, THREADS, Lowering, expectation_of, problem_of, way_name
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
    emulator: bool = False,
) -> None:
    """Run a function in every way there is, on random data. Threads of a grid also run as on a device, under a watch for races.

    Args:
        func: what to check.
        args: the tensors that its parameters stand for, in order.
        seed: of the random inputs.
        phases: lowering phases after which the loop IR is interpreted.
        compiled: also build and call the machine code.
        sizes: values of the variables in the shapes; what is lowered or built once runs with each.
        emulator: also build it for a GPU, and run the PTX on `ptx.emulator()`.

    Raises:
        LoweringError: if the function is not well formed.
        FuncMismatch: at the first disagreement, with the phase, the worst element and the function as text.
    """
    verify_well_formed(func)
    expectations = [expectation_of(args, seed, values) for values in sizes]
    lowering = Lowering(func)
    together = (THREADS,) if has_threads(func) else ()
    for phase in (*phases, *together, *((None,) if compiled else ()), *((EMULATOR,) if emulator else ())):
        try:
            run = lowering.runner(phase)
            found = (problem_of(args, *expectation, partial(_spread, run)) for expectation in expectations)
            problem = next((text for text in found if text), None)
        except Exception as error:  # whatever goes wrong, the report says in which function
            raise _mismatch(func, phase, f"{type(error).__name__}: {error}") from error
        if problem:
            raise _mismatch(func, phase, problem)


def _spread(run: Callable[..., object], arrays: list[Array]) -> None:
    run(*arrays)


def _mismatch(func: PrimFunc, phase: int | None, problem: str) -> FuncMismatch:
    return FuncMismatch(f"{way_name(phase)}: {problem}\nThe function is\n\n{func.script()}")
