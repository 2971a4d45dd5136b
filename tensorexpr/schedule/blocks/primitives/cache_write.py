"""Cache write: a block writes a buffer of its own, which is copied to where it belongs.

for i, j in T.grid(8, 8)           ->   for i, j in T.grid(8, 8)
    C: C[vi, vj] = A[vi, vj] + 1            C: C_local[vi, vj] = A[vi, vj] + 1
                                        for ax0, ax1 in T.grid(8, 8)
                                            C_local: C[v0, v1] = C_local[v0, v1]
"""

from __future__ import annotations

from collections.abc import Sequence

from ....tir.buffer import Buffer, BufferRegion
from ....tir.stmt import Stmt
from ..accesses import check_plain_use, redirected
from ..buffers import region_at
from ..copying import before_first, box_of, copy_nest, covers, scope_end, scoped_copy
from ..diagnostics import PrimitiveError
from ..program import BlockProgram, Node, block_at, realized
from ..scope import read
from .cache_read import CacheRead, sole_writer


def cache_write(
    program: BlockProgram, name: str, index: int, storage_scope: str, consumers: Sequence[str] = ()
) -> tuple[BlockProgram, str]:
    """The program with a block that writes a copy, and the name of the block that copies it back.

    Args:
        index: of the region among those that the block writes.
        consumers: blocks that read the copy instead of the buffer.
    """
    node = program.block_node(name)
    region = region_at(realized(node), "write", index, "cache_write")
    buffer, scope = region.buffer, program.scope_of(node)
    siblings = program.child_blocks(scope)
    sole_writer(siblings, buffer, "cache_write")
    readers = [sibling for sibling in siblings if buffer in read(block_at(sibling))]
    check_written_alone(program, node, region, "cache_write")
    chosen = _chosen(readers, consumers, buffer, node)
    moved = [node, *chosen]
    for user in moved:
        check_plain_use(user.stmt, buffer, "cache_write", user.stmt)
    check_behind(siblings, node, readers, buffer, "cache_write")
    # they go on reading the buffer, so it is copied back before the first of them
    left = [reader for reader in readers if reader not in chosen]
    place = before_first(node, left) if left else scope_end(scope)
    here, whole = box_of(program, node, region, place.within), box_of(program, node, region, scope.stmt)
    copy = scoped_copy(buffer, [r.extent for r in whole], f"{buffer.name}_{storage_scope}", storage_scope)
    made_name = program.fresh_block_name(copy.name)
    nest, _ = copy_nest(made_name, copy, buffer, here, whole, False, place.loops(program))
    origin = [r.min for r in whole]
    changes: dict[Stmt, Stmt | None] = {user.stmt: redirected(user.stmt, buffer, copy, origin) for user in moved}
    made = place.put(program, nest).replaced(changes)
    return made.allocated(block_at(scope).name_hint, copy), made_name


def _chosen(readers: Sequence[Node], names: Sequence[str], buffer: Buffer, node: Node) -> list[Node]:
    missing = set(names) - {block_at(reader).name_hint for reader in readers}
    if missing:
        there = ", ".join(block_at(reader).name_hint for reader in readers) or "none"
        raise PrimitiveError(f"cache_write: {min(missing)} doesn't read {buffer.name}; consumer_blocks may be of: {there}", node.stmt)
    return [reader for reader in readers if block_at(reader).name_hint in names]


def check_behind(siblings: Sequence[Node], writer: Node, readers: Sequence[Node], buffer: Buffer, primitive: str) -> None:
    """Refuse a buffer that is read before it is written: the copy isn't there yet.

    Raises:
        PrimitiveError: with the reader.
    """
    place = {id(sibling.stmt): number for number, sibling in enumerate(siblings)}
    early = next((reader for reader in readers if place[id(reader.stmt)] < place[id(writer.stmt)]), None)
    if early is not None:
        raise PrimitiveError(
            f"{primitive}: {block_at(early).name_hint} reads {buffer.name} before {block_at(writer).name_hint} writes it", early.stmt
        )


def check_written_alone(program: BlockProgram, node: Node, region: BufferRegion, primitive: str) -> None:
    """Refuse a block that needs what was in its buffer before, or that leaves some of it as it was.

    Raises:
        PrimitiveError: with the reason.
    """
    block, buffer = block_at(node), region.buffer
    if buffer in read(block) and block.init is None:  # what has an init reads what that wrote
        raise PrimitiveError(
            f"{primitive}: {block.name_hint} reads {buffer.name}, which it writes, and a copy wouldn't have the values of before; "
            "use cache_inplace",
            node.stmt,
        )
    outlives = all(buffer not in block_at(above).alloc_buffers for above in [program.scope_of(node)])
    if (outlives or primitive == "reindex") and not covers(program, node, region):  # reindex copies all, other copies what is written
        harm = "which copying back would overwrite" if outlives else "and the copy would read what nobody wrote"
        raise PrimitiveError(f"{primitive}: {block.name_hint} may leave elements of {buffer.name} as they are, {harm}", node.stmt)


class CacheWrite(CacheRead):
    """The instruction."""

    kind, method, attrs = "CacheWrite", "cache_write", ("write_buffer_index", "storage_scope")
    _caching = staticmethod(cache_write)
