"""The pipelines of graphs by the names of functions that make them; `transform/pipeline.py` has what they do."""

from __future__ import annotations

from typing import Any

from ..target import TargetLike
from .transform.pipeline import get_pipeline, register_pipeline

__all__ = [
    "default_build_pipeline",
    "get_default_pipeline",
    "get_pipeline",
    "register_pipeline",
    "static_shape_tuning_pipeline",
    "zero_pipeline",
]


def zero_pipeline() -> Any:
    """Operators become tensor functions, and those that belong together become one."""
    return get_pipeline("zero")


def default_build_pipeline() -> Any:
    """All that `relax.build` does with a graph before kernels are made."""
    return get_pipeline("default_build")


def get_default_pipeline(target: TargetLike | None = None) -> Any:
    """`default_build_pipeline` for any target: its passes don't ask what it is; kernels are made for it when the graph is built."""
    return default_build_pipeline()


def static_shape_tuning_pipeline(
    total_trials: int, target: TargetLike, work_dir: str = "tuning_logs", cpu_weight_prepack: bool = False, max_trials_per_task: int = 64
) -> Any:
    """As `zero_pipeline`, with schedules by search; see `relax.transform.MetaScheduleTuneIRMod`.

    Args:
        total_trials: programs that are measured.
        target: what they will run on.
        work_dir: where records are kept.
        cpu_weight_prepack: taken and not needed: constant weights are packed whenever kernels are made.
        max_trials_per_task: of one kernel.
    """
    options = {"work_dir": work_dir, "cpu_weight_prepack": cpu_weight_prepack, "max_trials_per_task": max_trials_per_task}
    return get_pipeline("static_shape_tuning", total_trials=total_trials, target=target, **options)
