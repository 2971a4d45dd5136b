"""Why a log has nothing for a task: what differs from the record that comes nearest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..dataclass import dataclass
from ..target import Target
from ..target.machine import without_caches
from .loaded import LoadedRecord, workload_name_and_args
from .records import load_records
from .task import Task

# How far apart two records are that differ in one thing: another function is farthest, a failure nearest.
_FUNCTION, _KIND, _COUNT, _DEFINITION, _ARGUMENT, _OPTION, _FAILURE = 1000, 400, 200, 100, 20, 10, 1


@dataclass(frozen=True)
class Difference:
    """One thing in which a record is not what is looked for, and how much that matters."""

    text: str
    weight: int


def explain_miss(log: str | Path, task: Task) -> str:
    """What a log has for a task, or in what the nearest record differs from it.

    Raises:
        RecordError: if the log can't be read.
    """
    records = load_records(log, repeats=True)
    if not records:
        return f"{log} holds no records."
    ranked = [(list(differences(record, task)), number, record) for number, record in enumerate(records)]
    found, number, nearest = min(ranked, key=lambda entry: (sum(d.weight for d in entry[0]), entry[2].median))
    if not found:
        return f"{log} has a record for {task.workload_key}: record {number}, {nearest.median * 1e3:.4g} ms."
    listed = "".join(f"\n  - {difference.text}" for difference in found)
    return (
        f"{log} has no record for {task.workload_key} on {task.target.resolved()}.\n"
        f"The nearest of {len(records)} is record {number}, of {nearest.workload_key}; it differs in:{listed}"
    )


def differences(record: LoadedRecord, task: Task) -> Iterator[Difference]:
    """In what a record is not one of a task."""
    yield from _workload(record.workload_key, task.workload_key)
    if record.workload_key == task.workload_key and record.dag_hash != task.compute_dag.hash_key():
        yield Difference(
            f"the definition: the workload has the same name and arguments, but computed something else then (dag {record.dag_hash[:12]} "
            f"there, {task.compute_dag.hash_key()[:12]} here)",
            _DEFINITION,
        )
    yield from _target(record, task.target.resolved())
    if not record.is_success:
        yield Difference(f"success: it failed with {record.error_no.error_type}: {record.error_msg[:200]}", _FAILURE)
    elif not record.is_trusted:
        yield Difference("verification: its results were not compared with the definition's", _FAILURE)


def _workload(theirs: str, ours: str) -> Iterator[Difference]:
    if theirs == ours:
        return
    there, here = workload_name_and_args(theirs), workload_name_and_args(ours)
    if there is None or here is None or there[0] != here[0]:
        yield Difference(f"the workload: {theirs[:200]} there, {ours[:200]} here", _FUNCTION)
        return
    if len(there[1]) != len(here[1]):
        yield Difference(f"the number of arguments: {len(there[1])} there, {len(here[1])} here", _COUNT)
        return
    for place, (mine, other) in enumerate(zip(here[1], there[1], strict=True)):
        if mine != other:
            yield Difference(f"argument {place} of {here[0]}: {other!r} there, {mine!r} here", _ARGUMENT)


def _target(record: LoadedRecord, here: Target) -> Iterator[Difference]:
    if record.fits_target(str(here)):
        return
    there, here = (Target(without_caches(text)) for text in (record.target, str(here)))
    if there.kind != here.kind:
        yield Difference(f"the target's kind: {there.kind} there, {here.kind} here", _KIND)
    mine, theirs = here.attrs, there.attrs
    for option in sorted({*mine, *theirs}):
        if mine.get(option) != theirs.get(option):
            yield Difference(f"target option -{option}: {_word(theirs.get(option))} there, {_word(mine.get(option))} here", _OPTION)


def _word(value: object) -> str:
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
