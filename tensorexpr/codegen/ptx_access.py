"""How the handlers of PTX instructions write calls and addresses."""

from __future__ import annotations

from ..errors import CodegenError
from ..target.chips import capability
from ..tir.expr import IntImm, PrimExpr, Var
from .address import element_pointer
from .context import FunctionContext


def needs(ctx: FunctionContext, least: int, what: str) -> None:
    """Refuse an instruction that the target's architecture hasn't.

    Raises:
        CodegenError: naming the least that has it.
    """
    arch = ctx.module.target.arch
    if capability(arch) < least:
        raise CodegenError(f"In {ctx.name}: {what} needs -arch=sm_{least} or later, and the target is {arch}")


def emit_call(ctx: FunctionContext, name: str, result: str, *operands: str) -> str:
    """Call an intrinsic of LLVM; the name of its result, or nothing. Operands are written with their types."""
    declared = ctx.module.text.declare(name, result, *(operand.rsplit(" ", 1)[0] for operand in operands))
    called = f"call {result} {declared}({', '.join(operands)})"
    if result == "void":
        ctx.text.emit(called)
        return ""
    return ctx.text.value(called)


def pointer(
    ctx: FunctionContext, base: PrimExpr, offset: PrimExpr, itemsize: int, space: int = 0, reads: bool = False, writes: bool = False
) -> str:
    """The address `offset` elements behind `base`, a pointer variable or an address, with its type, in an address space."""
    if isinstance(base, Var):
        if reads:
            ctx.read_through.add(base)
        if writes:
            ctx.written_through.add(base)
        address, _ = element_pointer(ctx, base, offset, itemsize)
    else:
        address = ctx.value(base)
        if not (isinstance(offset, IntImm) and offset.value == 0):
            kind = ctx.index_type(offset)
            address = ctx.text.value(f"getelementptr [{itemsize} x i8], ptr {address}, {kind} {ctx.index_value(offset)}")
    if not space:
        return f"ptr {address}" if address.startswith("%") else f"ptr {ctx.text.value(f'getelementptr i8, ptr {address}, i64 0')}"
    return f"ptr addrspace({space}) {ctx.text.value(f'addrspacecast ptr {address} to ptr addrspace({space})')}"
