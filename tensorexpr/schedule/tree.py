"""The schedule tree: stages, their axes and loops, and where each stage is computed. Immutable.

    ScheduleTree
    ├─ stages        one StageNode each, by id; ids never change, new stages get new ids
    ├─ order         stage ids, producers before consumers
    └─ samples       values of the sampling steps applied so far (variables while a decision is open)

    StageNode
    ├─ axes          every axis the stage ever had, by id: spatial, reduction, then those made by splits and fusions
    ├─ relations     Split(parent -> parts) and Fuse(parts -> fused), in the order they were made
    ├─ leaf          ids of the axes that are loops now, outermost first
    ├─ marks         per axis: loop kind and pragmas
    └─ attach        Root, Inline, or At(stage, axis)

A tree is derived from a trace by applying its steps; nothing here computes a bound. `domain` gives axes their
values and extents, `lower` turns a tree into loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import InternalError
from ..te.operation import ComputeOp, Operation, PlaceholderOp, loads
from ..te.tensor import Tensor
from ..tir.expr import IterVar, PrimExpr, ProducerLoad


class LoopKind(Enum):
    """How the loop of an axis runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZE = "vectorize"
    UNROLL = "unroll"


@dataclass(frozen=True, slots=True)
class LoopMark:
    """What a schedule says about one loop."""

    kind: LoopKind = LoopKind.SERIAL
    pragmas: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """parent = (parts[0] * factors[1] + parts[1]) * factors[2] + ...

    Exactly one factor is None: the one that follows from the parent's extent, rounded up.
    """

    parent: int
    parts: tuple[int, ...]
    factors: tuple[PrimExpr | None, ...]


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """fused = parts[0] * extent(parts[1]) + parts[1]."""

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
    def spatial(self) -> range:
        """Ids of the root spatial axes."""
        return range(len(self.compute.axis)) if not self.is_placeholder else range(0)

    @property
    def reduction(self) -> range:
        """Ids of the root reduction axes."""
        if self.is_placeholder:
            return range(0)
        first = len(self.compute.axis)
        return range(first, first + len(self.compute.reduce_axis))

    def mark(self, axis: int) -> LoopMark:
        """What the schedule says about an axis."""
        return self.marks.get(axis, LoopMark())

    def is_reduction(self, axis: int) -> bool:
        """True for reduction axes and what was split or fused from them."""
        return self.axes[axis].iter_type == IterVar.COMM_REDUCE

    def axis_names(self) -> str:
        """The loops' names, for messages."""
        return ", ".join(self.axes[a].name for a in self.leaf) or "none"


@dataclass(frozen=True, eq=False, slots=True)
class ScheduleTree:
    """All stages of a program. See the module's drawing."""

    stages: tuple[StageNode, ...]
    order: tuple[int, ...]
    index: Mapping[Operation, int]
    samples: tuple[tuple[PrimExpr, ...], ...] = ()

    def __getitem__(self, stage: int) -> StageNode:
        return self.stages[stage]

    def in_order(self) -> Iterator[StageNode]:
        """The stages, producers first."""
        return (self.stages[i] for i in self.order)

    def with_stage(self, stage: StageNode) -> ScheduleTree:
        """This tree with one stage replaced."""
        stages = (*self.stages[: stage.id], stage, *self.stages[stage.id + 1 :])
        return replace(self, stages=stages)

    def with_new_stage(self, stage: StageNode, before: int | None = None, after: int | None = None) -> ScheduleTree:
        """This tree with a stage added next to another in the order."""
        neighbour = before if before is not None else after
        if stage.id != len(self.stages) or neighbour is None:
            raise InternalError(f"stage {stage.name} can't be added as number {stage.id}")
        place = self.order.index(neighbour) + (0 if before is not None else 1)
        order = (*self.order[:place], stage.id, *self.order[place:])
        return replace(self, stages=(*self.stages, stage), order=order, index={**self.index, stage.origin: stage.id})

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
        return tuple(other for other in self.in_order() if any(self.producer(read).id == stage.id for read in self.reads(other)))

    def attached_to(self, stage: int) -> tuple[StageNode, ...]:
        """The stages computed at a loop of `stage`, producers first."""
        return tuple(s for s in self.in_order() if isinstance(s.attach, At) and s.attach.stage == stage)


_loads: WeakKeyDictionary[Operation, tuple[ProducerLoad, ...]] = WeakKeyDictionary()


def loads_of(op: Operation) -> tuple[ProducerLoad, ...]:
    """Every tensor element that an operation's definition reads, conditions included."""
    known = _loads.get(op)
    if known is None:
        known = _loads[op] = tuple(loads(op)) if isinstance(op, ComputeOp) else ()
    return known


def initial_tree(outputs: Sequence[Operation], operations: Sequence[Operation]) -> ScheduleTree:
    """The tree in which every stage is computed at the root with one serial loop per axis.

    Args:
        outputs: the operations whose results are wanted.
        operations: all operations of the program, producers first.
    """
    stages = []
    taken: set[str] = set()
    for number, op in enumerate(operations):
        name = op.name
        while name in taken:
            stem, _, last = name.rpartition("_")
            name = f"{stem}_{int(last) + 1}" if stem and last.isdigit() else f"{name}_1"
        taken.add(name)
        stages.append(make_stage(number, name, op, op in outputs))
    return ScheduleTree(tuple(stages), tuple(range(len(stages))), {op: n for n, op in enumerate(operations)})


def make_stage(number: int, name: str, op: Operation, is_output: bool = False) -> StageNode:
    """A fresh stage of `op`: root loops in declaration order, reduction innermost."""
    axes = (*op.axis, *op.reduce_axis) if isinstance(op, ComputeOp) else ()
    return StageNode(number, name, op, op, axes, tuple(range(len(axes))), is_output=is_output)
