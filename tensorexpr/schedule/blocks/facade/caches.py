"""`tir.Schedule`: copies of buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....arith import IndexMap
from ....errors import DeclarationError, ScheduleError
from ....tir.block import Block
from ....tir.buffer import Buffer
from ..handles import BlockRV, LoopRV
from ..primitives.reindex import SIDES
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
        return self._one(BlockRV, "CacheRead", [given, consumers], [self._number_of(given, "read", read_buffer_index), storage_scope])

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
        return self._one(BlockRV, "CacheWrite", [given, consumers], [self._number_of(given, "write", write_buffer_index), storage_scope])

    def cache_inplace(self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str) -> list[BlockRV]:
        """Let a block work on a copy of a buffer that it reads and writes.

            A: f(data)   ->   data_local: data_local[v0] = data[v0]
                              A: f(data_local)
                              data_local_1: data[v0] = data_local[v0]

        Returns:
            The block that copies in, and the one that copies back.

        Raises:
            ScheduleError: if the block doesn't write the buffer, or uses a part of it by its pointer.
        """
        given = self._block(block)
        number = self._number_of(given, "read", read_buffer_index)
        return self.run("CacheInplace", [given], [number, storage_scope])  # type: ignore[return-value]

    def cache_index(self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
        """Compute the indices of a block's loads once, into buffers.

            B: B[vi, vj] = A[vi // 4 + vj // 4]   ->   index_0: index_var_0[v0, v1] = v0 // 4 + v1 // 4
                                                       B: B[vi, vj] = A[index_var_0[vi, vj]]

        Args:
            cse_thresh: up to 1: whole indices; else the expressions that occur in indices at least so often.

        Returns:
            A block for each index.

        Raises:
            ScheduleError: if there is nothing to compute.
        """
        return self.run("CacheIndex", [self._block(block)], [storage_scope, cse_thresh])  # type: ignore[return-value]

    def reindex(self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer) -> BlockRV:
        """Let a block use a copy of a buffer whose indices are the block's axes.

            B: B[vj, vi] = A[vi, vj, 3] * 2   ->   A_reindex_reindex: A_reindex[v0, v1] = A[v0, v1, 3]
                                                   B: B[vj, vi] = A_reindex[vi, vj] * 2

        Args:
            buffer: ("read", number), ("write", number), a name or a buffer.

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the block uses the buffer at different indices, or under a condition.
        """
        given = self._block(block)
        return self._one(BlockRV, "ReIndex", [given], list(self._side_of(given, buffer)))

    def reindex_cache_read(
        self, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str, index_map: IndexMap | Callable[..., Any]
    ) -> BlockRV:
        """Let a block read a copy of a buffer in a layout of its own, given as a map of the block's axes.

            C: C[vi, vj] += A[vi, vk] * B[vk, vj]   ->   A_local: A_local[vk, vi] = A[vi, vk]     # (i, j, k) -> (k, i)
                                                         C: C[vi, vj] += A_local[vk, vi] * B[vk, vj]

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the map has other axes than the indices, or isn't one to one on them.
        """
        given = self._block(block)
        number = self._number_of(given, "read", read_buffer_index)
        return self._one(BlockRV, "ReindexCacheRead", [given, self._map_of_axes(given, index_map)], [number, storage_scope])

    def reindex_cache_write(
        self, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str, index_map: IndexMap | Callable[..., Any]
    ) -> BlockRV:
        """Let a block write a copy of a buffer in a layout of its own, given as a map of the block's axes, and copy that back.

            B: B[vj, vi] = A[vi, vj]   ->   B: B_local[vi, vj] = A[vi, vj]                        # (i, j) -> (i, j)
                                            B_local: B[vj, vi] = B_local[vi, vj]

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the map has other axes than the indices, or isn't one to one on them.
        """
        given = self._block(block)
        number = self._number_of(given, "write", write_buffer_index)
        return self._one(BlockRV, "ReindexCacheWrite", [given, self._map_of_axes(given, index_map)], [number, storage_scope])

    def read_at(self, loop: LoopRV, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str) -> BlockRV:
        """Copy what a block reads within a loop, at that loop, by one block.

            for i_0: for i_1: B: B[vi] = A[vi]   ->   for i_0: A_shared: A_shared[v0 * 4 : v0 * 4 + 4] = A[v0 * 4 : v0 * 4 + 4]
                                                               for i_1: B: B[vi] = A_shared[vi]

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the loop isn't around the block, or the buffer is written behind the copy.
        """
        given = self._block(block)
        return self._one(BlockRV, "ReadAt", [loop, given], [self._number_of(given, "read", read_buffer_index), storage_scope])

    def write_at(self, loop: LoopRV, block: BlockRV | str, write_buffer_index: int | str | Buffer, storage_scope: str) -> BlockRV:
        """Let a block write a copy, which is copied back at a loop, by one block.

            for i_0: for i_1: B: B[vi] = A[vi]   ->   for i_0: for i_1: B: B_shared[vi] = A[vi]
                                                               B_shared: B[v0 * 4 : v0 * 4 + 4] = B_shared[v0 * 4 : v0 * 4 + 4]

        Returns:
            The block that copies.

        Raises:
            ScheduleError: if the loop isn't around the block, or the buffer is read before it is copied back.
        """
        given = self._block(block)
        return self._one(BlockRV, "WriteAt", [loop, given], [self._number_of(given, "write", write_buffer_index), storage_scope])

    def _side_of(self, block: Any, which: tuple[str, int] | str | Buffer) -> tuple[int, int]:
        """The number of a buffer among what a block reads or writes, and 0 or 1 for the two."""
        if isinstance(which, (tuple, list)):
            if len(which) != 2 or which[0] not in SIDES:
                raise ScheduleError(f'a buffer is given as ("read", number), ("write", number), a name or a buffer, not {which!r}')
            return int(which[1]), SIDES.index(which[0])
        found = self._block_now(block)
        if not isinstance(which, (str, Buffer)):
            raise ScheduleError(f'a buffer is given as ("read", number), ("write", number), a name or a buffer, not {which!r}')
        name = which if isinstance(which, str) else which.name
        for side, regions in ((1, found.writes), (0, found.reads)):
            if any(region.buffer is which or region.buffer.name == which for region in regions):
                return self._number_of(block, SIDES[side], which), side
        there = ", ".join(dict.fromkeys(region.buffer.name for region in (*found.reads, *found.writes))) or "none"
        raise ScheduleError(f"the block {found.name_hint} uses no buffer {name!r}; it uses {there}")

    def _map_of_axes(self, block: Any, index_map: IndexMap | Callable[..., Any]) -> IndexMap:
        """A map of the axes of a block."""
        found = self._block_now(block)
        return as_index_map(index_map, len(found.iter_vars), index_dtype(found))

    def _number_of(self, block: Any, side: str, which: int | str | Buffer) -> int:
        """The number of a buffer among what a block reads or writes."""
        if isinstance(which, int):
            return which
        found = self._block_now(block)
        buffers = [region.buffer for region in (found.reads if side == "read" else found.writes)]
        for number, buffer in enumerate(buffers):
            if buffer is which or buffer.name == which:
                return number
        name = which if isinstance(which, str) else which.name
        there = ", ".join(buffer.name for buffer in buffers) or "none"
        raise ScheduleError(f"the block {found.name_hint} {side}s no buffer {name!r}; it {side}s {there}")


def as_index_map(index_map: IndexMap | Callable[..., Any], ndim: int, dtype: str) -> IndexMap:
    """The map, or the one that a function describes; an `AXIS_SEPARATOR` in it says nothing.

    Raises:
        ScheduleError: if it is none.
    """
    return separated_map(index_map, ndim, dtype)[0]


def separated_map(index_map: IndexMap | Callable[..., Any], ndim: int, dtype: str) -> tuple[IndexMap, list[int]]:
    """As `as_index_map`, and the places of the new indices that an `AXIS_SEPARATOR` stands before."""
    if isinstance(index_map, IndexMap):
        return index_map, []
    try:
        return IndexMap.from_func_with_separators(index_map, ndim, index_dtype=dtype)
    except DeclarationError as error:
        raise ScheduleError(str(error)) from error


def index_dtype(block: Block) -> str:
    """The type of a block's axes: int64 if one is."""
    dtypes = {axis.var.dtype for axis in block.iter_vars}
    return "int64" if "int64" in dtypes else next(iter(dtypes), "int32")
