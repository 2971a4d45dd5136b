"""`tir.Schedule`: layouts of buffers and of blocks, and padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....arith import IndexMap
from ....errors import ScheduleError
from ....tir.arithmetic import const, convert
from ....tir.buffer import Buffer
from ....tir.dtype import parse_dtype
from ....tir.expr import PrimExpr, Var
from ..handles import BlockRV, LoopRV
from ..instruction import block_of, loop_of
from ..primitives.decompose_padding import decompose_padding
from .base import whole_numbers
from .caches import Caches, index_dtype, separated_map

PadValue = int | float | PrimExpr | IndexMap | Callable[..., Any] | None


class Layouts(Caches):
    """Methods about layouts and padding."""

    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: tuple[str, int] | str | Buffer,
        index_map: IndexMap | Callable[..., Any],
        pad_value: PadValue = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Let the elements of a buffer stand in another order, wherever it is used.

            B: B[vi, vj] = A[vi, vj]   ->   B: B[vi // 16, vj, vi % 16] = A[vi, vj]      # (i, j) -> (i // 16, j, i % 16)
            C: C[vi, vj] = B[vi, vj]        C: C[vi, vj] = B[vi // 16, vj, vi % 16]

        Args:
            buffer: ("read", number), ("write", number), a name or a buffer. A parameter changes its shape.
            index_map: from old indices to new ones; `IndexMap.AXIS_SEPARATOR` among them is as `set_axis_separator`.
            pad_value: what stands where the new layout has no element: a number (of floats a float), or a function of the new indices.
            assume_injective_transform: don't check that each element has a place of its own.

        Raises:
            ScheduleError: if there is padding without a pad_value, or two elements would share a place.
        """
        given = self._block(block)
        number, side = self._side_of(given, buffer)
        found = self._buffer_at(given, number, side)
        wanted = "int64" if any(extent.dtype == "int64" for extent in found.shape) else index_dtype(self._block_now(given))
        mapped, separators = separated_map(index_map, found.ndim, wanted)
        padding = _pad_value(pad_value, len(mapped.final_indices), found.dtype, wanted)
        self.run("TransformLayout", [given, mapped], [number, side, padding, int(assume_injective_transform)])
        if separators:
            self.run("SetAxisSeparator", [given], [number, side, separators])

    def transform_block_layout(self, block: BlockRV | str, index_map: IndexMap | Callable[..., Any]) -> None:
        """Let a block run over other axes, in loops over these.

            for i, j in T.grid(8, 8)      ->   for ax0 in range(64)                        # (i, j) -> (i * 8 + j)
                B: B[vi, vj] = A[vi, vj]           B: B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8]

        Raises:
            ScheduleError: if the map isn't one to one, mixes spatial and reduced axes, or the axes are no loops any more.
        """
        given = self._block(block)
        self.run("TransformBlockLayout", [given], [self._map_of_axes(given, index_map)])

    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Pad the axes of a sum of products to multiples of numbers; operands are padded with zeros.

            for i, j, k in T.grid(127, 126, 60)   ->   A_pad, B_pad: ...
                C: C[vi, vj] += A[..] * B[..]          for i, j, k in T.grid(128, 128, 64)
                                                           C: C_pad[vi, vj] += A_pad[..] * B_pad[..]
                                                       C_pad: C[v0, v1] = C_pad[v0, v1]

        Args:
            padding: a number for each axis of the block.

        Raises:
            ScheduleError: if the block is no such sum, or zeros would change what it computes.
        """
        self.run("PadEinsum", [self._block(block)], [whole_numbers("pad_einsum", padding)])

    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Let a block that pads become one that fills in the constant, at a loop, and one that copies what is inside.

            for i in range(32)                                   ->   for i in range(32)
                P: P[vi] = if_then_else(2 <= vi, A[vi - 2], 0)            P_pad_const: P[vi] = 0
                                                                      for i in range(30)
                                                                          P: P[vi + 2] = A[vi]

        Returns:
            The block that fills in the constant.

        Raises:
            ScheduleError: if the block stores no constant outside of constant ranges of its axes.
        """
        return self._one(BlockRV, "DecomposePadding", [self._block(block), loop])

    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """True if `decompose_padding` would do it."""
        found = self._function() if isinstance(block, str) else None
        try:
            ref = block_of(self._state, block if found is not None else self._meaning(block), "decompose_padding")  # type: ignore[arg-type]
            at = loop_of(self._meaning(loop), "decompose_padding")
            decompose_padding(self._state.program_of(ref), ref.name, at.var)
        except ScheduleError:
            return False
        return True

    def _buffer_at(self, block: Any, number: int, side: int) -> Buffer:
        found = self._block_now(block)
        regions = found.writes if side else found.reads
        if not 0 <= number < len(regions):
            names = ", ".join(f"{place}: {region.buffer.name}" for place, region in enumerate(regions)) or "none"
            raise ScheduleError(f"the block {found.name_hint} has no buffer number {number}; there are {names}")
        return regions[number].buffer


def _pad_value(value: PadValue, ndim: int, dtype: str, indices: str) -> IndexMap | None:
    """What stands in padding, as a map of the new indices."""
    if value is None or isinstance(value, IndexMap):
        return value
    point = tuple(Var(f"indices_{place}", indices) for place in range(ndim))
    if isinstance(value, int) and not parse_dtype(dtype).is_int and dtype != "bool":
        dtype = "int32"  # as in TVM an integer isn't the padding of floats, which `transform_layout` says
    if callable(value) and not isinstance(value, PrimExpr):
        made = value(*point)
        made = made[0] if isinstance(made, (list, tuple)) and len(made) == 1 else made
        return IndexMap(point, (convert(made, dtype) if isinstance(made, (int, float)) else convert(made),))
    return IndexMap(point, (const(value, dtype) if isinstance(value, (int, float)) else convert(value),))
