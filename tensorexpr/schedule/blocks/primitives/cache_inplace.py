"""Cache inplace: a block works on a copy of a buffer that it reads and writes: copied in before, copied back after.

for i in range(1)                  ->   for i in range(1)
    A: f(data)                              for ax0 in range(64)
                                                data_local: data_local[v0] = data[v0]
                                            A: f(data_local)
                                            for ax0 in range(64)
                                                data_local_1: data[v0] = data_local[v0]
"""

from __future__ import annotations

from ....arith.analyzer import Analyzer
from ....tir.buffer import Buffer, BufferRegion
from ....tir.stmt import Stmt, seq
from ..accesses import Redirection, odd_use, shifted
from ..buffers import region_at
from ..copying import Box, box_of, copy_nest, scoped_copy
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import BlockProgram, Node, block_at, fresh, realized
from ..scope import written


def cache_inplace(program: BlockProgram, name: str, index: int, storage_scope: str) -> tuple[BlockProgram, tuple[str, str]]:
    """The program with a copy around a block, and the names of the blocks that copy in and back."""
    node = program.block_node(name)
    region = region_at(realized(node), "read", index, "cache_inplace")
    buffer, block, scope = region.buffer, block_at(node), program.scope_of(node)
    if buffer not in written(block):
        raise PrimitiveError(
            f"cache_inplace: {name} reads {buffer.name} but doesn't write it; use cache_read for what is only read", node.stmt
        )
    outside = node.parent.stmt if node.parent is not None else scope.stmt
    here, whole = _hull(program, node, region, outside), _hull(program, node, region, scope.stmt)
    copy = scoped_copy(buffer, [r.extent for r in whole], f"{buffer.name}_{storage_scope}", storage_scope)
    by_pointer = _check_use(node, buffer, whole)
    first = program.fresh_block_name(copy.name)
    # the program hasn't the first name yet
    second = fresh(copy.name, {*program.blocks, first})
    loops = program.loops_above(node)
    into, _ = copy_nest(first, buffer, copy, here, whole, True, loops)
    back, _ = copy_nest(second, copy, buffer, here, whole, False, loops)
    to_index, to_region = shifted([r.min for r in whole])
    moved: Stmt = Redirection(buffer, copy, to_index, to_region, by_pointer)(node.stmt)
    made = program.replace(node.stmt, seq(into, moved, back))
    return made.allocated(block_at(scope).name_hint, copy), (first, second)


def _hull(program: BlockProgram, node: Node, region: BufferRegion, outside: Stmt) -> Box:
    """What the block reads and writes of a buffer, together."""
    boxes = [box_of(program, node, r, outside) for r in (*block_at(node).reads, *block_at(node).writes) if r.buffer is region.buffer]
    if any(not _same(boxes[0], box) for box in boxes):
        return BufferRegion.full_region(region.buffer).region
    return boxes[0]


def _same(a: Box, b: Box) -> bool:
    facts = Analyzer()
    return all(facts.known_equal(x.min, y.min) and facts.known_equal(x.extent, y.extent) for x, y in zip(a, b, strict=True))


def _check_use(node: Node, buffer: Buffer, whole: Box) -> bool:
    """True if the buffer is used through its pointer, which a copy of all of it can take the place of."""
    reason = odd_use(node.stmt, buffer)
    if reason is None:
        return False
    compact = not buffer.strides and _same(whole, BufferRegion.full_region(buffer).region)
    if reason != "through its pointer" or not compact:
        raise PrimitiveError(f"cache_inplace: {buffer.name} is used {reason}, and a copy of a part of it has another layout", node.stmt)
    return True


class CacheInplace(BlockPrimitive):
    """The instruction."""

    kind, method, output, attrs = "CacheInplace", "cache_inplace", "block", ("read_buffer_index", "storage_scope")
    change = staticmethod(cache_inplace)
