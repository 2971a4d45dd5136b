"""`tir.Schedule`: annotations."""

from __future__ import annotations

from typing import Any

from ....errors import ScheduleError
from ..handles import BlockRV, LoopRV
from .base import ScheduleBase


class Notes(ScheduleBase):
    """Methods about annotations."""

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
