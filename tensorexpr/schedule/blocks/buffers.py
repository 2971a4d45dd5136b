"""Buffers of a program: which one a primitive is about, and the program with another one in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import ScheduleError
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import PointerType, Var
from ...tir.stmt_functor import Renaming
from ...tir.storage_scope import SCOPE_KINDS, is_storage_scope
from .diagnostics import PrimitiveError
from .program import BlockProgram, realized

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


def stated_pointers(block: Block) -> dict[Var, Buffer]:
    """The buffers that a block states, by their pointers, which calls in it may take."""
    return {region.buffer.data: region.buffer for region in block.regions()}


def check_allocated(program: BlockProgram, buffer: Buffer, primitive: str, place: BlockRealize) -> None:
    """Refuse a buffer that the caller allocates.

    Raises:
        PrimitiveError: if it is a parameter's.
    """
    if any(buffer.data is given.data for given in program.func.buffer_map.values()):
        raise PrimitiveError(
            f"{primitive}: {buffer.name} is a parameter, which the caller allocates; use cache_read or cache_write to work on a copy", place
        )


def own_buffer(program: BlockProgram, realize: BlockRealize, index: int, primitive: str) -> Buffer:
    """The buffer of a number among those that a block writes, which the program allocates itself."""
    buffer = buffer_at(realize, WRITE, index, primitive)
    check_allocated(program, buffer, primitive, realize)
    return buffer


def exchanged(program: BlockProgram, old: Buffer, new: Buffer, view: Callable[[Buffer], Buffer] | None = None) -> BlockProgram:
    """The program with a buffer of the same layout in place of another one.

    Args:
        view: what becomes of the boxes of it that blocks name by T.match_buffer, where they change too.
    """
    made = {old: new}
    for node in (node for nodes in program.blocks.values() for node in nodes):  # outer blocks first: a box may be of a box
        for match in realized(node).block.match_buffers if view is not None else ():
            if view is not None and match.source.buffer in made:
                made[match.buffer] = view(match.buffer)
    pointers = {before.data: after.data for before, after in made.items()}
    return BlockProgram(program.func.with_body(Renaming(pointers, folding=False, buffers=made).apply(program.func.body)))


def check_scope(scope: str) -> None:
    """Refuse a scope that no machine has.

    Raises:
        ScheduleError: with those that there are.
    """
    if not is_storage_scope(scope):
        raise ScheduleError(f"no memory is called {scope!r}; known: {', '.join(SCOPE_KINDS)}, each also with a dot and a name behind it")


def in_scope(buffer: Buffer, scope: str) -> Buffer:
    """A buffer like another one in memory of some scope, which its name tells."""
    renamed = f"{buffer.name}_{scope.replace('.', '_')}"
    kind = buffer.data.type_annotation
    assert isinstance(kind, PointerType)
    data = Var(renamed, buffer.data.dtype, replace(kind, storage_scope=scope))
    return replace(buffer, data=data, name=renamed)
