"""Calls that only a device has: barriers, exchanges within a warp, asynchronous copies, and what matrix units do (`ptx_matrix`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..errors import CodegenError
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, IntImm, PrimExpr, StringImm
from . import ptx_barriers, ptx_matrix, ptx_wgmma
from .context import FunctionContext
from .device_functions import as_intrinsic
from .memo import IMPURE
from .ptx_access import emit_call, needs, pointer
from .types import VALUE_TYPE

_ALL_THREADS = "i32 -1"
_WARP = 32
_SHUFFLES = {"tir.tvm_warp_shuffle": "idx", "tir.tvm_warp_shuffle_up": "up", "tir.tvm_warp_shuffle_down": "down"}
_COPIED = {16: "cg.shared.global.16", 8: "ca.shared.global.8", 4: "ca.shared.global.4"}


def _number(ctx: FunctionContext, arg: PrimExpr, what: str) -> int:
    if not isinstance(arg, IntImm):
        raise CodegenError(f"In {ctx.name}: {what} is a constant, not {arg}")
    return arg.value


def _effect(ctx: FunctionContext) -> None:
    """Other threads may have written memory."""
    ctx.forget_reads()
    ctx.reads |= IMPURE


def emit_barrier(ctx: FunctionContext, call: Call) -> str:
    """tvm_storage_sync: the threads of a block, or of a warp, wait for each other."""
    scope = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else ""
    if scope in ("shared", "shared.dyn"):
        emit_call(ctx, "llvm.nvvm.barrier.cta.sync.aligned.all", "void", "i32 0")
    elif scope == "warp":
        emit_call(ctx, "llvm.nvvm.bar.warp.sync", "void", _ALL_THREADS)
    else:
        raise CodegenError(f"In {ctx.name}: no barrier of scope {scope!r}: blocks can't wait for each other; use shared or warp")
    _effect(ctx)
    return "0"


def emit_shuffle(ctx: FunctionContext, call: Call) -> str:
    """tvm_warp_shuffle: a value of another thread of the warp, in parts of 32 bits."""
    mask, value, lane, width, size = call.args
    parsed = parse_dtype(value.dtype)
    wide = _number(ctx, width, "the width of a shuffle")
    if _number(ctx, size, "the size of a warp") != _WARP or wide < 1 or _WARP % wide or parsed.lanes > 1:
        raise CodegenError(f"In {ctx.name}: {call} can't be built: warps have 32 threads, widths divide that, and values have one lane")
    kind = _SHUFFLES[call.op]
    clamp = (_WARP - wide) << 8 | (0 if kind == "up" else _WARP - 1)
    shift = ctx.index_as("i32", lane)
    words = _words(ctx, value.dtype, ctx.value(value))
    moved = [
        emit_call(ctx, f"llvm.nvvm.shfl.sync.{kind}.i32", "i32", f"i32 {ctx.value(mask)}", f"i32 {word}", f"i32 {shift}", f"i32 {clamp}")
        for word in words
    ]
    _effect(ctx)
    return _joined(ctx, value.dtype, moved)


def _words(ctx: FunctionContext, dtype: str, value: str) -> list[str]:
    """The bits of a scalar as words of 32 bits."""
    kind, bits, write = VALUE_TYPE[dtype], parse_dtype(dtype).bits, ctx.text.value
    bits = 1 if kind == "i1" else bits
    if kind in ("float", "double"):
        value = write(f"bitcast {kind} {value} to i{bits}")
    if bits < 32:
        return [write(f"zext i{bits} {value} to i32")]
    if bits == 32:
        return [value]
    return [write(f"trunc i64 {value} to i32"), write(f"trunc i64 {write(f'lshr i64 {value}, 32')} to i32")]


def _joined(ctx: FunctionContext, dtype: str, words: Sequence[str]) -> str:
    kind, bits, write = VALUE_TYPE[dtype], parse_dtype(dtype).bits, ctx.text.value
    bits = 1 if kind == "i1" else bits
    if bits < 32:
        value = write(f"trunc i32 {words[0]} to i{bits}")
    elif bits == 32:
        value = words[0]
    else:
        low, high = (write(f"zext i32 {word} to i64") for word in words)
        value = write(f"or i64 {low}, {write(f'shl i64 {high}, 32')}")
    return write(f"bitcast i{bits} {value} to {kind}") if kind in ("float", "double") else value


def emit_active_mask(ctx: FunctionContext, call: Call) -> str:
    """tvm_warp_activemask: where no condition stands around it, all threads that the warp has."""
    if not ctx.conditions:
        # Asked at the entry: behind a branch that some threads took the others may not have come back yet.
        ctx.text.module.declare("llvm.nvvm.activemask", "i32")
        return ctx.once("activemask", lambda: _at_entry(ctx, "call i32 @llvm.nvvm.activemask()"))
    result = emit_call(ctx, "llvm.nvvm.activemask", "i32")
    _effect(ctx)
    return result


def _at_entry(ctx: FunctionContext, instruction: str) -> str:
    name = f"%{ctx.text.fresh('entry')}"
    ctx.text.entry.append(f"  {name} = {instruction}")
    return name


def emit_dot(ctx: FunctionContext, call: Call) -> str:
    """dp4a: the products of four bytes, added to an integer."""
    needs(ctx, 61, "dp4a")
    a, b, c = call.args
    signs = [parse_dtype(arg.dtype).is_signed for arg in (a, b)]
    name = f"llvm.nvvm.idp4a.{'.'.join('s' if sign else 'u' for sign in signs)}"
    operands = []
    for arg in (a, b):
        kind, value = VALUE_TYPE[arg.dtype], ctx.value(arg)
        operands.append(f"i32 {value if kind == 'i32' else ctx.text.value(f'bitcast {kind} {value} to i32')}")
    return emit_call(ctx, name, "i32", *operands, f"i32 {ctx.index_as('i32', c)}")


def emit_cp_async(ctx: FunctionContext, call: Call) -> str:
    """ptx_cp_async: bytes from global to shared memory that arrive at `ptx_wait_group`; where a condition fails, zeros."""
    needs(ctx, 80, "cp.async")
    into, into_offset, source, source_offset, size, *condition = call.args
    count = _number(ctx, size, "the size of an asynchronous copy")
    if count not in _COPIED:
        raise CodegenError(f"In {ctx.name}: an asynchronous copy takes 4, 8 or 16 bytes, not {count}")
    itemsize = parse_dtype(call.dtype).itemsize
    target = pointer(ctx, into, into_offset, itemsize, space=3, writes=True)
    origin = pointer(ctx, source, source_offset, itemsize, space=1, reads=True)
    if not condition:
        emit_call(ctx, f"llvm.nvvm.cp.async.{_COPIED[count]}", "void", target, origin)
    else:
        taken = ctx.text.value(f"select i1 {ctx.value(condition[0])}, i32 {count}, i32 0")
        emit_call(ctx, f"llvm.nvvm.cp.async.{_COPIED[count]}.s", "void", target, origin, f"i32 {taken}")
    _effect(ctx)
    return "0"


def emit_commit(ctx: FunctionContext, call: Call) -> str:
    """ptx_commit_group."""
    needs(ctx, 80, "cp.async")
    emit_call(ctx, "llvm.nvvm.cp.async.commit.group", "void")
    _effect(ctx)
    return "0"


def emit_wait(ctx: FunctionContext, call: Call) -> str:
    """ptx_wait_group: all but the last groups have arrived."""
    needs(ctx, 80, "cp.async")
    emit_call(ctx, "llvm.nvvm.cp.async.wait.group", "void", f"i32 {_number(ctx, call.args[0], 'the number of groups')}")
    _effect(ctx)
    return "0"


def emit_host_only(ctx: FunctionContext, call: Call) -> str:
    """What a device can't call.

    Raises:
        CodegenError: always.
    """
    name = call.args[0].value if call.args and isinstance(call.args[0], StringImm) else ""
    raise CodegenError(
        f"In {ctx.name}: {call.op.removeprefix('tir.')} {name}: a kernel can call no function of the host; compute it there, or by a "
        "function of numbers that CUDA has, as expf"
    )


def emit_named(ctx: FunctionContext, call: Call) -> str:
    """call_pure_extern, call_extern: a function of numbers that CUDA has."""
    value = as_intrinsic(call)
    return emit_host_only(ctx, call) if value is None else ctx.value(value)


def emit_prefetch(ctx: FunctionContext, call: Call) -> str:
    """prefetch: a hint, which LLVM has no instruction for here."""
    ctx.reads |= IMPURE
    return "0"


CALLS: Mapping[str, Callable[[FunctionContext, Call], str]] = {
    **ptx_matrix.CALLS,
    **ptx_wgmma.CALLS,
    **ptx_barriers.CALLS,
    **dict.fromkeys(_SHUFFLES, emit_shuffle),
    **dict.fromkeys(("tir.call_extern", "tir.call_pure_extern"), emit_named),
    **dict.fromkeys(("tir.tvm_call_packed", "tir.tvm_call_trace_packed"), emit_host_only),
    "tir.tvm_storage_sync": emit_barrier,
    "tir.tvm_warp_activemask": emit_active_mask,
    "tir.dp4a": emit_dot,
    "tir.ptx_cp_async": emit_cp_async,
    "tir.ptx_commit_group": emit_commit,
    "tir.ptx_wait_group": emit_wait,
    "tir.prefetch": emit_prefetch,
}
