"""What a schedule says about touching memory, in words: for the drawing of a schedule and for its explanation."""

from __future__ import annotations

from collections.abc import Iterator

from .axis_expression import as_python
from .tree import At, ScheduleTree, StageNode


def stage_words(stage: StageNode) -> str:
    """What follows a stage's name in the drawing."""
    words = []
    if stage.rolling_buffer:
        words.append("rolling")
    if stage.nontemporal:
        words.append("non-temporal")
    if stage.double_buffer:
        words.append("double buffered" if stage.double_buffer == 2 else f"{stage.double_buffer} buffers")
    words.extend(f"stride({stage.axes[axis].name}) % {factor} == {offset}" for axis, factor, offset in stage.aligns)
    if stage.store_predicate is not None:
        words.append(f"where {predicate_text(stage)}")
    return "".join(f" {word}" for word in words)


def loop_words(tree: ScheduleTree, stage: StageNode, axis: int) -> list[str]:
    """What follows a loop in the drawing."""
    return [f"prefetch={_tensor(tree, m.producer, m.output)}+{m.offset}" for m in stage.prefetches if m.axis == axis]


def predicate_text(stage: StageNode) -> str:
    """The store predicate with the axes' own names."""
    return as_python(stage.store_predicate, [stage.axes[axis].name for axis in stage.spatial])


def memory_facts(tree: ScheduleTree, stage: StageNode) -> Iterator[str]:
    """Why what is said about memory may be done, one fact a line."""
    if stage.rolling_buffer and isinstance(stage.attach, At):
        target = tree[stage.attach.stage]
        name = target.axes[stage.attach.axis].name
        yield f"rolling buffer: {name} of {target.name} runs in order, so each iteration keeps what the next one reads again"
    if stage.store_predicate is not None:
        readers = ", ".join(s.name for s in tree.consumers(stage))
        reasons = [f"it holds for all that {readers} reads"] if readers else []
        reasons += ["what an output leaves out keeps the caller's values"] if stage.is_output else []
        yield f"stored where {predicate_text(stage)}: {'; '.join(reasons) or 'nobody reads it'}"
    for mark in stage.prefetches:
        name, tensor = stage.axes[mark.axis].name, _tensor(tree, mark.producer, mark.output)
        yield f"prefetch: {name} asks for what it reads of {tensor} {mark.offset} iterations later; a hint, which changes no value"
    if stage.nontemporal:
        yield "non-temporal stores: an output, which no other stage waits for, goes past the caches where its vectors are aligned"


def _tensor(tree: ScheduleTree, producer: int, output: int) -> str:
    stage = tree[producer]
    return stage.name if stage.origin.num_outputs == 1 else f"{stage.name}.v{output}"
