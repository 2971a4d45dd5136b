"""What searches the programs of each task: sketches, a template, or schedules of blocks, all in one task scheduler and one log.

auto_scheduler   sketches that rules make of the kernel
autotvm          the knobs of the template for kernels (`topi.tasks.kernels`): convolutions and products, with what is behind them
meta_schedule    what schedule rules make of the kernel's blocks; or what a space generator of the caller's gives
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...auto_scheduler.policy import SketchPolicy
from ...auto_scheduler.preload import PreloadMeasuredStates
from ...auto_scheduler.search_task import SearchTask
from ...auto_scheduler.task_policies import learning_model, policies_of
from ...autotvm.policy import TemplatePolicy
from ...autotvm.task.task import create
from ...errors import TensorExprError, TuningError
from ...meta_schedule.cost_model.cost_model import CostModel
from ...meta_schedule.policy import BlocksPolicy
from ...meta_schedule.space_generator.space_generator import SpaceGenerator
from ...te.serialize import dumps

STYLES = ("auto_scheduler", "meta_schedule", "autotvm")
Style = str | SpaceGenerator
By = Style | Callable[[SearchTask], Style]
_TEMPLATE = "kernel.x86"


def check_style(by: Any, where: str) -> None:
    """Refuse what is no style.

    Raises:
        TuningError: for an unknown name, and for other things than generators of spaces and functions.
    """
    if by not in STYLES if isinstance(by, str) else not (isinstance(by, SpaceGenerator) or callable(by)):
        names = ", ".join(map(repr, STYLES))
        raise TuningError(
            f"{where}: by is {by!r}; it is one of {names}, a space generator, or a function of a task that gives one of these"
        )


def policies_by(
    by: By, tasks: Sequence[SearchTask], log: str | Path | None, params: Mapping[str, Any] | None = None, seconds: float = 2.5
) -> tuple[dict[int, SketchPolicy], list[str]]:
    """A policy for each task that a style has programs for, by its number; and in words, why the others have none.

    Args:
        by: the style; a function is asked for each task.
        tasks: what to tune.
        log: records to go on with.
        params: of the policies.
        seconds: for making the programs of a round, of blocks.

    Raises:
        TuningError: for an unknown style.
    """
    styles = [_style_of(by, task) for task in tasks]
    sketched = [number for number, style in enumerate(styles) if style == "auto_scheduler"]
    made = dict(zip(sketched, policies_of([tasks[number] for number in sketched], "default", params, log_file=log), strict=True))
    # A model for all tasks of a style, which learns from each of them.
    features = learning_model(log_file=log) if "autotvm" in styles else None
    blocks = CostModel.create("xgb") if set(map(_words, styles)) - {"auto_scheduler", "autotvm"} else None
    notes: list[str] = []
    preload = [PreloadMeasuredStates(log, reads_once=True)] if log is not None else []
    for number, (task, style) in enumerate(zip(tasks, styles, strict=True)):
        if number in made:
            continue
        try:
            if style == "autotvm":
                template = create(_TEMPLATE, [dumps(task.compute_dag.tensors)], task.target)
                made[number] = TemplatePolicy(task, template, features, params, number, init_search_callbacks=preload)
            else:
                space = "post-order-apply" if isinstance(style, str) else style.clone()
                made[number] = BlocksPolicy(task, space, blocks, params, number, init_search_callbacks=preload, seconds=seconds)
                made[number].spaces()  # what has none is better told now than when its turn comes
        except TensorExprError as error:
            made.pop(number, None)
            reason = str(error).partition("\n")[0][:300]
            notes.append(f"{task.desc or task.workload_key[:80]} is left as it is, as {_words(style)} has no programs of it: {reason}")
    return dict(sorted(made.items())), notes


def _style_of(by: By, task: SearchTask) -> Style:
    if isinstance(by, (str, SpaceGenerator)):
        return by
    chosen = by(task)
    if not isinstance(chosen, SpaceGenerator):
        check_style(chosen, f"the function `by` of {task.desc or 'a task'}")
    return chosen


def _words(style: Style) -> str:
    return style if isinstance(style, str) else type(style).__name__
