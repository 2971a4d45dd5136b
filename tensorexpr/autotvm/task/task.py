"""Tasks: a template or an operator with its arguments, for a target."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import TensorExprError, TuningError
from ...schedule.te_schedule import Schedule
from ...target import Target, TargetLike
from ...te.flops import flop_count
from ...te.operation import PlaceholderOp
from ...te.tensor import Tensor
from ..env import GLOBAL_SCOPE
from ..errors import InstantiationError, MissingTaskError
from ..utils import get_func_name
from .args import args_to_workload, deserialize_args, serialize_args
from .dispatcher import ApplyConfig, DispatchContext, current_query
from .space import ConfigEntity, ConfigSpace

__all__ = [
    "TASK_TABLE",
    "FlopCalculationError",
    "MissingTask",
    "Task",
    "TaskTemplate",
    "args_to_workload",
    "compute_flop",
    "create",
    "deserialize_args",
    "get_config",
    "serialize_args",
    "template",
]

# The name of a task -> what makes its schedule of arguments and the configuration in force.
TASK_TABLE: dict[str, Callable[..., Any]] = {}
# Where tasks of these names are registered: loaded when one is asked for first, as few programs tune operators by name.
_LIBRARIES = {".x86": "tensorexpr.topi.tasks"}


def known_task(name: str) -> Callable[..., Any]:
    """What makes a task's schedules; a `MissingTask` if nothing of this name is registered."""
    if name not in TASK_TABLE:
        for ending, module in _LIBRARIES.items():
            if name.endswith(ending):
                importlib.import_module(module)
    return TASK_TABLE.get(name) or MissingTask(name)


class FlopCalculationError(TensorExprError):
    """A computation without operations on numbers, such as a copy, or with some that can't be counted."""


class MissingTask:
    """What stands for a task that isn't registered here: a log may name it, but nothing can be made of it.

    Args:
        taskname: its name.
    """

    def __init__(self, taskname: str) -> None:
        self.taskname = taskname

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse.

        Raises:
            MissingTaskError: always.
        """
        raise MissingTaskError(
            f"Attempting to invoke a missing task {self.taskname}: no template or operator of this name is registered here. Import the "
            f"module that registers it, or use a log of tasks that are: {', '.join(sorted(TASK_TABLE)) or 'none so far'}"
        )


class Task:
    """A computation to tune: the name of a template, its arguments, and for what target.

    Args:
        name: of the template.
        args: its arguments.

    Attributes:
        kwargs: empty; templates take their arguments by place.
        workload: what a configuration is looked up by.
        config_space: what the template may decide.
        flop: operations of the computation.
        target, target_host: what code is made for.
    """

    def __init__(self, name: str, args: Sequence[Any]) -> None:
        self.name = name
        self.args = serialize_args(args)
        self.kwargs: dict[str, Any] = {}
        self.config_space: Any = None
        self.func: Callable[..., Any] = known_task(name)
        self.flop: float = 0
        self.target: Any = None
        self.target_host: Any = None
        self.example: tuple[Schedule, list[Tensor]] | None = None  # the program that the first candidates made

    @property
    def workload(self) -> tuple[Any, ...]:
        """The name and the arguments."""
        return (self.name, *self.args)

    def instantiate(self, config: ConfigSpace) -> tuple[Schedule, list[Tensor]]:
        """The program that a configuration makes.

        Args:
            config: of this task's space, or of a log.

        Returns:
            the schedule, and the arguments to lower it with.

        Raises:
            InstantiationError: if it makes none, with what the template raised as its cause: an illegal schedule, a knob that the
                configuration doesn't have, an error of the template's own.
            MissingTaskError: if no template of this name is registered here.
        """
        # a configuration may be run several times: what it counted and refused before must not add up
        config.flop = 0
        config.errors.clear()
        arguments = deserialize_args(self.args)
        with ApplyConfig(config), self.target:
            made = run_configured(self.name, config, self.func, arguments, self.kwargs)
        if not config.valid():
            raise InstantiationError(f"the template {self.name!r} refuses {config!r}: {'; '.join(config.errors)}")
        return _checked(self.name, made)

    def __copy__(self) -> Task:
        made = object.__new__(Task)
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Task:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, workload={self.workload})"


def run_configured(
    name: str, config: ConfigSpace, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> Any:
    """What a template's function makes with the configuration in force.

    Raises:
        InstantiationError: if it fails with a configuration that was chosen: a log's may be of another version of the template.
    """
    try:
        return function(*args, **(kwargs or {}))
    except (MissingTaskError, InstantiationError):
        raise
    except Exception as error:
        if not isinstance(config, ConfigEntity):  # no configuration is to blame
            raise
        raise InstantiationError(f"the template {name!r} makes no program of {config!r}: {_said(error)}") from error


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, TensorExprError) else f"{type(error).__name__}: {error}"


def _checked(name: str, made: Any) -> tuple[Schedule, list[Tensor]]:
    """What a template's function gave, as a schedule and its arguments.

    Raises:
        InstantiationError: if it gave something else.
    """
    if isinstance(made, (tuple, list)) and len(made) == 2 and isinstance(made[0], Schedule):
        args = list(made[1])
        if all(isinstance(arg, Tensor) for arg in args):
            if any(not isinstance(arg.op, PlaceholderOp) for arg in args):
                return made[0], args
            raise InstantiationError(f"the tensors of template {name!r}, {args!r:.200}, are all inputs: return what it computes too")
    raise InstantiationError(f"the template {name!r} gives a schedule and its tensors, as in `return s, [A, B, C]`, not {made!r:.200}")


class TaskTemplate:
    """A template in parts: `fcompute` makes tensors of arguments, `fschedule` a schedule of these.

    One part may be registered before the other, in different modules.
    """

    def __init__(self) -> None:
        self.fcompute: Callable[..., Any] | None = None
        self.fschedule: Callable[..., Any] | None = None
        self.fcustomized: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The schedule of some arguments and its tensors: results first, then inputs."""
        if self.fcustomized is not None:
            return self.fcustomized(*args, **kwargs)
        if self.fcompute is None or self.fschedule is None:
            lacking = "compute" if self.fcompute is None else "schedule"
            raise MissingTaskError(f"this task is half registered: register_topi_{lacking} gives it its other part")
        # operators look at the switch: as tasks they take operands packed, which packing would else be timed with
        tuning, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, True
        try:
            out = self.fcompute(*args, **kwargs)
            outs = list(out) if isinstance(out, (list, tuple)) else [out]
            schedule = self.fschedule(outs)
        finally:
            GLOBAL_SCOPE.in_tuning = tuning
        return schedule, schedule.arguments([*outs, *_inputs(args)])


def _inputs(args: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for arg in args:
        found += [arg] if isinstance(arg, Tensor) else _inputs(arg) if isinstance(arg, (list, tuple)) else []
    return found


def template(task_name: str | Callable[..., Any], func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Register a function as a template: it declares a computation, schedules it, and asks `get_config()` where there is a choice.

    Called as a function, it runs with the configuration that the contexts in force have for its arguments.

    Args:
        task_name: the name of its task; or, as a bare decorator, the function itself, which then is named after it.
        func: the function; a decorator is returned without it.

    Example::

        @autotvm.template("matmul")
        def matmul(N, dtype): ...; cfg = autotvm.get_config(); ...; return s, [A, B, C]

    Raises:
        TuningError: if the name is taken by another function.
    """
    if callable(task_name):
        return template(get_func_name(task_name), task_name)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def dispatched(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                raise TuningError(f"the template {task_name!r} takes its arguments by place, not {', '.join(kwargs)} by name")
            config = current_query(args_to_workload(args, task_name))
            with ApplyConfig(config):
                made = run_configured(task_name, config, function, args)
            # after the run: only the schedule says of which text it was made
            check_version(task_name, config, made)
            return made

        known = TASK_TABLE.get(task_name)
        if known is not None and not _is_same(known, function):
            raise TuningError(f"there is a template {task_name!r} already, of {get_func_name(known)}; choose another name")
        TASK_TABLE[task_name] = function
        dispatched.func_name = task_name  # type: ignore[attr-defined]
        return dispatched

    return decorate if func is None else decorate(func)


def _is_same(known: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Whether a function is another one's module run again, as a notebook's cell may be."""
    one, other = ((getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (known, function))
    return known is function or (one == other and None not in one)


def check_version(name: str, config: ConfigSpace, made: Any) -> None:
    """Check that a configuration was found with the template's present text, where both say.

    Raises:
        TuningError: if it wasn't.
    """
    schedule = made[0] if isinstance(made, (tuple, list)) and made else made
    own, known = getattr(schedule, "code_hash", None), config.code_hash
    if own is not None and known is not None and own != known:
        raise TuningError(f"the configuration {config!r} is of another version of the template {name!r}; tune it again")


def create(task_name: str | Callable[..., Any], args: Sequence[Any], target: TargetLike, target_host: TargetLike | None = None) -> Task:
    """A task, with its space: the template is run once to find its knobs.

    Args:
        task_name: of a template or an operator, or the template itself.
        args: its arguments.
        target: what to tune for.
        target_host: where its host's part runs.

    Raises:
        MissingTaskError: if no template of this name is registered.
        InstantiationError: if the template fails.
    """
    name = task_name if isinstance(task_name, str) else get_func_name(task_name)
    made = Task(name, args)
    made.target = Target(target) if target_host is None else Target(target, target_host)
    made.target_host = made.target.host
    space = ConfigSpace()
    arguments = deserialize_args(made.args)
    try:
        with ApplyConfig(space), made.target:
            result = made.func(*arguments)
    except TensorExprError:
        raise
    except Exception as error:
        raise InstantiationError(f"the template {name!r} fails with arguments {made.args}: {_said(error)}") from error
    schedule, _ = made.example = _checked(name, result)
    space.code_hash = getattr(schedule, "code_hash", None)
    space.errors.clear()  # of the first candidates, which need not be a program
    made.config_space = space
    made.flop = space.flop or compute_flop(schedule)
    return made


def get_config() -> Any:
    """The configuration with which the template runs that asks; a fallback one outside of templates."""
    context = DispatchContext.current
    workload = context.workload if isinstance(context, ApplyConfig) else None
    silent, GLOBAL_SCOPE.silent = GLOBAL_SCOPE.silent, True
    try:
        return context.query(Target.current(), workload)
    finally:
        GLOBAL_SCOPE.silent = silent


def compute_flop(sch: Schedule) -> float:
    """The operations of a schedule's computation, counted from its definition: see `te.flops`.

    Raises:
        FlopCalculationError: if there are none, or some can't be counted. A template may count itself: `cfg.add_flop`.
    """
    count = flop_count([op.output(0) for op in sch.outputs])
    if count <= 0:
        names = ", ".join(op.name for op in sch.outputs)
        raise FlopCalculationError(f"{names}: no operations on numbers can be counted; say how many there are with cfg.add_flop(n)")
    return int(count)
