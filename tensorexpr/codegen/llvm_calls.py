"""Pointers as values, and LLVM's own intrinsics by name."""

from __future__ import annotations

from ..errors import CodegenError
from ..tir.arithmetic import binary
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, IntImm, Mul, Var
from ..tir.llvm_intrin import CALL, intrinsic_operands, llvm_intrinsic
from .address import element_pointer
from .context import FunctionContext
from .memo import IMPURE
from .registers import is_register
from .types import VALUE_TYPE


def emit_access_ptr(ctx: FunctionContext, call: Call) -> str:
    """tvm_access_ptr: the address of an element behind a pointer variable."""
    element, data, offset, _, mask = call.args
    if not isinstance(data, Var) or not isinstance(mask, IntImm):
        raise CodegenError(f"In {ctx.name}: tvm_access_ptr takes a pointer variable and a constant access mask, not {call}")
    parsed = parse_dtype(element.dtype)
    index = offset if parsed.lanes == 1 else ctx.keep(binary(Mul, offset, IntImm(offset.dtype, parsed.lanes)))
    _escapes(ctx, data)
    pointer, _ = element_pointer(ctx, data, index, parsed.itemsize)
    return pointer


def emit_address_of(ctx: FunctionContext, call: Call) -> str:
    """address_of: the address of an element of a buffer in memory."""
    load = call.args[0]
    if not isinstance(load, BufferLoad) or is_register(load.buffer) or parse_dtype(load.dtype).lanes > 1 or len(load.indices) != 1:
        raise CodegenError(f"In {ctx.name}: address_of takes one element of a buffer in memory, not {load}")
    _escapes(ctx, load.buffer.data)
    pointer, _ = element_pointer(ctx, load.buffer.data, load.indices[0], parse_dtype(load.buffer.dtype).itemsize)
    return pointer


def _escapes(ctx: FunctionContext, data: Var) -> None:
    """What happens behind a pointer that is handed out isn't known."""
    ctx.variable(data)
    ctx.read_through.add(data)
    ctx.written_through.add(data)


def emit_llvm_intrinsic(ctx: FunctionContext, call: Call) -> str:
    """call_llvm_intrin, call_llvm_pure_intrin: one call, its operands seen as the types that LLVM declares."""
    name, operands = intrinsic_operands(call)
    row = llvm_intrinsic(name)
    assert row is not None  # intrinsic_operands has looked
    missing = row.missing(frozenset(ctx.module.features))
    if missing:
        raise CodegenError(
            f"In {ctx.name}: {name} needs the CPU feature{'s' if len(missing) > 1 else ''} {', '.join(missing)}, which the target "
            f"{ctx.module.target} lacks; build for a CPU that has it (-mcpu, or -mattr=+{',+'.join(missing)}), or don't tensorize with it"
        )
    given = [VALUE_TYPE[operand.dtype] for operand in operands]
    wanted = list(row.operands) or given
    values = [_seen_as(ctx, ctx.value(arg), a, b) for arg, a, b in zip(operands, given, wanted, strict=True)]
    own, result = VALUE_TYPE[call.dtype], row.result or VALUE_TYPE[call.dtype]
    function = ctx.module.text.declare(name, result, *wanted)
    if call.op == CALL:
        ctx.reads |= IMPURE
        ctx.forget_reads()
    arguments = ", ".join(f"{kind} {value}" for kind, value in zip(wanted, values, strict=True))
    return _seen_as(ctx, ctx.text.value(f"call {result} {function}({arguments})"), result, own)


def _seen_as(ctx: FunctionContext, value: str, have: str, want: str) -> str:
    return value if have == want else ctx.text.value(f"bitcast {have} {value} to {want}")
