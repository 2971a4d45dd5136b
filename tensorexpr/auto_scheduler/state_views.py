"""How a program looks from outside: its stages and iterators with names, ranges and what is said of each loop, and its text.

Placeholder: A, B, C
parallel i.0@j.0@ (0,4)
  matmul auto_unroll: 16
  for i.1 (0,4)
    vectorize j.2 (0,8)
      matmul = ...

A stage at the root runs over its whole domain, so splits and fusions say how far its iterators go. A stage that was moved into a
loop of another computes what is read there; how much that is, `ComputeDAG.infer_bound_from_state` finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from math import prod
from typing import ClassVar

from ..arith.analyzer import Analyzer
from ..dataclass import dataclass, field
from ..lower.phase0.infer_bound import infer_bound
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.legality import check_tree
from ..schedule.tree import At, FuseRelation, Inline, LoopKind, Root, ScheduleTree, SplitRelation, StageNode
from ..te.operation import Operation, PlaceholderOp
from ..tir.arithmetic import as_int, is_const_int
from ..tir.expr import IntImm, PrimExpr, Range

# (stage, axis) -> its range; None where it isn't known. Axes that aren't listed are as their relations say.
Known = Mapping[tuple[int, int], Range | None]


def range_of(stage: StageNode, axis: int, known: Known) -> Range | None:
    """The range of an iterator; None if it isn't known."""
    if (stage.id, axis) in known:
        return known[stage.id, axis]
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and axis in relation.parts:
            return _counted(stage, _part_extent(stage, relation, axis, known))
        if isinstance(relation, FuseRelation) and axis == relation.fused:
            extents = [_extent(stage, part, known) for part in relation.parts]
            return _counted(stage, None if None in extents else prod(extent for extent in extents if extent is not None))
    return stage.axes[axis].dom


def _part_extent(stage: StageNode, split: SplitRelation, axis: int, known: Known) -> int | None:
    factor = split.factors[split.parts.index(axis)]
    if factor is not None:
        return as_int(factor)
    others = [as_int(factor) for factor in split.factors if factor is not None]
    parent = _extent(stage, split.parent, known)
    if parent is None or None in others:
        return None
    return -(-parent // prod(other for other in others if other is not None))


def _extent(stage: StageNode, axis: int, known: Known) -> int | None:
    found = range_of(stage, axis, known)
    return None if found is None else as_int(found.extent)


def _counted(stage: StageNode, extent: int | None) -> Range | None:
    return None if extent is None else Range.from_min_extent(IntImm("int32", 0), IntImm("int32", extent))


def unknown(stage: StageNode, known: Known) -> Known:
    """What is known after a stage was moved: nothing of its iterators."""
    return {**known, **{(stage.id, axis): None for axis in stage.leaf}}


def forgotten(stage: int, known: Known) -> Known:
    """What is known after a stage got other axes."""
    return {key: found for key, found in known.items() if key[0] != stage}


def inferred(tree: ScheduleTree) -> Known:
    """The ranges of all iterators of a program.

    Raises:
        ScheduleError: if the program is illegal.
    """
    check_tree(tree)
    found: dict[tuple[int, int], Range | None] = {}
    for number, domain in infer_bound(tree, inline_stages(tree), Analyzer()).items():
        for axis in tree[number].leaf:
            first: PrimExpr = domain.region[axis].min if axis in domain.region else IntImm("int32", 0)
            found[number, axis] = Range.from_min_extent(first, domain.extents[axis])
    return found


_WORDS = {
    LoopKind.SERIAL: "for",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZE: "vectorize",
    LoopKind.UNROLL: "unroll",
    LoopKind.TENSORIZE: "tensorize",
}


def state_text(tree: ScheduleTree, delete_trivial_loop: bool = True, known: Known | None = None) -> str:
    """The loop nests of a program, with the ranges that it runs; `(None)` for those that aren't known.

    Args:
        tree: a schedule's tree.
        delete_trivial_loop: leave out loops that run once.
        known: the ranges, as far as they are known; if None they are inferred, which takes all decisions.

    Raises:
        ScheduleError: if ranges are to be inferred and the program is illegal.
    """
    ranges = inferred(tree) if known is None else known
    placeholders = ", ".join(stage.name for stage in tree.in_order() if stage.is_placeholder)
    lines = [f"Placeholder: {placeholders}"]
    for stage in tree.in_order():
        if not stage.is_placeholder and isinstance(stage.attach, Root):
            lines.extend(_stage_lines(tree, stage, ranges, "", delete_trivial_loop))
    return "\n".join(lines) + "\n"


def _stage_lines(tree: ScheduleTree, stage: StageNode, ranges: Known, indent: str, short: bool) -> Iterable[str]:
    names = iterator_names(stage)
    for axis in stage.leaf:
        unroll = dict(stage.mark(axis).pragmas).get("auto_unroll_max_step")
        if unroll:
            yield f"{indent}{stage.name} auto_unroll: {unroll}"
    for _, _, offset in stage.aligns:
        yield f"{indent}{stage.name} storage_offset: {offset}"
    for axis in stage.leaf:
        found = range_of(stage, axis, ranges)
        if found is None or not (short and is_const_int(found.extent, 1)):
            mark = stage.mark(axis)
            word = mark.thread.tag if mark.thread is not None else _WORDS[mark.kind]
            extent = "None" if found is None else f"{found.min},{found.extent}"
            yield f"{indent}{word} {names[axis]} ({extent})"
            indent += "  "
        for other in tree.attached_to(stage.id):
            if isinstance(other.attach, At) and other.attach.axis == axis:
                yield from _stage_lines(tree, other, ranges, indent, short)
    yield f"{indent}{stage.name} = ..."


def iterator_names(stage: StageNode) -> dict[int, str]:
    """The name of every axis: `i.0`, `i.1` for what i was split into, `i.0@j.0@` for what was fused.

    A dot stands for a split only, so names that TE made with dots (`i.c`, `k.outer`) have others: `i_c`, `k_o`.
    """
    names = {axis: _plain(stage.axes[axis].name) for axis in (*stage.spatial, *stage.reduction)}
    # in the order they were made: what is split or fused has its name by then
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            names.update({part: f"{names[relation.parent]}.{n}" for n, part in enumerate(relation.parts)})
        else:
            parts = [names[part] for part in relation.parts]
            names[relation.fused] = "".join(part if part.endswith("@") else f"{part}@" for part in parts)
    return names


def _plain(name: str) -> str:
    return name.replace(".", "_").replace("@", "_").replace("outer", "o").replace("inner", "i")


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
