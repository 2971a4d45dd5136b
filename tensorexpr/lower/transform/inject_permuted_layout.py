"""Shared memory whose columns are permuted by their row, so that the threads of a warp meet different banks.

In blocks annotated `permuted_layout`, element (row, column) of a buffer in shared memory is kept at

    row, (column // 8 ^ row % 8) * 8 + column % 8               rows of a multiple of 64 elements
    row, (column // 8 ^ row % 8 // 2) * 8 + column % 8          rows of 32; of 16 with row % 8 // 4, of 8 as they are

The accesses of a buffer are all permuted or none is: else one would not find what another left.
"""

from __future__ import annotations

from dataclasses import replace

from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import as_int, const, floordiv, floormod
from ...tir.bitwise import bitwise_xor
from ...tir.block import Block
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Range, StringImm, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import Node, post_order_rewrite
from ...tir.stmt import AttrStmt, BufferStore, DeclBuffer, For, Stmt
from ..passes import Pass
from ..rebuild import map_stmt, pointer_scope, walk_statements
from ..scopes import inside_loop

KEY = "permuted_layout"
_WIDTH = 8  # elements that stay together: what one lane loads at once
_LDMATRIX = "tir.ptx_ldmatrix"


def InjectPermutedLayout() -> Pass:
    """The buffers in shared memory of blocks annotated `permuted_layout` in a layout without bank conflicts.

    Raises:
        LoweringError: when it runs, for rows that are neither of 8, 16 or 32 nor of a multiple of 64 elements, and for a buffer of
            which some accesses only stand in annotated blocks.
    """
    return Pass("tir.InjectPermutedLayout", lambda func, ctx: _Permuter().function(func))


class _Permuter:
    def __init__(self) -> None:
        self._analyzer = Analyzer()
        self._inside = False
        self._permuted: set[Var] = set()
        self._plain: set[Var] = set()
        self._buffers: dict[Var, Buffer] = {}

    def function(self, func: PrimFunc) -> PrimFunc:
        """The function with its marked accesses permuted; itself without marks."""
        if not any(isinstance(stmt, Block) and KEY in stmt.annotations for stmt in walk_statements(func.body)):
            return func
        body = self._stmt(func.body)
        # After the walk, as a later block may be the one that disagrees.
        for var in self._permuted & self._plain:
            raise LoweringError(f"InjectPermutedLayout: buffer {var.name} is accessed inside and outside of blocks annotated {KEY!r}")
        return func.with_body(body)

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                with inside_loop(self._analyzer, stmt):
                    return map_stmt(stmt, self._stmt, self._expr)
            case AttrStmt() if stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
                self._analyzer.bind(stmt.node.var, Range(IntImm(stmt.value.dtype, 0), stmt.value), allow_override=True)
            case Block():
                return self._block(stmt)
            case DeclBuffer():
                self._buffers[stmt.buffer.data] = stmt.buffer
            case BufferStore():
                result = map_stmt(stmt, self._stmt, self._expr)
                assert isinstance(result, BufferStore)
                return replace(result, indices=self._indices(result.buffer, result.indices))
        return map_stmt(stmt, self._stmt, self._expr)

    def _block(self, block: Block) -> Block:
        for buffer in block.alloc_buffers:
            self._buffers[buffer.data] = buffer
        outer = self._inside
        self._inside = outer or _asks(block)
        bare = replace(block, annotations=type(block.annotations)({k: v for k, v in block.annotations.items() if k != KEY}))
        body, init = self._stmt(block.body), None if block.init is None else self._stmt(block.init)
        self._inside = outer
        return replace(bare, body=body, init=init)

    def _expr(self, expr: PrimExpr) -> PrimExpr:
        def rule(node: Node) -> Node | None:
            if isinstance(node, BufferLoad):
                return replace(node, indices=self._indices(node.buffer, node.indices))
            return self._load_matrix(node) if isinstance(node, Call) and node.op == _LDMATRIX and self._inside else None

        return post_order_rewrite(expr, rule)

    def _indices(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        if pointer_scope(buffer.data) not in ("shared", "shared.dyn"):
            return indices
        (self._permuted if self._inside else self._plain).add(buffer.data)
        if not self._inside:
            return indices
        if len(indices) < 2:
            raise LoweringError(f"InjectPermutedLayout: buffer {buffer.name} has no rows; a permuted layout needs two dimensions")
        return (*indices[:-1], self._column(buffer, indices[-2], indices[-1]))

    def _column(self, buffer: Buffer, row: PrimExpr, column: PrimExpr) -> PrimExpr:
        """Where an element stands in its row."""
        size = _row_size(buffer)
        # A row of 64 elements of 16 bits fills all banks, so each of 8 rows has its turn; of rows of 32, two fill them together.
        turn = floormod(row, _WIDTH) if size % 64 == 0 else floordiv(floormod(row, _WIDTH), 64 // size)
        simplify = self._analyzer.simplify
        # An exclusive or is its own inverse and stays within the row, so no two elements meet.
        group = bitwise_xor(simplify(floordiv(column, _WIDTH)), simplify(turn))
        return simplify(group * _WIDTH + floormod(column, _WIDTH))

    def _load_matrix(self, call: Call) -> Call:
        """`ptx_ldmatrix` with its whole offset, permuted, in the pointer to shared memory."""
        *front, pointer, offset = call.args
        if not (isinstance(pointer, Call) and pointer.op == "tir.tvm_access_ptr" and isinstance(pointer.args[1], Var)):
            raise LoweringError(f"InjectPermutedLayout: ptx_ldmatrix reads from a tvm_access_ptr, not from {pointer}")
        buffer = self._buffers.get(pointer.args[1])
        if buffer is None:
            raise LoweringError(f"InjectPermutedLayout: {pointer.args[1].name} is no buffer of a block around ptx_ldmatrix")
        self._permuted.add(buffer.data)
        size = _row_size(buffer)
        place = pointer.args[2] + offset
        # The pointer's offset is flat; permuting needs the row and the column apart.
        row, column = (self._analyzer.simplify(part) for part in (floordiv(place, size), floormod(place, size)))
        moved = self._analyzer.simplify(row * size + self._column(buffer, row, column))
        kind, data, _, *rest = pointer.args
        return replace(call, args=(*front, replace(pointer, args=(kind, data, moved, *rest)), const(0, offset.dtype)))


def _asks(block: Block) -> bool:
    said = block.annotations.get(KEY)
    return bool(said.value) if isinstance(said, (IntImm, StringImm)) else bool(said)


def _row_size(buffer: Buffer) -> int:
    size = as_int(buffer.shape[-1])
    if size is None or (size not in (8, 16, 32) and size % 64):
        raise LoweringError(
            f"InjectPermutedLayout: the rows of {buffer.name} have {buffer.shape[-1]} elements; 8, 16, 32 or a multiple of 64 are permuted"
        )
    return size
