"""A program as it is changed step by step, by name: stages and their iterators. A façade on the trace.

state = dag.get_init_state()
i, j, k = state[C].iters
state.split(C, i, [8])          # an iterator becomes two
state.split(C, j, [None, None]) # three, whose sizes the search finds
print(state)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from ..errors import ScheduleError
from ..schedule.factors import Factor
from ..schedule.steps import (
    Annotate,
    Bind,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Pragma,
    RFactor,
    Split,
    Step,
    StorageAlign,
)
from ..schedule.trace import Trace
from ..schedule.tree import At, StageNode
from ..spaces.state import SketchState
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..tir.printer.highlight import ShownAsText
from .state_views import (
    ANNOTATIONS,
    THREADS,
    ComputeAtKind,
    Iterator,
    Known,
    Stage,
    forgotten,
    inferred,
    iterators_of,
    range_of,
    state_text,
    unknown,
    view_of,
)

if TYPE_CHECKING:
    from .compute_dag import ComputeDAG

StageKey = Tensor | Operation | int
_MOST_INNERMOST = 64


class State(ShownAsText):
    """A program and the steps that made it. `print(state)` shows its loops; two states are equal if they print alike.

    Stages are given by tensor, operation, or place in `stages`, which lists producers before consumers. What a step may do is what
    `te` schedules may do: an illegal one raises ScheduleError and leaves the state as it was.

    Args:
        state_object: what a rule was given, or another state's `state_object`; a ComputeDAG starts from its plain loops.
        dag: the computation; it is known from the first argument and kept for programs that pass it.
    """

    ANNOTATION_TRANS_TABLE: ClassVar[Mapping[str, int]] = ANNOTATIONS

    def __init__(self, state_object: SketchState | State | ComputeDAG, dag: ComputeDAG | None = None) -> None:
        self._known: Known = {}
        self._steps: tuple[int, ...] = ()
        self._replay: Callable[[], None] | None = None
        if isinstance(state_object, State):
            dag = dag or state_object.compute_dag
            # shared, not copied: both are replaced when something changes, never written to
            made, self._known, self._steps = state_object.state_object, state_object._known, state_object._steps
        elif isinstance(state_object, SketchState):
            made, self._steps = state_object, tuple(range(len(state_object.trace)))
        else:
            dag, made = state_object, SketchState(state_object.initial_tree)
        self._made, self._trace, self._dag = made, made.trace, dag

    @staticmethod
    def of_trace(trace: Trace, dag: Callable[[], ComputeDAG]) -> State:
        """The program of a trace, which is replayed when something of it is asked for; with bounds inferred if it is legal and
        all its decisions are made."""
        state = object.__new__(State)
        state._known, state._steps, state._trace = {}, tuple(range(len(trace))), trace

        def replay() -> None:
            """Apply the steps, now that something of the program is asked for."""
            state._dag = dag()
            tree = trace.apply(state._dag.initial_tree)
            state._made, state._replay = SketchState(tree, trace), None
            if not trace.open_decisions:
                with contextlib.suppress(ScheduleError):
                    state._known = inferred(tree)

        state._replay = replay
        return state

    @property
    def is_replayed(self) -> bool:
        """Whether the steps were applied to a computation yet; what comes from a log waits until it is looked at."""
        return self._replay is None

    def _replayed(self) -> State:
        if self._replay is not None:
            self._replay()
        return self

    @property
    def state_object(self) -> SketchState:
        """What rules and schedules work on."""
        return self._replayed()._made

    @state_object.setter
    def state_object(self, made: SketchState) -> None:
        self._made, self._trace = made, made.trace

    @property
    def compute_dag(self) -> ComputeDAG | None:
        """The computation, if it was given."""
        return self._replayed()._dag

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers first."""
        tree = self.state_object.tree
        return [view_of(stage, self._known) for stage in tree.in_order()]

    @property
    def stage_ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.origin for stage in self.state_object.tree.in_order()]

    @property
    def trace(self) -> Trace:
        """The program as schedules and records know it."""
        return self._trace

    @property
    def transform_steps(self) -> tuple[Step, ...]:
        """The steps so far, one for each call; `follow_split` names one by its place here."""
        return tuple(self.trace.steps[place] for place in self._steps)

    def __getitem__(self, key: StageKey) -> Stage:
        stage = self._stage(key)
        return view_of(stage, self._known)

    def __str__(self) -> str:
        tree = self.state_object.tree
        return state_text(tree, known=self._known)

    def __repr__(self) -> str:
        return f"<State of {len(self._steps)} steps>\n{self}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, State) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a state changes

    def copy(self) -> State:
        """A state to change while this one stays."""
        return State(self)

    def with_bounds(self) -> State:
        """This program with the ranges of all iterators.

        Raises:
            ScheduleError: if it is illegal, or has sizes that are still open.
        """
        if self.trace.open_decisions:
            raise ScheduleError("bounds can't be inferred: the program has splits whose sizes the search finds")
        made = State(self)
        made._known = inferred(self.state_object.tree)
        return made

    def split(self, stage: StageKey, iterator: Iterator, lengths: Sequence[int | None], inner_to_outer: bool = True) -> list[Iterator]:
        """Split a loop in len(lengths) + 1. Lengths are of the inner loops (or the outer ones); if all are None the search finds them."""
        if not isinstance(lengths, (list, tuple)) or not lengths or (None in lengths and any(length is not None for length in lengths)):
            raise ScheduleError(f"split of {iterator.name} takes a length for each new loop, or None for all of them; got {lengths!r}")
        number, open_sizes = self._stage(stage).id, lengths[0] is None
        with self._all_or_nothing():
            if open_sizes:
                self.state_object, sample = self.state_object.sample_tile(number, iterator.axis, len(lengths) + 1, _MOST_INNERMOST)
                # part 0 is the outermost one, which the split leaves open
                lengths_made: list[Factor] = [(sample, part) for part in range(1, len(lengths) + 1)]
            else:
                lengths_made = list(lengths)
            return self._split(number, iterator.axis, lengths_made, open_sizes or inner_to_outer)

    def follow_split(self, stage: StageKey, iterator: Iterator, src_step_id: int, n_split: int) -> list[Iterator]:
        """Split a loop in n_split + 1 as another was split: the last length is the product of those that are left over.

        Args:
            src_step_id: the place of that split in `transform_steps`.
            n_split: how many lengths; one more than there are means all of them.

        Raises:
            ScheduleError: if that step is no split into as many parts.
        """
        lengths = self._lengths(src_step_id)
        if not 1 <= n_split <= len(lengths) + 1:
            raise ScheduleError(f"follow_split of {iterator.name} at level {n_split}; step {src_step_id} made {len(lengths) + 1} loops")
        if n_split <= len(lengths):
            lengths = [*lengths[: n_split - 1], _product(iterator, lengths[n_split - 1 :])]
        with self._all_or_nothing():
            return self._split(self._stage(stage).id, iterator.axis, lengths, True)

    def follow_fused_split(
        self, stage: StageKey, iterator: Iterator, src_step_ids: Sequence[int], level: int, factor_or_nparts: bool
    ) -> list[Iterator]:
        """Split a loop in two by the product of what several splits made at a level; the product is the inner length, or the outer.

        Raises:
            ScheduleError: if one of the steps is no split, or has no such level.
        """
        sources = [self._lengths(number) for number in src_step_ids]
        if not sources or not all(0 <= level < len(lengths) for lengths in sources):
            raise ScheduleError(f"follow_fused_split of {iterator.name}: steps {list(src_step_ids)} have no level {level}")
        made = _product(iterator, [lengths[level] for lengths in sources])
        with self._all_or_nothing():
            return self._split(self._stage(stage).id, iterator.axis, [made], bool(factor_or_nparts))

    def fuse(self, stage: StageKey, iters: Sequence[Iterator]) -> Iterator:
        """Make one loop of neighbours."""
        number = self._stage(stage).id
        with self._all_or_nothing():
            moved = self._detached(number, [it.axis for it in iters])
            before = len(self.trace)
            self.state_object, axis = self.state_object.fuse(number, tuple(it.axis for it in iters))
            self._count(before)
            self._attach(moved, number, axis)
            return self._iterators(number, (axis,))[0]

    def reorder(self, stage: StageKey, order: Sequence[Iterator]) -> None:
        """Put all loops of a stage in order."""
        before = len(self.trace)
        self.state_object = self.state_object.reorder(self._stage(stage).id, tuple(it.axis for it in order))
        self._count(before)

    def parallel(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Run a loop on all threads."""
        return self._annotate(stage, iterator, "parallel")

    def vectorize(self, stage: StageKey, iterator: Iterator) -> Iterator:
        """Make a loop a vector."""
        return self._annotate(stage, iterator, "vectorize")

    def unroll(self, stage: StageKey, iterator: Iterator, max_unroll: int | None = None) -> Iterator:
        """Write out a loop, if it runs `max_unroll` times at most."""
        number = self._stage(stage).id
        found = range_of(self.state_object.tree[number], iterator.axis, self._known)
        if max_unroll is not None and found is not None and int(found.extent) > max_unroll:  # type: ignore[call-overload]
            return self._iterators(number, (iterator.axis,))[0]
        return self._annotate(stage, iterator, "unroll")

    def bind(self, stage: StageKey, iterator: Iterator, thread_name: str) -> Iterator:
        """Make the iterations of a loop threads: "blockIdx.x", "threadIdx.x" (or .y, .z), "vthread".

        Raises:
            ValueError: for another name.
        """
        if thread_name not in THREADS:
            raise ValueError(f"bind of {iterator.name}: no threads {thread_name!r}; there are {', '.join(THREADS)}")
        number = self._stage(stage).id
        self._add(Bind(number, iterator.axis, thread_name, thread_name, None))
        return self._iterators(number, (iterator.axis,))[0]

    def pragma(self, stage: StageKey, iterator: Iterator, pragma_type: str) -> None:
        """Give a hint, such as "auto_unroll_max_step$64"."""
        key, _, value = pragma_type.partition("$")
        self._add(Pragma(self._stage(stage).id, iterator.axis, key, int(value) if value.isdigit() else True))

    def compute_at(self, stage: StageKey, target_stage: StageKey, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of its consumer."""
        self._move(ComputeAt(self._stage(stage).id, self._stage(target_stage).id, target_iter.axis))

    def compute_inline(self, stage: StageKey) -> None:
        """Compute a stage where it is read."""
        self._add(ComputeInline(self._stage(stage).id))

    def compute_root(self, stage: StageKey) -> None:
        """Compute a stage whole, before what reads it."""
        self._move(ComputeRoot(self._stage(stage).id))

    def cache_read(self, stage: StageKey, scope_name: str, reader_stages: Sequence[StageKey]) -> Operation:
        """Let stages read a copy; returns the operation of the copy."""
        return self._make(CacheRead(self._stage(stage).id, scope_name, tuple(self._stage(reader).id for reader in reader_stages)))

    def cache_write(self, stage: StageKey, scope_name: str) -> Operation:
        """Compute a stage in a place of its own and copy it out; returns the operation that computes."""
        return self._make(CacheWrite(self._stage(stage).id, scope_name))

    def rfactor(self, stage: StageKey, iterator: Iterator, factor_iter_id: int) -> Operation:
        """Make a reduction loop an axis of partial results; returns their operation."""
        return self._make(RFactor(self._stage(stage).id, iterator.axis, factor_iter_id))

    def storage_align(self, stage: StageKey, iterator: Iterator, factor: int, offset: int) -> None:
        """Pad the rows of a stage's storage."""
        self._add(StorageAlign(self._stage(stage).id, iterator.axis, factor, offset))

    def _add(self, step: Step) -> None:
        before = len(self.trace)
        self.state_object = self.state_object.add(step)
        self._count(before)

    def _count(self, before: int) -> None:
        """A call of the user ends: the last step that it made stands for it."""
        # A call that changed nothing, such as a fusion of one loop, is no step.
        if len(self.trace) > before:
            self._steps = (*self._steps, len(self.trace) - 1)

    def _move(self, step: ComputeAt | ComputeRoot) -> None:
        self._add(step)
        self._known = unknown(self.state_object.tree[step.stage], self._known)

    def _make(self, step: CacheRead | CacheWrite | RFactor) -> Operation:
        self._add(step)
        if not isinstance(step, CacheRead):
            self._known = forgotten(step.stage, self._known)
        # a stage that a step makes has the last number
        return self.state_object.tree.stages[-1].origin

    def _split(self, number: int, axis: int, lengths: Sequence[Factor], inner_to_outer: bool) -> list[Iterator]:
        moved = self._detached(number, [axis])
        self.state_object, axes = self.state_object.split(number, axis, (None, *lengths) if inner_to_outer else (*lengths, None))
        # counted before stages are attached again: the split is the step that the call stands for
        self._count(0)
        self._attach(moved, number, axes[-1])
        return self._iterators(number, axes)

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Generator[None, None, None]:
        """The state as it was, where one of several steps is refused."""
        made, steps, known = self.state_object, self._steps, self._known
        try:
            yield
        except ScheduleError:
            self.state_object, self._steps, self._known = made, steps, known
            raise

    def _detached(self, number: int, axes: Sequence[int]) -> list[int]:
        """Take away the stages that are computed at loops which are about to go; they follow to what the loops become."""
        found = [s.id for s in self.state_object.tree.attached_to(number) if isinstance(s.attach, At) and s.attach.axis in axes]
        for stage in found:
            self.state_object = self.state_object.add(ComputeRoot(stage))
        return found

    def _attach(self, stages: Sequence[int], target: int, axis: int) -> None:
        # Consumers first: a producer is placed inside of what reads it.
        for stage in reversed(stages):
            self.state_object = self.state_object.add(ComputeAt(stage, target, axis))

    def _lengths(self, step_id: int) -> list[Factor]:
        steps = self.transform_steps
        step = steps[step_id] if 0 <= step_id < len(steps) else None
        if not isinstance(step, Split):
            raise ScheduleError(f"step {step_id} is no split to follow; the state has {len(steps)} steps")
        return [factor for factor in step.factors if factor is not None]

    def _annotate(self, stage: StageKey, iterator: Iterator, kind: str) -> Iterator:
        number = self._stage(stage).id
        self._add(Annotate(number, iterator.axis, kind))
        return self._iterators(number, (iterator.axis,))[0]

    def _stage(self, key: StageKey) -> StageNode:
        tree = self.state_object.tree
        if isinstance(key, int):
            if not 0 <= key < len(tree.order):
                raise ScheduleError(f"no stage {key}; the program has {len(tree.order)}")
            return tree[tree.order[key]]
        op = key.op if isinstance(key, Tensor) else key
        found = tree.find(op) if isinstance(op, Operation) else None
        if found is None:
            named, there = getattr(op, "name", repr(key)), ", ".join(stage.name for stage in tree.in_order())
            raise ScheduleError(f"{named} is no stage of this program; stages: {there}")
        return found

    def _iterators(self, stage: int, axes: Sequence[int]) -> list[Iterator]:
        return iterators_of(self.state_object.tree[stage], axes, self._known)


def _product(iterator: Iterator, factors: Sequence[Factor]) -> Factor:
    """The product of the lengths of earlier splits: a number, or the parts of a sample that is still open."""
    numbers = [factor for factor in factors if isinstance(factor, int)]
    samples = [factor for factor in factors if isinstance(factor, tuple)]
    if not samples:
        made = 1
        for number in numbers:
            made *= number
        return made
    if numbers or len({sample[0] for sample in samples}) > 1:
        raise ScheduleError(f"a split of {iterator.name} can follow open sizes of one split only")
    return (samples[0][0], *(part for sample in samples for part in sample[1:]))


__all__ = ["ComputeAtKind", "Iterator", "Stage", "State"]
