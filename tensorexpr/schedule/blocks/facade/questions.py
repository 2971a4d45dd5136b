"""`tir.Schedule`: blocks and loops."""

from __future__ import annotations

from ..diagnostics import WrongTypeError
from ..handles import BlockRV, LoopRV
from .base import ScheduleBase


class Questions(ScheduleBase):
    """Methods that ask for blocks and loops."""

    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name.

        Args:
            func_name: the function; the one worked on if None.

        Raises:
            ScheduleError: if no block, or more than one, has the name; a TypeError too if that is no string.
        """
        if not isinstance(name, str):
            raise WrongTypeError(f"get_block takes the name of a block, not {type(name).__name__}")
        return self._one(BlockRV, "GetBlock", [], [name, func_name if func_name is not None else self._function()])

    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block within its scope, outermost first."""
        return self.run("GetLoops", [self._block(block)], [])  # type: ignore[return-value]

    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """The blocks directly below a block or loop, in the order of the text."""
        return self.run("GetChildBlocks", [block_or_loop], [])  # type: ignore[return-value]

    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks before a block that write what it reads."""
        return self.run("GetProducers", [self._block(block)], [])  # type: ignore[return-value]

    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks after a block that read what it writes."""
        return self.run("GetConsumers", [self._block(block)], [])  # type: ignore[return-value]

    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks within a block that write what outlives it."""
        return self.run("GetOutputBlocks", [self._block(scope_block)], [])  # type: ignore[return-value]
