"""The box of a buffer's elements that a statement touches, over all its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..tir.block import BlockRealize
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, PrimExpr, ProducerLoad, Range, Var
from ..tir.rewriting import Node, children
from ..tir.stmt import BufferStore, For, Stmt
from .index_analyzer import Analyzer
from .int_set import IntervalSet, as_interval, int_set_of, union

Domain = Mapping[Var, IntervalSet]


def domain_touched(stmt: Stmt, buffer: Buffer, consider_loads: bool = True, consider_stores: bool = True) -> list[Range]:
    """The ranges of the indices at which a statement reads or writes a buffer; empty if it doesn't.

    Args:
        stmt: the statement; variables of its loops vary, all others stay in the answer.
        buffer: the buffer.
        consider_loads: count what is read.
        consider_stores: count what is written.
    """
    analyzer = Analyzer()
    boxes: list[list[IntervalSet]] = []
    for access, domain in _accesses(stmt, {}):
        counts = consider_stores if isinstance(access, BufferStore) else consider_loads
        if counts and access.buffer is buffer:
            boxes.append([int_set_of(analyzer, index, domain) for index in access.indices])
    hulls = [union(analyzer, sets) for sets in zip(*boxes, strict=True)]
    return [Range.from_min_extent(hull.min_value, analyzer.simplify(hull.max_value - hull.min_value + 1)) for hull in hulls]


def _accesses(node: Node, domain: Domain) -> Iterator[tuple[BufferLoad | BufferStore, Domain]]:
    """Each access with the sets of the loop variables around it."""
    if isinstance(node, For):
        domain = {**domain, node.loop_var: as_interval(Range.from_min_extent(node.min, node.extent))}
    elif isinstance(node, BlockRealize):
        analyzer = Analyzer()
        axes = node.bindings()
        domain = {**domain, **{axis.var: int_set_of(analyzer, value, domain) for axis, value in axes}}
    if isinstance(node, (BufferLoad, BufferStore)):
        yield node, domain
    for child in children(node):
        if isinstance(child, (PrimExpr, Stmt)) and not isinstance(child, ProducerLoad):
            yield from _accesses(child, domain)
