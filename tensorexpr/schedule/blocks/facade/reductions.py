"""`tir.Schedule`: reductions in parts."""

from __future__ import annotations

from ..handles import BlockRV, LoopRV
from .base import ScheduleBase, whole_numbers


class Reductions(ScheduleBase):
    """Methods that take reductions apart."""

    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Make the first values of a reduction in loops of their own, before a loop.

            for i, j, k: C: init C[vi, vj] = 0            ->   for i
                            C[vi, vj] += ...                       for j_init: C_init: C[vi, vj] = 0
                                                                   for j, k: C_update: C[vi, vj] += ...    # at j

        Args:
            loop: around the block, and around all loops that it reduces over.

        Returns:
            The block of the first values; the handle of before stands for the updating block.

        Raises:
            ScheduleError: if the block is no reduction, or a loop around `loop` reduces.
        """
        return self._one(BlockRV, "DecomposeReduction", [self._block(block), loop])

    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Make partial results of a reduction, one for each iteration of a loop, and reduce these in a second step.

            for i, k_0, k_1: B: B[vi] += A[vi, vk]   ->   for i, k_0, k_1: B_rf: B_rf[vi, vk_0] += A[vi, vk_0 * 16 + vk_1]
                                                          for i, k_0: B: B[vi] += B_rf[vi, vk_0]

        Args:
            loop: of a reduction axis only, with nothing but the block inside.
            factor_axis: the place of the new dimension in the buffer of partial results; negative ones count from the end.

        Terms are added in another order, so floating-point results may differ in their last digits, and of equal values argmax may
        give another place.

        Returns:
            The block of the partial results; the handle of before stands for the block that writes the result.

        Raises:
            ScheduleError: if the reduction isn't known to be associative and commutative, or a partial result would have no value.
        """
        return self._one(BlockRV, "RFactor", [loop], whole_numbers("rfactor: factor_axis", [factor_axis]))
