"""What a stage of a schedule looks like, for programs that ask: `s[C].relations`, `s[C].attach_type`, ... Names as TE has them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ..dataclass import dataclass
from ..te.operation import Operation
from ..te.scan_op import ScanOp
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar, PrimExpr
from .scans import is_update
from .tree import At, FuseRelation, Inline, LoopKind, Relation, ScheduleTree, StageNode

Self = TypeVar("Self", bound="StageFacts")
GROUP_ROOT, INLINE, INLINED_ALREADY, SCOPE, SCAN_UPDATE = 1, 2, 3, 4, 5


class HasTree(Protocol):
    """A schedule, as far as its stages ask."""

    @property
    def tree(self) -> ScheduleTree:
        """The stages and loops."""


@dataclass(frozen=True, eq=False)
class Split:
    """parent = outer * factor + inner. `parts` are all parts, outermost first, where there are more than two."""

    parent: IterVar
    parts: tuple[IterVar, ...]
    factors: tuple[PrimExpr | None, ...]

    @property
    def outer(self) -> IterVar:
        """The outermost part."""
        return self.parts[0]

    @property
    def inner(self) -> IterVar:
        """The innermost part."""
        return self.parts[-1]

    @property
    def factor(self) -> int | PrimExpr | None:
        """The extent of the inner part if the split gave it."""
        return _number(self.factors[-1])

    @property
    def nparts(self) -> int | PrimExpr | None:
        """The extent of the outer part if the split gave it."""
        return _number(self.factors[0])


@dataclass(frozen=True, eq=False)
class Fuse:
    """fused = outer * extent(inner) + inner. `parts` are all parts, outermost first, where there are more than two."""

    parts: tuple[IterVar, ...]
    fused: IterVar

    @property
    def outer(self) -> IterVar:
        """The outermost part."""
        return self.parts[0]

    @property
    def inner(self) -> IterVar:
        """The innermost part."""
        return self.parts[-1]


@dataclass(frozen=True, eq=False)
class IterVarAttr:
    """What a schedule says about one axis: its loop's kind as an `IterVar` type, and its pragmas."""

    iter_type: int
    pragma_keys: tuple[str, ...]
    pragma_values: tuple[Any, ...]


_ITER_TYPES = {LoopKind.PARALLEL: IterVar.PARALLELIZED, LoopKind.VECTORIZE: IterVar.VECTORIZED, LoopKind.UNROLL: IterVar.UNROLLED}


def _number(factor: PrimExpr | None) -> int | PrimExpr | None:
    value = None if factor is None else as_int(factor)
    return factor if value is None else value


def relation_view(stage: StageNode, relation: Relation) -> Split | Fuse | Singleton:
    """A relation in terms of axes."""
    parts = tuple(stage.axes[part] for part in relation.parts)
    if isinstance(relation, FuseRelation) and not parts:
        return Singleton(stage.axes[relation.fused])
    if isinstance(relation, FuseRelation):
        return Fuse(parts, stage.axes[relation.fused])
    return Split(stage.axes[relation.parent], parts, relation.factors)


def axis_attributes(stage: StageNode) -> dict[IterVar, IterVarAttr]:
    """What the schedule says about each axis that it says something about."""
    found = {}
    for number, mark in stage.marks.items():
        kind = IterVar.THREAD_INDEX if mark.kind is LoopKind.BIND else _ITER_TYPES.get(mark.kind, stage.axes[number].iter_type)
        found[stage.axes[number]] = IterVarAttr(kind, tuple(key for key, _ in mark.pragmas), tuple(value for _, value in mark.pragmas))
    return found


def attach_type(tree: ScheduleTree, stage: StageNode) -> int:
    """Where a stage is computed: 1 at the root, 2 inlined, 4 at a loop, 5 as the step of a scan."""
    match stage.attach:
        case Inline():
            return INLINE
        case At(stage=target):
            return SCAN_UPDATE if isinstance(tree[target].op, ScanOp) and is_update(tree, stage) else SCOPE
    return GROUP_ROOT


@dataclass(frozen=True, eq=False)
class Singleton:
    """An axis of extent 1 that is made of no other, by `fuse()`."""

    iter: IterVar


class View:
    """A numbered part of a schedule. Views are made when they are asked for; those of one part are equal."""

    def __init__(self, schedule: HasTree, number: int) -> None:
        self._schedule: Any = schedule
        self.id = number

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._schedule is self._schedule and other.id == self.id

    def __hash__(self) -> int:
        return hash((id(self._schedule), self.id))

    def same_as(self, other: object) -> bool:
        """Whether `other` is a view of the same part."""
        return self == other


class StageFacts(View):
    """The read-only part of a stage's façade."""

    _schedule: HasTree

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

    @property
    def relations(self) -> list[Split | Fuse | Singleton]:
        """The splits and fusions, in the order they were made."""
        return [relation_view(self._node, relation) for relation in self._node.relations]

    @property
    def iter_var_attrs(self) -> dict[IterVar, IterVarAttr]:
        """The kinds and pragmas of the axes that have some."""
        return axis_attributes(self._node)

    @property
    def attach_type(self) -> int:
        """Where the stage is computed: 1 at the root, 2 inlined, 4 at a loop, 5 as the step of a scan."""
        return attach_type(self._schedule.tree, self._node)

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop at which the stage is computed; None at the root or inlined."""
        attach = self._node.attach
        return self._schedule.tree[attach.stage].axes[attach.axis] if isinstance(attach, At) else None

    @property
    def attach_stage(self: Self) -> Self | None:
        """The stage at whose loop this one is computed; None at the root or inlined."""
        attach = self._node.attach
        return type(self)(self._schedule, attach.stage) if isinstance(attach, At) else None

    @property
    def scope(self) -> str:
        """The storage scope; empty where the schedule leaves it open."""
        return self._node.scope

    @property
    def is_output(self) -> bool:
        """True for what the schedule was made for."""
        return self._node.is_output
