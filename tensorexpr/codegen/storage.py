"""Allocations: registers, the stack, or a workspace from the C library.

A workspace of constant size is allocated once per call of the (outlined) function, in its entry block, not in each
round of the loop that holds it; one of computed size where it stands. All are freed on every way out, and a failed
allocation makes the function return an error code.
"""

from __future__ import annotations

from ..errors import CodegenError
from ..tir.expr import PrimExpr
from ..tir.stmt import Allocate, AllocateConst, Stmt
from . import registers
from .context import FunctionContext
from .control import require, statement
from .types import identifier, size_in_bytes

STACK_LIMIT = 64 * 1024
ALIGNMENT = 64


def emit_allocate(ctx: FunctionContext, stmt: Stmt) -> None:
    """Allocate."""
    assert isinstance(stmt, Allocate)
    var, element = stmt.buffer_var, size_in_bytes(stmt.dtype)
    annotation = var.type_annotation
    if annotation is not None and annotation.storage_scope == registers.SCOPE:
        registers.allocate(ctx, stmt)
        statement(ctx, stmt.body)
        return
    count = stmt.constant_size()
    if count is not None and count < 0:
        raise CodegenError(f"In {ctx.name}: the allocation of {var.name} has {count} elements; extents must not be negative")
    ctx.alignments[var] = ALIGNMENT
    if count is None:
        _dynamic(ctx, stmt, element)
        return
    # C may answer a size of 0 with null, which would count as a failure.
    size = _rounded(max(count * element, 1))
    name = f"%{ctx.text.fresh(identifier(var.name))}"
    if ctx.stack_bytes + size <= STACK_LIMIT:
        ctx.stack_bytes += size
        ctx.text.entry.append(f"  {name} = alloca [{size} x i8], align {ALIGNMENT}")
    else:
        ctx.workspaces.append((name, size))
    ctx.bind(var, name)
    # In the entry block, so any loop may step its pointer in front of itself.
    ctx.levels[var] = 0
    statement(ctx, stmt.body)


def emit_constant(ctx: FunctionContext, stmt: Stmt) -> None:
    """AllocateConst: a global of the module, in memory that can't be written."""
    assert isinstance(stmt, AllocateConst)
    var = stmt.buffer_var
    if stmt.data is None:
        raise CodegenError(f"In {ctx.name}: the elements of the constant {var.name} stand in the module's attribute, not in the function")
    ctx.bind(var, ctx.module.text.array(stmt.data.numpy().tobytes(), ALIGNMENT))
    ctx.alignments[var] = ALIGNMENT
    ctx.levels[var] = 0
    statement(ctx, stmt.body)
    # Known only when the body has been written.
    if var in ctx.written_through:
        raise CodegenError(f"In {ctx.name}: the constant {var.name} is written; use T.allocate for memory that changes")


def _rounded(size: int) -> int:
    """C wants the size of an aligned allocation to be a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def declare(ctx: FunctionContext) -> None:
    """Declare the allocator of the C library."""
    ctx.module.declare("aligned_alloc", "noalias ptr", "i64", "i64")
    ctx.module.declare("free", "void", "ptr")


def _dynamic(ctx: FunctionContext, stmt: Allocate, element: int) -> None:
    declare(ctx)
    text, var = ctx.text, stmt.buffer_var
    size = str(element)
    for extent in stmt.extents:
        size = text.value(f"mul i64 {size}, {_extent(ctx, extent)}")
    size = text.value(f"add i64 {size}, {ALIGNMENT - 1}")
    size = text.value(f"and i64 {size}, {-ALIGNMENT}")
    size = text.value(f"call i64 @llvm.umax.i64(i64 {size}, i64 {ALIGNMENT})")
    pointer = text.value(f"call noalias ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {size})")
    require(ctx, text.value(f"icmp ne ptr {pointer}, null"), _out_of_memory(var.name))
    ctx.bind(var, pointer)
    ctx.live.append(pointer)
    with ctx.scope():
        statement(ctx, stmt.body)
    # Only inside the body does leaving early have to give it back.
    ctx.live.pop()
    text.emit(f"call void @free(ptr {pointer})")


def _extent(ctx: FunctionContext, extent: PrimExpr) -> str:
    """An extent, at least 0."""
    return ctx.text.value(f"call i64 @llvm.smax.i64(i64 {ctx.index_value(extent)}, i64 0)")


def _out_of_memory(name: str) -> str:
    return f"out of memory: no workspace for {name}"


def allocate_workspaces(ctx: FunctionContext) -> list[str]:
    """The entry block's lines that allocate the workspaces of constant size; they leave through `return` on failure."""
    if not ctx.workspaces:
        return []
    declare(ctx)
    # All are asked for before the one test: `return` gives them all back, whichever failed.
    lines, present = [], "true"
    for number, (name, size) in enumerate(ctx.workspaces):
        lines.append(f"  {name} = call noalias ptr @aligned_alloc(i64 {ALIGNMENT}, i64 {size})")
        lines.append(f"  %workspace.{number}.ok = icmp ne ptr {name}, null")
        lines.append(f"  %workspaces.{number}.ok = and i1 {present}, %workspace.{number}.ok")
        present = f"%workspaces.{number}.ok"
    total = sum(size for _, size in ctx.workspaces)
    code = ctx.error_code(f"out of memory: no workspace of {total} bytes")
    ctx.exits.append((str(code), "entry"))
    return [*lines, f"  br i1 {present}, label %start, label %return"]


def free_workspaces(ctx: FunctionContext) -> list[str]:
    """The lines of the `return` block that give the workspaces back; free takes the null of a failed allocation."""
    return [f"  call void @free(ptr {name})" for name, _ in ctx.workspaces]
