"""What the parts of a search ask of a task, so that none of them needs the class that puts them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..target import Target
from .compute_dag import ComputeDAG
from .layout_rewrite import LayoutRewriteOption


class Task(Protocol):
    """A computation on a target: a `SearchTask`, or what a record knows of the one it was measured for."""

    @property
    def workload_key(self) -> str:
        """What logs call the computation."""

    @property
    def target(self) -> Target:
        """What programs are for."""

    @property
    def compute_dag(self) -> ComputeDAG:
        """The computation."""

    @property
    def layout_rewrite_option(self) -> LayoutRewriteOption:
        """How programs take inputs whose layout is free."""

    @property
    def task_input_names(self) -> tuple[str, ...]:
        """The placeholders that have arrays of their own to be measured with."""

    @property
    def desc(self) -> str:
        """A name for tables."""

    def serialize(self) -> Sequence[Any]:
        """The task as JSON values."""
