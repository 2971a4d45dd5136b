"""Statements that speak of tensors, as `ScheduleOps` gives them, and back to statements over buffers.

    T.realize(B[0:8], "global")            ProducerRealize
        for i in range(8):
            B[i] = A[i] * 2                ProducerStore, ProducerLoad

What a statement takes the address of (externs, views) stays a buffer there, and says once whose: `BOUND`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, PrimExpr, ProducerLoad, Range, Var
from ..tir.rewriting import Node, children, post_order_rewrite, walk
from ..tir.stmt import Allocate, AttrStmt, BufferBind, BufferRealize, BufferStore, ProducerRealize, ProducerStore, Stmt
from .tensor import Tensor

BOUND = "buffer_bind_scope"
"""The attribute whose node is (buffer, tensor): within it the tensor lives in that buffer."""
STORAGE = "realize_storage"
"""The attribute whose node is what the schedule says about the storage that is realized below it."""
_ZERO, _TRUE = IntImm("int32", 0), IntImm("bool", 1)


def with_tensors(stmt: Stmt, tensors: Mapping[Buffer, Tensor], realized: Sequence[Tensor]) -> Stmt:
    """`stmt` with tensors in place of the buffers that they live in, and the whole of the `realized` ones around it."""
    addressed = _addressed(stmt)
    allocated = {buffer.data: buffer for buffer in tensors if buffer.data not in addressed}
    free = {buffer: tensor for buffer, tensor in tensors.items() if buffer not in addressed and buffer.data not in addressed}

    def rule(node: Node) -> Node | None:
        match node:
            case BufferLoad(buffer=buffer, indices=indices) if buffer in free:
                return ProducerLoad(free[buffer], indices)
            case BufferStore(buffer=buffer, value=value, indices=indices) if buffer in free:
                return ProducerStore(free[buffer], value, indices)
            case BufferRealize(buffer=buffer, bounds=bounds, condition=condition, body=body, annotations=storage) if buffer in free:
                made = ProducerRealize(free[buffer], bounds, condition, body, buffer.scope())
                return AttrStmt(storage, STORAGE, _ZERO, made) if storage else made
            case Allocate(buffer_var=memory, body=body) if memory in allocated:
                buffer = allocated[memory]
                return ProducerRealize(free[buffer], _whole(buffer.shape), _TRUE, body, buffer.scope())
        return None

    stmt = post_order_rewrite(stmt, rule)
    # wrapped from the inside, so that the first one is outermost
    for tensor in reversed([tensor for tensor in realized if tensor in free.values()]):
        stmt = ProducerRealize(tensor, _whole(tensor.shape), _TRUE, stmt, "global")
    inside = {node.buffer for node in walk(stmt) if isinstance(node, BufferRealize)}
    for buffer, tensor in tensors.items():
        if buffer not in free and buffer not in inside:
            stmt = AttrStmt((buffer, tensor), BOUND, _ZERO, stmt)
    return stmt


def _whole(shape: Sequence[PrimExpr]) -> tuple[Range, ...]:
    return tuple(Range.from_min_extent(IntImm(extent.dtype, 0), extent) for extent in shape)


def bound_tensors(stmt: Stmt) -> tuple[dict[Tensor, Buffer], Stmt]:
    """The buffers that a statement of `with_tensors` says its tensors live in, and the statement within that."""
    found: dict[Tensor, Buffer] = {}
    while isinstance(stmt, AttrStmt) and stmt.attr_key == BOUND:
        buffer, tensor = stmt.node
        found[tensor], stmt = buffer, stmt.body
    return found, stmt


def realized(stmt: Stmt) -> set[Tensor]:
    """The tensors that a statement makes storage for."""
    return {node.producer for node in walk(stmt) if isinstance(node, ProducerRealize) and isinstance(node.producer, Tensor)}


def with_buffers(stmt: Stmt, buffers: Mapping[Tensor, Buffer], given: Sequence[Tensor]) -> Stmt:
    """`stmt` with the buffers that tensors live in; the storage of the `given` ones is there already."""

    def rule(node: Node) -> Node | None:
        match node:
            case ProducerLoad(producer=tensor, indices=indices) if tensor in buffers:
                return BufferLoad(buffers[cast(Tensor, tensor)], indices)
            case ProducerStore(producer=tensor, value=value, indices=indices) if tensor in buffers:
                return BufferStore(buffers[cast(Tensor, tensor)], value, indices)
            case AttrStmt(node=storage, attr_key=key, body=BufferRealize() as inner) if key == STORAGE:
                return BufferRealize(inner.buffer, inner.bounds, inner.condition, inner.body, storage)
            case AttrStmt(attr_key=key, body=body) if key == STORAGE:
                return body
            case ProducerRealize(producer=tensor, bounds=bounds, condition=condition, body=body) if tensor in buffers:
                owner = cast(Tensor, tensor)
                return body if owner in given else BufferRealize(buffers[owner], bounds, condition, body)
        return None

    return post_order_rewrite(stmt, rule)


def mentioned(stmt: Stmt) -> dict[Tensor, str]:
    """The tensors of a statement, with the storage scope of each."""
    found: dict[Tensor, str] = {}
    for node in walk(stmt):
        if isinstance(node, (ProducerLoad, ProducerStore)) and isinstance(node.producer, Tensor):
            found.setdefault(node.producer, "global")
        elif isinstance(node, ProducerRealize) and isinstance(node.producer, Tensor):
            found[node.producer] = node.storage_scope or "global"
    return found


def _addressed(stmt: Stmt) -> set[Buffer | Var]:
    """What a statement knows by its address: pointers, what views are of, what attributes are about."""
    found: set[Buffer | Var] = set()
    for node in walk(stmt):
        if not isinstance(node, Allocate):  # which names its memory without passing it on
            found.update(child for child in children(node) if isinstance(child, Var) and child.dtype == "handle")
        if isinstance(node, BufferBind):
            found.add(node.source.buffer)
        elif isinstance(node, AttrStmt) and isinstance(node.node, (Buffer, Var)):
            found.add(node.node)
    return found
