"""A program of a task, as measuring, records and cost models hand it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..schedule.trace import Trace
from .loop_state import State
from .task import Task


class MeasureInput:
    """A program of a task.

    Args:
        task: of a record, what the record knows of it.
        state: the program, all decisions made: a `State`, or its trace.
    """

    def __init__(self, task: Task, state: State | Trace) -> None:
        self.task = task
        self._state = state if isinstance(state, State) else None
        self.trace: Trace = state if isinstance(state, Trace) else state.trace

    @property
    def state(self) -> State:
        """The program, to be looked at and changed.

        Raises:
            WorkloadError: when it is looked at, if the task's workload isn't registered here.
        """
        if self._state is None:
            self._state = State.of_trace(self.trace, lambda: self.task.compute_dag)
        return self._state

    def serialize(self) -> list[Any]:
        """The task and the program as JSON values."""
        return [self.task.serialize(), self.trace.to_json()]

    @staticmethod
    def deserialize(data: Sequence[Any]) -> MeasureInput:
        """What `serialize` wrote.

        Raises:
            RecordError: if it is anything else.
        """
        from .search_task import SearchTask  # a task knows how it is searched, and that needs this module

        task, steps = data
        return MeasureInput(SearchTask.deserialize(task), Trace.from_json(steps))

    def __reduce__(self) -> tuple[Any, ...]:
        return MeasureInput.deserialize, (self.serialize(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> MeasureInput:
        return MeasureInput(self.task, self.trace)

    def __repr__(self) -> str:
        return f"MeasureInput({self.task!r}, {len(self.trace)} steps)"
