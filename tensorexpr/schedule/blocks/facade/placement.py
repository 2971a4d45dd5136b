"""`tir.Schedule`: where blocks are computed."""

from __future__ import annotations

from ..handles import BlockRV, LoopRV
from .base import ScheduleBase


class Placement(ScheduleBase):
    """Methods that move blocks, and fuse them into others."""

    def compute_at(self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Compute a block in a loop of its consumers: in each iteration what they read there.

            for i, j in T.grid(128, 128): B: vi = i, vj = j            for i in range(128)
            for i, j in T.grid(128, 128): C: vi = i, vj = j     ->         for ax0 in range(128): B: vi = i, vj = ax0
                                                                           for j in range(128): C: vi = i, vj = j

        Args:
            loop: around all the block's consumers, in the same scope; what `sample_compute_location` gave may also inline the
                block or leave it alone.
            preserve_unit_loops: make a loop for each axis, also where it takes one value.
            index: the place in the loop's body; -1 for the last possible one, -2 for the first.

        Raises:
            ScheduleError: if the block is neither complete nor a reduction, writes a result, has a consumer elsewhere, or would
                read what isn't written yet.
        """
        self.run("ComputeAt", [self._block(block), loop], [int(preserve_unit_loops), index])

    def reverse_compute_at(self, block: BlockRV | str, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Compute a block in a loop of its producers: in each iteration what can be made of what they write there.

            for i, j in T.grid(128, 128): B: vi = i, vj = j            for i in range(128)
            for i, j in T.grid(128, 128): C: vi = i, vj = j     ->         for j in range(128): B: vi = i, vj = j
                                                                           for ax0 in range(128): C: vi = i, vj = ax0

        Args:
            loop: around all the block's producers, in the same scope.
            preserve_unit_loops: make a loop for each axis, also where it takes one value.
            index: the place in the loop's body; -1 for the last possible one, -2 for the first.

        Raises:
            ScheduleError: if the block is neither complete nor a reduction, has a producer elsewhere, doesn't run over all of its
                axes, or would read what isn't written yet.
        """
        self.run("ReverseComputeAt", [self._block(block), loop], [int(preserve_unit_loops), index])

    def compute_inline(self, block: BlockRV | str) -> None:
        """Write a block's value where its buffer is read; the buffer goes.

            for i: B: B[vi] = A[vi] * 2.0      ->   for i: C: C[vi] = A[vi] * 2.0 + 1.0
            for i: C: C[vi] = B[vi] + 1.0

        Raises:
            ScheduleError: if the block isn't complete, isn't one store at its axes, or writes a result.
        """
        self.run("ComputeInline", [self._block(block)], [])

    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Do what a block makes of a buffer where the buffer is written; the buffer goes.

            for i: B: B[vi] = A[vi] * 2.0      ->   for i: B: C[vi] = A[vi] * 2.0 + 1.0
            for i: C: C[vi] = B[vi] + 1.0

        Raises:
            ScheduleError: if the block isn't complete, its producer isn't its only one or isn't complete, or where it reads
                doesn't say its axes.
        """
        self.run("ReverseComputeInline", [self._block(block)], [])

    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A place to compute a block at, each legal one as likely as any other; `compute_at` takes it as its loop.

        Args:
            decision: -1 for where it stands, -2 for inline, else the number of a loop around its first consumer; if that is
                illegal, the legal one before it.
        """
        return self._one(LoopRV, "SampleComputeLocation", [self._block(block)], [], decision)
