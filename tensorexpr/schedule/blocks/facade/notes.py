"""`tir.Schedule`: annotations, and what must hold of decisions."""

from __future__ import annotations

from typing import Any

from ....errors import ScheduleError
from ....tir.arithmetic import convert
from ..handles import BlockRV, LoopRV
from .base import ScheduleBase


class Notes(ScheduleBase):
    """Methods about annotations and decisions."""

    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Tell passes and searches something about a block or loop.

        Args:
            ann_val: a text, a number, a sampled value, or a list or mapping of them.

        Raises:
            ScheduleError: if the key is no text.
        """
        if not isinstance(ann_key, str):
            raise ScheduleError(f"annotate: the key of an annotation is a text, not {ann_key!r}")
        self.run("Annotate", [block_or_loop, ann_val], [ann_key])

    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take an annotation away.

        Raises:
            ScheduleError: if there is none of that name.
        """
        self.run("Unannotate", [block_or_loop], [ann_key])

    def enter_postproc(self) -> None:
        """Say that what follows is postprocessing, not part of the design space."""
        self.run("EnterPostproc", [], [])

    def assert_(self, condition: Any) -> None:
        """Say what must hold of sampled numbers: decisions for which it doesn't make no program, and a search draws others.

        Args:
            condition: of sampled numbers, such as `v0 * v1 <= 1024`.

        Raises:
            ScheduleError: if it doesn't hold for the decisions of now.
        """
        self.run("Assert", [convert(condition)], [])
