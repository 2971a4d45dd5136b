"""What went wrong, as data: how often each kind of failure came, the first one, and a program that repeats it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..dataclass import dataclass, field, replace
from ..errors import TensorExprError
from ..lower.context import PassContext
from ..lower.pipeline import lower
from ..lower.plain_context import arguments_of_words
from ..schedule.trace import Trace
from ..target import Target
from ..te.serialize import dag_to_json
from ..tune.measure import MeasureErrorNo, Measurer, Program
from .compute_dag import ComputeDAG

_MOST_TRIES = 200
# How a repeating program runs: (imports, statements).
_CALL = (
    "import numpy as np\n\n",
    """\
    func = tensorexpr.build(schedule, args, name="main")
    func(*[np.ones([int(extent) for extent in arg.shape], arg.dtype) for arg in args])
""",
)
_CHECK = ("", "    assert_schedule_correct(schedule, args, phases=())\n")


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
        options: arguments of the `PassContext` that it was lowered in.
    """

    number: int
    kind: str
    message: str
    detail: str
    trace: Trace
    options: Mapping[str, Any] = field(default_factory=dict)


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
            detail, options = getattr(outcome, "detail", ""), arguments_of_words(getattr(outcome, "policy", {}))
            first.setdefault(kind, Failure(number, kind, outcome.error_msg, detail, trace, options))
    return Failures(len(outcomes), tuple(counts.most_common()), tuple(first.values()))


def repeating_program(dag: ComputeDAG, target: Target, failure: Failure) -> str:
    """A Python program that needs nothing but this package, and does what the failed trial did."""
    made = minimised(dag, failure)
    wrong = failure.kind == MeasureErrorNo.WRONG_ANSWER.error_type
    imports, run = _CHECK if wrong else _CALL
    checking = "from tensorexpr.testing import assert_schedule_correct\n" if wrong else ""
    steps = ",\n    ".join(json.dumps(step) for step in made.trace.to_json())
    return f'''"""Repeats trial {failure.number + 1}, which failed with {failure.kind}.

Run it in a process of its own: it may hang or crash.
"""

import json

{imports}import tensorexpr
from tensorexpr import auto_scheduler
from tensorexpr.schedule.trace import Trace
from tensorexpr.te.serialize import dag_from_json
{checking}
# {_one_line(failure.message)}
DAG = json.loads({json.dumps(dag_to_json(dag.tensors))!r})
STEPS = json.loads(r"""[
    {steps}
]""")

dag = auto_scheduler.ComputeDAG(dag_from_json(DAG))
with tensorexpr.transform.PassContext({_arguments(failure.options)}), tensorexpr.target.Target({str(target)!r}):
    schedule, args = dag.schedule(Trace.from_json(STEPS))
{run}print("no failure")
'''


def _arguments(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def minimised_by_measuring(failure: Failure, measurer: Measurer) -> Failure:
    """The failure with all steps left out that it happens without; each attempt runs in a worker, where it can do no harm.

    Args:
        failure: of any kind; one that hangs costs its time limit at every attempt.
        measurer: of its task, within its context.
    """
    trace = failure.trace
    for place in reversed(range(len(trace))[-_MOST_TRIES:]):
        shorter = _without(trace, place)
        (result,) = measurer.measure([Program(failure.number, shorter)])
        if result.error_no.error_type == failure.kind:
            trace = shorter
    return replace(failure, trace=trace)


def minimised(dag: ComputeDAG, failure: Failure) -> Failure:
    """The failure with all steps left out that it happens without, if scheduling or lowering fails: both are safe to try here."""
    wanted = _error_of(dag, failure.trace, failure.options)
    if wanted is None:
        return failure
    trace = failure.trace
    # from the last step on: what depends on a step has gone before it, if it can go
    # One pass from the end; a second one would find little more.
    for place in reversed(range(len(trace))[-_MOST_TRIES:]):
        shorter = _without(trace, place)
        if _error_of(dag, shorter, failure.options) == wanted:
            trace = shorter
    return replace(failure, trace=trace)


def _without(trace: Trace, place: int) -> Trace:
    return Trace((*trace.steps[:place], *trace.steps[place + 1 :]))


def _error_of(dag: ComputeDAG, trace: Trace, options: Mapping[str, Any]) -> tuple[str, str] | None:
    """The class of the error that lowering a program ends with, and its text without step and alternatives; None if there is none."""
    try:
        schedule, args = dag.schedule(trace)
        with PassContext(**options):
            lower(schedule, args)
    except TensorExprError as error:
        text = str(error)
        # "step 7 (split): ..." has another number once a step before it is gone
        reason = text.partition("): ")[2] if text.startswith("step ") else text
        # Behind the semicolon stands what to do instead, which names axes that other steps made.
        return type(error).__name__, reason.partition(";")[0]
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
