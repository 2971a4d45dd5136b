"""Selects that protect a read become if_then_else, of which only the arm that is wanted is evaluated.

    select(i < 8, A[i], 0)   ->   if_then_else(i < 8, A[i], 0)     where i goes on to 10

A `Select` evaluates both arms. That is faster, and fine where every read is inside its tensor whatever the condition says.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..arith.analyzer import Analyzer
from ..tir.expr import Call, IntImm, IterVar, PrimExpr, ProducerLoad, Reduce, Select
from ..tir.rewriting import Node, post_order_rewrite, walk


def lazy_selects(axes: Sequence[IterVar], bodies: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
    """The bodies of a definition over `axes` without selects that could read out of bounds."""
    selects = [node for body in bodies for node in walk(body) if isinstance(node, Select)]
    if not any(_reads(arm) for node in selects for arm in (node.true_value, node.false_value)):
        return bodies
    reduced = [axis for body in bodies if isinstance(body, Reduce) for axis in body.axis]
    analyzer = Analyzer({axis.var: axis.dom for axis in (*axes, *reduced) if axis.dom is not None})

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Select) or all(_inside(load, analyzer) for load in (*_reads(node.true_value), *_reads(node.false_value))):
            return None
        # a select evaluates both arms, this only the one that is chosen
        return Call(node.dtype, "tir.if_then_else", (node.condition, node.true_value, node.false_value))

    return tuple(post_order_rewrite(body, rule) for body in bodies)


def _reads(arm: PrimExpr) -> list[ProducerLoad]:
    return [node for node in walk(arm) if isinstance(node, ProducerLoad)]


def _inside(load: ProducerLoad, analyzer: Analyzer) -> bool:
    """True if every index is known to be in its extent."""
    for index, extent in zip(load.indices, load.producer.shape, strict=True):
        bound = analyzer.const_int_bound(index)
        if bound.min_value < 0:
            return False
        if not (isinstance(extent, IntImm) and bound.max_value < extent.value) and not analyzer.known_less(index, extent):
            return False
    return True
