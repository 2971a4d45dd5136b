"""The stores of a program in the order in which it executes them, and what the loops around them touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...dataclass import dataclass, field
from ...schedule.tree import At, ScheduleTree, StageNode
from ...te.tensor import Tensor
from ...tir.expr import PrimExpr, ProducerLoad, Reduce, Var
from ...tir.rewriting import walk
from .nest import Array, StageNest
from .store_loops import StoreLoops, Touched, touched

UNROLL = "auto_unroll_max_step"


@dataclass(frozen=True, eq=False)
class Store:
    """One statement that stores a tensor.

    Args:
        loops: around it.
        around: how many of them are loops of its consumers: the stage is computed inside of them.
        value: what is stored; of a reduction all of it.
        tensors: what it does with each tensor.
        unroll_step: [n] the pragma that holds here; 0 without one.
    """

    loops: StoreLoops
    around: int
    value: PrimExpr
    tensors: tuple[Touched, ...]
    unroll_step: Array

    @property
    def result(self) -> Tensor:
        """The tensor that is stored."""
        return self.tensors[0].tensor


@dataclass(eq=False)
class TouchedByLoops:
    """What was touched under each loop so far: tensor, elements [n] of one run of the loop, bytes of an element."""

    entries: dict[int, list[tuple[Tensor, Array, int]]] = field(default_factory=dict)

    def add(self, places: Sequence[int], tensors: Sequence[Touched]) -> None:
        """A store was met under the loops `places`."""
        for level, place in enumerate(places):
            self.entries.setdefault(place, []).extend((t.tensor, t.elements[:, level], t.item_bytes) for t in tensors)


@dataclass(eq=False)
class StoreWalk:
    """Walks over the stages as lowering places them: what is computed at a loop stands at its start, a reduction's initial value
    in front of its first reduction loop."""

    tree: ScheduleTree
    nests: Mapping[int, StageNest]
    sampled: Mapping[Var, Array]
    stores: list[tuple[Store, dict[int, list[tuple[Tensor, Array, int]]]]] = field(default_factory=list)
    seen: TouchedByLoops = field(default_factory=TouchedByLoops)
    _places: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _steps: dict[tuple[int, int], Array] = field(default_factory=dict)
    _next: int = 0

    def run(self) -> None:
        """Visit all stores."""
        for number in self.tree.order:
            if number in self.nests and not isinstance(self.nests[number].stage.attach, At):
                self._visit(number)

    def _visit(self, number: int) -> None:
        nest = self.nests[number]
        stage, outer = nest.stage, self._outer(nest.stage)
        own = range(self._next, self._next + len(stage.leaf))
        # numbers aren't used again: what was touched under loops that ended stays apart
        self._next += len(stage.leaf)
        self._places[number] = (*outer, *own)
        step = self._inherited(stage, len(nest.unroll_step))
        first = next((n for n, axis in enumerate(stage.leaf) if stage.is_reduction(axis)), len(stage.leaf))
        for place, axis in enumerate(stage.leaf):
            if place == first:
                self._initial_values(nest, len(outer) + first)
            if any(key == UNROLL for key, _ in stage.mark(axis).pragmas):
                step = nest.unroll_step
            self._steps[number, axis] = step
            for other in self.tree.order:
                # what is computed at a loop runs before the rest of its body, so its stores come first
                if other in self.nests and self.nests[other].stage.attach == At(number, axis):
                    self._visit(other)
        loops = StoreLoops(nest, self._places[number], self.sampled)
        for output, value in enumerate(nest.body):
            self._store(Store(loops, len(outer), value, self._tensors(loops, output, value), step))

    def _store(self, store: Store) -> None:
        self.seen.add(store.loops.places, store.tensors)
        # a copy: stores that come later must not be seen by this one
        self.stores.append((store, {place: list(self.seen.entries[place]) for place in store.loops.places}))

    def _initial_values(self, nest: StageNest, shared: int) -> None:
        """The stores of a reduction's first values: under the loops outside of the reduction they touch what the update does."""
        loops = StoreLoops(nest, self._places[nest.stage.id], self.sampled)
        for output, value in enumerate(nest.body):
            if isinstance(value, Reduce):
                written = _written(loops, output, False)
                start = (value.init or value.combiner.identity_element)[value.value_index]
                self.seen.add(loops.places[:shared], [written, *self._reads(loops, (start,))])

    def _outer(self, stage: StageNode) -> tuple[int, ...]:
        if not isinstance(stage.attach, At):
            return ()
        target = self.nests[stage.attach.stage].stage
        around = len(self._places[target.id]) - len(target.leaf)
        return self._places[target.id][: around + target.leaf.index(stage.attach.axis) + 1]

    def _inherited(self, stage: StageNode, count: int) -> Array:
        if not isinstance(stage.attach, At):
            return np.zeros(count)
        return self._steps[stage.attach.stage, stage.attach.axis]

    def _tensors(self, loops: StoreLoops, output: int, value: PrimExpr) -> tuple[Touched, ...]:
        sources = value.source if isinstance(value, Reduce) else (value,)
        return (_written(loops, output, isinstance(value, Reduce)), *self._reads(loops, sources))

    def _reads(self, loops: StoreLoops, values: Sequence[PrimExpr]) -> list[Touched]:
        """What the values read, each tensor in the layout that it is stored in."""
        reads: dict[Tensor, list[tuple[PrimExpr, ...]]] = {}
        for node in (node for value in values for node in walk(value)):
            if isinstance(node, ProducerLoad) and isinstance(node.producer, Tensor):
                stored = self.tree.producer(node).op.output(node.producer.value_index)
                reads.setdefault(stored, []).append(node.indices)
        return [touched(loops, tensor, indices, True, False) for tensor, indices in reads.items()]


def stores_of(tree: ScheduleTree, nests: Sequence[StageNest], sampled: Mapping[Var, Array]) -> StoreWalk:
    """The stores of stages, in the order of the program."""
    made = StoreWalk(tree, {nest.stage.id: nest for nest in nests}, sampled)
    made.run()
    return made


def _written(loops: StoreLoops, output: int, is_read: bool) -> Touched:
    stage = loops.nest.stage
    return touched(loops, stage.op.output(output), [tuple(loops.axes[axis] for axis in stage.spatial)], is_read, True)
