"""What programs of TVM call below its Python interface: tasks as text, and what sketch rules ask of a program."""

from __future__ import annotations

import json

from ..errors import RecordError
from ..ir.container import Map
from ..schedule.legality import real_readers
from ..spaces.state import SketchState
from ..te.access import AccessAnalysis
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


def SearchPolicyUtilsGetConsumers(task: SearchTask, state: SketchState, stage_id: int) -> Map:
    """The stages that read a stage, past those that are inlined: a map whose keys are their numbers."""
    order = state.tree.order
    return Map({place: place for place in sorted(order.index(reader.id) for reader in real_readers(state.tree)[order[stage_id]])})


def SearchPolicyUtilsIsElementwiseMatch(task: SearchTask, state: SketchState, stage_id: int, target_stage_id: int) -> bool:
    """Whether each element of a stage goes into the element of the other at the same place, and into nothing else."""
    op, target = (state.tree[state.tree.order[number]].op for number in (stage_id, target_stage_id))
    return AccessAnalysis.of(task.compute_dag.tensors).elementwise_match(op, target)
