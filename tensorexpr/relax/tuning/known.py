"""What logs have of a network's tasks: taken over where it fits, and said in words where it doesn't."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...auto_scheduler.explain_miss import differences
from ...auto_scheduler.loaded import LoadedRecord
from ...auto_scheduler.records import load_records
from ...tune.records import append_records
from ..network_tasks import NetworkTask

_TOLD = 3  # reasons of a log; a log of another network has one for each of its kernels


def take_over(log: Path, prior: Sequence[str | Path], tasks: Sequence[NetworkTask]) -> None:
    """Copy the records that other logs have of the tasks, unless this one has them.

    Raises:
        RecordError: for a log that can't be read.
    """
    keys = {(one.task.workload_key, one.task.compute_dag.hash_key()) for one in tasks}
    known = {record.dumps() for record in load_records(log, repeats=True)} if log.exists() else set()
    for other in prior:
        of_tasks = [record for record in load_records(other, repeats=True) if (record.workload_key, record.dag_hash) in keys]
        append_records(log, [record for record in of_tasks if record.dumps() not in known])
        known.update(record.dumps() for record in of_tasks)


def left_out(logs: Sequence[str | Path], tasks: Sequence[NetworkTask]) -> Iterator[str]:
    """In words, how many records of logs are of none of a network's tasks, and which part of their key is another one."""
    for log in logs:
        if not Path(log).exists():
            continue
        records = load_records(log)
        reasons = Counter(reason for record in records if (reason := _misfit(record, tasks)))
        for reason, count in reasons.most_common(_TOLD):
            yield f"{log}: {count} of {len(records)} records aren't used: {reason}"
        if len(reasons) > _TOLD:
            yield f"{log}: {sum(sorted(reasons.values())[:-_TOLD])} more aren't used, of {len(reasons) - _TOLD} other kernels"


def _misfit(record: LoadedRecord, tasks: Sequence[NetworkTask]) -> str:
    """Why a record is of no task; empty if it is of one."""
    same = next((one for one in tasks if one.task.workload_key == record.workload_key), None)
    if same is not None:
        found = [one.text for one in differences(record, same.task)] if record.is_success else []
        return f"of {same.kernels[0]}, but with another {'; '.join(found)}" if found else ""
    theirs = _parts(record.workload_key)
    for one in tasks:
        ours = _parts(one.task.workload_key)
        if theirs[0] == ours[0]:
            return f"of {one.kernels[0]}, but with {_packed(theirs)}, and here with {_packed(ours)}"
        if theirs[1:] == ours[1:]:
            return f"of the sizes of {one.kernels[0]}, but another computation ({str(theirs[0])[:12]} there, {str(ours[0])[:12]} here)"
    return "of another network: no kernel of this one has these sizes"


def _parts(key: str) -> list[Any]:
    """The hash, the shapes, and what is packed."""
    try:
        made = json.loads(key)
    except ValueError:
        return [key]
    return made if isinstance(made, list) and made else [key]


def _packed(key: Sequence[Any]) -> str:
    last = key[-1]
    return f"weights {', '.join(map(str, last[1:]))} packed" if isinstance(last, list) and last[:1] == ["packed"] else "no weights packed"
