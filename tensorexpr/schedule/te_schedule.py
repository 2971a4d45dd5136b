"""The te façade: `te.create_schedule`, `s[C].split(...)`. It holds a trace and its tree, and no scheduling logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..arith.index_map import IndexMap
from ..errors import ScheduleError
from ..te.dag import topological_order
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.arithmetic import as_int, is_const_int
from ..tir.dtype import parse_dtype
from ..tir.expr import EQ, IterVar, PrimExpr, Var
from ..tir.rewriting import walk
from .axis_expression import encode
from .draw import draw
from .explain import explain
from .given_layouts import given_arguments, given_layout
from .group import Group
from .stage_views import StageFacts
from .steps import (
    Annotate,
    BalancedSplit,
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    CreateGroup,
    DoubleBuffer,
    EnvThreads,
    ExactSplit,
    Fuse,
    Pragma,
    Prefetch,
    PreTransformed,
    Reorder,
    RFactor,
    RollingBuffer,
    SetScope,
    SetStorePredicate,
    SkipPadding,
    Split,
    Step,
    StorageAlign,
    StoreNontemporal,
    Tensorize,
    TransformLayout,
)
from .steps.base import check_has_loops
from .steps.loops import checked_pragma
from .steps.prefetch import checked_offset
from .steps.store_predicate import predicate_of
from .steps.threads import checked_thread
from .steps.transform_layout import mapping_of, pad_value_of
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
        self.threads: set[Any] = set()  # the variables of thread axes that loops were bound to

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
        made.threads = set(self.threads)
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Schedule:
        return self.copy()

    def know(self, sizes: Mapping[str, Var]) -> None:
        """Let factors of splits name these variables."""
        self._initial = replace(self._initial, symbols={**self._initial.symbols, **sizes})
        self._tree = replace(self._tree, symbols={**self._tree.symbols, **sizes})

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


class Stage(StageFacts):
    """The loops of one operation in a schedule. Axes are what operations and primitives return."""

    _schedule: Schedule

    @property
    def group(self) -> Group | None:
        """The smallest group that the stage is in."""
        sizes = {n: len(g.members) for n, g in enumerate(self._schedule.tree.groups) if self.id in g.members}
        return Group(self._schedule, min(sizes, key=lambda n: (sizes[n], -n))) if sizes else None

    def _axis(self, ivar: Any, primitive: str) -> int:
        node = self._node
        check_has_loops(node, primitive)
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

    def split(
        self, parent: IterVar, factor: Any = None, nparts: Any = None, disable_predication: bool = False, balanced: bool = False
    ) -> tuple[IterVar, IterVar]:
        """Split an axis into (outer, inner); exactly one of `factor` (extent of inner) and `nparts` (of outer) is given.

        for i in n:  ->  for i.outer in ceil(n / factor): for i.inner in factor: if i.outer*factor + i.inner < n: ...

        `disable_predication` promises that the parts make up the extent, and holds you to it. See `steps.ExactSplit`.
        `balanced` makes tiles whose sizes differ by at most one, none above `factor`. See `steps.BalancedSplit`.

        Raises:
            ScheduleError: for an axis of another stage, a factor below 1 or both or none of factor and nparts.
        """
        node = self._node
        if (factor is None) == (nparts is None):
            raise ScheduleError(f"In schedule for {node.name}: split takes exactly one of factor and nparts")
        if disable_predication and balanced:
            raise ScheduleError(f"In schedule for {node.name}: a balanced split guards its smaller tiles; leave disable_predication out")
        axis = self._axis(parent, "split")
        count = len(node.axes)
        value = self._factor(parent, factor if factor is not None else nparts, balanced)
        kind = BalancedSplit if balanced else ExactSplit if disable_predication else Split
        self._schedule.apply_step(kind(self.id, axis, (None, value) if factor is not None else (value, None)))
        outer, inner = self._new_axes(count)
        return outer, inner

    def _factor(self, parent: IterVar, factor: Any, balanced: bool) -> Any:
        """A factor as the step has it: a number, or an expression over sizes, which the schedule knows from now on."""
        if isinstance(factor, PrimExpr) and as_int(factor) is None and not balanced and parse_dtype(factor.dtype).is_int:
            used = {node: node.name for node in walk(factor) if isinstance(node, Var)}
            known = {**self._schedule.tree.sizes(), **{name: var for var, name in used.items()}}
            if any(self._schedule.tree.sizes().get(name, var) is not var for var, name in used.items()) or len(known) < len(used):
                raise ScheduleError(
                    f"In schedule for {self._node.name}: split of {parent.name!r} by {factor}: the program has another size of that name; "
                    "give its variables names of their own"
                )
            self._schedule.know(known)
            return encode(factor, used)
        return _checked_factor(self._node, parent, factor)

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: Any, y_factor: Any) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two axes and put both outer parts outside both inner ones; returns x.outer, y.outer, x.inner, y.inner."""
        x_outer, x_inner = self.split(x_parent, factor=x_factor)
        y_outer, y_inner = self.split(y_parent, factor=y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    def fuse(self, *args: IterVar | Sequence[IterVar]) -> IterVar:
        """Make adjacent axes, outermost first, one axis; of a single axis returns it, of none makes one of extent 1, outermost."""
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

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Make the iterations of an axis threads. See `steps.Bind`.

        Args:
            ivar: a loop of this stage.
            thread_ivar: what it is bound to, such as te.thread_axis("vthread") or te.thread_axis((0, 8), "threadIdx.x").

        Raises:
            ScheduleError: for virtual threads of a reduction axis, an axis that is marked or bound, or a tag that an enclosing loop has.
        """
        self._schedule.apply_step(Bind(self.id, self._axis(ivar, "bind"), *checked_thread(self._node.name, thread_ivar)))
        self._schedule.threads.add(thread_ivar.var)

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Let the threads of a device run through all steps of a scan. See `steps.EnvThreads`.

        Raises:
            ScheduleError: for a stage that is no scan, and for threads of no grid.
        """
        listed = [threads] if isinstance(threads, IterVar) else list(threads)
        self._schedule.apply_step(EnvThreads(self.id, tuple(checked_thread(self._node.name, thread)[0] for thread in listed)))

    def double_buffer(self) -> None:
        """Fill one of two buffers for the next iteration while this one's is read. See `steps.DoubleBuffer`.

        Lowering checks that the stage is computed at a serial loop of its consumer, from what is there before that loop.
        """
        self._schedule.apply_step(DoubleBuffer(self.id))

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
            raise ScheduleError(f"In schedule for {node.name}: storage_align takes integers, not factor {factor!r} and offset {offset!r}")
        self._schedule.apply_step(StorageAlign(self.id, self._axis(axis, "storage_align"), *values))  # type: ignore[arg-type]

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Let an intrinsic of `te.decl_tensor_intrin` do what the loop and all loops inside it do. See `steps.Tensorize`."""
        axis = self._axis(var, "tensorize")
        if not isinstance(tensor_intrin, TensorIntrin):
            raise ScheduleError(
                f"In schedule for {self._node.name}: tensorize takes an intrinsic of te.decl_tensor_intrin, not {tensor_intrin!r}"
            )
        self._schedule.apply_step(Tensorize(self.id, axis, tensor_intrin.name, tensor_intrin.digest))

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a hint to a loop: `auto_unroll_max_step` (int), `unroll_explicit`, `loop_partition_hint`, `no_load_merge` (bool).

        See `steps.Pragma` for what each means.
        """
        self._schedule.apply_step(Pragma(self.id, self._axis(var, "pragma"), pragma_type, checked_pragma(pragma_value)))

    def skip_padding(self, assume_finite: bool = False) -> None:
        """Leave out the terms of a reduction that padding makes neutral. See `steps.SkipPadding`.

        Args:
            assume_finite: factors that meet a padding zero are neither infinite nor NaN; needed for products of floats.

        Raises:
            ScheduleError: if nothing is padded, or leaving out products isn't the same without `assume_finite`.
        """
        self._schedule.apply_step(SkipPadding(self.id, bool(assume_finite)))

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

    def prefetch(self, tensor: Tensor, var: IterVar, offset: Any) -> None:
        """In each iteration of `var` fetch the cache lines of `tensor` that the iteration `offset` later reads. See `steps.Prefetch`.

        Raises:
            ScheduleError: if `var` is no loop or a vectorised one, or nothing inside it reads `tensor` from memory.
        """
        producer = self._schedule[tensor]
        output = tensor.value_index if isinstance(tensor, Tensor) else 0
        distance = checked_offset(self._node, offset)
        self._schedule.apply_step(Prefetch(self.id, producer.id, output, self._axis(var, "prefetch"), distance))

    def rolling_buffer(self) -> None:
        """Keep the elements that the next iteration of the loop around this stage needs again. See `steps.RollingBuffer`."""
        self._schedule.apply_step(RollingBuffer(self.id))

    def set_store_predicate(self, predicate: Any) -> None:
        """Compute and store an element only where a condition over `op.axis` holds. See `steps.SetStorePredicate`.

        An output keeps what the caller's array held elsewhere; other stages may leave out only what is provably not read. That one
        thread is to store a result that threads share (`tx.var.equal(0)`) needs no saying here: they share one accumulator.

        Raises:
            ScheduleError: for what is no condition over the stage's spatial axes, and for an inlined stage.
        """
        if isinstance(predicate, EQ) and predicate.a in self._schedule.threads and is_const_int(predicate.b, 0):
            return
        self._schedule.apply_step(SetStorePredicate(self.id, predicate_of(self._node, predicate)))

    def store_nontemporal(self) -> None:
        """Let this output's vectors go to memory past the caches. See `steps.StoreNontemporal`."""
        self._schedule.apply_step(StoreNontemporal(self.id))

    def set_scope(self, scope: str) -> None:
        """Say where the stage's storage lives: "global", "local", "shared", ...; see `tir.storage_scope`."""
        self._schedule.apply_step(SetScope(self.id, scope))

    def __repr__(self) -> str:
        return f"stage({self._node.name}, loops: {self._node.axis_names()})"


def _checked_factor(node: StageNode, parent: IterVar, factor: Any) -> int:
    value = int(factor) if isinstance(factor, float) and factor.is_integer() else as_int(factor)
    if value is None and isinstance(factor, PrimExpr) and parse_dtype(factor.dtype).is_int:
        raise ScheduleError(
            f"In schedule for {node.name}: a balanced split of {parent.name!r} by {factor}, which is no constant; "
            "a factor is an integer of at least 1"
        )
    if value is None or isinstance(factor, bool) or value < 1:
        raise ScheduleError(f"In schedule for {node.name}: split of {parent.name!r} by {factor!r}; a factor is an integer of at least 1")
    return value


__all__ = ["Schedule", "Stage", "create_schedule"]
