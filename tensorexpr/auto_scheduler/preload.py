"""Going on where an old log ended: measured programs are not measured again, and the model knows them from the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..dataclass import dataclass
from ..lower.context import PassContext
from ..lower.plain_context import context_to_json, options_in_words, words_of_options
from ..schedule.layout_rewrite import layout_free_inputs
from ..schedule.steps import SampleCategorical, Sampling
from ..schedule.trace import Trace
from ..tune.evolution import Candidate
from ..tune.planned import Planned
from ..tune.space import Sketch
from .loaded import LoadedRecord
from .records import load_records
from .task import Task

Find = Callable[[Trace], Candidate | None]
_PROMISING = 4  # programs of a log that was timed otherwise


class PreloadMeasuredStates:
    """Give it to `SketchPolicy(init_search_callbacks=[...])` to go on with the records of a log.

    Args:
        filename: the log. It need not be there yet: then the search starts afresh.
        reads_once: take the log as it was when it was asked for first; many tasks of one search don't each parse all of it.
    """

    def __init__(self, filename: str | Path, reads_once: bool = False) -> None:
        self.filename = str(filename)
        self._reads_once = reads_once
        self._read: list[LoadedRecord] | None = None

    def _records(self) -> list[LoadedRecord]:
        found = self._read if self._read is not None else load_records(self.filename, repeats=True)
        if self._reads_once:
            self._read = found
        return found

    def records(self, task: Task) -> list[LoadedRecord]:
        """The records of a task that were made under the options of the current PassContext, in the order of the log.

        Raises:
            RecordError: if the file is there but can't be read.
            LoweringError: if the PassContext holds Python functions that change programs.
        """
        if not Path(self.filename).exists():
            return []
        target, dag_hash = str(task.target.resolved()), task.compute_dag.hash_key()
        free = layout_free_inputs(task.compute_dag.initial_tree)  # whose layout changes what is measured
        options = options_in_words(context_to_json(PassContext.current()))
        return [
            record
            for record in self._records()
            if record.workload_key == task.workload_key
            and record.dag_hash == dag_hash
            and record.fits_target(target)
            and (record.layout_rewrite_option == task.layout_rewrite_option or not free)
            and words_of_options(record.policy) == options
        ]

    def message(self, task: Task, count: int) -> str:
        """What the search says of it."""
        if count:
            return f"SearchPolicy: Loaded {count} measurement records from {self.filename} for {task.workload_key}"
        return f"SearchPolicy: No measurement records found in {self.filename} for {task.workload_key}"


@dataclass(frozen=True)
class Preloaded:
    """What earlier runs measured: candidates of the sketches with their costs (infinite if they failed), and the plain program's cost.

    `promising` are candidates that are worth measuring once more.
    """

    candidates: tuple[tuple[Candidate, float], ...] = ()
    baseline: float | None = None
    promising: tuple[Candidate, ...] = ()


class CandidateIndex:
    """Finds the candidate of some spaces that makes a program.

    Args:
        spaces: sketches, and those of rules' choices.
    """

    def __init__(self, spaces: Sequence[Any]) -> None:
        self._planned = {number: space for number, space in enumerate(spaces) if isinstance(space, Planned)}
        self._sketches: dict[int, Sketch] = {number: space for number, space in enumerate(spaces) if number not in self._planned}
        self._columns = {number: _columns(sketch) for number, sketch in self._sketches.items()}
        self._shapes: dict[tuple[Any, ...], list[int]] = {}
        for number, sketch in self._sketches.items():
            # by shape: else each record would have a trace made of every sketch to be compared with
            self._shapes.setdefault(_shape(sketch.trace if sketch.finish is None else _samples(sketch.trace)), []).append(number)

    def find(self, trace: Trace) -> Candidate | None:
        """The candidate that makes the program of a trace; None if no space does."""
        for number, planned in self._planned.items():
            if (choice := planned.find(trace)) is not None:
                return Candidate(number, choice)
        # Finished traces match by all of their steps, others by their samples alone.
        for number in (*self._shapes.get(_shape(trace), ()), *self._shapes.get(_shape(_samples(trace)), ())):
            row = _row(self._sketches[number], self._columns[number], trace)
            if row is not None:
                return Candidate(number, row)
        return None


def recall(records: Sequence[LoadedRecord], find: Find) -> Preloaded:
    """The candidates that records tell of; programs that aren't found are left out. The last record of a program counts."""
    found: dict[Candidate, float] = {}
    baseline = None
    for record in records:
        if not len(record.trace):
            baseline = record.median
        elif (candidate := find(record.trace)) is not None:
            found[candidate] = record.median
    return Preloaded(tuple(found.items()), baseline)


def fastest_candidates(records: Sequence[LoadedRecord], find: Find) -> tuple[Candidate, ...]:
    """The candidates of the fastest few programs that records tell of."""
    known = sorted(recall(records, find).candidates, key=lambda pair: pair[1]) if records else []
    return tuple(candidate for candidate, cost in known[:_PROMISING] if math.isfinite(cost))


def _samples(trace: Trace) -> Trace:
    """The sampling steps, which finishing a program keeps."""
    return Trace(tuple(step for step in trace if isinstance(step, Sampling)))


def _shape(trace: Trace) -> tuple[Any, ...]:
    """The trace without its decisions."""
    return tuple((type(step), *(value for name, value in vars(step).items() if name != "decision")) for step in trace)


def _columns(sketch: Sketch) -> list[Mapping[tuple[int, ...], int]]:
    """Per decision: its values -> the number of the candidate."""
    return [{tuple(value): number for number, value in enumerate(decision.values.tolist())} for decision in sketch.decisions]


def _row(sketch: Sketch, columns: Sequence[Mapping[tuple[int, ...], int]], trace: Trace) -> tuple[int, ...] | None:
    """The candidate numbers of a trace's decisions; None if one is no candidate."""
    row, samples = [], _samples(trace).steps
    for decision, numbers in zip(sketch.decisions, columns, strict=True):
        step: Any = samples[decision.sample]
        made = step.decision
        chosen = isinstance(step, SampleCategorical)
        number = made if chosen else numbers.get(made if isinstance(made, tuple) else (made,))
        if number is None or not 0 <= number < decision.count:
            return None
        row.append(int(number))
    # shapes leave decisions out, and finishing may change other steps: only the whole trace says
    return tuple(row) if sketch.trace_of(row) == trace else None
