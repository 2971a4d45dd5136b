"""What went wrong, as data: how often each kind of failure came, the first one, and a program that repeats it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..errors import TensorExprError
from ..lower.pipeline import lower
from ..schedule.trace import Trace
from ..target import Target
from ..te.serialize import dag_to_json
from ..tune.measure import MeasureErrorNo
from .compute_dag import ComputeDAG

_MOST_TRIES = 200


class Outcome(Protocol):
    """A result or a record, as far as its failure goes."""

    @property
    def error_no(self) -> MeasureErrorNo:
        """The kind of failure; 0 for none."""

    @property
    def error_msg(self) -> str:
        """The error in one line."""


@dataclass(frozen=True)
class Failure:
    """One failed trial.

    Args:
        number: of the trial, from 0.
        kind: such as RuntimeDeviceError.
        message: in one line.
        detail: traceback, or what its process printed; empty where only a log is known.
        trace: its program.
    """

    number: int
    kind: str
    message: str
    detail: str
    trace: Trace


@dataclass(frozen=True)
class Failures:
    """All failures of a run: kind -> how many, most frequent first, and the first one of each kind."""

    trials: int
    kinds: tuple[tuple[str, int], ...]
    first: tuple[Failure, ...]

    @property
    def count(self) -> int:
        """How many trials failed."""
        return sum(count for _, count in self.kinds)

    def __str__(self) -> str:
        listed = ", ".join(f"{kind} {count}" for kind, count in self.kinds)
        return f"{self.count} of {self.trials}: {listed}" if self.count else f"none of {self.trials}"


def failures_of(outcomes: Sequence[tuple[Trace, Outcome]]) -> Failures:
    """The failures among programs with their outcomes, in the order they were measured."""
    first: dict[str, Failure] = {}
    counts: Counter[str] = Counter()
    for number, (trace, outcome) in enumerate(outcomes):
        if outcome.error_no:
            kind = outcome.error_no.error_type
            counts[kind] += 1
            first.setdefault(kind, Failure(number, kind, outcome.error_msg, getattr(outcome, "detail", ""), trace))
    return Failures(len(outcomes), tuple(counts.most_common()), tuple(first.values()))


def repeating_program(dag: ComputeDAG, target: Target, failure: Failure) -> str:
    """A Python program that needs nothing but this package, and does what the failed trial did."""
    made = minimised(dag, failure)
    steps = ",\n    ".join(json.dumps(step) for step in made.trace.to_json())
    return f'''"""Repeats trial {failure.number + 1}, which failed with {failure.kind}.

Run it in a process of its own: it may hang or crash.
"""

import json

import numpy as np

import tensorexpr
from tensorexpr import auto_scheduler
from tensorexpr.schedule.trace import Trace
from tensorexpr.te.serialize import dag_from_json

# {_one_line(failure.message)}
DAG = json.loads({json.dumps(dag_to_json(dag.tensors))!r})
STEPS = json.loads("""[
    {steps}
]""")

dag = auto_scheduler.ComputeDAG(dag_from_json(DAG))
schedule, args = dag.schedule(Trace.from_json(STEPS))
func = tensorexpr.build(schedule, args, {str(target)!r})
arrays = [np.ones([int(extent) for extent in arg.shape], arg.dtype) for arg in args]
func(*arrays)
print("no failure")
'''


def minimised(dag: ComputeDAG, failure: Failure) -> Failure:
    """The failure with all steps left out that it happens without, if scheduling or lowering fails: both are safe to try here."""
    wanted = _error_of(dag, failure.trace)
    if wanted is None:
        return failure
    trace = failure.trace
    for place in reversed(range(len(trace))[-_MOST_TRIES:]):
        shorter = Trace((*trace.steps[:place], *trace.steps[place + 1 :]))
        if _error_of(dag, shorter) == wanted:
            trace = shorter
    return replace(failure, trace=trace)


def _error_of(dag: ComputeDAG, trace: Trace) -> tuple[str, str] | None:
    """The class of the error that lowering a program ends with, and its text without step and alternatives; None if there is none."""
    try:
        schedule, args = dag.schedule(trace)
        lower(schedule, args)
    except TensorExprError as error:
        text = str(error)
        reason = text.partition("): ")[2] if text.startswith("step ") else text
        return type(error).__name__, reason.partition(";")[0]
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
