"""Tuning logs of the auto-scheduler: one JSON line per trial, as `tune.records` defines it. TVM's v0.6 logs are read too.

python -m tensorexpr.auto_scheduler.measure_record --mode distill -i log.json -o best.json
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from ..errors import RecordError, ScheduleError
from ..schedule.legality import check_tree
from ..schedule.trace import Trace
from ..target import Target, TargetLike
from ..tune.measure import MeasureResult
from ..tune.records import Record, V06Line, append_records, choose_best, make_record, misfit, read_log
from .compute_dag import ComputeDAG
from .layout_rewrite import LayoutRewriteOption
from .loaded import LAYOUT_KEY, LineReader, LoadedRecord, RecordedTask
from .measure_input import MeasureInput
from .utils import calc_workload_dis_factor, decode_workload_key


def _record(made: MeasureInput, result: MeasureResult) -> Record:
    task = made.task
    key = task.dag_hash if isinstance(task, RecordedTask) else task.compute_dag.hash_key()
    policy = {**result.policy, LAYOUT_KEY: int(task.layout_rewrite_option)}
    more = {"host": str(task.target.host)} if task.target.host is not None else {}
    said = {**more, "inputs": list(task.task_input_names)} if task.task_input_names else more
    return replace(make_record(task.workload_key, key, task.target, made.trace, replace(result, policy=policy)), task=said)


def save_records(filename: str | Path, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Append results to a log, one line each, flushed at once.

    Several processes may write to one log: the lines of a call are appended in one write, under a lock.
    """
    append_records(filename, [_record(made, result) for made, result in zip(inputs, results, strict=True)])


def load_records(filename: str | Path, repeats: bool = False) -> list[LoadedRecord]:
    """The records of a log that can be read, one for each trial; a torn last line and foreign lines are skipped with a warning.

    Each comes apart into what was measured and how it did: `for inp, res in load_records(log)`. Lines of TVM's v0.6 logs
    are replayed; their workloads must be registered.

    Args:
        filename: the log.
        repeats: also those of programs that ran before and were timed again, which are no trials; else what they say stands in
            place of the first measurement.

    Raises:
        RecordError: if the file can't be read.
    """
    records = read_log(filename, LineReader())
    return list(records) if repeats else _one_a_trial(records)


def _one_a_trial(records: Iterable[LoadedRecord]) -> list[LoadedRecord]:
    made: list[LoadedRecord] = []
    places: dict[tuple[str, str, str, Trace], int] = {}
    for record in records:
        key = (record.workload_key, record.dag_hash, record.target, record.trace)
        if record.is_timed_again and key in places:
            # a second time that failed says nothing about the first: the worker may have been killed
            if record.is_success:
                made[places[key]] = record
        else:
            places[key] = len(made)
            made.append(record)
    return made


class RecordReader:
    """Reads a log, whole or in pieces.

    Args:
        filename: the log.
    """

    def __init__(self, filename: str | Path) -> None:
        self.filename = str(filename)

    def read_lines(self, max_lines: int | None = None, skip_lines: int = 0) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """The inputs and the results of up to `max_lines` records, after `skip_lines` of them.

        Raises:
            RecordError: if the file can't be read.
        """
        inputs, results = [], []
        for number, record in enumerate(self._records()):
            if max_lines is not None and number >= skip_lines + max_lines:
                break
            if number >= skip_lines:
                inputs.append(record.input)
                results.append(record.result)
        return inputs, results

    def check_workload_equality(self, workload_key: str) -> None:
        """Check that all records are of one workload.

        Raises:
            RecordError: naming the first one that is not.
        """
        for number, record in enumerate(self._records()):
            if record.workload_key != workload_key:
                raise RecordError(f"{self.filename}: record {number} is of workload {record.workload_key[:200]}, not {workload_key[:200]}")

    def _records(self) -> Iterator[LoadedRecord]:
        return iter(load_records(self.filename))

    def check_workload_key(self, inputs: Sequence[MeasureInput]) -> None:
        """Check that inputs name the workload of the first of them.

        Raises:
            RecordError: naming the first one that does not.
        """
        for number, made in enumerate(inputs):
            if made.task.workload_key != inputs[0].task.workload_key:
                raise RecordError(f"input {number} is of workload {made.task.workload_key[:200]}, not {inputs[0].task.workload_key[:200]}")

    def __iter__(self) -> Iterator[LoadedRecord]:
        return self._records()


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """A result as the line that a log would hold, without the newline."""
    return _record(inp, res).dumps()


def load_record_from_string(record: str) -> LoadedRecord:
    """The record of a line: `inp, res = load_record_from_string(line)`.

    Raises:
        RecordError: if it is none.
    """
    return LineReader()(record.strip())


def load_best_record(
    filename: str | Path,
    workload_key: str | None = None,
    target: TargetLike | None = None,
    include_compatible: bool = False,
    dag: ComputeDAG | None = None,
    layout_rewrite_option: LayoutRewriteOption | None = None,
) -> LoadedRecord:
    """The fastest verified record of a workload on a target: `inp, res = load_best_record(log, key)`.

    Args:
        workload_key, target: what must agree; None accepts any.
        include_compatible: where the log has none, take one of the same function with arguments that divide these, if its
            program is legal here.
        dag: the computation, which must agree too; needed for `include_compatible` where the key names no registered function.
        layout_rewrite_option: records of this option count; others only where there are none, since an input that is passed packed
            costs nothing in their times.

    Raises:
        RecordError: if the log has none; the message says what it has instead.
    """
    reader = LineReader({workload_key: dag} if workload_key is not None and dag is not None else {})
    found = list(read_log(filename, reader.parse))
    records = [read for read in found if isinstance(read, LoadedRecord)]
    foreign, refused = _first_replayed([read for read in found if isinstance(read, V06Line)], reader, workload_key)
    records += foreign
    dag_hash = dag.hash_key() if dag is not None else None
    alike = [record for record in records if layout_rewrite_option in (None, record.layout_rewrite_option)]
    best, why_not = choose_best(alike, workload_key, dag_hash, target)
    if best is None and len(alike) < len(records):
        best, why_not = choose_best(records, workload_key, dag_hash, target)
    if best is None and include_compatible and workload_key is not None:
        best = compatible_record(records, workload_key, dag or ComputeDAG(workload_key), target)
    if best is None:
        raise RecordError(f"{filename}: {why_not}{refused}")
    return best


def _first_replayed(lines: Sequence[V06Line], reader: LineReader, workload_key: str | None) -> tuple[list[LoadedRecord], str]:
    """Of each workload of v0.6 lines the fastest program that can be replayed; and why others can't, in words."""
    made: dict[str, LoadedRecord] = {}
    refused = ""
    good = [line for line in lines if not line.error_no and workload_key in (None, line.workload_key)]
    # fastest first: replaying takes longer than reading, and one of each workload is enough
    for line in sorted(good, key=lambda line: median(line.costs)):
        if line.workload_key in made:
            continue
        try:
            made[line.workload_key] = reader.imported(line)
        except RecordError as error:
            refused = refused or f"; of {len(lines)} v0.6 lines none can be replayed, the first because {error}"
    return list(made.values()), "" if made else refused


def compatible_record(
    records: Iterable[LoadedRecord], workload_key: str, dag: ComputeDAG, target: TargetLike | None
) -> LoadedRecord | None:
    """The record of the same function that promises most for other arguments, and whose program is legal for them."""
    wanted = None if target is None else str(Target(target).resolved())
    ranked = []
    for record in records:
        factor = calc_workload_dis_factor(decode_workload_key(workload_key), decode_workload_key(record.workload_key))
        if factor < math.inf and not misfit(record, None, None, wanted):
            # time is taken to grow as the work does; the order is what counts
            ranked.append((record.median * factor, record))
    for _, record in sorted(ranked, key=lambda entry: entry[0]):
        try:
            check_tree(record.trace.apply(dag.initial_tree))
        except ScheduleError:
            continue
        return record
    return None


def distill_record_file(in_file: str | Path, out_file: str | Path) -> int:
    """Keep the best record of each workload on each target with each layout of its inputs, and write them to another file.

    The best is what `load_best_record` takes. That file is replaced.

    Returns:
        the number of records written.

    Raises:
        RecordError: if the log can't be read, or holds no record that may be applied.
    """
    reader = LineReader()
    tasks: dict[tuple[str, str, str, int, int], list[LoadedRecord]] = {}
    lines: dict[int, bytes] = {}  # by the identity of records, which `tasks` keeps alive
    for record, line in read_log(in_file, lambda line: (reader(line), line)):
        key = (record.workload_key, record.dag_hash, record.target, record.num_threads, int(record.layout_rewrite_option))
        if record.is_success and record.is_trusted:
            tasks.setdefault(key, []).append(record)
            lines[id(record)] = line
    # not the least time of each: what was timed again, in turn, counts instead of what was timed alone
    best = [record for record in (choose_best(records)[0] for records in tasks.values()) if record is not None]
    if not best:
        raise RecordError(f"{in_file}: no record that ran and was verified, so there is nothing to keep")
    temporary = Path(f"{out_file}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(b"".join(lines[id(record)] + b"\n" for record in best))
        # in one step: whoever reads meanwhile meets the old file or the new one, and so does a crash
        os.replace(temporary, out_file)
    finally:
        temporary.unlink(missing_ok=True)
    return len(best)
