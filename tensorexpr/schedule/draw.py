"""A schedule as text: the loop nests with their extents, attached stages where they are computed."""

from __future__ import annotations

from ..arith.analyzer import Analyzer
from ..te.scan_op import ScanOp
from .block_lines import block_lines
from .domain import StageDomain, full_region, stage_domain
from .memory_words import loop_words, stage_words
from .tree import At, Inline, LoopKind, Root, ScheduleTree, StageNode


def draw(tree: ScheduleTree) -> str:
    """The loop nests of a schedule, one line per loop, producers first.

    Extents are those of the whole stage; the part that an attached stage computes per visit is found when the
    schedule is lowered.
    """
    stages = tuple(tree.in_order())
    repacked = {s.source.op for s in stages if s.source is not None}
    given = [s for s in stages if s.is_placeholder and s.id not in tree.carried and s.origin not in repacked]
    inputs = ", ".join(f"{s.name} [{', '.join(map(str, s.origin.output_shape(0)))}]" for s in given)
    lines = [f"inputs: {inputs}"] if inputs else []
    if tree.by_blocks:
        return "\n".join([*lines, "loops by a trace of blocks:", *(f"  {line}" for line in block_lines(tree.by_blocks))])
    inlined = ", ".join(s.name for s in stages if isinstance(s.attach, Inline))
    if inlined:
        lines.append(f"inlined: {inlined}")
    for stage in stages:
        if not stage.is_placeholder and isinstance(stage.attach, Root):
            lines.extend(_draw_stage(tree, stage, ""))
    return "\n".join(lines)


def _draw_stage(tree: ScheduleTree, stage: StageNode, indent: str) -> list[str]:
    domain = stage_domain(stage, full_region(stage), Analyzer())
    shape = ", ".join(str(extent) for extent in stage.origin.output_shape(0))
    scope = f" in {stage.scope}" if stage.scope else ""
    lines = [f"{indent}{stage.name} [{shape}]{scope}{stage_words(stage)}"]
    if isinstance(stage.op, ScanOp):
        rows = stage.op.init[0].shape[0]
        lines.append(f"{indent}  {stage.name}[:{rows}] = {', '.join(tensor.name for tensor in stage.op.init)}")
    for axis in stage.leaf:
        indent += "  "
        lines.append(" ".join([indent + _draw_loop(stage, domain, axis), *loop_words(tree, stage, axis)]))
        for other in tree.attached_to(stage.id):
            if isinstance(other.attach, At) and other.attach.axis == axis:
                lines.extend(_draw_stage(tree, other, indent + "  "))
    if not stage.has_loops:
        return [*lines, f"{indent}  {stage.name} = extern({', '.join(t.name for t in stage.op.input_tensors)})"]
    if isinstance(stage.op, ScanOp):
        return lines
    operator = "+=" if len(stage.reduction) else "="
    lines.append(f"{indent}  {stage.name} {operator} ...")
    return lines


def _draw_loop(stage: StageNode, domain: StageDomain, axis: int) -> str:
    mark = stage.mark(axis)
    words = ["reduce" if stage.is_reduction(axis) else "for", stage.axes[axis].name, f"(0, {domain.extents[axis]})"]
    if mark.kind is not LoopKind.SERIAL:
        words.append(mark.thread.tag if mark.thread else mark.kind.value)
    words.extend(f"{key}={value}" for key, value in mark.pragmas)
    return " ".join(words)
