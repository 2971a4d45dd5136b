"""Which tasks are of one kind, so that what one gained says what another may gain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .compute_dag import ComputeDAG

TAG = "auto_scheduler_task_scheduler_tag"
_LOG_BASE = 1.618  # as many operations means: within this factor


class SimilarityGroups:
    """Which tasks are of one kind: they carry one tag and need about as many operations."""

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags = list(tags)

    def group_of(self, number: int) -> list[int]:
        """The tasks of a task's kind, itself included; only itself if it has no kind."""
        tag = self._tags[number]
        return [other for other, its in enumerate(self._tags) if its == tag] if tag else [number]

    def remove(self, number: int) -> None:
        """A task turned out to be of a kind of its own."""
        self._tags[number] = ""


def similarity_groups(dags: Sequence[ComputeDAG]) -> SimilarityGroups:
    """The groups of computations, by the tags of their operations' attributes and the logarithm of their operations."""
    return SimilarityGroups([derive_similarity_tag(dag) for dag in dags])


def derive_similarity_tag(dag: ComputeDAG, log_base: float = _LOG_BASE) -> str:
    """The tag of a computation's kind and size; empty if none of its operations has `auto_scheduler_task_scheduler_tag`.

    Args:
        dag: the computation.
        log_base: sizes within this factor are alike.
    """
    words = [str(op.attrs[TAG]) for op in dag.ops if TAG in (op.attrs or {})]
    return "_".join([*words, str(int(math.log(max(dag.flop_ct, 0) + 1, log_base)))]) if words else ""
