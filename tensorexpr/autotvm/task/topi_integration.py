"""Operators as tasks: functions of a library that make tensors, and others that schedule them, under one name.

The tensors carry their workload, so that a schedule's function finds the configuration of what it gets.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ...errors import TuningError
from ...te.extern import ExternOp
from ...te.operation import ComputeOp, Operation
from ...te.tensor import Tensor
from .args import args_to_workload
from .dispatcher import current_query
from .task import TASK_TABLE, TaskTemplate, check_version, run_configured

_KEY = "workload"


class TaskExtractEnv:
    """Collects the tasks of operators while programs are built.

    Args:
        allow_duplicate: keep each as often as it is met.
    """

    current: ClassVar[TaskExtractEnv | None] = None

    def __init__(self, allow_duplicate: bool = False) -> None:
        self.allow_duplicate = allow_duplicate
        self.tracing = False
        self.task_collection: list[tuple[str, tuple[Any, ...]]] = []
        self.wanted_relay_ops: Any = None

    def __enter__(self) -> TaskExtractEnv:
        self.tracing, self.task_collection = True, []
        return self

    def __exit__(self, *_: object) -> None:
        self.tracing = False

    def reset(self, wanted_relay_ops: Any = None) -> None:
        """Forget what was collected."""
        self.task_collection, self.wanted_relay_ops = [], wanted_relay_ops

    def add_task(self, task_name: str, args: Sequence[Any]) -> None:
        """Note a task."""
        found = (task_name, args_to_workload(args))
        if self.tracing and (self.allow_duplicate or found not in self.task_collection):
            self.task_collection.append(found)

    def get_tasks(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What was collected: names and arguments."""
        return self.task_collection

    @staticmethod
    def get(allow_duplicate: bool = False) -> TaskExtractEnv:
        """The one there is."""
        if TaskExtractEnv.current is None:
            TaskExtractEnv.current = TaskExtractEnv(allow_duplicate)
        TaskExtractEnv.current.allow_duplicate = allow_duplicate
        return TaskExtractEnv.current


def register_topi_compute(task_name: str, func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Register a function that declares an operator: `f(cfg, *args)` gives its tensors.

    Args:
        task_name: of the task, such as "conv2d_NCHWc.x86".
        func: the function; a decorator is returned without it.

    Returns:
        a function of the arguments without `cfg`, which it looks up.

    Raises:
        TuningError: if the task has a computation already.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def declared(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise TuningError(f"{task_name} takes its arguments by place, not {', '.join(kwargs)} by name")
            task_env = TaskExtractEnv.current
            if task_env is not None and task_env.tracing:
                task_env.add_task(task_name, args)
            workload = args_to_workload(args, task_name)
            config = current_query(workload)
            made = run_configured(task_name, config, function, (config, *args))
            outs = list(made) if isinstance(made, (list, tuple)) else [made]
            marked = [_marked(out, workload) for out in outs]
            return type(made)(marked) if isinstance(made, (list, tuple)) else marked[0]

        _part(task_name, "fcompute", declared)
        return declared

    return decorate if func is None else decorate(func)


def register_topi_schedule(task_name: str, func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Register a function that schedules an operator: `f(cfg, outs)` gives the schedule.

    Args:
        task_name: of the task.
        func: the function; a decorator is returned without it.

    Returns:
        a function of the tensors without `cfg`, which it looks up by the workload that the tensors carry.

    Raises:
        TuningError: if the task has a schedule already; when called, if the tensors are of no such task.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def scheduled(outs: Any, *args: Any, **kwargs: Any) -> Any:
            workload = get_workload(outs, task_name)
            if workload is None:
                raise TuningError(f"no tensor here is of the task {task_name!r}; declare them with the function registered for it")
            config = current_query(workload)
            made = run_configured(task_name, config, function, (config, outs, *args), kwargs)
            check_version(task_name, config, made)
            return made

        _part(task_name, "fschedule", scheduled)
        return scheduled

    return decorate if func is None else decorate(func)


def _part(task_name: str, part: str, function: Callable[..., Any]) -> None:
    made = TASK_TABLE.setdefault(task_name, TaskTemplate())
    if not isinstance(made, TaskTemplate):
        raise TuningError(f"{task_name!r} is the name of a template; choose another one")
    known = getattr(made, part)
    if known is not None and (known.__module__, known.__qualname__) != (function.__module__, function.__qualname__):
        raise TuningError(f"the task {task_name!r} has a {part[1:]} already, {known.__qualname__}")
    setattr(made, part, function)


def _marked(tensor: Tensor, workload: tuple[Any, ...]) -> Tensor:
    """The tensor of an operation that carries its workload."""
    op = tensor.op
    # an operator that calls another one's function keeps the inner one's mark
    if not isinstance(op, (ComputeOp, ExternOp)) or _KEY in op.attrs:
        return tensor
    # As text: attributes travel with the computation, and a workload holds None.
    return replace(op, attrs=op.attrs.set(**{_KEY: json.dumps(workload)})).output(tensor.value_index)


def get_workload(outs: Any, task_name: str | None = None) -> tuple[Any, ...] | None:
    """The workload that some tensors carry, or what they are made of.

    Args:
        outs: a tensor or several.
        task_name: of which task; the first one that is found if None.

    Returns:
        None if there is none.
    """
    seen: set[Operation] = set()
    pending = [out.op for out in (outs if isinstance(outs, (list, tuple)) else [outs])]
    # the results may be of elementwise operators behind the one that carries the mark
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        found = op.attrs.get(_KEY) if isinstance(op, (ComputeOp, ExternOp)) else None
        if found is not None and (task_name is None or _plain(found)[0] == task_name):
            return _plain(found)
        pending += [tensor.op for tensor in op.input_tensors]
    return None


def _plain(workload: Any) -> tuple[Any, ...]:
    """A workload that a tensor carries: ours as text, that of a program that sets the attribute itself as it is."""
    return args_to_workload(json.loads(workload) if isinstance(workload, str) else list(workload))
