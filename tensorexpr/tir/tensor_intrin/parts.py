"""Functions of blocks, in few words: what descriptions of tensor intrinsics are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..block import Block, BlockRealize
from ..buffer import Buffer, BufferRegion
from ..expr import IntImm, IterVar, PrimExpr, Range, Var
from ..function import PrimFunc
from ..stmt import BufferStore, For, ForKind, Stmt

TRUE = IntImm("bool", 1)


def function(buffers: Sequence[Buffer], reads: Sequence[Buffer], writes: Sequence[Buffer], body: Stmt) -> PrimFunc:
    """A function of buffers whose body is a block that reads and writes some of them, whole."""
    params = tuple(Var(buffer.name.lower(), "handle") for buffer in buffers)
    read, written = (tuple(map(BufferRegion.full_region, side)) for side in (reads, writes))
    block = Block((), read, written, "root", body)
    return PrimFunc(params, BlockRealize((), TRUE, block), buffer_map=dict(zip(params, buffers, strict=True)))


def over(
    axes: Sequence[tuple[str, int, int]],
    name: str,
    made: Callable[..., tuple[Buffer, tuple[PrimExpr, ...], PrimExpr]],
    reads: Callable[..., Sequence[tuple[Buffer, tuple[PrimExpr, ...]]]],
) -> Stmt:
    """Loops around a block that stores one element at each point of its axes.

    Args:
        axes: name, extent and kind (`IterVar.DATA_PAR`, ...) of each.
        name: that of the block.
        made: of the axes, the buffer, the indices and the value that is stored.
        reads: of the axes, what is read.
    """
    loops = [Var(axis, "int32") for axis, _, _ in axes]
    own = [IterVar(Range(0, extent), Var(f"v{axis}", "int32"), kind) for axis, extent, kind in axes]
    point = [axis.var for axis in own]
    buffer, indices, value = made(*point)
    stated = tuple(BufferRegion.from_point(other, place) for other, place in reads(*point))
    block = Block(tuple(own), stated, (BufferRegion.from_point(buffer, indices),), name, BufferStore(buffer, value, indices))
    body: Stmt = BlockRealize(tuple(loops), TRUE, block)
    for loop, (_, extent, _) in zip(reversed(loops), reversed(axes), strict=True):
        body = For(loop, IntImm("int32", 0), IntImm("int32", extent), ForKind.SERIAL, body)
    return body


def spatial(**extents: int) -> list[tuple[str, int, int]]:
    """Axes of data by their extents."""
    return [(name, extent, IterVar.DATA_PAR) for name, extent in extents.items()]


def reduced(**extents: int) -> list[tuple[str, int, int]]:
    """Axes of reduction by their extents."""
    return [(name, extent, IterVar.COMM_REDUCE) for name, extent in extents.items()]
