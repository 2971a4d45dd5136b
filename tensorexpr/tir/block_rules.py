"""What a block must keep besides the rules of all statements: its word on what it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from .block import Block, BlockRealize
from .buffer import Buffer
from .dtype import parse_dtype
from .expr import IntImm, Var
from .scopes import parts, uses
from .stmt import BufferBind, BufferStore, Stmt


def block_violations(stmt: Stmt, regions: bool = True) -> Iterator[str]:
    """Everything that is wrong with a block or its realization, one sentence each; with `regions` also what it leaves unsaid."""
    if isinstance(stmt, Block):
        yield from _axes(stmt)
        yield from _regions(stmt)
        if regions and (stmt.reads or stmt.writes or stmt.iter_vars):  # a block of nothing but buffers says nothing
            yield from _unstated(stmt)
    elif isinstance(stmt, BlockRealize):
        yield from _bindings(stmt)


def _axes(block: Block) -> Iterator[str]:
    if len({axis.var for axis in block.iter_vars}) != len(block.iter_vars):
        yield f"block {block.name_hint!r} has an axis twice"
    for axis in block.iter_vars:
        if not parse_dtype(axis.dtype).is_int:
            yield f"axis {axis.name} of block {block.name_hint!r} is {axis.dtype}, not an integer"
        elif axis.dom is not None and not axis.dom.min.dtype == axis.dom.extent.dtype == axis.dtype:
            bounds = f"{axis.dom.min.dtype}, {axis.dom.extent.dtype}"
            yield f"axis {axis.name} of block {block.name_hint!r} is {axis.dtype} over a range of {bounds}"


def _regions(block: Block) -> Iterator[str]:
    for region in block.regions():
        if len(region.region) != region.buffer.ndim:
            found, wanted = len(region.region), region.buffer.ndim
            yield f"block {block.name_hint!r} states a box of {found} dimensions of {region.buffer.name}, which has {wanted}"


def _bindings(stmt: BlockRealize) -> Iterator[str]:
    """A constant must lie in its axis's range; anything else is up to the loops."""
    for axis, value in stmt.bindings():
        dom = axis.dom
        if dom is None or not (isinstance(value, IntImm) and isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)):
            continue
        if not dom.min.value <= value.value < dom.min.value + dom.extent.value:
            end = dom.min.value + dom.extent.value
            yield f"axis {axis.name} of block {stmt.block.name_hint!r} is bound to {value}, out of {dom.min}:{end}"


def _unstated(block: Block) -> Iterator[str]:
    """Buffers that are written or read by the body without a word of the block."""
    views: dict[Var, Var] = {}
    for match in block.match_buffers:
        # A view may be of one before it: what counts is the buffer at the end.
        views[match.buffer.data] = views.get(match.source.buffer.data, match.source.buffer.data)
    writes = {region.buffer.data for region in block.writes}
    # What a block writes it may read, as a reduction does with its own result.
    reads = writes | {region.buffer.data for region in block.reads}
    own = {buffer.data for buffer in block.alloc_buffers}
    said: set[tuple[str, Var]] = set()
    for what, buffer in _accesses(block, own):
        data = views.get(buffer.data, buffer.data)
        if data in own or data in (writes if what == "writes" else reads) or (what, data) in said:
            continue
        said.add((what, data))
        yield f"block {block.name_hint!r} {what} {buffer.name} and doesn't say so in T.{what}"


def _accesses(block: Block, own: set[Var]) -> Iterator[tuple[str, Buffer]]:
    """The accesses of the statements of a block; of inner blocks, what they state. Adds what is defined inside to `own`."""
    stack: list[Stmt] = [block.body, *(() if block.init is None else (block.init,))]
    while stack:
        stmt = stack.pop()
        taken = parts(stmt)
        for expr in (*taken.exprs, *taken.inner_exprs):
            yield from (("reads", buffer) for buffer in uses(expr)[1])
        if isinstance(stmt, BlockRealize):
            inner = stmt.block
            local = {buffer.data for buffer in inner.alloc_buffers}
            yield from (("reads", region.buffer) for region in inner.reads if region.buffer.data not in local)
            yield from (("writes", region.buffer) for region in inner.writes if region.buffer.data not in local)
            continue
        # Before what stands inside is reached: `_unstated` looks into `own` at each access.
        own.update(taken.defines)
        if isinstance(stmt, BufferStore):
            yield "writes", stmt.buffer
        elif isinstance(stmt, BufferBind):
            yield "reads", stmt.source.buffer
        stack.extend(taken.bodies)
