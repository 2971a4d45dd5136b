"""`tir.Schedule`: transformations of loops, and how loops run."""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.expr import PrimExpr
from ..diagnostics import WrongTypeError
from ..handles import LoopRV
from .base import ScheduleBase


class Loops(ScheduleBase):
    """Methods about loops."""

    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | PrimExpr | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
        balanced: bool = False,
    ) -> list[LoopRV]:
        """Split a loop into a nest.

            for i in range(100)   ->   for i_0, i_1 in T.grid(7, 16)      # factors=[None, 16]
                B: vi = i                  B: vi = i_0 * 16 + i_1, where i_0 * 16 + i_1 < 100

        Args:
            factors: extents, outermost first: numbers, sampled values, expressions of them; one may be None and follows.
            disable_predication: leave out the condition: the caller vouches for what runs beyond the extent.
            balanced: make two parts, tiles whose sizes differ by at most one: 100 in tiles of at most 16 is 2 * 15 + 5 * 14.

        Raises:
            ScheduleError: if the factors don't cover the loop, or the loop is annotated or bound.
        """
        if not isinstance(factors, (list, tuple)):
            raise WrongTypeError(f"split takes the factors of a loop as a list, such as [None, 4], not {factors!r}")
        attrs = [int(preserve_unit_iters), int(disable_predication), *([1] if balanced else [])]
        return self.run("Split", [loop, *factors], attrs)  # type: ignore[return-value]

    def fuse(self, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """Fuse loops, each directly in the one before, into one.

            for i, j in T.grid(4, 8)   ->   for i_j_fused in range(32)

        Raises:
            ScheduleError: if something stands between the loops, or one is annotated or bound.
        """
        given = [*loops[0]] if len(loops) == 1 and isinstance(loops[0], (list, tuple)) else [*loops]
        return self._one(LoopRV, "Fuse", given, [int(preserve_unit_iters)])

    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Put loops of one nest in another order; those that aren't named keep their places.

            for i, j, k in T.grid(4, 8, 16)   -- reorder(k, i) ->   for k, j, i in T.grid(16, 8, 4)

        Raises:
            ScheduleError: if they are not of one nest, or the blocks inside depend on the order.
        """
        given = [*ordered_loops[0]] if len(ordered_loops) == 1 and isinstance(ordered_loops[0], (list, tuple)) else [*ordered_loops]
        self.run("Reorder", given, [])

    def parallel(self, loop: LoopRV) -> None:
        """Run a loop's iterations on all cores.

        Raises:
            ScheduleError: if a block below reduces over it, or depends on the order.
        """
        self.run("Parallel", [loop], [])

    def vectorize(self, loop: LoopRV) -> None:
        """Run a loop's iterations in the lanes of vectors.

        Raises:
            ScheduleError: if a block below reduces over it, or depends on the order.
        """
        self.run("Vectorize", [loop], [])

    def unroll(self, loop: LoopRV) -> None:
        """Write out a loop's iterations."""
        self.run("Unroll", [loop], [])

    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Bind a loop to threads of a GPU, or to virtual threads ("vthread.x").

        Raises:
            ScheduleError: for an unknown thread axis, or if a block below reduces over the loop.
        """
        self.run("Bind", [loop], [thread_axis])
