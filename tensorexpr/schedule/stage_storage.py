"""The primitives of a stage that say where and how its result is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tir.arithmetic import as_int
from ..tir.expr import IterVar
from .stage_axes import StageAxes
from .steps import (
    DoubleBuffer,
    MultiBuffer,
    PreTransformed,
    RollingBuffer,
    SetScope,
    SetStorePredicate,
    StorageAlign,
    StoreNontemporal,
    TransformLayout,
)
from .steps.store_predicate import predicate_of
from .steps.transform_layout import mapping_of, pad_value_of


class StoragePrimitives(StageAxes):
    """Layouts, memory scopes, and which elements are stored."""

    def transform_layout(self, mapping_function: Callable[..., Any], pad_value: float | None = None) -> list[IterVar]:
        """Store the stage's result in another layout, which its loops and its readers follow. See `steps.TransformLayout`.

        for k: for n: B[k, n] = ...     ->     for n.o: for k: for n.i: B[n.o, k, n.i] = ...

        After cache_read this is packing: compute_at a loop of the reader makes it pack what is read there. The layout of an input or
        output is what the caller passes: `tvm.lower(s, [A, B])` makes a function of A and B in their new layouts.

        Args:
            mapping_function: takes the stage's spatial axes and returns the new indices, such as
                `lambda k, n: [n // 32, k, n % 32]`: sums, multiples, quotients and remainders by constants, and
                `te.AXIS_SEPARATOR`, which flat memory ignores. Every element needs a place of its own.
            pad_value: what the places hold that no element maps to; None if nobody cares.

        Returns:
            The new axes, outermost first; none for an input, which has no loops.

        Raises:
            ScheduleError: for a stage that was scheduled already, for a mapping that can't be inverted, and for an output with
                places that nothing maps to, unless pad_value says what they hold.
        """
        mapping = mapping_of(self._node, mapping_function)
        self._schedule.apply_step(TransformLayout(self.id, mapping, pad_value_of(self._node, pad_value)))
        return [self._node.axes[axis] for axis in self._node.spatial]

    def pre_transformed(self) -> None:
        """Let the caller pass what this copy of an input holds, in its layout. See `steps.PreTransformed`.

        `Schedule.arguments` has the arguments to lower with, and `Schedule.layout_of` the layout to pack an array in.

        Raises:
            ScheduleError: if the stage is anything else than a copy that cache_read made of an input, or others read the input too.
        """
        self._schedule.apply_step(PreTransformed(self.id))

    def storage_align(self, axis: IterVar, factor: int, offset: int = 0) -> None:
        """Make the stride of an axis of this stage's storage `k * factor + offset` elements. See `steps.StorageAlign`.

        Args:
            axis: one of `op.axis`.
            factor: elements, at least 1.
            offset: elements, from 0 up to but without `factor`.
        """
        node = self._node
        values = [as_int(factor), as_int(offset)]
        if None in values:
            raise node.refused(f"storage_align takes integers, not factor {factor!r} and offset {offset!r}")
        self._schedule.apply_step(StorageAlign(self.id, self._axis(axis, "storage_align"), *values))  # type: ignore[arg-type]

    def double_buffer(self) -> None:
        """Fill one of two buffers for the next iteration while this one's is read. See `steps.DoubleBuffer`.

        Lowering checks that the stage is computed at a serial loop of its consumer, from what is there before that loop.
        """
        self._schedule.apply_step(DoubleBuffer(self.id))

    def multi_buffer(self, copies: int) -> None:
        """Fill all but one of `copies` buffers for later iterations while this one's is read. See `steps.MultiBuffer`.

        On NVIDIA's GPUs from sm_80 on the copies are asynchronous: what a thread fetches passes no register, and it goes on meanwhile.
        """
        self._schedule.apply_step(MultiBuffer(self.id, copies))

    def rolling_buffer(self) -> None:
        """Keep the elements that the next iteration of the loop around this stage needs again. See `steps.RollingBuffer`."""
        self._schedule.apply_step(RollingBuffer(self.id))

    def set_scope(self, scope: str) -> None:
        """Say where the stage's storage lives: "global", "local", "shared", ...; see `tir.storage_scope`."""
        self._schedule.apply_step(SetScope(self.id, scope))

    def set_store_predicate(self, predicate: Any) -> None:
        """Compute and store an element only where a condition over `op.axis` holds. See `steps.SetStorePredicate`.

        An output keeps what the caller's array held elsewhere; other stages may leave out only what is provably not read. Of the
        threads that share a reduction `tx.var.equal(0)` lets one store the result.

        Raises:
            ScheduleError: for what is no condition over the stage's spatial axes and threads, and for an inlined stage.
        """
        self._schedule.apply_step(SetStorePredicate(self.id, predicate_of(self._node, predicate, self._schedule.threads)))

    def store_nontemporal(self) -> None:
        """Let this output's vectors go to memory past the caches. See `steps.StoreNontemporal`."""
        self._schedule.apply_step(StoreNontemporal(self.id))
