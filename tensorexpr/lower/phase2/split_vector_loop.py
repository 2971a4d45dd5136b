"""Cut VECTORIZED loops that are longer than a register, and by no small power of two, into loops over whole registers.

A vector of 2, 4 or 8 registers is cut by LLVM itself. One of 3 registers is widened to 4 and copied around in memory,
which costs more than anything that the vector saves; one of 100 makes as many instructions for every operation. The
lanes of what remains make a vector of their own.

    for v in vectorized(48): C[v] = f(v)    ->    for r in unrolled(3): for v in vectorized(16): C[r*16 + v] = f(r*16 + v)
"""

from __future__ import annotations

from dataclasses import replace

from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import BufferStore, For, ForKind, Stmt, seq
from ..context import PassContext
from ..rebuild import Copier, map_stmt, operands, own_expressions, walk_statements
from ..register_file import RegisterFile

# Registers that one vector may span: more of them are a loop.
_WHOLE = 8


def split_vector_loop(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with vector loops of whole registers, of a power of two of them, or of less than one."""
    if ctx.flag("tir.disable_vectorize"):
        return func
    registers = RegisterFile.of(func)

    def visit(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, visit)
        return _split(result, registers) if isinstance(result, For) and result.kind is ForKind.VECTORIZED else result

    return func.with_body(visit(func.body))


def _split(loop: For, registers: RegisterFile) -> Stmt:
    """The loop in pieces, or itself."""
    if not isinstance(loop.extent, IntImm):
        return loop
    extent, lanes = loop.extent.value, registers.bits // _widest(loop.body)
    whole, rest = divmod(extent, max(lanes, 1))
    # A power of two of full registers LLVM splits well by itself, and code generation sees one access in place of several.
    if whole < 1 or (rest == 0 and whole <= _WHOLE and whole & (whole - 1) == 0):
        return loop
    pieces = [_chunks(loop, whole, lanes) if whole > 1 else _piece(loop, loop.min, lanes)]
    if rest:
        pieces.append(_piece(loop, loop.min + whole * lanes, rest))
    return seq(*pieces)


def _piece(loop: For, start: PrimExpr, lanes: int) -> Stmt:
    """`lanes` iterations from `start` on, as a vector."""
    lane = Var(loop.loop_var.name, loop.loop_var.dtype)
    zero = IntImm(lane.dtype, 0)
    body = Copier({loop.loop_var: start + lane}).stmt(loop.body)
    return replace(loop, loop_var=lane, min=zero, extent=IntImm(lane.dtype, lanes), body=body)


def _chunks(loop: For, count: int, lanes: int) -> Stmt:
    chunk = Var(f"{loop.loop_var.name}.r", loop.loop_var.dtype)
    body = _piece(loop, loop.min + chunk * lanes, lanes)
    kind = ForKind.UNROLLED if count <= _WHOLE else ForKind.SERIAL
    return For(chunk, IntImm(chunk.dtype, 0), IntImm(chunk.dtype, count), kind, body)


def _widest(body: Stmt) -> int:
    """The bits of the widest element that a statement loads or stores."""
    # No element is narrower, so a body without accesses counts as one of bytes.
    bits = 8
    seen: set[PrimExpr] = set()
    for stmt in walk_statements(body):
        if isinstance(stmt, BufferStore):
            bits = max(bits, parse_dtype(stmt.buffer.dtype).bits)
        stack = list(own_expressions(stmt))
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if isinstance(expr, BufferLoad):
                bits = max(bits, parse_dtype(expr.buffer.dtype).bits)
            stack.extend(operands(expr))
    return bits
