"""Hybrid functions that are computes: nests of loops over all of their outputs, which store each element once.

    for i in range(n):
        for j in range(m):
            c[i, j] = a[i] * b[j]          C = te.compute((n, m), lambda i, j: a[i] * b[j])

Their loops can be scheduled as those of any compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..arith.analyzer import Analyzer
from ..tir.arithmetic import is_const_int
from ..tir.expr import BufferLoad, IterVar, PrimExpr, ProducerLoad, Range
from ..tir.rewriting import Node, post_order_rewrite, walk
from ..tir.stmt import BufferStore, For, ForKind, Stmt, statements_of
from .operation import ComputeOp

if TYPE_CHECKING:
    from .hybrid_op import HybridOp


def as_compute(op: HybridOp) -> ComputeOp | None:
    """The compute that a hybrid function is; None for functions that do anything else."""
    loops, inner = _nest(op.statement)
    stores = statements_of(inner)
    places = tuple(loop.loop_var for loop in loops)
    values: list[PrimExpr] = []
    for output, store in zip(op.output_placeholders, stores, strict=False):
        # for i, j: out[i, j] = ...; out[j, i] or out[i + 1, j] isn't an element at the axes in their order
        if not isinstance(store, BufferStore) or store.buffer is not output or store.indices != places:
            return None
        values.append(store.value)
    if len(stores) != op.num_outputs or not _cover(op, loops) or any(_reads_outputs(op, value) for value in values):
        return None
    axes = tuple(IterVar(Range.from_min_extent(loop.min, loop.extent), loop.loop_var, IterVar.DATA_PAR) for loop in loops)
    return ComputeOp(op.name, op.tag, op.attrs, axes, (), tuple(_of_tensors(op, value) for value in values))


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """The serial loops around a statement, each with nothing but the next one in it."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind is ForKind.SERIAL:
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _cover(op: HybridOp, loops: Sequence[For]) -> bool:
    """True if the loops run over all elements of every output."""
    analyzer = Analyzer()
    for output in op.output_placeholders:
        if len(output.shape) != len(loops) or not all(is_const_int(loop.min, 0) for loop in loops):
            return False
        if not all(analyzer.known_equal(loop.extent, extent) for loop, extent in zip(loops, output.shape, strict=True)):
            return False
    return bool(loops)


def _reads_outputs(op: HybridOp, value: PrimExpr) -> bool:
    return any(isinstance(node, BufferLoad) and node.buffer not in op.input_placeholders for node in walk(value))


def _of_tensors(op: HybridOp, value: PrimExpr) -> PrimExpr:
    tensors = dict(zip(op.input_placeholders, op.inputs, strict=True))

    def rule(node: Node) -> Node | None:
        return ProducerLoad(tensors[node.buffer], node.indices) if isinstance(node, BufferLoad) else None

    return post_order_rewrite(value, rule)
