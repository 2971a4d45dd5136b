"""Vectors that run over the end of a row.

`B.vload([0, 0], "int8x64")` of a compact (16, 4) buffer means its 64 elements in a row. Indices say that of a view with one
dimension, which such accesses are moved to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import DeclarationError
from ..tir.arithmetic import as_int
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, PrimExpr, Ramp
from ..tir.rewriting import Node, post_order_rewrite
from ..tir.stmt import BufferStore, DeclBuffer, Stmt


def with_flat_views(stmt: Stmt, buffers: Sequence[Buffer], name: str) -> Stmt:
    """`stmt` with every access that crosses rows of one of `buffers` through a view of one dimension.

    Raises:
        DeclarationError: if the buffer isn't declared compact, so that its rows needn't follow each other.
    """
    views: dict[Buffer, Buffer] = {}

    def rule(node: Node) -> Node | None:
        if not isinstance(node, (BufferLoad, BufferStore)) or node.buffer not in buffers or not _crosses(node):
            return None
        buffer = node.buffer
        if not _is_compact(buffer):
            raise DeclarationError(
                f"tensor intrinsic {name}: {node} takes more lanes than a row of {buffer.name} has, whose rows needn't follow each other; "
                "declare its strides compact, as numbers"
            )
        view = views.setdefault(buffer, _flat(buffer))
        return replace(node, buffer=view, indices=(_flat_index(buffer, node.indices),))

    result = post_order_rewrite(stmt, rule)
    for view in views.values():
        result = DeclBuffer(view, result)
    return result


def _crosses(node: BufferLoad | BufferStore) -> bool:
    last = node.indices[-1] if node.indices else None
    row = as_int(node.buffer.shape[-1]) if node.indices else None
    # 64 lanes from b[0, 0] of 16 rows of 4: they run on into the rows after it
    return len(node.indices) > 1 and row is not None and isinstance(last, Ramp) and as_int(last.stride) == 1 and last.lanes > row


def _row_major(buffer: Buffer) -> list[int]:
    strides = [1]
    for extent in reversed(buffer.shape[1:]):
        strides.insert(0, strides[0] * (as_int(extent) or 0))
    return strides


def _is_compact(buffer: Buffer) -> bool:
    if any(as_int(extent) is None for extent in buffer.shape):
        return False
    pairs = zip(buffer.strides, _row_major(buffer), buffer.shape, strict=True) if buffer.strides else ()
    # the stride of a dimension of one element is multiplied by 0 only, so it may be anything
    return all(as_int(stride) == wanted or as_int(extent) == 1 for stride, wanted, extent in pairs)


def _flat(buffer: Buffer) -> Buffer:
    size = _row_major(buffer)[0] * (as_int(buffer.shape[0]) or 0)
    return replace(buffer, shape=(IntImm("int32", size),), strides=(), name=f"{buffer.name}_flat")


def _flat_index(buffer: Buffer, indices: Sequence[PrimExpr]) -> PrimExpr:
    last = indices[-1]
    assert isinstance(last, Ramp)
    base = last.base
    for index, stride in zip(indices[:-1], _row_major(buffer)[:-1], strict=True):
        base = base + index * stride
    return Ramp(base, last.stride, last.lanes)
