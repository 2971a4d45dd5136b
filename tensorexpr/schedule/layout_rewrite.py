"""Traces with the layouts of inputs rewritten, for inputs whose layout is free (`layout_free_placeholders`).

Such an input may be passed as it was declared (and be copied by the program, or not), or in the layout in which the
program reads it. Programs of both kinds are made of one trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dataclass import dataclass
from ..errors import ScheduleError
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from .steps import (
    Annotate,
    BalancedSplit,
    CacheRead,
    ComputeAt,
    DoubleBuffer,
    ExactSplit,
    Fuse,
    MultiBuffer,
    Pragma,
    PreTransformed,
    Reorder,
    SetScope,
    Split,
    Step,
    StorageAlign,
    TransformLayout,
)
from .steps.pre_transformed import copied_input
from .tiled_layout import tiled_layout
from .trace import Trace
from .tree import Inline, LoopKind, Root, ScheduleTree, SplitRelation, StageNode

ATTRIBUTE = "layout_free_placeholders"
# What says how a copy is computed, and nothing of what it holds.
_LOOPS = (Annotate, BalancedSplit, ComputeAt, DoubleBuffer, ExactSplit, Fuse, MultiBuffer, Pragma, Reorder, SetScope, Split, StorageAlign)
_MOST_LANES = 64


def layout_free_inputs(tree: ScheduleTree) -> tuple[Tensor, ...]:
    """The inputs that a computation lets be passed in any layout."""
    named = [t for stage in tree.stages if isinstance(stage.op, ComputeOp) for t in stage.op.attrs.get(ATTRIBUTE, ())]
    found = dict.fromkeys(t for t in named if isinstance(t, Tensor) and isinstance(t.op, PlaceholderOp) and tree.find(t.op) is not None)
    return tuple(found)


def as_declared(trace: Trace) -> Trace:
    """The trace with all inputs passed in the layout they were declared with; what was passed packed is packed by the program."""
    return Trace(tuple(step for step in trace if not isinstance(step, PreTransformed)))


def with_transform_stages(trace: Trace, tree: ScheduleTree) -> Trace:
    """The trace with a copy of each layout-free input that a tiled stage reads directly, in the layout in which it is read.

    Args:
        trace: all decisions made.
        tree: the unscheduled program.
    """
    rewriting = _Rewriting(tree, as_declared(trace))
    for tensor in layout_free_inputs(tree):
        reader = rewriting.reader_of(tensor)
        if reader is not None and isinstance(copied_input(rewriting.tree, reader), str):
            rewriting.copied(tensor, reader)
    return rewriting.trace


def with_given_layouts(trace: Trace, tree: ScheduleTree, inputs: Sequence[Tensor] | None = None) -> Trace:
    """The trace with each layout-free input, of which a tiled stage reads all that is read, passed in the layout of those reads.

    Args:
        trace: all decisions made.
        tree: the unscheduled program.
        inputs: those whose layout is free; by default those that the computation says so of.
    """
    rewriting = _Rewriting(tree, as_declared(trace))
    for tensor in layout_free_inputs(tree) if inputs is None else inputs:
        reader = rewriting.reader_of(tensor)
        if reader is None:
            continue
        is_copy = not isinstance(copied_input(rewriting.tree, reader), str)
        copy = rewriting.at_root(reader) if is_copy else rewriting.copied(tensor, reader)
        if copy is not None and not rewriting.sums_padding(copy):
            rewriting.add(PreTransformed(copy))
    return rewriting.trace


@dataclass
class _Rewriting:
    """A trace that is being rewritten, and the tree that it makes of the unscheduled program."""

    initial: ScheduleTree
    trace: Trace

    def __post_init__(self) -> None:
        self.tree = self.trace.apply(self.initial)

    def add(self, *steps: Step) -> None:
        for step in steps:
            self.tree, self.trace = step.apply(self.tree), self.trace.append(step)

    def reader_of(self, tensor: Tensor) -> StageNode | None:
        """The only stage with loops that reads an input."""
        stage = None if self.tree.by_blocks else self.tree.find(tensor.op)  # a trace of blocks reads inputs as they were declared
        readers = self.tree.consumers(stage) if stage is not None else ()
        alone = len(readers) == 1 and isinstance(readers[0].op, ComputeOp) and not isinstance(readers[0].attach, Inline)
        return readers[0] if alone else None

    def copied(self, tensor: Tensor, reader: StageNode) -> int | None:
        """Let a stage read a copy in the layout in which it reads; returns the copy, None if there is no such layout."""
        stage = self.tree.find(tensor.op)
        assert stage is not None
        # Trees and traces are immutable, so keeping the old ones is all that undoing takes.
        before, copy = (self.trace, self.tree), len(self.tree.stages)
        self.add(CacheRead(stage.id, "global", (reader.id,)))
        if self._as_read(copy):
            return copy
        self.trace, self.tree = before
        return None

    def sums_padding(self, copy: int) -> bool:
        """True if an instruction sums groups of a copy of which the last is padded: the copy says by what, a caller may not."""
        for reader in self.tree.consumers(self.tree[copy]):
            sums = [r for r in reader.relations if isinstance(r, SplitRelation) and reader.is_reduction(r.parent)]
            is_tensorized = any(mark.kind is LoopKind.TENSORIZE for mark in reader.marks.values())
            if is_tensorized and any(_leaves_rest(reader, split) for split in sums):
                return True
        return False

    def at_root(self, copy: StageNode) -> int | None:
        """Make a copy one that holds the whole input as it is read; returns it, None if its layout would be that of the input."""
        before = (self.trace, self.tree)
        # without the loops it had as a copy of a part; as a copy of all it gets others in `_as_read`
        self.trace = Trace(tuple(s for s in self.trace if not (isinstance(s, _LOOPS) and s.stage == copy.id)))
        self.tree = self.trace.apply(self.initial)
        if self._as_read(copy.id) or (copy.maps and not isinstance(copy.attach, Root)):
            return copy.id
        self.trace, self.tree = before
        return copy.id if copy.maps else None

    def _as_read(self, copy: int) -> bool:
        """Bring a copy into the layout in which it is read; False if there is no other one than its own."""
        (reader, *_) = self.tree.consumers(self.tree[copy])
        loads = [load for load in self.tree.reads(reader) if self.tree.producer(load).id == copy]
        mapping = tiled_layout(self.tree, reader, loads[0]) if len(loads) == 1 else None
        if mapping is None:
            return False
        try:
            self.add(TransformLayout(copy, mapping))
        except ScheduleError:  # elements would share places: tiles that overlap
            return False
        self.add(*_loops_of_copy(self.tree[copy]))
        return True


def _leaves_rest(stage: StageNode, split: SplitRelation) -> bool:
    """True if the innermost part of a split is known not to divide its axis."""
    dom, part = stage.axes[split.parent].dom, split.factors[-1]
    extent, size = (None if dom is None else as_int(dom.extent)), (None if part is None else as_int(part))
    return extent is not None and size is not None and extent % size != 0


def _loops_of_copy(copy: StageNode) -> Iterator[Step]:
    """Panels in parallel, and vectors."""
    first, last = copy.spatial[0], copy.spatial[-1]
    if first != last:
        yield Annotate(copy.id, first, "parallel")
    dom = copy.axes[last].dom
    lanes = None if dom is None else as_int(dom.extent)
    if lanes is not None and lanes <= _MOST_LANES:
        yield Annotate(copy.id, last, "vectorize")
