"""Buffers of a program: which one a primitive is about, and the program with another one in its place."""

from __future__ import annotations

from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.stmt_functor import Renaming
from .diagnostics import PrimitiveError
from .program import BlockProgram

READ, WRITE = "read", "write"


def regions_of(block: Block, side: str) -> tuple[BufferRegion, ...]:
    """What a block says it reads or writes."""
    return block.reads if side == READ else block.writes


def region_at(realize: BlockRealize, side: str, index: object, primitive: str) -> BufferRegion:
    """The region of a number among what a block reads or writes.

    Raises:
        PrimitiveError: if there is none of that number.
    """
    regions = regions_of(realize.block, side)
    if type(index) is not int or not 0 <= index < len(regions):
        names = ", ".join(f"{number}: {region.buffer.name}" for number, region in enumerate(regions)) or "none"
        raise PrimitiveError(f"{primitive}: {realize.block.name_hint} {side}s no buffer number {index!r}; it {side}s {names}", realize)
    return regions[index]


def buffer_at(realize: BlockRealize, side: str, index: int, primitive: str) -> Buffer:
    """The buffer of a number among what a block reads or writes.

    Raises:
        PrimitiveError: if there are not so many.
    """
    return region_at(realize, side, index, primitive).buffer


def check_allocated(program: BlockProgram, buffer: Buffer, primitive: str, place: BlockRealize) -> None:
    """Refuse a buffer that the caller allocates.

    Raises:
        PrimitiveError: if it is a parameter's.
    """
    if any(buffer.data is given.data for given in program.func.buffer_map.values()):
        raise PrimitiveError(
            f"{primitive}: {buffer.name} is a parameter, which the caller allocates; use cache_read or cache_write to work on a copy", place
        )


def exchanged(program: BlockProgram, old: Buffer, new: Buffer) -> BlockProgram:
    """The program with a buffer of the same layout in place of another one, views of it included."""
    body = Renaming({old.data: new.data}, folding=False, buffers={old: new}).apply(program.func.body)
    return BlockProgram(program.func.with_body(body))
