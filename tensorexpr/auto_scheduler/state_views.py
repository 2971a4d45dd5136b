"""How a program's stages and iterators look from outside: names, ranges, and what the program says about each loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from ..schedule.tree import At, Inline, LoopKind, Root, StageNode
from ..te.operation import Operation, PlaceholderOp
from ..tir.expr import Range
from .state_ranges import Known, range_of
from .state_text import iterator_names

THREADS = ("vthread", "blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y", "blockIdx.z", "threadIdx.z")
ANNOTATIONS = {word: n for n, word in enumerate(("none", "unroll", "vectorize", "parallel", *THREADS, "tensorize"))}


class ComputeAtKind(IntEnum):
    """Where a stage is computed: whole, where it is read, or at an iterator of another stage."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True)
class Iterator:
    """A loop of a stage. It stays valid until it is split or fused.

    Args:
        name: `i`, `i.0` of a split, `i.0@j.0@` of a fusion.
        range: how far it goes; None where a stage was moved and bounds weren't inferred since, or sizes are open.
        annotation: the number of `State.ANNOTATION_TRANS_TABLE`.
    """

    name: str = field(compare=False)
    stage: int
    axis: int
    range: Range | None = field(default=None, compare=False)
    annotation: int = field(default=0, compare=False)


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage as it is now: its operation, its loops from the outside in, and where it is computed."""

    op: Operation
    name: str
    iters: tuple[Iterator, ...]
    compute_at: ComputeAtKind

    COMPUTE_AT_TRANS_TABLE: ClassVar[dict[int, str]] = {0: "root", 1: "inlined", 2: "iter"}

    @property
    def op_type(self) -> int:
        """0 for an input, 1 for what is computed."""
        return 0 if isinstance(self.op, PlaceholderOp) else 1

    def __repr__(self) -> str:
        return f"auto_scheduler.Stage({self.name}: {', '.join(it.name for it in self.iters)})"


_WHERE = {Root: ComputeAtKind.ROOT, Inline: ComputeAtKind.INLINED, At: ComputeAtKind.ITER}


def _annotation(stage: StageNode, axis: int) -> int:
    mark = stage.mark(axis)
    if mark.thread is not None:
        return ANNOTATIONS.get(mark.thread.tag, 0)
    return 0 if mark.kind is LoopKind.SERIAL else ANNOTATIONS[mark.kind.value]


def iterators_of(stage: StageNode, axes: Sequence[int], known: Known) -> list[Iterator]:
    """Some of the loops of a stage, with their ranges as far as they are known."""
    names = iterator_names(stage)
    return [Iterator(names[axis], stage.id, axis, range_of(stage, axis, known), _annotation(stage, axis)) for axis in axes]


def view_of(stage: StageNode, known: Known) -> Stage:
    """A stage with all its loops."""
    return Stage(stage.origin, stage.name, tuple(iterators_of(stage, stage.leaf, known)), _WHERE[type(stage.attach)])
