"""`tir.Schedule`: what the memory of buffers is like, and what blocks state of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....arith.index_map import IndexMap
from ....errors import ScheduleError
from ....tir.arithmetic import convert
from ....tir.buffer import Buffer
from ....tir.expr import Var
from ..handles import BlockRV
from ..primitives.annotate_buffer_access import SIDES, Bounds
from .base import whole_numbers
from .caches import Caches


class Memory(Caches):
    """Methods about buffers."""

    def set_scope(self, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str) -> None:
        """Let a buffer that a block writes live in memory of another kind.

            B = T.alloc_buffer((128,))   ->   B_local = T.alloc_buffer((128,), scope="local")

        Args:
            buffer_index: its number among what the block writes, its name, or the buffer.
            storage_scope: "global", "local", "shared", ...

        Raises:
            ScheduleError: for a parameter's buffer or an unknown scope.
        """
        given = self._block(block)
        self.run("SetScope", [given], [self._number_of(given, "write", buffer_index), storage_scope])

    def storage_align(self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Let the stride of a dimension of a buffer that a block writes be `offset` more than a multiple of `factor`, in elements.

            B = T.alloc_buffer((128, 100))   ->   129 elements a row, with axis=0, factor=32, offset=1

        Args:
            axis: the dimension; negative ones count from the end.

        Raises:
            ScheduleError: for a parameter's buffer, or numbers that are none of these.
        """
        self.run("StorageAlign", [self._block(block)], [buffer_index, axis, factor, offset])

    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int) -> None:
        """Keep of a buffer only what the iterations of a loop share, computed once, in a ring.

            for t in range(3)                                  ->   for t in range(3)
                for h in range(6): B: vh = t * 4 + h                    for h in range(6): B: where t < 1 or 2 <= h
                    B[vh] = A[vh]                                           B[vh % 6] = A[vh]
                for h, k: C: reads B[t * 4 + h + k]                     for h, k: C: reads B[(t * 4 + h + k) % 6]

        Args:
            write_buffer_index: its number among what the block writes.

        Raises:
            ScheduleError: if the iterations of no loop around the block and all readers share elements, or the buffer isn't the program's.
        """
        self.run("RollingBuffer", [self._block(block)], [write_buffer_index])

    def set_axis_separator(
        self, block: BlockRV | str, buffer: tuple[str, int] | str | Buffer, axis_separators: Sequence[int] | None
    ) -> None:
        """Say which dimensions of a buffer are flattened together, for memory of several dimensions.

        Args:
            buffer: ("read" or "write", number), its name, or the buffer.
            axis_separators: the dimensions that begin a new group; none for one group.

        Raises:
            ScheduleError: if they don't rise, or lie outside of the dimensions.
        """
        given = self._block(block)
        number, side = self._side_of(given, buffer)
        self.run("SetAxisSeparator", [given], [number, side, whole_numbers("set_axis_separator", axis_separators or ())])

    def annotate_buffer_access(self, block: BlockRV, buffer_index: int, buf_type: str, gen_new_ranges: Callable[..., Any]) -> None:
        """State another region for a buffer of a block.

            B: reads(A[vi])   -- lambda vi: ((vi - 1, vi + 2),) ->   B: reads(A[vi - 1 : vi + 2])

        Args:
            buf_type: "read" or "write".
            gen_new_ranges: from the block's axes to (begin, end), or a point, for each dimension.

        Raises:
            ScheduleError: if these aren't as many as the block has axes and the buffer dimensions.
        """
        if buf_type not in SIDES:
            raise ScheduleError(f'annotate_buffer_access: buf_type is "read" or "write", not {buf_type!r}')
        found = self._block_now(block)
        axes = tuple(Var(axis.var.name, axis.var.dtype) for axis in found.iter_vars)
        given = [item if isinstance(item, (tuple, list)) else (item, item + 1) for item in gen_new_ranges(*axes)]
        ends = IndexMap(axes, tuple(convert(end) for pair in given for end in pair))
        self.run("AnnotateBufferAccess", [block, buffer_index, SIDES.index(buf_type), Bounds(ends)], [])

    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int, dtype: str) -> None:
        """Let a buffer that a block writes hold another type: values are converted when they are stored and loaded, whatever they lose.

            B: B[vi] = A[vi] * 2.0   ->   B: B[vi] = T.Cast("float16", A[vi] * 2.0)

        Raises:
            ScheduleError: for a parameter's buffer.
        """
        self.run("UnsafeSetDType", [self._block(block)], [buffer_index, dtype])

    def unsafe_hide_buffer_access(self, block: BlockRV, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """Let a block no longer state some of what it reads or writes. Nothing checks that this is harmless.

        Args:
            buf_type: "read" or "write".
            buf_index_array: the numbers of what isn't stated.

        Raises:
            ScheduleError: for a number that there isn't.
        """
        self.run("UnsafeHideBufferAccess", [block, buf_type, whole_numbers("unsafe_hide_buffer_access", buf_index_array)], [])
