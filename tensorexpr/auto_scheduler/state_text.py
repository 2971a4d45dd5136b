"""A program as the auto-scheduler prints it: loops with their ranges, stages where they are computed.

Placeholder: A, B, C
parallel i.0@j.0@ (0,4)
  matmul auto_unroll: 16
  for i.1 (0,4)
    vectorize j.2 (0,8)
      matmul = ...
"""

from __future__ import annotations

from collections.abc import Iterator

from ..schedule.tree import At, LoopKind, Root, ScheduleTree, SplitRelation, StageNode
from ..tir.arithmetic import is_const_int
from .state_ranges import Known, inferred, range_of

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


def _stage_lines(tree: ScheduleTree, stage: StageNode, ranges: Known, indent: str, short: bool) -> Iterator[str]:
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
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            names.update({part: f"{names[relation.parent]}.{n}" for n, part in enumerate(relation.parts)})
        else:
            parts = [names[part] for part in relation.parts]
            names[relation.fused] = "".join(part if part.endswith("@") else f"{part}@" for part in parts)
    return names


def _plain(name: str) -> str:
    return name.replace(".", "_").replace("@", "_").replace("outer", "o").replace("inner", "i")
