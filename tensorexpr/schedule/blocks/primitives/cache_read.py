"""Cache read: what blocks read of a buffer is copied first, and read from the copy.

for i, j in T.grid(8, 8)           ->   for ax0, ax1 in T.grid(8, 8)
    C: C[vi, vj] = A[vi, vj] + 1            A_local: A_local[v0, v1] = A[v0, v1]
                                        for i, j in T.grid(8, 8)
                                            C: C[vi, vj] = A_local[vi, vj] + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith.analyzer import Analyzer
from ....tir.buffer import Buffer, BufferRegion
from ....tir.stmt import Stmt
from ..accesses import check_plain_use, redirected
from ..buffers import region_at
from ..copying import Box, Place, before_first, box_of, copy_nest, cut, ranges_around, scope_start, scoped_copy
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of
from ..program import BlockProgram, Node, block_at, realized
from ..scope import read, written


def cache_read(program: BlockProgram, name: str, index: int, storage_scope: str, consumers: Sequence[str] = ()) -> tuple[BlockProgram, str]:
    """The program with a copy of a buffer before those that read it, and the copy's name.

    Args:
        index: of the region among those that the block reads.
        consumers: the blocks that read the copy; all if there are none.
    """
    node = program.block_node(name)
    buffer = region_at(realized(node), "read", index, "cache_read").buffer
    scope = program.scope_of(node)
    siblings = program.child_blocks(scope)
    writer = sole_writer(siblings, buffer, "cache_read")
    readers = _readers(siblings, buffer, consumers, node)
    _check_order(siblings, writer, readers, buffer)
    for reader in readers:
        check_plain_use(reader.stmt, buffer, "cache_read", reader.stmt)
    if writer is None:
        place = scope_start(scope)
        # nobody in the scope writes it, so one copy at the scope's start serves all readers
        here = whole = _box_in_scope(scope, buffer)
    else:
        region = next(region for region in block_at(writer).writes if region.buffer is buffer)
        place = before_first(writer, readers)
        here, whole = box_of(program, writer, region, place.within), box_of(program, writer, region, scope.stmt)
    copy = scoped_copy(buffer, [r.extent for r in whole], f"{buffer.name}_{storage_scope}", storage_scope)
    return _with_copy(program, scope, place, (buffer, copy), (here, whole), readers)


def _with_copy(
    program: BlockProgram, scope: Node, place: Place, buffers: tuple[Buffer, Buffer], boxes: tuple[Box, Box], readers: Sequence[Node]
) -> tuple[BlockProgram, str]:
    (buffer, copy), (here, whole) = buffers, boxes
    name = program.fresh_block_name(copy.name)
    nest, _ = copy_nest(name, buffer, copy, here, whole, True, place.loops(program))
    changes: dict[Stmt, Stmt | None] = {reader.stmt: redirected(reader.stmt, buffer, copy, [r.min for r in whole]) for reader in readers}
    made = place.put(program, nest).replaced(changes)
    return made.allocated(block_at(scope).name_hint, copy), name


def _box_in_scope(scope: Node, buffer: Buffer) -> Box:
    """What a scope says that it reads of a buffer; all of it if it says nothing."""
    block = block_at(scope)
    stated = next((region for region in block.reads if region.buffer is buffer), None)
    if stated is None:
        return BufferRegion.full_region(buffer).region
    axes = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    facts = Analyzer({**ranges_around(scope), **axes})
    return tuple(cut(r.min, facts.simplify(r.min + r.extent), extent, facts) for r, extent in zip(stated.region, buffer.shape, strict=True))


def _readers(siblings: Sequence[Node], buffer: Buffer, names: Sequence[str], node: Node) -> list[Node]:
    found = [sibling for sibling in siblings if buffer in read(block_at(sibling))]
    if not names:
        return found
    chosen = [reader for reader in found if block_at(reader).name_hint in names]
    missing = set(names) - {block_at(reader).name_hint for reader in chosen}
    if missing:
        there = ", ".join(block_at(reader).name_hint for reader in found)
        raise PrimitiveError(
            f"cache_read: {min(missing)} doesn't read {buffer.name}, so it can't read a copy of it; those that do: {there}", node.stmt
        )
    return chosen


def _check_order(siblings: Sequence[Node], writer: Node | None, readers: Sequence[Node], buffer: Buffer) -> None:
    """What is copied must be there: readers stand behind the writer, and don't write."""
    place = {id(sibling.stmt): number for number, sibling in enumerate(siblings)}
    for reader in readers:
        if writer is not None and reader.stmt is writer.stmt:
            block = block_at(reader).name_hint
            raise PrimitiveError(f"cache_read: {block} reads and writes {buffer.name}; use cache_inplace to work on a copy", reader.stmt)
        if writer is not None and place[id(reader.stmt)] < place[id(writer.stmt)]:
            raise PrimitiveError(
                f"cache_read: {block_at(reader).name_hint} reads {buffer.name} before {block_at(writer).name_hint} writes it; "
                "choose consumer_blocks behind the writer",
                reader.stmt,
            )


def sole_writer(siblings: Sequence[Node], buffer: Buffer, primitive: str) -> Node | None:
    """The one block that writes a buffer; None if it comes from outside.

    Raises:
        PrimitiveError: if there are several.
    """
    writers = [sibling for sibling in siblings if buffer in written(block_at(sibling))]
    if len(writers) > 1:
        names = ", ".join(block_at(writer).name_hint for writer in writers)
        raise PrimitiveError(
            f"{primitive}: {buffer.name} is written by {len(writers)} blocks ({names}); it must be written by one block alone",
            writers[1].stmt,
        )
    return writers[0] if writers else None


def consumer_names(state: State, value: Any, primitive: str) -> list[str]:
    """The names of blocks that are given as inputs."""
    return [block_of(state, consumer, primitive).name for consumer in value]


class CacheRead(Primitive):
    """The instruction."""

    kind, method, output = "CacheRead", "cache_read", "block"
    inputs, attrs = ("block", "consumer_blocks"), ("read_buffer_index", "storage_scope")
    _caching = staticmethod(cache_read)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        consumers = consumer_names(state, inputs[1], self.method) if len(inputs) > 1 else []
        program, name = self._caching(state.program_of(ref), ref.name, attrs[0], attrs[1], consumers)
        return Applied(state.updated(ref.func, program), (BlockRef(ref.func, name),))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        """The block, the numbers and names, and the consumers if some were chosen."""
        shown = [("block", inputs[0]), *zip(self.attrs, attrs, strict=True)]
        return [*shown, *([("consumer_blocks", inputs[1])] if len(inputs) > 1 and inputs[1] else [])]
