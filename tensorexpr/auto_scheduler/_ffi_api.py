"""What programs of TVM call below its Python interface: tasks as text."""

from __future__ import annotations

import json

from ..errors import RecordError
from .search_task import SearchTask

_OF_LOGS = 6  # values of a task in a log; the computation is left to its registered workload


def SerializeSearchTask(task: SearchTask) -> str:
    """A task as TVM's logs write it: a JSON list of its key, target, hardware, host, layout option and names of inputs."""
    return json.dumps(task.serialize()[:_OF_LOGS])


def DeserializeSearchTask(text: str) -> SearchTask:
    """The task of such text; the last values may be missing.

    Raises:
        RecordError: if it is anything else.
        WorkloadError: if its workload isn't registered here.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{text[:60]!r} is no task: {error}") from None
    if isinstance(data, list) and len(data) > 1 and isinstance(data[1], str) and data[1].startswith('"'):
        data[1] = data[1].strip('"')  # logs of some releases quote the target twice
    return SearchTask.deserialize(data)
