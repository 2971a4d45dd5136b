"""The schedule tree: stages, their axes and loops, and where each stage is computed. Immutable.

    ScheduleTree
    ├─ stages        one StageNode each, by id; ids never change, new stages get new ids
    ├─ order         stage ids, producers before consumers
    ├─ samples       values of the sampling steps applied so far (variables while a decision is open)
    ├─ carried       stages that a step of a scan computes, and its states -> the stage of the scan
    ├─ groups        stages that are placed together, in the order the groups were made
    ├─ symbols       variables, by name, that are in no shape, for factors of splits
    └─ by_blocks     the trace of blocks that makes the loops in place of all this, as text; "" where the stages say them

    StageNode
    ├─ axes          every axis the stage ever had, by id: spatial, reduction, then those made by splits and fusions
    ├─ relations     Split(parent -> parts) and Fuse(parts -> fused), in the order they were made
    ├─ leaf          ids of the axes that are loops now, outermost first
    ├─ marks         per axis: loop kind and pragmas
    ├─ attach        Root, Inline, or At(stage, axis)
    └─ prefetches, store_predicate, rolling_buffer, nontemporal: how it touches memory

A tree is derived from a trace by applying its steps; nothing here computes a bound. `domain` gives axes their
values and extents, `lower` turns a tree into loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from ..arith.index_map import IndexMap
from ..dataclass import dataclass, field, replace
from ..errors import InternalError, ScheduleError
from ..te.extern import ExternOp
from ..te.hybrid_op import HybridOp
from ..te.operation import ComputeOp, Operation, PlaceholderOp, loads
from ..te.scan_body import check_states_bound
from ..te.scan_op import ScanOp
from ..te.tensor import Tensor
from ..te.tensor_compute import TensorComputeOp
from ..tir.expr import IterVar, PrimExpr, ProducerLoad, Var
from ..tir.rewriting import walk


class LoopKind(Enum):
    """How the loop of an axis runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZE = "vectorize"
    UNROLL = "unroll"
    BIND = "bound"
    TENSORIZE = "tensorize"


@dataclass(frozen=True, slots=True)
class ThreadAxis:
    """What a loop is bound to: a dimension of a grid of threads, or virtual threads.

    `tag` is one of "blockIdx.x", "threadIdx.x" (or .y, .z), "vthread", "cthread"; `extent` is None where the loop decides.
    """

    tag: str
    name: str
    extent: int | None = None


@dataclass(frozen=True, slots=True)
class LoopMark:
    """What a schedule says about one loop. `thread` is there exactly if the kind is BIND, `intrin` (name, digest) if it is TENSORIZE."""

    kind: LoopKind = LoopKind.SERIAL
    pragmas: tuple[tuple[str, Any], ...] = ()
    thread: ThreadAxis | None = None
    intrin: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PrefetchMark:
    """In the loop `axis`: fetch what output `output` of stage `producer` gives `offset` iterations later."""

    producer: int
    output: int
    axis: int
    offset: int


# An expression over a stage's axes as plain data; see `axis_expression`.
AxisExpression = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """parent = (parts[0] * factors[1] + parts[1]) * factors[2] + ...

    Exactly one factor is None: the one that follows from the parent's extent, rounded up.
    A balanced split makes two parts, and tiles of two sizes (see `balanced`): parent = start(parts[0]) + parts[1].
    """

    parent: int
    parts: tuple[int, ...]
    factors: tuple[PrimExpr | None, ...]
    balanced: bool = False
    exact: bool = False  # the schedule promises that the parts make up the parent; lowering holds it to that


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """fused = parts[0] * extent(parts[1]) + parts[1]. Of no parts: a loop with one iteration."""

    parts: tuple[int, ...]
    fused: int


Relation = SplitRelation | FuseRelation


@dataclass(frozen=True, slots=True)
class Root:
    """Computed before everything that follows it."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Computed where it is read."""


@dataclass(frozen=True, slots=True)
class At:
    """Computed inside the loop `axis` of `stage`."""

    stage: int
    axis: int


Attach = Root | Inline | At


@dataclass(frozen=True, eq=False, slots=True)
class StageNode:
    """One operation and how its loops look. `origin` is the operation that consumers read, `op` the current definition."""

    id: int
    name: str
    op: Operation
    origin: Operation
    axes: tuple[IterVar, ...] = ()
    leaf: tuple[int, ...] = ()
    relations: tuple[Relation, ...] = ()
    marks: Mapping[int, LoopMark] = field(default_factory=dict)
    attach: Attach = Root()
    scope: str = ""
    is_output: bool = False
    double_buffer: int = 0  # copies of the storage, of which all but one are filled for later iterations; 0 where there is one
    aligns: tuple[tuple[int, int, int], ...] = ()  # (axis, factor, offset): stride % factor == offset
    prefetches: tuple[PrefetchMark, ...] = ()
    store_predicate: AxisExpression | None = None
    rolling_buffer: bool = False
    nontemporal: bool = False
    layouts: tuple[str, ...] = ()  # what transform_layout did, in words
    maps: tuple[IndexMap, ...] = ()  # ... and as maps of indices, the first one first
    separators: tuple[int, ...] = ()  # between which dimensions storage with several axes begins the next one
    source: Tensor | None = None  # of an input that is passed in another layout than it was declared with: as it was declared

    @property
    def compute(self) -> ComputeOp:
        """The definition of a stage that computes."""
        if not isinstance(self.op, ComputeOp):
            raise InternalError(f"stage {self.name} is no computation")
        return self.op

    @property
    def is_placeholder(self) -> bool:
        """True for inputs."""
        return isinstance(self.op, PlaceholderOp)

    @property
    def has_loops(self) -> bool:
        """True for stages with axes to schedule: neither inputs nor externs, whose statement has loops of its own."""
        return not isinstance(self.op, (PlaceholderOp, ExternOp))

    @property
    def spatial(self) -> range:
        """Ids of the root spatial axes."""
        return range(len(self.op.axis)) if self.has_loops else range(0)

    @property
    def reduction(self) -> range:
        """Ids of the root reduction axes."""
        if not self.has_loops:
            return range(0)
        first = len(self.op.axis)
        return range(first, first + len(self.op.reduce_axis))

    def mark(self, axis: int) -> LoopMark:
        """What the schedule says about an axis."""
        return self.marks.get(axis, LoopMark())

    def is_reduction(self, axis: int) -> bool:
        """True for reduction axes and what was split or fused from them."""
        return self.axes[axis].iter_type == IterVar.COMM_REDUCE

    def refused(self, reason: str) -> ScheduleError:
        """The error about a wish that this stage can't have, for the caller to raise."""
        return ScheduleError(f"In schedule for {self.name}: {reason}")

    @property
    def is_scheduled(self) -> bool:
        """True if a step changed how it is computed."""
        is_moved = self.op is not self.origin or self.leaf != tuple(range(len(self.axes))) or not isinstance(self.attach, Root)
        return is_moved or bool(self.relations or self.marks or self.prefetches or self.scope or self.store_predicate)

    def axis_names(self) -> str:
        """The loops' names, for messages."""
        return ", ".join(self.axes[a].name for a in self.leaf) or "none"


def leaves_of(stage: StageNode, axis: int) -> set[int]:
    """The loops whose values an axis is made of."""
    # relations are in the order they were made, so one pass reaches all that came of the axis
    made = {axis}
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent in made:
            made.update(relation.parts)
        elif isinstance(relation, FuseRelation) and not made.isdisjoint(relation.parts):
            made.add(relation.fused)
    return made & set(stage.leaf)


@dataclass(frozen=True, slots=True)
class StageGroup:
    """Stages that `compute_root` puts at one place: where the group is attached. `outputs` and `inputs` are its ends as given."""

    members: tuple[int, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    attach: Attach = Root()


@dataclass(frozen=True, eq=False, slots=True)
class ScheduleTree:
    """All stages of a program. See the module's drawing."""

    stages: tuple[StageNode, ...]
    order: tuple[int, ...]
    index: Mapping[Operation, int]
    samples: tuple[tuple[PrimExpr, ...], ...] = ()
    carried: Mapping[int, int] = field(default_factory=dict)
    groups: tuple[StageGroup, ...] = ()
    symbols: Mapping[str, Var] = field(default_factory=dict)
    by_blocks: str = ""

    def __getitem__(self, stage: int) -> StageNode:
        return self.stages[stage]

    def in_order(self) -> Iterator[StageNode]:
        """The stages, producers first."""
        return (self.stages[i] for i in self.order)

    def with_stage(self, stage: StageNode) -> ScheduleTree:
        """This tree with one stage replaced."""
        # The tree before stays what it was: a search keeps thousands that share all but a stage or two.
        stages = (*self.stages[: stage.id], stage, *self.stages[stage.id + 1 :])
        return replace(self, stages=stages)

    def with_new_stage(self, stage: StageNode, before: int | None = None, after: int | None = None) -> ScheduleTree:
        """This tree with a stage added next to another in the order."""
        neighbour = before if before is not None else after
        # A stage's id is its place in `stages`.
        if stage.id != len(self.stages) or neighbour is None:
            raise InternalError(f"stage {stage.name} can't be added as number {stage.id}")
        place = self.order.index(neighbour) + (0 if before is not None else 1)
        order = (*self.order[:place], stage.id, *self.order[place:])
        # By origin, as that is what readers of the tensor name, whatever definition the stage has now.
        index = {**self.index, stage.origin: stage.id}
        # a copy of what a step of a scan computes is computed by the step too
        scans = {self.carried.get(self.index[tensor.op]) for tensor in stage.op.input_tensors if tensor.op in self.index} - {None}
        carried = {**self.carried, stage.id: scan} if (scan := next(iter(scans), None)) is not None else self.carried
        groups = tuple(replace(g, members=(*g.members, stage.id)) if neighbour in g.members else g for g in self.groups)
        tree = replace(self, stages=(*self.stages, stage), order=order, index=index, carried=carried, groups=groups)
        return tree.with_stage(replace(stage, attach=tree.home(stage.id))) if isinstance(stage.attach, Root) else tree

    def home(self, stage: int) -> Attach:
        """Where `compute_root` puts a stage: at the root, but inside of what its group, or the scan that computes it, is attached to."""
        # groups nest: the smallest with a place of its own is the innermost
        for group in sorted(self.groups, key=lambda group: len(group.members)):
            if stage in group.members and not isinstance(group.attach, Root):
                return group.attach
        scan = self.carried.get(stage)
        return Root() if scan is None else At(scan, 0)

    def sizes(self) -> dict[str, Var]:
        """The variables that factors of splits may name: those of shapes and domains, and what else the schedule was given."""
        found = dict(self.symbols)
        for stage in self.stages:
            shapes = [extent for number in range(stage.op.num_outputs) for extent in stage.op.output_shape(number)]
            domains = [part for axis in stage.axes if axis.dom is not None for part in (axis.dom.min, axis.dom.extent)]
            for var in (node for extent in (*shapes, *domains) for node in walk(extent) if isinstance(node, Var)):
                found.setdefault(var.name, var)
        return found

    def unique_name(self, wanted: str) -> str:
        """`wanted`, numbered if a stage has that name already."""
        taken = {stage.name for stage in self.stages}
        candidates = (wanted if n == 0 else f"{wanted}_{n}" for n in count())
        return next(name for name in candidates if name not in taken)

    def find(self, op: Operation) -> StageNode | None:
        """The stage of an operation, by its original or its current definition."""
        number = self.index.get(op)
        if number is not None:
            return self.stages[number]
        # A current definition isn't in the index, which has originals.
        return next((stage for stage in self.stages if stage.op is op), None)

    def producer(self, load: ProducerLoad) -> StageNode:
        """The stage that a load reads."""
        stage = self.find(load.producer.op) if isinstance(load.producer, Tensor) else None
        if stage is None:
            raise InternalError(f"{load} reads no stage of this schedule")
        return stage

    def reads(self, stage: StageNode) -> tuple[ProducerLoad, ...]:
        """The tensor elements that the current definition of `stage` reads."""
        return loads_of(stage.op)

    def consumers(self, stage: StageNode) -> tuple[StageNode, ...]:
        """The stages that read `stage`, inlined ones included."""
        # Derived each time: a field with the readers would have to follow every step that changes a definition.
        return tuple(other for other in self.in_order() if any(self.producer(read).id == stage.id for read in self.reads(other)))

    @property
    def scheduled(self) -> StageNode | None:
        """The first stage whose loops aren't those that it was declared with; None if there is none."""
        return next((stage for stage in self.in_order() if stage.is_scheduled and stage.id not in self.carried), None)

    def attached_to(self, stage: int) -> tuple[StageNode, ...]:
        """The stages computed at a loop of `stage`, producers first."""
        return tuple(s for s in self.in_order() if isinstance(s.attach, At) and s.attach.stage == stage)


_loads: WeakKeyDictionary[Operation, tuple[ProducerLoad, ...]] = WeakKeyDictionary()  # schedules share operations


def loads_of(op: Operation) -> tuple[ProducerLoad, ...]:
    """Every tensor element that an operation's definition reads, conditions included."""
    # Weakly, so that an operation goes with the last schedule of it.
    known = _loads.get(op)
    if known is None:
        known = _loads[op] = _reads_of(op)
    return known


def _reads_of(op: Operation) -> tuple[ProducerLoad, ...]:
    match op:
        case ComputeOp():
            return tuple(loads(op))
        case ExternOp():
            return op.whole_reads
        case ScanOp():
            return (*op.init_reads, *op.update_reads)
    return ()


def initial_tree(outputs: Sequence[Operation], operations: Sequence[Operation]) -> ScheduleTree:
    """The tree in which every stage is computed at the root with one serial loop per axis.

    What depends on a state of a scan is computed in the time loop of that scan.

    Args:
        outputs: the operations whose results are wanted.
        operations: all operations of the program, producers first.

    Raises:
        DeclarationError: if a state is read outside of its scan.
        ScheduleError: if a stage of a scan is an output.
    """
    stages = []
    taken: set[str] = set()
    for number, op in enumerate(operations):
        name = op.name
        # Names of the user's may repeat, and messages and printed loops tell stages by them: B, B_1, B_2.
        while name in taken:
            stem, _, last = name.rpartition("_")
            name = f"{stem}_{int(last) + 1}" if stem and last.isdigit() else f"{name}_1"
        taken.add(name)
        stages.append(initial_stage(number, name, op, op in outputs))
    index = {op: n for n, op in enumerate(operations)}
    carried = {index[op]: index[scan] for op, scan in check_states_bound(operations, outputs).items() if op in index}
    for number in carried:
        if stages[number].is_output:
            raise ScheduleError(
                f"{stages[number].name} exists only while {stages[carried[number]].name} runs; schedule the result of the scan"
            )
        if not stages[number].is_placeholder:
            stages[number] = replace(stages[number], attach=At(carried[number], 0))
    return ScheduleTree(tuple(stages), tuple(range(len(stages))), index, carried=carried)


def make_stage(number: int, name: str, op: Operation, is_output: bool = False) -> StageNode:
    """A fresh stage of `op`: root loops in declaration order, reduction innermost."""
    # A function of loops that is a plain computation is scheduled as one; another stays a statement.
    defined = op.compute or op if isinstance(op, HybridOp) else op
    axes = (*defined.axis, *defined.reduce_axis) if isinstance(defined, (ComputeOp, ScanOp)) else ()
    return StageNode(number, name, defined, op, axes, tuple(range(len(axes))), is_output=is_output)


def initial_stage(number: int, name: str, op: Operation, is_output: bool = False) -> StageNode:
    """A fresh stage of `op`; an operation of an intrinsic over slices has its inner loops tensorized from the start."""
    stage = make_stage(number, name, op, is_output)
    if not isinstance(op, TensorComputeOp) or op.first_tensor_axis is None:
        return stage
    # The intrinsic's loops are innermost and belong to its declaration; only those around them are the schedule's.
    leaf = tuple(stage.axes.index(axis) for axis in op.loop_order)
    mark = LoopMark(LoopKind.TENSORIZE, intrin=(op.intrin.name, op.intrin.digest))
    return replace(stage, leaf=leaf, marks={**stage.marks, stage.axes.index(op.first_tensor_axis): mark})
