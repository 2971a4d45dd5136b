"""Check a schedule: reference, the interpreter at every phase, and the compiled code must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..arith.index_map import IndexMap
from ..dataclass import dataclass
from ..lower.context import PassContext
from ..lower.device.on_cpu import with_barriers
from ..lower.pipeline import LAST_PHASE, Kept, lower_by_phase, lower_for_cpu
from ..lower.register_file import RegisterFile
from ..runtime import ndarray as nd
from ..runtime.build import build
from ..runtime.module import Module
from ..schedule.given_layouts import declared_arguments
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.operation import PlaceholderOp
from ..te.reference import evaluate
from ..te.tensor import Tensor
from ..te.tolerance import Tolerance, reduction_length, term_magnitude, tolerance_of
from ..tir.dtype import to_numpy
from ..tir.expr import PrimExpr
from ..tir.function import IRModule, PrimFunc
from ..tir.interpreter import IterationLimitError, interpret
from .data import Array, random_inputs
from .program import check_program

PHASES = (0, 1, 2, 3)
THREADS = -1  # phase 1 with the barriers that threads need, all threads of a block together
EMULATOR = -2  # built for a GPU, as PTX on `ptx.emulator()`
EMULATED = "cuda -arch=sm_80"


class ScheduleMismatch(AssertionError):
    """A phase or the compiled code computes something else than the definition.

    problem: where, which tensor and what is wrong.
    program: a Python program that fails in the same way; the message ends with it.
    """

    def __init__(self, problem: str, program: str) -> None:
        super().__init__(f"{problem}\nTo repeat it, run this program:\n\n{program}")
        self.problem = problem
        self.program = program


def assert_schedule_correct(
    schedule: Schedule,
    args: Sequence[Tensor],
    seed: int = 0,
    phases: Sequence[int] = PHASES,
    compiled: bool = True,
    sizes: Sequence[Mapping[Any, int]] = ({},),
    max_iterations: int | None = None,
    emulator: bool = False,
) -> None:
    """Run a schedule in every way there is, on random data. Threads of a grid also run as on a device, under a watch for races.

    Args:
        schedule: what to check.
        args: its inputs and outputs. Inputs that the schedule wants packed may be given packed or as they were declared.
        seed: of the random inputs.
        phases: lowering phases after which the loop IR is interpreted.
        compiled: also build and call the machine code.
        sizes: values of the variables in the shapes; what is lowered or built once runs with each.
        max_iterations: how many iterations of loops the interpreter may take after a phase; None for as many as there are.
        emulator: also build it for a GPU, and run the PTX on `ptx.emulator()`. All of it has to be bound to threads.

    Raises:
        IterationLimitError: if `max_iterations` don't do.
        ScheduleMismatch: at the first disagreement, with the phase, the worst element and a program to repeat it.
    """
    args = declared_arguments(schedule.tree, args)
    lowering = Lowering(schedule, schedule.arguments(args))
    together = (THREADS,) if any(node.thread for stage in schedule.tree.stages for node in stage.marks.values()) else ()
    ways = (*phases, *together, *((None,) if compiled else ()), *((EMULATOR,) if emulator else ()))
    runs = [_Run(schedule, args, seed, tuple(phases), compiled, emulator, sizes, phase, max_iterations, lowering) for phase in ways]
    expectations = [expectation_of(args, seed, values) for values in sizes]
    for run in runs:
        run.check(expectations)


Expectation: TypeAlias = tuple[dict[Tensor, Array], dict[Tensor, Array]]


def expectation_of(args: Sequence[Tensor], seed: int, values: Mapping[Any, int]) -> Expectation:
    """Random inputs, and what the definitions give for them."""
    inputs = random_inputs([t for t in args if isinstance(t.op, PlaceholderOp)], seed, values)
    results = [t for t in args if not isinstance(t.op, PlaceholderOp)]
    return inputs, dict(zip(results, evaluate(results, {**inputs, **values}), strict=True))


class Lowering:
    """The phases of one program, each lowered once; what is built is the last of them where it fits the machine's registers.

    Where it doesn't, only the passes run again that look at registers, and what comes after them.
    """

    def __init__(self, program: Schedule | PrimFunc, args: Sequence[Any] | None = None) -> None:
        self._program, self._args = program, args
        self._kept: Kept = {}
        self._steps: Iterator[IRModule] | None = None
        self._modules: list[IRModule] = []

    def upto(self, phase: int) -> PrimFunc:
        """The function after a phase.

        Raises:
            TensorExprError: from lowering; asked again, it is lowered again.
        """
        if self._steps is None:
            self._steps = lower_by_phase(self._program, self._args, kept=self._kept)
        try:
            while len(self._modules) <= phase:
                self._modules.append(next(self._steps))
        except BaseException:
            self._steps, self._modules = None, []  # a generator that has raised has nothing more to give
            raise
        ((_, func),) = self._modules[phase].functions_items()
        return func

    def threads(self) -> PrimFunc:
        """The function as a device's threads run it."""
        ((_, func),) = with_barriers(IRModule({"main": self.upto(1)})).functions_items()
        return func

    def runner(self, phase: int | None, max_iterations: int | None = None) -> Callable[..., object]:
        """What runs the program on arrays: the interpreter after a phase, the machine code for None, or `THREADS` or `EMULATOR`."""
        if phase is None:
            module = self.build()
            return lambda *arrays: module(*arrays)
        if phase == EMULATOR:
            return _emulated(build(self._program, self._args, target=EMULATED, name="main"))
        lowered = self.threads() if phase == THREADS else self.upto(phase)
        return lambda *arrays: interpret(lowered, list(arrays), max_iterations=max_iterations)

    def build(self) -> Module:
        """The machine code for the current target, or this machine."""
        # Interpreted phases have the registers of the current target, and without one AVX-512's, whatever machine this is.
        asked = RegisterFile.current()
        with Target.target_or_current(None):
            fits = asked == RegisterFile.current()
        lowered = self._modules[LAST_PHASE] if len(self._modules) > LAST_PHASE else None
        if PassContext.current().instruments:
            return build(self._program, self._args, name="main")
        if lowered is None or not fits:
            with Target.target_or_current(None):
                lowered = lower_for_cpu(self._program, self._args, kept=self._kept)
        return build(lowered)


def _emulated(module: Module) -> Callable[..., object]:
    from .ptx import emulator  # few programs run on grids

    def run(*arrays: Array) -> None:
        device = emulator()
        held = [nd.array(array, device) for array in arrays]
        module(*held)
        for array, result in zip(arrays, held, strict=True):
            array[...] = result.numpy()

    return run


@dataclass(frozen=True)
class _Run:
    """One way to run a schedule; `phase` is what `Lowering.runner` takes."""

    schedule: Schedule
    args: Sequence[Tensor]
    seed: int
    phases: tuple[int, ...]
    compiled: bool
    emulator: bool
    sizes: Sequence[Mapping[Any, int]]
    phase: int | None
    max_iterations: int | None
    lowering: Lowering

    def check(self, expectations: Sequence[Expectation]) -> None:
        """Run with each size; the first disagreement is raised."""
        try:
            run = self._function()
            problem = next((found for expectation in expectations if (found := problem_of(self.args, *expectation, run))), None)
        except IterationLimitError:
            raise
        except Exception as error:  # whatever goes wrong, the report says with which program
            raise self._mismatch(f"{type(error).__name__}: {error}") from error
        if problem:
            raise self._mismatch(problem)

    def _function(self) -> Callable[[list[Array]], object]:
        given = self.schedule.arguments(self.args)
        layouts = [None if new is old else (self.schedule.layout_of(old), new.shape) for new, old in zip(given, self.args, strict=True)]
        outputs = [not isinstance(arg.op, PlaceholderOp) for arg in self.args]
        return _in_layouts(self.lowering.runner(self.phase, self.max_iterations), layouts, outputs)

    def _mismatch(self, problem: str) -> ScheduleMismatch:
        program = check_program(self.schedule, self.args, self.seed, self.phases, self.compiled, self.sizes, self.emulator)
        return ScheduleMismatch(f"{way_name(self.phase)}: {problem}", program)


def way_name(phase: int | None) -> str:
    """What a way to run a program is called in messages."""
    return {None: "the compiled code", THREADS: "threads with barriers", EMULATOR: "the emulator"}.get(phase, f"phase {phase}")


def problem_of(
    args: Sequence[Tensor], inputs: dict[Tensor, Array], expected: dict[Tensor, Array], run: Callable[[list[Array]], object]
) -> str | None:
    """What is wrong with the arrays after a run."""
    # outputs don't begin with zeros: an element that nothing writes must show
    arrays = [inputs[t].copy() if t in inputs else np.full(expected[t].shape, 113, to_numpy(t.dtype)) for t in args]
    run(arrays)
    for tensor, array in zip(args, arrays, strict=True):
        if tensor in expected:
            message = _allowed(tensor, expected[tensor]).mismatch(array, expected[tensor])
            if message:
                return f"{tensor.name}: {message}"
        elif not np.array_equal(array, inputs[tensor], equal_nan=array.dtype.kind == "f"):
            return f"the input {tensor.name} was overwritten"
    return None


def _in_layouts(
    run: Callable[..., object], layouts: Sequence[tuple[IndexMap, Sequence[PrimExpr]] | None], outputs: Sequence[bool]
) -> Callable[[list[Array]], object]:
    """`run` on arrays in the layouts that a schedule wants; results come back as they were declared."""

    def call(arrays: list[Array]) -> None:
        packed = [
            array if layout is None else layout[0].map_ndarray(array, layout[1]) for array, layout in zip(arrays, layouts, strict=True)
        ]
        run(*packed)
        for array, made, layout, output in zip(arrays, packed, layouts, outputs, strict=True):
            if layout is not None and output:
                array[...] = layout[0].unmap_ndarray(made, array.shape)

    return call


def _allowed(tensor: Tensor, expected: Array) -> Tolerance:
    """How far a result may be off: terms are at least as large as inputs are, which are numbers around 1."""
    return tolerance_of(tensor, max(1.0, term_magnitude(expected, reduction_length([tensor]))))
