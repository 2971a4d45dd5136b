"""Non-temporal stores: vectors that go to memory past the caches, where the schedule asks for them.

They pay where they fill whole cache lines: in pieces of lines the transpose of 2048 x 2048 floats took 0.78 ms, as with
ordinary stores, and 0.40 ms in whole ones. Arrays need not start at a line, so the code exists twice, and a test of the
array's address chooses; inside, a vector is stored so if it can't cross a line.
x86 keeps no order between these stores and later ones, so each thread ends its part with a fence.
"""

from __future__ import annotations

from ..tir.attrs import NONTEMPORAL_STORE
from ..tir.expr import BufferLoad, Var
from ..tir.rewriting import walk
from ..tir.stmt import AttrStmt, Stmt
from . import registers
from .context import FunctionContext
from .control import statement, unsupported_thread

# Bytes of the smallest vector that the machine stores so.
_LEAST = 16
_METADATA = "!{i32 1}"


def emit_attr(ctx: FunctionContext, stmt: Stmt) -> None:
    """AttrStmt: only the body is code, in two versions where it has non-temporal stores."""
    assert isinstance(stmt, AttrStmt)
    if stmt.attr_key == "thread_extent":
        raise unsupported_thread(ctx, stmt)
    ctx.module.note_pragma(stmt.attr_key, stmt.value)
    if stmt.attr_key != NONTEMPORAL_STORE or ctx.only_ordinary_stores or _reads(stmt.body, stmt.node):
        statement(ctx, stmt.body)
    elif ctx.alignments.get(stmt.node, 0) >= _line(ctx):  # a whole number of lines: no test, and one version
        _emit_aligned(ctx, stmt.node, stmt.body)
    else:
        _emit_versions(ctx, stmt, stmt.node)


def _line(ctx: FunctionContext) -> int:
    """Bytes that a non-temporal store should fill whole: what is left of a line is read from memory first."""
    return ctx.module.target.machine.line_bytes


def _reads(body: Stmt, data: Var) -> bool:
    """True if the body reads what it writes: that belongs in the cache."""
    return any(isinstance(node, BufferLoad) and node.buffer.data is data for node in walk(body))


def _emit_aligned(ctx: FunctionContext, data: Var, body: Stmt) -> None:
    ctx.nontemporal.add(data)
    statement(ctx, body)
    ctx.nontemporal.discard(data)
    fence(ctx)


def _emit_versions(ctx: FunctionContext, stmt: AttrStmt, data: Var) -> None:
    text, slots = ctx.text, registers.assigned(ctx, stmt)
    initial = registers.snapshot(ctx, slots)
    address = text.value(f"ptrtoint ptr {ctx.variable(data)} to i64")
    rest = text.value(f"and i64 {address}, {_line(ctx) - 1}")
    aligned, ordinary, done = (text.fresh(hint) for hint in ("nontemporal", "ordinary", "stored"))
    text.branch(text.value(f"icmp eq i64 {rest}, 0"), aligned, ordinary)
    text.start(aligned)
    known = ctx.alignments.get(data, 0)
    with ctx.scope():
        ctx.alignments[data] = _line(ctx)
        _emit_aligned(ctx, data, stmt.body)
        ctx.alignments[data] = known
    arms = [(registers.snapshot(ctx, slots), text.block)]
    text.jump(done)
    text.start(ordinary)
    # The second version starts from what held before the first one.
    ctx.registers.update(zip(slots, initial, strict=True))
    ctx.only_ordinary_stores = True
    with ctx.scope():
        statement(ctx, stmt.body)
    ctx.only_ordinary_stores = False
    arms.append((registers.snapshot(ctx, slots), text.block))
    text.jump(done)
    text.start(done)
    registers.join(ctx, slots, *arms)
    # Either version has written memory.
    ctx.forget_reads()


def hint(ctx: FunctionContext, data: Var, alignment: int, size: int) -> str:
    """What follows a store of a vector of `size` bytes at a place of that alignment: the metadata, or nothing."""
    whole = min(size, _line(ctx), ctx.module.target.vector_bits // 8)
    if data not in ctx.nontemporal or alignment % whole or size % whole or whole < _LEAST:
        return ""
    ctx.wrote_nontemporal = True
    return f", !nontemporal !{ctx.module.text.node(_METADATA)}"


def fence(ctx: FunctionContext) -> None:
    """Order the non-temporal stores so far before all that follows."""
    if ctx.wrote_nontemporal and ctx.module.target.arch == "x86_64":
        ctx.text.emit("call void @llvm.x86.sse.sfence()")
    ctx.wrote_nontemporal = False
