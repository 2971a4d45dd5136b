"""`tir.Schedule`: loops and blocks merged, divided and put around others."""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.expr import PrimExpr
from ..handles import BlockRV, LoopRV
from .base import ScheduleBase, whole_numbers


class Nests(ScheduleBase):
    """Methods that change what stands in what."""

    def merge(self, *loops: LoopRV) -> LoopRV:
        """Merge nests that stand side by side, down to a loop of each, into one.

            for i in range(4): B: vi = i       ->   for i_m in range(4)
            for i in range(4): C: vi = i                B: vi = i_m
                                                        C: vi = i_m

        Args:
            loops: of the same extents and depths below their common place.

        Returns:
            The innermost merged loop.

        Raises:
            ScheduleError: if the nests differ, or an iteration may need what a later one makes.
        """
        given = [*loops[0]] if len(loops) == 1 and isinstance(loops[0], (list, tuple)) else [*loops]
        return self._one(LoopRV, "Merge", given)

    def loop_partition(self, loop: LoopRV, factors: Sequence[int | PrimExpr | None], preserve_unit_iters: bool = True) -> list[LoopRV]:
        """Cut the range of a loop in parts, each with a loop and a copy of what is inside.

            for i in range(100): B: vi = i   ->   for i0 in range(10): B_i0: vi = i0          # factors=[10, None]
                                                  for i1 in range(10, 100): B_i1: vi = i1

        Args:
            factors: the lengths of the parts; one may be None, and what is left at the end becomes one more part.

        Raises:
            ScheduleError: if the lengths don't fit the extent, which must be constant, or the loop is annotated or bound.
        """
        return self.run("LoopPartition", [loop, *factors], [int(preserve_unit_iters)])  # type: ignore[return-value]

    def add_unit_loop(self, block_or_loop: BlockRV | LoopRV) -> LoopRV:
        """Put a loop of one iteration around a block or loop.

            B: ...   ->   for u in range(1): B: ...

        Raises:
            ScheduleError: for the root block.
        """
        return self._one(LoopRV, "AddUnitLoop", [block_or_loop])

    def reorder_block_iter_var(self, block: BlockRV, new_order: Sequence[int]) -> None:
        """Put the axes of a block in another order, which doesn't change the order in which it runs.

            vi, vj = T.axis.remap("SS", [i, j])   -- [1, 0] ->   vj, vi = T.axis.remap("SS", [j, i])

        Args:
            new_order: for each place the number of the axis that comes there.

        Raises:
            ScheduleError: if that is no order of all axes.
        """
        self.run("ReorderBlockIterVar", [block, whole_numbers("reorder_block_iter_var", new_order)], [])

    def blockize(self, target: LoopRV | Sequence[BlockRV], preserve_unit_iters: bool = True) -> BlockRV:
        """Make one block of a loop with all inside of it, or of blocks that stand together.

            for i_0, i_1 in T.grid(8, 16)     ->   for i_0 in range(8)
                B: vi = i_0 * 16 + i_1                 B_o: vi_o = i_0
                                                           for i_1 in range(16): B: vi_i = i_1

        Returns:
            The new block; the handle of the inner one stays valid.

        Raises:
            ScheduleError: if axes or conditions mix loops of both sides so that they don't come apart.
        """
        given = [self._block(block) for block in target] if isinstance(target, (list, tuple)) else target
        return self._one(BlockRV, "Blockize", [given], [int(preserve_unit_iters)])

    def tensorize(self, block_or_loop: BlockRV | LoopRV, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """Let a tensor intrinsic do what a block does, or what stands in a loop, which is blockized first.

            for i, j, k in T.grid(16, 16, 16): C: ...   ->   C_o: the intrinsic on the parts of A, B and C

        Args:
            tensor_intrin: its name in `tir.TensorIntrin`.

        Raises:
            ScheduleError: if there is none of that name, or the block does something else than it describes.
        """
        self.run("Tensorize", [self._block(block_or_loop)], [tensor_intrin, int(preserve_unit_iters)])
