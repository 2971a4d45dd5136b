"""A program as the auto-scheduler prints it: loops with their ranges, stages where they are computed.

Placeholder: A, B, C
parallel i.0@j.0@ (0,4)
  matmul auto_unroll: 16
  for i.1 (0,4)
    vectorize j.2 (0,8)
      matmul = ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..arith import Analyzer
from ..lower.phase0.infer_bound import infer_bound
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.domain import StageDomain
from ..schedule.legality import check_tree
from ..schedule.tree import At, LoopKind, Root, ScheduleTree, SplitRelation, StageNode
from ..tir.arithmetic import is_const_int

_WORDS = {
    LoopKind.SERIAL: "for",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZE: "vectorize",
    LoopKind.UNROLL: "unroll",
    LoopKind.TENSORIZE: "tensorize",
}


def state_text(tree: ScheduleTree, delete_trivial_loop: bool = True) -> str:
    """The loop nests of a program, with the ranges that it runs.

    Args:
        tree: a schedule's tree, all decisions made.
        delete_trivial_loop: leave out loops that run once.

    Raises:
        ScheduleError: if the program is illegal.
    """
    check_tree(tree)
    domains = infer_bound(tree, inline_stages(tree), Analyzer())
    placeholders = ", ".join(stage.name for stage in tree.in_order() if stage.is_placeholder)
    lines = [f"Placeholder: {placeholders}"]
    for stage in tree.in_order():
        if not stage.is_placeholder and isinstance(stage.attach, Root):
            lines.extend(_stage_lines(tree, stage, domains, "", delete_trivial_loop))
    return "\n".join(lines) + "\n"


def _stage_lines(tree: ScheduleTree, stage: StageNode, domains: Mapping[int, StageDomain], indent: str, short: bool) -> Iterator[str]:
    domain, names = domains[stage.id], iterator_names(stage)
    for axis in stage.leaf:
        unroll = dict(stage.mark(axis).pragmas).get("auto_unroll_max_step")
        if unroll:
            yield f"{indent}{stage.name} auto_unroll: {unroll}"
    for _, _, offset in stage.aligns:
        yield f"{indent}{stage.name} storage_offset: {offset}"
    first = {stage.axes[axis].var: domain.region[axis].min for axis in domain.region}
    for axis in stage.leaf:
        extent = domain.extents[axis]
        if not (short and is_const_int(extent, 1)):
            mark = stage.mark(axis)
            word = mark.thread.tag if mark.thread is not None else _WORDS[mark.kind]
            yield f"{indent}{word} {names[axis]} ({first.get(stage.axes[axis].var, 0)},{extent})"
            indent += "  "
        for other in tree.attached_to(stage.id):
            if isinstance(other.attach, At) and other.attach.axis == axis:
                yield from _stage_lines(tree, other, domains, indent, short)
    yield f"{indent}{stage.name} = ..."


def iterator_names(stage: StageNode) -> dict[int, str]:
    """The name of every axis: `i.0`, `i.1` for what i was split into, `i.0@j.0@` for what was fused."""
    names = {axis: stage.axes[axis].name for axis in (*stage.spatial, *stage.reduction)}
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            names.update({part: f"{names[relation.parent]}.{n}" for n, part in enumerate(relation.parts)})
        else:
            parts = [names[part] for part in relation.parts]
            names[relation.fused] = "".join(part if part.endswith("@") else f"{part}@" for part in parts)
    return names
