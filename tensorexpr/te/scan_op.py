"""The operation of a recurrence: what `te.scan` makes."""

from __future__ import annotations

from functools import cached_property

from ..dataclass import dataclass
from ..tir.attrs import FrozenMap
from ..tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Var
from .operation import Operation
from .tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class ScanOp(Operation):
    """Output i has the shape of state_placeholder[i]; its rows come from init[i], then from update[i].

    Make one with `te.scan`, which checks the definition. `scan_axis` is the time of update; `spatial_axis_` are the other
    dimensions of all outputs, which have no loop of their own: update's loops compute them.
    """

    tag: str
    attrs: FrozenMap
    scan_axis: IterVar
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state_placeholder: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...]
    spatial_axis_: tuple[IterVar, ...]

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The time axis."""
        return (self.scan_axis,)

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """No axis: nothing is reduced."""
        return ()

    @property
    def num_outputs(self) -> int:
        """The number of states."""
        return len(self.update)

    def output_shape(self, index: int) -> tuple[PrimExpr, ...]:
        """The shape of state `index`."""
        return self.state_placeholder[index].shape

    def output_dtype(self, index: int) -> str:
        """The dtype of state `index`."""
        return self.state_placeholder[index].dtype

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of init and update and the state placeholders, each once."""
        return tuple(dict.fromkeys((*self.init, *self.update, *self.state_placeholder)))

    def spatial_axes(self, index: int) -> tuple[IterVar, ...]:
        """The axes of state `index` but for time."""
        before = sum(state.ndim - 1 for state in self.state_placeholder[:index])
        return self.spatial_axis_[before : before + self.state_placeholder[index].ndim - 1]

    @cached_property
    def init_axis(self) -> IterVar:
        """The rows that init gives."""
        extent = self.init[0].shape[0]
        return IterVar(Range.from_min_extent(IntImm(extent.dtype, 0), extent), Var(f"{self.name}_init", extent.dtype), IterVar.ORDERED)

    @cached_property
    def init_reads(self) -> tuple[ProducerLoad, ...]:
        """The element of each init at `init_axis` and the spatial axes of its state."""
        return tuple(
            ProducerLoad(tensor, (self.init_axis.var, *(a.var for a in self.spatial_axes(i)))) for i, tensor in enumerate(self.init)
        )

    @cached_property
    def update_reads(self) -> tuple[ProducerLoad, ...]:
        """The element of each update at `scan_axis` and the spatial axes of its state."""
        return tuple(
            ProducerLoad(tensor, (self.scan_axis.var, *(a.var for a in self.spatial_axes(i)))) for i, tensor in enumerate(self.update)
        )

    def __str__(self) -> str:
        init, update, state = (", ".join(t.name for t in part) for part in (self.init, self.update, self.state_placeholder))
        return f"scan({self.name}, init=[{init}], update=[{update}], state_placeholder=[{state}])"
