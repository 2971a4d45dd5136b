"""`tir.Schedule`: copies of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ScheduleError
from ....tir.block import Block
from ....tir.buffer import Buffer
from ..handles import BlockRV, LoopRV
from .base import ScheduleBase


class Caches(ScheduleBase):
    """Methods that let blocks read from copies and write to copies."""

    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Copy a buffer first, and let blocks read the copy.

            C: C[vi, vj] = A[vi, vj] + 1   ->   A_local: A_local[v0, v1] = A[v0, v1]
                                                C: C[vi, vj] = A_local[vi, vj] + 1

        Args:
            read_buffer_index: its number among what the block reads, its name, or the buffer.
            storage_scope: of the copy: "global", "local", "shared", ...
            consumer_blocks: those that read the copy; all that read the buffer by default.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the buffer has several writers, is read before it is written, or is used by its pointer.
        """
        consumers = [self._block(consumer) for consumer in consumer_blocks or ()]
        given = self._block(block)
        found: BlockRV = self._one("CacheRead", [given, consumers], [self._number_of(given, "read", read_buffer_index), storage_scope])
        return found

    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Buffer,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """Let a block write a buffer of its own, and copy that to where it belongs.

            C: C[vi, vj] = A[vi, vj] + 1   ->   C: C_local[vi, vj] = A[vi, vj] + 1
                                                C_local: C[v0, v1] = C_local[v0, v1]

        Args:
            write_buffer_index: its number among what the block writes, its name, or the buffer.
            storage_scope: of the copy: "global", "local", "shared", ...
            consumer_blocks: those that read the copy instead of the buffer; none by default.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the buffer has several writers, is used by its pointer, or keeps values of before.
        """
        consumers = [self._block(consumer) for consumer in consumer_blocks or ()]
        given = self._block(block)
        found: BlockRV = self._one("CacheWrite", [given, consumers], [self._number_of(given, "write", write_buffer_index), storage_scope])
        return found

    def _number_of(self, block: Any, side: str, which: int | str | Buffer) -> int:
        """The number of a buffer among what a block reads or writes."""
        if isinstance(which, int):
            return which
        found = self.get(block)
        assert isinstance(found, Block)
        buffers = [region.buffer for region in (found.reads if side == "read" else found.writes)]
        for number, buffer in enumerate(buffers):
            if buffer is which or buffer.name == which:
                return number
        name = which if isinstance(which, str) else which.name
        there = ", ".join(buffer.name for buffer in buffers) or "none"
        raise ScheduleError(f"the block {found.name_hint} {side}s no buffer {name!r}; it {side}s {there}")
