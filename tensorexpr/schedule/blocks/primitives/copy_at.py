"""Read at and write at: a copy of what a block uses within a loop, made whole by one block at that loop.

for i_0 in range(8)                       ->   for i_0 in range(8)
    for i_1, j in T.grid(16, 64)                   A_shared: for ax0, ax1 in T.grid(16, 64)
        B: B[vi, vj] = A[vi, vj] + 1                   A_shared[v0 * 16 + ax0, ax1] = A[v0 * 16 + ax0, ax1]
                                                   for i_1, j in T.grid(16, 64)
                                                       B: B[vi, vj] = A_shared[vi, vj] + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith.analyzer import Analyzer
from ....errors import ScheduleError
from ....tir.arithmetic import as_int, const
from ....tir.attrs import FrozenMap
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer, BufferRegion
from ....tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import substitute, variables
from ....tir.stmt import BufferStore, For, SeqStmt, Stmt, seq, statements_of
from ..accesses import check_plain_use, redirected
from ..bindings import TRUE
from ..buffers import region_at
from ..copying import Box, box_of, ranges_around, scoped_copy
from ..coverage import shares
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of, loop_of
from ..nests import looped
from ..program import BlockProgram, Node, block_at, realized
from ..scope import loops_with, read, written
from .cache_read import sole_writer
from .cache_write import check_written_alone

AUTO_COPY = "auto_copy"


def copy_at(program: BlockProgram, var: Var, name: str, index: int, storage_scope: str, side: str) -> tuple[BlockProgram, str]:
    """The program with a copy at a loop of what a block reads or writes inside of it, and the copy's name."""
    primitive = f"{side}_at"
    node, loop = program.block_node(name), program.loop(var)
    region = region_at(realized(node), side, index, primitive)
    buffer, scope = region.buffer, program.scope_of(node)
    loops_with(program, name, var, primitive)
    inside = program.child_blocks(program.loop_node(var))
    readers = [below for below in inside if buffer in read(block_at(below))]
    writers = [below for below in inside if buffer in written(block_at(below))]
    if side == "write":
        sole_writer(program.child_blocks(scope), buffer, primitive)
        check_written_alone(program, node, region, primitive)
    users, others = (readers, writers) if side == "read" else (writers, readers)
    copy = scoped_copy(buffer, buffer.shape, f"{buffer.name}_{storage_scope}", storage_scope)
    around = [*program.loops_above(program.loop_node(var)), loop]
    # Threads that share the copy each use a part of it, so the box that is copied spans them all.
    together = [above for above in around if shares(above, copy, virtual=True)]
    here = _hull(program, users, buffer, side, loop, node, together)
    _check_box(here, buffer, node, primitive)
    for user in users:
        check_plain_use(user.stmt, buffer, primitive, user.stmt)
    made_name = program.fresh_block_name(copy.name)
    source, target = (buffer, copy) if side == "read" else (copy, buffer)
    block = _copy(made_name, source, target, here, around)
    # In front of the first reader, or behind the last writer.
    top = _statement_of(program, loop, users[0] if side == "read" else users[-1])
    _check_between(program, loop, top, others, buffer, side, node)
    zero = [const(0, extent.dtype) for extent in buffer.shape]  # the copy has the whole shape, so that indices stay; lowering compacts it
    changes: dict[Stmt, Stmt | None] = {user.stmt: redirected(user.stmt, buffer, copy, zero) for user in users}
    made = program.replace(top, seq(block, top) if side == "read" else seq(top, block)).replaced(changes)
    return made.allocated(block_at(scope).name_hint, copy), made_name


def _hull(program: BlockProgram, users: Sequence[Node], buffer: Buffer, side: str, loop: For, node: Node, together: Sequence[For]) -> Box:
    """What the blocks in the loop use of a buffer, which must be one box."""
    boxes = [
        box_of(program, user, region, loop, together)
        for user in users
        for region in (block_at(user).reads if side == "read" else block_at(user).writes)
        if region.buffer is buffer
    ]
    facts = Analyzer()
    for box in boxes[1:]:
        for a, b in zip(boxes[0], box, strict=True):
            if not (facts.known_equal(a.min, b.min) and facts.known_equal(a.extent, b.extent)):
                raise PrimitiveError(f"{side}_at: blocks in the loop {side} different parts of {buffer.name}; use cache_{side}", node.stmt)
    return boxes[0]


def _check_box(box: Box, buffer: Buffer, node: Node, primitive: str) -> None:
    facts = Analyzer(ranges_around(node))
    for r, extent in zip(box, buffer.shape, strict=True):
        if as_int(r.extent) is None or not facts.known_nonnegative(r.min) or not facts.known_less_equal(r.min + r.extent, extent):
            raise PrimitiveError(
                f"{primitive}: the part of {buffer.name} from {r.min} of extent {r.extent} may not be inside of it (0 to {extent}); "
                "split the loop by a factor of its extent",
                node.stmt,
            )


def _statement_of(program: BlockProgram, loop: For, user: Node) -> Stmt:
    """The statement directly in the loop that a block is in."""
    below = user
    for above in user.ancestors():
        if above.stmt is loop or (above.parent is not None and above.parent.stmt is loop and isinstance(above.stmt, SeqStmt)):
            return below.stmt
        below = above
    return below.stmt


def _check_between(program: BlockProgram, loop: For, top: Stmt, others: Sequence[Node], buffer: Buffer, side: str, node: Node) -> None:
    """Nothing writes the buffer after it was copied, or reads it before it is copied back."""
    order = statements_of(loop.body)
    place = next(number for number, stmt in enumerate(order) if stmt is top)
    for other in others:
        at = next(number for number, stmt in enumerate(order) if stmt is _statement_of(program, loop, other))
        # a reduction reads its own result, which is in the copy as well
        if side == "write" and block_at(other).name_hint == block_at(node).name_hint:
            continue
        if (side == "read" and at >= place) or (side == "write" and at <= place):
            what = "written behind the copy" if side == "read" else "read before it is copied back"
            raise PrimitiveError(f"{side}_at: {buffer.name} is {what}, by {block_at(other).name_hint}; use cache_{side}", other.stmt)


def _copy(name: str, source: Buffer, target: Buffer, here: Box, around: Sequence[For]) -> Stmt:
    # Only loops that move the box become axes of the copy.
    loops = list(dict.fromkeys(loop for r in here for loop in around if loop.loop_var in variables(r.min)))
    own = [IterVar(Range.from_min_extent(loop.min, loop.extent), Var(f"v{place}", loop.loop_var.dtype)) for place, loop in enumerate(loops)]
    values: dict[Var, PrimExpr] = {loop.loop_var: axis.var for loop, axis in zip(loops, own, strict=True)}
    box = tuple(Range.from_min_extent(substitute(r.min, values), r.extent) for r in here)
    ax = [Var(f"ax{place}", r.extent.dtype) for place, r in enumerate(box)]
    at = tuple(r.min + var for r, var in zip(box, ax, strict=True))
    body = looped(ax, [r.extent for r in box], BufferStore(target, BufferLoad(source, at), at))
    regions = (BufferRegion(source, box),), (BufferRegion(target, box),)
    block = Block(tuple(own), *regions, name, body, annotations=FrozenMap({AUTO_COPY: 1}))
    return BlockRealize(tuple(loop.loop_var for loop in loops), TRUE, block)


class ReadAt(Primitive):
    """The instruction."""

    kind, method, output = "ReadAt", "read_at", "block"
    inputs, attrs = ("loop", "block"), ("read_buffer_index", "storage_scope")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        return _applied(state, inputs, attrs, "read")


class WriteAt(Primitive):
    """The instruction."""

    kind, method, output = "WriteAt", "write_at", "block"
    inputs, attrs = ("loop", "block"), ("write_buffer_index", "storage_scope")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        return _applied(state, inputs, attrs, "write")


def _applied(state: State, inputs: Sequence[Any], attrs: Sequence[Any], side: str) -> Applied:
    loop, block = loop_of(inputs[0], f"{side}_at"), block_of(state, inputs[1], f"{side}_at")
    if loop.func != block.func:
        raise ScheduleError(f"{side}_at: the loop is of {loop.func}, the block of {block.func}")
    program, name = copy_at(state.program_of(block), loop.var, block.name, attrs[0], attrs[1], side)
    return Applied(state.updated(block.func, program), (BlockRef(block.func, name),))
