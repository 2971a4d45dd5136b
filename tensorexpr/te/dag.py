"""The graph of a computation: its operations in order, who reads whom."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from ..tir.expr import IntImm, PrimExpr
from .operation import Operation, PlaceholderOp
from .scan_op import ScanOp
from .tensor import Tensor


def topological_order(tensors: Sequence[Tensor]) -> tuple[Operation, ...]:
    """The operations that `tensors` are made of, producers first, in the order that a compute DAG prints them.

    That is the post-order from the operations that nothing reads. These come in the order of a topological sort
    which prefers what a depth first search from `tensors`, last ones first, discovers last. Placeholders that nothing
    reads are left out.
    """
    order = _sorted_by_discovery(tensors)
    readers = consumer_map(order)
    return post_dfs_order([op for op in order if not readers[op] and not isinstance(op, PlaceholderOp)])


def _sorted_by_discovery(tensors: Sequence[Tensor]) -> list[Operation]:
    rank = _discover(tensors)
    readers = consumer_map(rank)
    missing = {op: len(producers) for op, producers in producer_map(rank).items()}
    # no two operations share a rank, so the heap never compares operations themselves
    ready = [(-rank[op], op) for op in rank if not missing[op]]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        _, op = heapq.heappop(ready)
        order.append(op)
        for reader in readers[op]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (-rank[reader], reader))
    return order


def _discover(tensors: Sequence[Tensor]) -> dict[Operation, int]:
    rank: dict[Operation, int] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op not in rank:
            rank[op] = len(rank)
            stack.extend(tensor.op for tensor in op.input_tensors)
    return rank


def post_dfs_order(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """All operations that `ops` are made of, each after its inputs in order of first appearance: the stages of a te schedule."""
    done: dict[Operation, None] = {}
    # no recursion: a chain of a thousand operations is deeper than Python's stack
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(ops)]
    while stack:
        op, expanded = stack.pop()
        if expanded:
            done[op] = None
        elif op not in done:
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in reversed(op.input_tensors) if tensor.op not in done)
    return tuple(done)


def consumer_map(ops: Iterable[Operation]) -> dict[Operation, tuple[Operation, ...]]:
    """For each of `ops` those of them that read it, in the order of `ops`, each once."""
    readers: dict[Operation, dict[Operation, None]] = {op: {} for op in ops}
    for op in readers:
        for tensor in op.input_tensors:
            if tensor.op in readers:
                readers[tensor.op][op] = None
    return {op: tuple(found) for op, found in readers.items()}


def producer_map(ops: Iterable[Operation]) -> dict[Operation, tuple[Operation, ...]]:
    """For each of `ops` the operations it reads, in order of first appearance, each once."""
    return {op: tuple(dict.fromkeys(tensor.op for tensor in op.input_tensors)) for op in ops}


def given_placeholders(ops: Iterable[Operation]) -> tuple[PlaceholderOp, ...]:
    """Those of `ops`, a whole graph, that the caller gives arrays for: the placeholders but for states of scans."""
    listed = tuple(ops)
    states = {tensor.op for op in listed if isinstance(op, ScanOp) for tensor in op.state_placeholder}
    return tuple(op for op in listed if isinstance(op, PlaceholderOp) and op not in states)


def output_ops(ops: Sequence[Operation]) -> tuple[Operation, ...]:
    """Those of `ops` that no other one reads."""
    return tuple(op for op, readers in consumer_map(ops).items() if not readers)


def same_extents(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    """True if two shapes are the same expressions; numbers of different dtypes are."""
    return len(a) == len(b) and all(
        x is y or (isinstance(x, IntImm) and isinstance(y, IntImm) and x.value == y.value) for x, y in zip(a, b, strict=True)
    )
