"""What went wrong in a tuning run, from its log: how often each kind of failure came, the first of each, and how to repeat it."""

from __future__ import annotations

from pathlib import Path

from ..tune.measure import Measurer
from .failures import failures_of, minimised_by_measuring, repeating_program
from .records import load_records
from .task import Task
from .workers import LocalBuilder, LocalRunner, measure_options, measure_task


def explain_failures(log: str | Path, task: Task, minimise: bool = False) -> str:
    """The failures of a task in a log, by kind, and a program of Python that repeats the first one.

    Args:
        log: what `RecordToFile` wrote.
        task: whose records count.
        minimise: leave out the steps that the failure happens without, also where it takes running the program to see it: in
            worker processes, a run for each step.

    Raises:
        RecordError: if the log can't be read.
        TuningError: if no worker can be started.
    """
    wanted = task.compute_dag.hash_key()
    records = [
        r for r in load_records(log, repeats=True) if r.workload_key == task.workload_key and r.dag_hash == wanted and not r.is_timed_again
    ]
    failures = failures_of([(record.trace, record) for record in records])
    lines = [f"Failures: {failures}"]
    lines += [f"  first {first.kind}: trial {first.number + 1}: {' '.join(first.message.split())}" for first in failures.first]
    if not failures.first:
        return lines[0]
    first = failures.first[0]
    if minimise:
        with Measurer(measure_task(task, 0), measure_options(LocalBuilder(), LocalRunner())) as measurer:
            first = minimised_by_measuring(first, measurer)
    return "\n".join([*lines, "A program that repeats the first of them:", "", repeating_program(task.compute_dag, task.target, first)])
