"""Matrices of scopes m16n8k8.* as registers of the threads of a warp.

    C = T.alloc_buffer((64, 64), scope="m16n8k8.matrixC")      ->  C = T.alloc_buffer((4, 8, 2, 2), scope="local")
    C[i * 16 + b * 8 + tx // 4, j * 8 + tx % 4 * 2 + v] = 0        C[i, j, b, v] = 0

Operands are accessed by `ptx_ldmatrix` and `ptx_mma` alone, which say which registers they mean (`tir.tensor_intrin.mma_tiles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import as_int, const, floordiv, floormod
from ...tir.block import Block
from ...tir.buffer import Buffer, BufferRegion, decl_buffer
from ...tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import AttrStmt, BufferStore, DeclBuffer, For, Stmt
from ...tir.thread import bound_tag
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements
from ..scopes import inside_loop

_SUMS = "m16n8k8.matrixC"
# Rows and columns of a part that an instruction fetches or computes, and what a thread holds of it.
_PARTS = {"m16n8k8.matrixA": (32, 8, (4, 2)), "m16n8k8.matrixB": (8, 32, (1, 8)), _SUMS: (16, 8, (2, 2))}


def TransformMmaBufferLayout() -> Pass:
    """No memory of scopes m16n8k8.*, but what a thread holds of it.

    Raises:
        LoweringError: when it runs, for a matrix that isn't made of whole parts, an operand whose elements are accessed, and sums that
            another thread accesses than the one that holds them.
    """
    return Pass("tir.TransformMmaBufferLayout", lambda func, ctx: transform_mma_buffer_layout(func, ctx))


def has_matrices(func: PrimFunc) -> bool:
    """Whether blocks of a function have memory of these scopes."""
    return any(one.scope() in _PARTS for stmt in walk_statements(func.body) if isinstance(stmt, Block) for one in stmt.alloc_buffers)


def transform_mma_buffer_layout(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with registers for matrices; itself if it has none."""
    return func.with_body(_Layout().stmt(func.body)) if has_matrices(func) else func


class _Layout:
    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._registers: dict[Buffer, Buffer] = {}
        self._pointers: dict[Var, Var] = {}
        self._lane: Var | None = None

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                with inside_loop(self._analyzer, stmt), self._within(stmt.loop_var if bound_tag(stmt) == "threadIdx.x" else None):
                    return map_stmt(stmt, self.stmt, self._expr)
            case AttrStmt() if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
                self._analyzer.bind(stmt.node.var, Range(const(0, stmt.value.dtype), stmt.value), allow_override=True)
                with self._within(stmt.node.var if stmt.node.thread_tag == "threadIdx.x" else None):
                    return map_stmt(stmt, self.stmt, self._expr)
            case Block():
                return self._block(stmt)
            case DeclBuffer() if stmt.buffer in self._registers:
                return DeclBuffer(self._registers[stmt.buffer], self.stmt(stmt.body))
            case BufferStore() if stmt.buffer in self._registers:
                indices = self._place(stmt.buffer, [self._expr(index) for index in stmt.indices])
                return BufferStore(self._registers[stmt.buffer], self._expr(stmt.value), indices, stmt.predicate)
        return map_stmt(stmt, self.stmt, self._expr)

    @contextmanager
    def _within(self, lane: Var | None) -> Iterator[None]:
        outer, self._lane = self._lane, self._lane if lane is None else lane
        yield
        self._lane = outer

    def _block(self, block: Block) -> Block:
        own = tuple(self._made(buffer) if buffer.scope() in _PARTS else buffer for buffer in block.alloc_buffers)
        # What a block accesses of registers is its threads' own: all of them.
        sides: dict[str, Any] = {
            side: tuple(
                BufferRegion.full_region(self._registers[region.buffer]) if region.buffer in self._registers else region
                for region in getattr(block, side)
            )
            for side in ("reads", "writes")
        }
        result = map_stmt(replace(block, alloc_buffers=own, reads=(), writes=()), self.stmt, self._expr)
        assert isinstance(result, Block)
        return replace(result, **sides)

    def _made(self, buffer: Buffer) -> Buffer:
        rows, columns, held = _PARTS[buffer.scope()]
        *front, i, j = buffer.shape
        down, across = as_int(i), as_int(j)
        if down is None or across is None or down % rows or across % columns:
            raise LoweringError(
                f"{buffer.name} of scope {buffer.scope()} is {i} x {j}, not a multiple of {rows} x {columns}; give warps larger tiles"
            )
        shape = (*front, down // rows, across // columns, *held)
        made = decl_buffer(shape, buffer.dtype, buffer.name, scope="local")
        self._registers[buffer], self._pointers[buffer.data] = made, made.data
        return made

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            if isinstance(node, BufferLoad) and node.buffer in self._registers:
                return BufferLoad(self._registers[node.buffer], self._place(node.buffer, node.indices), node.predicate)
            return self._pointers.get(node) if isinstance(node, Var) else None

        return post_order_rewrite(expr, rule) if self._registers else expr

    def _place(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where the thread has an element of a matrix."""
        *front, i, j = indices
        if buffer.scope() != _SUMS:
            raise LoweringError(
                f"{buffer.name}[{i}, {j}]: elements of {buffer.scope()} are for ldmatrix and mma alone; tensorize what accesses them by "
                "mma_load_m16n8k8_f16_A_shared_dyn, its like for B, and mma_sync_m16n8k8_f16f16f32"
            )
        lane, equal = self._lane, self._analyzer.can_prove_equal
        if lane is None or not (equal(floormod(i, 8), floordiv(lane, 4)) and equal(floordiv(floormod(j, 8), 2), floormod(lane, 4))):
            raise LoweringError(
                f"{buffer.name}[{i}, {j}] of scope {_SUMS} isn't held by the thread that accesses it: thread t of a warp has rows "
                "t // 4 + 8 b and columns t % 4 * 2 + v of each tile of 16 x 8. Tensorize it by mma_init_m16n8k8_f32 or "
                "mma_store_m16n8k8_f32_global, or store it by write_at"
            )
        simplified = (
            self._analyzer.simplify(part) for part in (floordiv(i, 16), floordiv(j, 8), floormod(floordiv(i, 8), 2), floormod(j, 2))
        )
        return (*front, *simplified)
