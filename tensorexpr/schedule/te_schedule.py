"""The te façade: `te.create_schedule`, `s[C].split(...)`. It holds a trace and its tree, and no scheduling logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ScheduleError
from ..te.dag import topological_order
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr
from .draw import draw
from .explain import explain
from .steps import (
    Annotate,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Fuse,
    Pragma,
    Reorder,
    RFactor,
    SetScope,
    Split,
    Step,
)
from .steps.loops import checked_pragma
from .trace import Trace
from .tree import ScheduleTree, StageNode, initial_tree


def create_schedule(ops: Operation | Tensor | Sequence[Operation | Tensor]) -> Schedule:
    """A schedule in which every stage is computed at the root, one serial loop per axis.

    Args:
        ops: the operations (or tensors) whose results are wanted.

    Raises:
        ScheduleError: if something else is given.
    """
    listed = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    outputs = []
    for item in listed:
        op = item.op if isinstance(item, Tensor) else item
        if not isinstance(op, Operation):
            raise ScheduleError(f"create_schedule takes operations such as C.op, not {item!r}")
        outputs.append(op)
    return Schedule(tuple(outputs))


class Schedule:
    """How a tensor computation runs: one `Stage` per operation, `s[C]` for the one that makes C.

    The schedule is its `trace`. Primitives return the new axes and raise ScheduleError where they are illegal,
    leaving the schedule as it was. `print(s)` draws the loops.
    """

    def __init__(self, outputs: tuple[Operation, ...], trace: Trace | None = None) -> None:
        self.outputs = outputs
        self._initial = initial_tree(outputs, topological_order([op.output(0) for op in outputs]))
        self.trace = Trace() if trace is None else trace
        self._tree = self.trace.apply(self._initial)

    @property
    def tree(self) -> ScheduleTree:
        """The stages and loops that the trace makes."""
        return self._tree

    @property
    def initial_tree(self) -> ScheduleTree:
        """The tree before the first step."""
        return self._initial

    def copy(self) -> Schedule:
        """A schedule with the same trace, sharing everything; changing one leaves the other alone."""
        made = object.__new__(Schedule)
        made.outputs, made._initial, made.trace, made._tree = self.outputs, self._initial, self.trace, self._tree
        return made

    def apply_step(self, step: Step) -> ScheduleTree:
        """Append a step to the trace.

        Raises:
            ScheduleError: if the step is illegal; the schedule is then unchanged.
        """
        self._tree = step.apply(self._tree)
        self.trace = self.trace.append(step)
        return self._tree

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        op = key.op if isinstance(key, Tensor) else key
        stage = self._tree.find(op) if isinstance(op, Operation) else None
        if stage is None:
            known = ", ".join(s.name for s in self._tree.in_order())
            raise ScheduleError(f"{key!s} is not part of this schedule; its stages: {known}")
        return Stage(self, stage.id)

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers first."""
        return [Stage(self, number) for number in self._tree.order]

    def cache_write(self, tensor: Tensor, scope: str) -> Tensor:
        """Compute `tensor` in `scope` and copy it out; returns the tensor computed there. See `steps.CacheWrite`."""
        self.apply_step(CacheWrite(self[tensor].id, scope))
        return self._tree.stages[-1].origin.output(0)

    def cache_read(self, tensor: Tensor, scope: str, readers: Operation | Tensor | Sequence[Operation | Tensor]) -> Tensor:
        """Let `readers` read a copy of `tensor` in `scope`; returns the copy. See `steps.CacheRead`."""
        listed: Sequence[Operation | Tensor] = [readers] if isinstance(readers, (Operation, Tensor)) else readers
        self.apply_step(CacheRead(self[tensor].id, scope, tuple(self[reader].id for reader in listed)))
        return self._tree.stages[-1].origin.output(0)

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Make a loop of a reduction a spatial axis of a new stage of partial results. See `steps.RFactor`.

        Args:
            tensor: a result of the reduction.
            axis: a loop of the reduction: a reduction axis, or what splits and fusions made of some.
            factor_axis: where the axis stands in the partial results; negative numbers count from the end.

        Returns:
            The tensor of partial results, `<name>.rf`, or a list of them if the reduction makes several.

        Raises:
            ScheduleError: for a spatial axis, a marked one, a stage that holds others, or a combiner that can't be regrouped.
        """
        stage = self[tensor]
        place = as_int(factor_axis)
        if place is None:
            raise ScheduleError(f"In schedule for {stage.op.name}: rfactor takes factor_axis as an integer, not {factor_axis!r}")
        self.apply_step(RFactor(stage.id, stage._axis(axis, "rfactor"), place))
        made = self._tree.stages[-1].origin
        return made.output(0) if made.num_outputs == 1 else [made.output(n) for n in range(made.num_outputs)]

    def as_python(self) -> str:
        """The trace as the Python lines that make it."""
        return "\n".join(self.trace.as_python(self._initial))

    def explain(self) -> str:
        """Why every loop is legal as it is, one fact a line: what runs in parallel and why it may, which part of a stage
        each visit computes, which splits need a guard.

        Raises:
            ScheduleError: if the schedule as a whole is illegal.
        """
        return explain(self._tree)

    def __str__(self) -> str:
        return draw(self._tree)

    def __repr__(self) -> str:
        return f"<te.Schedule of {', '.join(op.name for op in self.outputs)} with {len(self.trace)} steps>"


class Stage:
    """The loops of one operation in a schedule. Axes are the `IterVar`s that operations and primitives return."""

    def __init__(self, schedule: Schedule, number: int) -> None:
        self._schedule = schedule
        self.id = number

    @property
    def _node(self) -> StageNode:
        return self._schedule.tree[self.id]

    @property
    def op(self) -> Operation:
        """The operation as it is computed now."""
        return self._node.op

    @property
    def origin_op(self) -> Operation:
        """The operation as it was declared."""
        return self._node.origin

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        """The loops, outermost first."""
        return [self._node.axes[axis] for axis in self._node.leaf]

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """Every axis the stage ever had."""
        return list(self._node.axes)

    def _axis(self, ivar: Any, primitive: str) -> int:
        node = self._node
        wanted = ivar.var if isinstance(ivar, IterVar) else ivar  # rfactor keeps a loop's variable and gives it a domain
        for number, axis in enumerate(node.axes):
            if axis.var is wanted:
                return number
        if not isinstance(ivar, IterVar):
            raise ScheduleError(f"In schedule for {node.name}: {primitive} takes an axis, not {ivar!r}; axes: {node.axis_names()}")
        owner = next((s.name for s in self._schedule.tree.stages if any(a is ivar for a in s.axes)), None)
        where = f"it belongs to {owner}" if owner else "it belongs to no stage of this schedule"
        raise ScheduleError(f"In schedule for {node.name}: no axis {ivar.name!r} to {primitive}, {where}; axes: {node.axis_names()}")

    def _new_axes(self, before: int) -> list[IterVar]:
        return list(self._node.axes[before:])

    def split(self, parent: IterVar, factor: Any = None, nparts: Any = None, disable_predication: bool = False) -> tuple[IterVar, IterVar]:
        """Split an axis into (outer, inner); exactly one of `factor` (extent of inner) and `nparts` (of outer) is given.

        for i in n:  ->  for i.outer in ceil(n / factor): for i.inner in factor: if i.outer*factor + i.inner < n: ...

        Raises:
            ScheduleError: for an axis of another stage, a factor below 1 or both or none of factor and nparts.
        """
        node = self._node
        if (factor is None) == (nparts is None):
            raise ScheduleError(f"In schedule for {node.name}: split takes exactly one of factor and nparts")
        if disable_predication:
            raise ScheduleError(
                f"In schedule for {node.name}: split can't leave out the guard of a tail; "
                "give a factor that divides the extent and there is none"
            )
        axis = self._axis(parent, "split")
        count = len(node.axes)
        value = _checked_factor(node, parent, factor if factor is not None else nparts)
        self._schedule.apply_step(Split(self.id, axis, (None, value) if factor is not None else (value, None)))
        outer, inner = self._new_axes(count)
        return outer, inner

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two axes and put both outer parts outside both inner ones; returns x.outer, y.outer, x.inner, y.inner."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *args: IterVar | Sequence[IterVar]) -> IterVar:
        """Make adjacent axes, outermost first, one axis; of a single axis returns it."""
        listed = [axis for arg in args for axis in (arg if isinstance(arg, (list, tuple)) else [arg])]
        axes = tuple(self._axis(axis, "fuse") for axis in listed)
        if len(axes) == 1:
            return self._node.axes[axes[0]]
        self._schedule.apply_step(Fuse(self.id, axes))
        return self._node.axes[-1]

    def reorder(self, *args: IterVar) -> None:
        """Put the listed axes in the given order, at the places they hold together."""
        self._schedule.apply_step(Reorder(self.id, tuple(self._axis(axis, "reorder") for axis in args)))

    def parallel(self, var: IterVar) -> None:
        """Run the iterations of a spatial axis on several threads."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "parallel"), "parallel"))

    def vectorize(self, var: IterVar) -> None:
        """Run the iterations of a spatial axis as the lanes of vectors."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "vectorize"), "vectorize"))

    def unroll(self, var: IterVar) -> None:
        """Write the iterations of an axis out one after the other."""
        self._schedule.apply_step(Annotate(self.id, self._axis(var, "unroll"), "unroll"))

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a hint to a loop: `auto_unroll_max_step` (int), `unroll_explicit` (bool)."""
        self._schedule.apply_step(Pragma(self.id, self._axis(var, "pragma"), pragma_type, checked_pragma(pragma_value)))

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside the loop `scope` of the stage `parent`, each time the part that is read there."""
        if not isinstance(parent, Stage):
            raise ScheduleError(
                f"In schedule for {self._node.name}: compute_at takes a stage such as s[C] and one of its axes, not {parent!r}"
            )
        self._schedule.apply_step(ComputeAt(self.id, parent.id, parent._axis(scope, "compute_at")))

    def compute_inline(self) -> None:
        """Compute this stage wherever it is read."""
        self._schedule.apply_step(ComputeInline(self.id))

    def compute_root(self) -> None:
        """Compute this stage whole, before its readers."""
        self._schedule.apply_step(ComputeRoot(self.id))

    def set_scope(self, scope: str) -> None:
        """Say where the stage's storage lives: "global" or "local"."""
        self._schedule.apply_step(SetScope(self.id, scope))

    def __repr__(self) -> str:
        return f"stage({self._node.name}, loops: {self._node.axis_names()})"


def _checked_factor(node: StageNode, parent: IterVar, factor: Any) -> int:
    value = as_int(factor)
    if value is None and isinstance(factor, PrimExpr) and parse_dtype(factor.dtype).is_int:
        raise ScheduleError(
            f"In schedule for {node.name}: split of {parent.name!r} by {factor}, which is no constant; "
            "a factor is an integer of at least 1: a constant one serves every size, as the tail gets a guard"
        )
    if value is None or isinstance(factor, bool) or value < 1:
        raise ScheduleError(f"In schedule for {node.name}: split of {parent.name!r} by {factor!r}; a factor is an integer of at least 1")
    return value


__all__ = ["Schedule", "Stage", "create_schedule"]
