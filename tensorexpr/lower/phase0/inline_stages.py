"""Replace every read of an inlined stage by that stage's expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...schedule.tree import Inline, ScheduleTree, StageNode
from ...te.scan_op import ScanOp
from ...tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ...tir.rewriting import Node, post_order_rewrite, walk

Bodies = Mapping[int, tuple[PrimExpr, ...]]


def _bodies(tree: ScheduleTree, stage: StageNode) -> tuple[PrimExpr, ...]:
    """What the outputs are; for a scan the elements of init, then those of update."""
    if isinstance(stage.op, ScanOp):
        return tree.reads(stage)
    return stage.compute.body if stage.has_loops else ()


def _inlined(body: PrimExpr, rule: Callable[[Node], Node | None]) -> PrimExpr:
    """A body without reads of inlined stages, nor any in the ranges of what it reduces over."""
    made = post_order_rewrite(body, rule)
    if not isinstance(made, Reduce) or not any(reads_of_range(axis) for axis in made.axis):
        return made
    axes = []
    for axis in made.axis:
        assert axis.dom is not None
        axes.append(replace(axis, dom=Range.from_min_extent(*(post_order_rewrite(end, rule) for end in (axis.dom.min, axis.dom.extent)))))
    return replace(made, axis=tuple(axes))


def reads_of_range(axis: IterVar) -> list[ProducerLoad]:
    """The elements that the range of an axis depends on."""
    if axis.dom is None:
        return []
    ends = (end for end in (axis.dom.min, axis.dom.extent) if not isinstance(end, (IntImm, Var)))
    return [node for end in ends for node in walk(end) if isinstance(node, ProducerLoad)]


def inline_stages(tree: ScheduleTree) -> Bodies:
    """The bodies of all stages that are computed, by stage, without a read of an inlined stage.

    Each level of a chain of inlined stages is expanded once per distinct read, so a chain costs its length.
    """
    rule = _expansion(tree)
    return {
        stage.id: tuple(_inlined(body, rule) for body in _bodies(tree, stage))
        for stage in tree.in_order()
        if not stage.is_placeholder and not isinstance(stage.attach, Inline)
    }


def inlined_bodies(tree: ScheduleTree, stage: StageNode) -> tuple[PrimExpr, ...]:
    """The bodies of one stage as `inline_stages` has them, without those of all others."""
    rule = _expansion(tree)
    return tuple(_inlined(body, rule) for body in _bodies(tree, stage))


def _expansion(tree: ScheduleTree) -> Callable[[Node], Node | None]:
    """What a read of an inlined stage is replaced by."""
    expanded: dict[ProducerLoad, PrimExpr] = {}

    def expand(load: ProducerLoad, producer: StageNode) -> PrimExpr:
        found = expanded.get(load)
        if found is None:
            body = producer.compute.element(getattr(load.producer, "value_index", 0), load.indices)
            found = expanded[load] = post_order_rewrite(body, rule)
        return found

    def rule(node: Node) -> Node | None:
        if not isinstance(node, ProducerLoad):
            return None
        producer = tree.producer(node)
        return expand(node, producer) if isinstance(producer.attach, Inline) else None

    return rule
