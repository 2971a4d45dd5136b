"""One case of the fuzzer: a computation, a schedule's trace and the seed of its data, as strict JSON.

    {"dag": {"version": 1, ...}, "trace": [["split", 2, 0, [null, 4]], ...], "seed": 7, "error": "phase 1: ...", "target": "llvm -mcpu=..."}

`dag` is what `te.serialize` writes, `trace` what `Trace.to_json` gives; without a target it is this machine. Files may come from
anywhere: whatever is no case raises `RecordError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

from ..dataclass import dataclass, replace
from ..errors import RecordError, ScheduleError, TargetError
from ..lower.pipeline import lower
from ..schedule.legality import check_tree
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..target import Target
from ..te.dag import post_dfs_order
from ..te.operation import Operation, PlaceholderOp
from ..te.serialize import dag_from_json, dag_to_json, strict_json
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.interpreter import IterationLimitError
from .check import PHASES, ScheduleMismatch, assert_schedule_correct
from .program import check_program

MAX_CHARACTERS = 1 << 20
MAX_SEED = 1 << 32
MAX_ELEMENTS = 1 << 24
MAX_ITERATIONS = 1 << 20  # the interpreter takes a few seconds for them
_FIELDS = {"dag", "trace", "seed", "error"}


@dataclass(frozen=True)
class Case:
    """Tensors (inputs, then results), the steps of a schedule, the seed of the data, what went wrong ("" if nothing did), the target."""

    tensors: tuple[Tensor, ...]
    trace: Trace
    seed: int = 0
    error: str = ""
    target: str = "llvm"

    @property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations that make the results."""
        return tuple(dict.fromkeys(t.op for t in self.tensors if not isinstance(t.op, PlaceholderOp)))

    def schedule(self) -> Schedule:
        """The schedule that the trace makes.

        Raises:
            ScheduleError: if the trace does not fit the computation, or what it makes is illegal.
        """
        schedule = Schedule(self.outputs, self.trace)
        check_tree(schedule.tree)
        return schedule

    def check(self, phases: Sequence[int] = PHASES, compiled: bool = True) -> ScheduleMismatch | None:
        """What `assert_schedule_correct` says about the case; None if nothing.

        Raises:
            ScheduleError: if the trace does not fit, or is refused where bounds and arguments are known, which it alone doesn't tell.
            IterationLimitError: if a phase takes more than `MAX_ITERATIONS`: splits that don't divide multiply.
        """
        schedule = self.schedule()
        # refused here, outside of the check, it is an illegal case and no mismatch
        lower(schedule, schedule.arguments(self.tensors), upto=0)
        try:
            with Target(self.target) as target:
                compiled = compiled and target.runs_here
                assert_schedule_correct(schedule, self.tensors, self.seed, phases, compiled, max_iterations=MAX_ITERATIONS)
        except ScheduleMismatch as mismatch:
            return mismatch
        return None

    def program(self, phases: Sequence[int] = PHASES, compiled: bool = True) -> str:
        """A Python program that checks the case."""
        with Target(self.target) as target:
            return check_program(self.schedule(), self.tensors, self.seed, phases, compiled and target.runs_here)

    def dumps(self) -> str:
        """The case as one line of JSON."""
        data = {"dag": dag_to_json(self.tensors), "trace": self.trace.to_json(), "seed": self.seed, "error": self.error}
        data |= {"target": self.target} if self.target != "llvm" else {}
        return json.dumps(data, separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Case:
    """The case of a line that `Case.dumps` made.

    Raises:
        RecordError: for anything else, a trace that does not fit the computation included.
    """
    if len(text) > MAX_CHARACTERS:
        raise RecordError(f"a case has at most {MAX_CHARACTERS} characters, not {len(text)}")
    data = strict_json(text, "case")
    if not isinstance(data, dict) or set(data) - {"target"} != _FIELDS:
        raise RecordError("a case is an object with the fields dag, trace, seed, error, and target if it isn't this machine")
    if type(data["seed"]) is not int or not 0 <= data["seed"] < MAX_SEED:
        raise RecordError(f"the seed of a case is an integer from 0 to {MAX_SEED - 1}")
    if not isinstance(data["error"], str):
        raise RecordError("the error of a case is a string")
    return _fitting(Case(dag_from_json(data["dag"]), Trace.from_json(data["trace"]), data["seed"], data["error"], _target(data)))


def _target(data: dict[str, Any]) -> str:
    target = data.get("target", "llvm")
    try:
        if not isinstance(target, str):
            raise RecordError(f"the target of a case is a string, not {target!r}")
        Target(target).check_built()
        Target(target).features  # noqa: B018  (asks LLVM, which may not know the CPU)
    except TargetError as error:
        raise RecordError(f"the target of the case: {error}") from error
    return target


def _fitting(case: Case) -> Case:
    if not case.outputs:
        raise RecordError("the computation of a case has no results")
    for op in post_dfs_order([tensor.op for tensor in case.tensors]):
        extents = [as_int(extent) for extent in op.output_shape(0)]
        if None in extents or prod(extent or 0 for extent in extents) > MAX_ELEMENTS:
            raise RecordError(f"{op.name} has the shape {list(map(str, op.output_shape(0)))}; a case takes up to {MAX_ELEMENTS} elements")
    try:
        case.schedule()
    except ScheduleError as error:
        raise RecordError(f"the trace does not fit the computation: {error}") from error
    return case


def read(path: Path) -> Case:
    """The case of a file.

    Raises:
        RecordError: naming the file, if it holds none.
    """
    try:
        with path.open("rb") as file:
            # a character has up to 4 bytes in UTF-8
            content = file.read(4 * MAX_CHARACTERS + 1)
        return loads(content.decode("utf-8"))
    except (OSError, UnicodeDecodeError, RecordError) as error:
        raise RecordError(f"{path}: {error}") from error


def shrink(case: Case, phases: Sequence[int] = PHASES, compiled: bool = True) -> Case:
    """The case with as few steps as a greedy search finds: steps are dropped, last ones first, while what is left still fails.

    The computation stays. A case that passes comes back as it is.
    """
    mismatch = case.check(phases, compiled)
    if mismatch is None:
        return case
    current = replace(case, error=mismatch.problem)
    smaller: Case | None = current
    while smaller is not None:
        current = smaller
        smaller = next((found for less in _shorter(current) if (found := _failing(less, phases, compiled)) is not None), None)
    return current


def _shorter(case: Case) -> Iterator[Case]:
    """Without the second half of the steps, then without one of them."""
    steps = case.trace.steps
    if len(steps) > 3:
        yield replace(case, trace=Trace(steps[: len(steps) // 2]))
    for number in reversed(range(len(steps))):
        yield replace(case, trace=Trace(steps[:number] + steps[number + 1 :]))


def _failing(case: Case, phases: Sequence[int], compiled: bool) -> Case | None:
    try:
        mismatch = case.check(phases, compiled)
    except (ScheduleError, IterationLimitError):  # the steps that are left need the one that is gone, or make its loops endless
        return None
    return None if mismatch is None else replace(case, error=mismatch.problem)
