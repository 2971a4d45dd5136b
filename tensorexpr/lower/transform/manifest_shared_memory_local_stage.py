"""Copies into shared memory in two steps, through registers, so that loads can be scheduled apart from stores.

for j in range(2):                            for j in range(2):
    with T.block("copy"):                         B_local[j] = A[j * 32 + tx]
        B[j * 32 + tx] = A[j * 32 + tx]   ->  for j in range(2):
                                                  with T.block("copy"):
                                                      B[j * 32 + tx] = B_local[j]

Blocks ask for it by the annotation `tir.manifest_shared_memory_local_stage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ...schedule.blocks.nests import nested
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion, decl_buffer
from ...tir.expr import BufferLoad, PrimExpr
from ...tir.function import PrimFunc
from ...tir.stmt import BufferStore, For, ForKind, Stmt, seq
from ..context import PassContext
from ..passes import Pass
from ..rebuild import Copier, map_stmt, walk_statements

_ANNOTATION = "tir.manifest_shared_memory_local_stage"


def ManifestSharedMemoryLocalStage() -> Pass:
    """The registers between global and shared memory as buffers of their own.

    Raises:
        ScheduleError: when it runs, where an annotated block isn't a single store, isn't alone in serial or vectorised loops, or stores to
            a buffer that the block around it doesn't hold.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        wanted = any(isinstance(stmt, Block) and _ANNOTATION in stmt.annotations for stmt in walk_statements(func.body))
        return func.with_body(_Staging().stmt(func.body)) if wanted else func

    return Pass("tir.ManifestSharedMemoryLocalStage", run)


@dataclass
class _Around:
    """The block around, and what it gets besides its own: registers by the buffer that they are for."""

    block: Block
    registers: dict[Buffer, Buffer]


class _Staging:
    def __init__(self) -> None:
        self._around: _Around | None = None

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement with copies in two steps."""
        copy = _annotated(stmt)
        if copy is not None:
            return self._staged(*copy)
        if not isinstance(stmt, BlockRealize):
            return map_stmt(stmt, self.stmt)
        outer, self._around = self._around, _Around(stmt.block, {})
        block = cast(Block, map_stmt(stmt.block, self.stmt))
        if self._around.registers:
            block = replace(block, alloc_buffers=(*block.alloc_buffers, *self._around.registers.values()))
        self._around = outer
        return stmt if block is stmt.block else replace(stmt, block=block)

    def _staged(self, loops: Sequence[For], realize: BlockRealize) -> Stmt:
        block, store = realize.block, realize.block.body
        if not isinstance(store, BufferStore):
            raise _refused(block, "is no single store")
        if self._around is None or store.buffer not in self._around.block.alloc_buffers:
            raise _refused(block, f"stores to {store.buffer.name}, which the block around doesn't hold")
        extents = tuple(loop.extent for loop in loops) or (1,)
        local = decl_buffer(extents, store.buffer.dtype, f"{store.buffer.name}_local", scope="local")
        self._around.registers[store.buffer] = local
        place: tuple[PrimExpr, ...] = tuple(loop.loop_var - loop.min for loop in loops) or (store.indices[0] * 0,)
        into = BufferStore(local, store.value, place)
        load = replace(realize, block=Block((), block.reads, (BufferRegion.from_point(local, place),), "", into))
        marks = FrozenMap({key: value for key, value in block.annotations.items() if key != _ANNOTATION})
        kept = replace(realize, block=replace(block, body=replace(store, value=BufferLoad(local, place)), annotations=marks))
        # Two nests of the same loops: one of them gets variables of its own.
        return seq(Copier({}).stmt(nested(loops, load)), nested(loops, kept))


def _annotated(stmt: Stmt) -> tuple[list[For], BlockRealize] | None:
    """An annotated block and the loops around it alone, if a statement is these."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, BlockRealize) or _ANNOTATION not in stmt.block.annotations:
        return None
    if any(loop.kind not in (ForKind.SERIAL, ForKind.VECTORIZED) for loop in loops):
        raise _refused(stmt.block, "stands in a loop that is neither serial nor vectorised, which its registers can't be counted by")
    return loops, stmt


def _refused(block: Block, why: str) -> ScheduleError:
    return ScheduleError(f"block {block.name_hint or 'without a name'} asks for a local stage, but {why}")
