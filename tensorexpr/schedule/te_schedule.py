"""The te façade: `te.create_schedule`, `s[C].split(...)`. It holds a trace and its tree, and no scheduling logic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..arith.index_map import IndexMap
from ..errors import ScheduleError
from ..te.dag import topological_order
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, PrimExpr, Var
from ..tir.printer.highlight import ShownAsText
from .draw import draw
from .explain import explain
from .given_layouts import given_arguments, given_layout
from .group import Group
from .stage_loops import LoopPrimitives
from .stage_storage import StoragePrimitives
from .steps import (
    CacheRead,
    CacheReadOne,
    CacheReadWide,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Contract,
    CreateGroup,
    Distribute,
    Materialize,
    Pick,
    ReindexCacheRead,
    RFactor,
    SkipPadding,
    Step,
)
from .steps.materialize import parts_of
from .trace import Trace
from .tree import ScheduleTree, initial_tree


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


class Schedule(ShownAsText):
    """How a tensor computation runs: one `Stage` per operation, `s[C]` for the one that makes C.

    The schedule is its `trace`. Primitives return the new axes and raise ScheduleError where they are illegal,
    leaving the schedule as it was. `print(s)` draws the loops.
    """

    def __init__(self, outputs: tuple[Operation, ...], trace: Trace | None = None) -> None:
        self.outputs = outputs
        self._initial = initial_tree(outputs, topological_order([op.output(0) for op in outputs]))
        self.trace = Trace() if trace is None else trace
        self._tree = self.trace.apply(self._initial)
        self.threads: dict[Var, str] = {}  # the variables of thread axes that loops were bound to, and their tags

    @property
    def tree(self) -> ScheduleTree:
        """The stages and loops that the trace makes."""
        return self._tree

    @property
    def initial_tree(self) -> ScheduleTree:
        """The tree before the first step."""
        return self._initial

    @classmethod
    def going_on(cls, tree: ScheduleTree) -> Schedule:
        """A schedule that goes on from a tree: its trace holds the steps that are added."""
        made = object.__new__(cls)
        made.outputs = tuple(stage.origin for stage in tree.in_order() if stage.is_output)
        made._initial, made.trace, made._tree, made.threads = tree, Trace(), tree, {}
        return made

    def copy(self) -> Schedule:
        """A schedule with the same trace, sharing everything; changing one leaves the other alone."""
        # past __init__, which would apply the whole trace again
        made = object.__new__(Schedule)
        made.outputs, made._initial, made.trace, made._tree = self.outputs, self._initial, self.trace, self._tree
        made.threads = dict(self.threads)
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Schedule:
        return self.copy()

    def know(self, sizes: Mapping[str, Var]) -> None:
        """Let factors of splits name these variables."""
        # in both trees: a replay of the trace begins at the initial one
        self._initial = replace(self._initial, symbols={**self._initial.symbols, **sizes})
        self._tree = replace(self._tree, symbols={**self._tree.symbols, **sizes})

    def apply_step(self, step: Step) -> ScheduleTree:
        """Append a step to the trace.

        Raises:
            ScheduleError: if the step is illegal; the schedule is then unchanged.
        """
        # before it is appended: a step that raises leaves tree and trace as they were
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

    @property
    def stage_map(self) -> dict[Operation, Stage]:
        """The stages by the operations that they compute, as declared."""
        return {stage.origin_op: stage for stage in self.stages}

    @property
    def groups(self) -> list[Group]:
        """The groups, in the order they were made. The step of a scan is none: its stages are at the scan's loop from the start."""
        return [Group(self, number) for number in range(len(self._tree.groups))]

    def create_group(
        self,
        outputs: Tensor | Operation | Sequence[Tensor | Operation],
        inputs: Tensor | Operation | Sequence[Tensor | Operation],
        include_inputs: bool = False,
    ) -> Group:
        """Make a group of the stages between `inputs` and `outputs`, to place them together. See `steps.CreateGroup`.

        Raises:
            ScheduleError: if nothing lies between, or the group cuts another one.
        """
        last, first = (tuple(self[t].id for t in ([part] if isinstance(part, (Tensor, Operation)) else part)) for part in (outputs, inputs))
        self.apply_step(CreateGroup(last, first, bool(include_inputs)))
        return self.groups[-1]

    def normalize(self) -> Schedule:
        """This schedule again: inlining and the bounds of loops that TE fixes here are found when the schedule is lowered."""
        return self.copy()

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute `tensor` in `scope` and copy it out. See `steps.CacheWrite`.

        Args:
            tensor: a result of a stage, or a list of all results of one.
            scope: where it is computed.

        Returns:
            The tensor computed there; of a list, a list of them.

        Raises:
            ScheduleError: for one of several results, and for a list that isn't all of a stage's results.
        """
        listed: list[Tensor] = [tensor] if isinstance(tensor, Tensor) else list(tensor)
        op = listed[0].op if listed else None
        if op is None or {one.value_index for one in listed if one.op is op} != set(range(op.num_outputs)) or len(listed) != op.num_outputs:
            names = ", ".join(one.op.name for one in listed) or "nothing"
            raise ScheduleError(f"cache_write takes all results of one stage, as [C0, C1] where there are several; got {names}")
        self.apply_step(CacheWrite(self[op].id, scope))
        made = self._tree.stages[-1].origin
        return [made.output(one.value_index) for one in listed] if not isinstance(tensor, Tensor) else made.output(0)

    def cache_read(
        self,
        tensor: Tensor,
        scope: str,
        readers: Operation | Tensor | Sequence[Operation | Tensor],
        dtype: str | None = None,
        read: int | None = None,
    ) -> Tensor:
        """Let `readers` read a copy of `tensor` in `scope`; returns the copy. See `steps.CacheRead`.

        Args:
            tensor, scope, readers: what is copied, to where, for which stages.
            dtype: that of the copy, if it isn't the tensor's: of wider integers, to which readers convert what they read. See
                `steps.CacheReadWide`.
            read: which one of a reader's different reads of the tensor is of the copy, in the order in which its definition has them;
                all of them if None. See `steps.CacheReadOne`.

        Raises:
            ScheduleError: for stages that don't read the tensor, or not by conversions alone where there is a dtype, or not so often.
        """
        listed: Sequence[Operation | Tensor] = [readers] if isinstance(readers, (Operation, Tensor)) else readers
        stage, ids = self[tensor].id, tuple(self[reader].id for reader in listed)
        if read is not None and dtype not in (None, tensor.dtype):
            raise ScheduleError(f"In schedule for {tensor.op.name}: cache_read takes a dtype for all reads, not for one; leave out `read`")
        if read is not None:
            self.apply_step(CacheReadOne(stage, scope, ids, read))
        else:
            self.apply_step(CacheRead(stage, scope, ids) if dtype in (None, tensor.dtype) else CacheReadWide(stage, scope, ids, dtype))
        return self._tree.stages[-1].origin.output(0)

    def reindex_cache_read(self, tensor: Tensor, scope: str, reader: Operation | Tensor) -> Tensor:
        """Let `reader` read a copy of what it reads of `tensor`, by its own axes; returns the copy. See `steps.ReindexCacheRead`."""
        self.apply_step(ReindexCacheRead(self[tensor].id, scope, self[reader].id))
        return self._tree.stages[-1].origin.output(0)

    def materialize(self, tensor: Tensor, part: int | PrimExpr) -> Tensor:
        """Compute a part of what a stage computes in a stage of its own, before it; returns what that computes. See `steps.Materialize`.

            C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * d[k] * B[k, j], axis=k))
            scaled = s.materialize(C, 1)  # A[i, k] * d[k]; then s[scaled].vectorize(...), or compute_at, or compute_inline

        Args:
            tensor: a result of the stage.
            part: an expression of its definition, or its number among `steps.materialize.parts_of` it, outermost first.

        Raises:
            ScheduleError: if the stage is scheduled already or has no such part; parts behind a condition are taken with it.
        """
        stage = self[tensor]
        if not isinstance(part, int):
            parts = parts_of(self._tree[stage.id].op)
            part = next((number for number, own in enumerate(parts) if own is part), len(parts))
        self.apply_step(Materialize(stage.id, part))
        return self._tree.stages[-1].origin.output(0)

    def distribute(self, tensor: Tensor) -> list[Tensor]:
        """Sum up each term of a sum by a stage of its own; returns what these compute, in order. See `steps.Distribute`.

            Y = te.compute((n, m), lambda i, j: te.sum(X[i, k] * W[k, j] + H[i, k] * U[k, j], axis=k))
            of_x, of_h = s.distribute(Y)  # two products, and Y[i, j] = of_x[i, j] + of_h[i, j]

        Args:
            tensor: a result of the stage.

        Raises:
            ScheduleError: if the stage is scheduled already or is no sum over reduce axes of two terms or more, or of a scaled one.
        """
        known = len(self._tree.stages)
        self.apply_step(Distribute(self[tensor].id))
        return [stage.origin.output(0) for stage in self._tree.stages[known:]]

    def contract(self, tensor: Tensor, factors: Sequence[int]) -> Tensor:
        """Multiply and sum some factors of a sum of products in a stage of its own; returns what it computes. See `steps.Contract`.

            Y = te.compute((n, m), lambda i, j: te.sum(G[r, t] * A[i, r] * B[j, t], axis=[r, t]))
            T = s.contract(Y, [0, 1])  # over r alone; then Y[i, j] is summed over t: of n * m * t and n * t * r steps, not n * m * t * r

        Args:
            tensor: a result of the stage.
            factors: numbers among `steps.contract.factors_of` the definition, in the order in which they are multiplied.

        Raises:
            ScheduleError: if the stage is scheduled already, is no sum of products, or has no such factors beside others.
        """
        self.apply_step(Contract(self[tensor].id, tuple(factors)))
        return self._tree.stages[-1].origin.output(0)

    def pick(self, tensor: Tensor) -> None:
        """Put the only term of a reduction in its place: of `X[k, j] if k == at[i] else 0` the one at `at[i]`. See `steps.Pick`.

            Y = te.compute((n, m), lambda i, j: te.sum(te.if_then_else(k == at[i], X[k, j], 0.0), axis=k))
            s.pick(Y)  # Y[i, j] = X[at[i], j], or 0 where at[i] is no row of X

        Args:
            tensor: a result of the stage.

        Raises:
            ScheduleError: if the stage is scheduled already, or several steps of the reduction may add something.
        """
        self.apply_step(Pick(self[tensor].id))

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

    def layout_of(self, tensor: Tensor) -> IndexMap:
        """Where the caller puts each element of an input: `layout_of(B).map_ndarray(b)` is what the built function takes for B."""
        return given_layout(self._tree, tensor)

    def arguments(self, args: Sequence[Tensor]) -> list[Tensor]:
        """The arguments to lower with: inputs that are passed in another layout in place of those that were declared."""
        return given_arguments(self._tree, args)

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


class Stage(LoopPrimitives, StoragePrimitives):
    """The loops of one operation in a schedule. Axes are what operations and primitives return."""

    @property
    def group(self) -> Group | None:
        """The smallest group that the stage is in."""
        sizes = {n: len(g.members) for n, g in enumerate(self._schedule.tree.groups) if self.id in g.members}
        return Group(self._schedule, min(sizes, key=lambda n: (sizes[n], -n))) if sizes else None

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute this stage inside the loop `scope` of the stage `parent`, each time the part that is read there."""
        if not isinstance(parent, Stage):
            raise self._node.refused(f"compute_at takes a stage such as s[C] and one of its axes, not {parent!r}")
        self._schedule.apply_step(ComputeAt(self.id, parent.id, parent._axis(scope, "compute_at")))

    def compute_inline(self) -> None:
        """Compute this stage wherever it is read."""
        self._schedule.apply_step(ComputeInline(self.id))

    def compute_root(self) -> None:
        """Compute this stage whole, before its readers."""
        self._schedule.apply_step(ComputeRoot(self.id))

    def skip_padding(self, assume_finite: bool = False) -> None:
        """Leave out the terms of a reduction that padding makes neutral. See `steps.SkipPadding`.

        Args:
            assume_finite: factors that meet a padding zero are neither infinite nor NaN; needed for products of floats.

        Raises:
            ScheduleError: if nothing is padded, or leaving out products isn't the same without `assume_finite`.
        """
        self._schedule.apply_step(SkipPadding(self.id, bool(assume_finite)))

    def __repr__(self) -> str:
        return f"stage({self._node.name}, loops: {self._node.axis_names()})"
