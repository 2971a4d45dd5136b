"""A program while rules of your own make sketches of it: stages and iterators by name, changed step by step.

state = State(state_object, dag)
i, j, k = state[C].iters
state.split(C, i, [8])          # an iterator becomes two
state.split(C, j, [None, None]) # three, whose sizes the search finds
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..schedule.steps import (
    Annotate,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Pragma,
    RFactor,
    StorageAlign,
)
from ..schedule.steps.loops import Factor
from ..schedule.trace import Trace
from ..schedule.tree import At, StageNode
from ..te.operation import Operation
from ..te.tensor import Tensor
from .sketch.state import SketchState

if TYPE_CHECKING:
    from .compute_dag import ComputeDAG

StageKey = Tensor | Operation | int
_MOST_INNERMOST = 64


@dataclass(frozen=True)
class Iterator:
    """A loop of a stage. It stays valid until it is split or fused."""

    name: str
    stage: int
    axis: int


@dataclass(frozen=True, eq=False)
class StageView:
    """A stage as it is now: its operation, its loops from the outside in, and where it is computed."""

    op: Operation
    name: str
    iters: tuple[Iterator, ...]
    compute_at: str


class State:
    """A program and the steps that made it.

    Stages are given by tensor, operation, or place in `stages`, which lists producers before consumers.

    Args:
        state_object: what a rule was given, or another state's `state_object`; a ComputeDAG starts from its plain loops.
        dag: the computation; it is known from the first argument and kept for programs that pass it.
    """

    def __init__(self, state_object: SketchState | State | ComputeDAG, dag: ComputeDAG | None = None) -> None:
        if isinstance(state_object, State):
            state_object = state_object.state_object
        self.state_object: SketchState = state_object if isinstance(state_object, SketchState) else SketchState(state_object.initial_tree)
        self.compute_dag = dag

    @property
    def stages(self) -> list[StageView]:
        """All stages, producers first."""
        return [self._view(stage) for stage in self.state_object.tree.in_order()]

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.origin for stage in self.state_object.tree.in_order()]

    @property
    def transform_steps(self) -> Trace:
        """The steps so far."""
        return self.state_object.trace

    def __getitem__(self, key: StageKey) -> StageView:
        return self._view(self._stage(key))

    def copy(self) -> State:
        """A state to change while this one stays."""
        return State(self.state_object, self.compute_dag)

    def split(self, stage: StageKey, iterator: Iterator, lengths: Sequence[int | None], inner_to_outer: bool = True) -> list[Iterator]:
        """Split a loop in len(lengths) + 1. Lengths are of the inner loops (or the outer ones); if all are None the search finds them."""
        number, parts = self._stage(stage).id, len(lengths) + 1
        if not lengths or (None in lengths and any(length is not None for length in lengths)):
            raise ScheduleError(f"split of {iterator.name} takes a length for each new loop, or None for all of them; got {list(lengths)}")
        factors: tuple[Factor, ...]
        if lengths[0] is None:
            self.state_object, sample = self.state_object.sample_tile(number, iterator.axis, parts, _MOST_INNERMOST)
            factors = (None, *((sample, part) for part in range(1, parts)))
        else:
            factors = (None, *lengths) if inner_to_outer else (*lengths, None)
        self.state_object, axes = self.state_object.split(number, iterator.axis, factors)
        return self._iterators(number, axes)

    def fuse(self, stage: StageKey, iters: Sequence[Iterator]) -> Iterator:
        """Make one loop of neighbours."""
        number = self._stage(stage).id
        self.state_object, axis = self.state_object.fuse(number, tuple(it.axis for it in iters))
        return self._iterators(number, (axis,))[0]

    def reorder(self, stage: StageKey, order: Sequence[Iterator]) -> None:
        """Put all loops of a stage in order."""
        self.state_object = self.state_object.reorder(self._stage(stage).id, tuple(it.axis for it in order))

    def parallel(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Run a loop on all threads."""
        return self._annotate(stage, iterator, "parallel")

    def vectorize(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Make a loop a vector."""
        return self._annotate(stage, iterator, "vectorize")

    def unroll(self, stage: StageKey, iterator: Iterator, max_unroll: int | None = None) -> Iterator:
        """Write out a loop; `max_unroll` is kept for programs that pass it."""
        return self._annotate(stage, iterator, "unroll")

    def pragma(self, stage: StageKey, iterator: Iterator, pragma_type: str) -> None:
        """Give a hint, such as "auto_unroll_max_step$64"."""
        key, _, value = pragma_type.partition("$")
        self._add(Pragma(self._stage(stage).id, iterator.axis, key, int(value) if value.isdigit() else True))

    def compute_at(self, stage: StageKey, target_stage: StageKey, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of its consumer."""
        self._add(ComputeAt(self._stage(stage).id, self._stage(target_stage).id, target_iter.axis))

    def compute_inline(self, stage: StageKey) -> None:
        """Compute a stage where it is read."""
        self._add(ComputeInline(self._stage(stage).id))

    def compute_root(self, stage: StageKey) -> None:
        """Compute a stage whole, before what reads it."""
        self._add(ComputeRoot(self._stage(stage).id))

    def cache_read(self, stage: StageKey, scope_name: str, reader_stages: Sequence[StageKey]) -> Operation:
        """Let stages read a copy; returns the operation of the copy."""
        self._add(CacheRead(self._stage(stage).id, scope_name, tuple(self._stage(reader).id for reader in reader_stages)))
        return self.state_object.tree.stages[-1].origin

    def cache_write(self, stage: StageKey, scope_name: str) -> Operation:
        """Compute a stage in a place of its own and copy it out; returns the operation that computes."""
        self._add(CacheWrite(self._stage(stage).id, scope_name))
        return self.state_object.tree.stages[-1].origin

    def rfactor(self, stage: StageKey, iterator: Iterator, factor_iter_id: int) -> Operation:
        """Make a reduction loop an axis of partial results; returns their operation."""
        self._add(RFactor(self._stage(stage).id, iterator.axis, factor_iter_id))
        return self.state_object.tree.stages[-1].origin

    def storage_align(self, stage: StageKey, iterator: Iterator, factor: int, offset: int) -> None:
        """Pad the rows of a stage's storage."""
        self._add(StorageAlign(self._stage(stage).id, iterator.axis, factor, offset))

    def _add(
        self, step: Annotate | Pragma | ComputeAt | ComputeInline | ComputeRoot | CacheRead | CacheWrite | RFactor | StorageAlign
    ) -> None:
        self.state_object = self.state_object.add(step)

    def _annotate(self, stage: StageKey, iterator: Iterator, kind: str) -> Iterator:
        self._add(Annotate(self._stage(stage).id, iterator.axis, kind))
        return iterator

    def _stage(self, key: StageKey) -> StageNode:
        tree = self.state_object.tree
        if isinstance(key, int):
            if not 0 <= key < len(tree.order):
                raise ScheduleError(f"no stage {key}; the program has {len(tree.order)}")
            return tree[tree.order[key]]
        op = key.op if isinstance(key, Tensor) else key
        found = tree.find(op)
        if found is None:
            raise ScheduleError(f"{op.name} is no stage of this program; stages: {', '.join(s.name for s in tree.in_order())}")
        return found

    def _iterators(self, stage: int, axes: Sequence[int]) -> list[Iterator]:
        node = self.state_object.tree[stage]
        return [Iterator(node.axes[axis].name, stage, axis) for axis in axes]

    def _view(self, stage: StageNode) -> StageView:
        where = "iter" if isinstance(stage.attach, At) else type(stage.attach).__name__.lower()
        return StageView(stage.origin, stage.name, tuple(self._iterators(stage.id, stage.leaf)), where)
