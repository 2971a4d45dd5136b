"""Replace every read of an inlined stage by that stage's expression."""

from __future__ import annotations

from collections.abc import Mapping

from ...schedule.tree import Inline, ScheduleTree, StageNode
from ...te.scan_op import ScanOp
from ...tir.expr import PrimExpr, ProducerLoad
from ...tir.rewriting import Node, post_order_rewrite, substitute

Bodies = Mapping[int, tuple[PrimExpr, ...]]


def _bodies(tree: ScheduleTree, stage: StageNode) -> tuple[PrimExpr, ...]:
    """What the outputs are; for a scan the elements of init, then those of update."""
    if isinstance(stage.op, ScanOp):
        return tree.reads(stage)
    return stage.compute.body if stage.has_loops else ()


def inline_stages(tree: ScheduleTree) -> Bodies:
    """The bodies of all stages that are computed, by stage, without a read of an inlined stage.

    Each level of a chain of inlined stages is expanded once per distinct read, so a chain costs its length.
    """
    expanded: dict[ProducerLoad, PrimExpr] = {}

    def expand(load: ProducerLoad, producer: StageNode) -> PrimExpr:
        found = expanded.get(load)
        if found is None:
            op = producer.compute
            index = getattr(load.producer, "value_index", 0)
            body = substitute(op.body[index], {axis.var: i for axis, i in zip(op.axis, load.indices, strict=True)})
            found = expanded[load] = post_order_rewrite(body, rule)
        return found

    def rule(node: Node) -> Node | None:
        if not isinstance(node, ProducerLoad):
            return None
        producer = tree.producer(node)
        return expand(node, producer) if isinstance(producer.attach, Inline) else None

    return {
        stage.id: tuple(post_order_rewrite(body, rule) for body in _bodies(tree, stage))
        for stage in tree.in_order()
        if not stage.is_placeholder and not isinstance(stage.attach, Inline)
    }
