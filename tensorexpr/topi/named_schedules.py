"""Functions `schedule_<operator>(outs)` that give the default schedule of any computation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import DeclarationError
from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.tensor import Tensor
from .schedules import default_schedule, schedule_injective


def define_schedules(namespace: dict[str, Any], operators: Iterable[str], target: str | None = None) -> None:
    """Put a function for each operator into the namespace of a module.

    Args:
        namespace: of the module.
        operators: by their names.
        target: what schedules are for where no target is current; by default this machine.
    """
    for operator in operators:
        function = _schedule_of(operator, target)
        function.__module__ = namespace["__name__"]
        namespace[function.__name__] = function


def _schedule_of(operator: str, target: str | None) -> Callable[..., Schedule]:
    def schedule(outs: Tensor | Sequence[Tensor], layout: str | None = None) -> Schedule:
        outputs = [outs] if isinstance(outs, Tensor) else list(outs)
        if not outputs or not all(isinstance(out, Tensor) for out in outputs):
            raise DeclarationError(f"schedule_{operator} takes the output tensors, not {outs!r}")
        return default_schedule(outputs, Target.current() or target)

    schedule.__name__ = schedule.__qualname__ = f"schedule_{operator}"
    schedule.__doc__ = f"""The default schedule of {operator.replace("_", " ")} for the current target.

    Args:
        outs: the output, or a list of outputs.
        layout: what the indices of the computation say as well; kept for programs that pass it.

    Raises:
        DeclarationError: for something else than tensors.
    """
    return schedule


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Vectorise and parallelise the stage of an elementwise tensor in a schedule that is there.

    Args:
        sch: changed in place.
        out: a tensor of it, whose stage is computed at the root.

    Returns:
        The same schedule.
    """
    schedule_injective(sch, out, Target.target_or_current(None))
    return sch
