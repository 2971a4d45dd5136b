"""Calls: tables of the intrinsics that are one LLVM instruction or intrinsic; the rest is vector math or the C library."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..errors import CodegenError
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, StringImm, Var
from ..tir.intrin import intrinsic_of
from ..tir.op_registry import lowering_rule
from . import arithmetic, vector_math
from .address import element_pointer
from .casts import low_precision, narrow, widen
from .conditionals import emit_if_then_else
from .context import FunctionContext
from .llvm_calls import emit_access_ptr, emit_address_of, emit_llvm_intrinsic
from .masks import splat_value
from .memo import IMPURE
from .memory_calls import emit_assume, emit_atomic_add, emit_isnullptr, emit_ldexp, emit_undef
from .packed_calls import emit_packed
from .registers import is_register
from .types import VALUE_TYPE, splat, suffix, symbol

CallHandler = Callable[[FunctionContext, Call], str]

# Intrinsics on floats that the machine has (or LLVM expands in line), by LLVM's name.
_LLVM_FLOAT = {
    "tir.floor": "floor",
    "tir.ceil": "ceil",
    "tir.trunc": "trunc",
    "tir.round": "round",
    "tir.nearbyint": "nearbyint",
    "tir.sqrt": "sqrt",
    "tir.copysign": "copysign",
    "tir.fma": "fma",
}
_INFINITY = "0x7FF0000000000000"


def emit_call(ctx: FunctionContext, node: PrimExpr) -> str:
    """Call."""
    assert isinstance(node, Call)
    intrinsic_of(node)
    rule = lowering_rule(node.op, ctx.module.target.kind.name)  # a user's, which goes before ours
    lowered = None if rule is None else rule(node)
    if isinstance(lowered, PrimExpr) and lowered is not node:
        return ctx.value(lowered)
    handler = ctx.module.calls.get(node.op)
    return handler(ctx, node) if handler else _on_floats(ctx, node, vector_math.emit)


def _on_floats(ctx: FunctionContext, call: Call, write: Callable[[FunctionContext, str, str, list[str]], str]) -> str:
    """A function of floats of one dtype; 16-bit floats go through float32."""
    values = [ctx.value(arg) for arg in call.args]
    dtype = call.args[0].dtype
    if not low_precision(dtype):
        return write(ctx, call.op, dtype, values)
    _, *wide = widen(ctx, dtype, *values)
    result = write(ctx, call.op, f"float32x{parse_dtype(dtype).lanes}" if parse_dtype(dtype).lanes > 1 else "float32", wide)
    return narrow(ctx, dtype, result)


def _llvm_float(ctx: FunctionContext, op: str, dtype: str, values: list[str]) -> str:
    kind = VALUE_TYPE[dtype]
    return ctx.text.value(f"call {kind} @llvm.{_LLVM_FLOAT[op]}.{suffix(kind)}({', '.join(f'{kind} {value}' for value in values)})")


def _emit_llvm_float(ctx: FunctionContext, call: Call) -> str:
    return _on_floats(ctx, call, _llvm_float)


def _emit_fabs(ctx: FunctionContext, call: Call) -> str:
    kind, parsed = VALUE_TYPE[call.dtype], parse_dtype(call.dtype)
    value = ctx.value(call.args[0])
    if low_precision(call.dtype):
        # float16 and bfloat16 both have the sign in the topmost of 16 bits.
        return ctx.text.value(f"and {kind} {value}, {splat('i16', '32767', parsed.lanes)}")
    if parsed.is_float:
        return ctx.text.value(f"call {kind} @llvm.fabs.{suffix(kind)}({kind} {value})")
    # False: the least integer, whose magnitude has no room, stays itself instead of becoming poison.
    return arithmetic.integer_call(ctx, "abs", call.dtype, value, "i1 false") if parsed.is_signed else value


def _emit_fmod(ctx: FunctionContext, call: Call) -> str:
    return _on_floats(ctx, call, lambda ctx, _, dtype, values: ctx.text.value(f"frem {VALUE_TYPE[dtype]} {values[0]}, {values[1]}"))


def _emit_predicate(ctx: FunctionContext, call: Call) -> str:
    """isnan, isinf, isfinite: one comparison with itself or with infinity."""
    dtype = call.args[0].dtype
    kind, value = VALUE_TYPE[dtype], ctx.value(call.args[0])
    if low_precision(dtype):
        kind, value = widen(ctx, dtype, value)
    if call.op == "tir.isnan":
        return ctx.text.value(f"fcmp uno {kind} {value}, {value}")
    magnitude = ctx.text.value(f"call {kind} @llvm.fabs.{suffix(kind)}({kind} {value})")
    scalar = "double" if "double" in kind else "float"
    infinity = splat_value(ctx, scalar, _INFINITY, parse_dtype(dtype).lanes)
    return ctx.text.value(f"fcmp {'oeq' if call.op == 'tir.isinf' else 'olt'} {kind} {magnitude}, {infinity}")


def _emit_popcount(ctx: FunctionContext, call: Call) -> str:
    return arithmetic.integer_call(ctx, "ctpop", call.dtype, ctx.value(call.args[0]))


def _emit_clz(ctx: FunctionContext, call: Call) -> str:
    # False: zero has as many leading zeros as bits, and isn't poison.
    return arithmetic.integer_call(ctx, "ctlz", call.dtype, ctx.value(call.args[0]), "i1 false")


def _emit_likely(ctx: FunctionContext, call: Call) -> str:
    return ctx.value(call.args[0])


def _emit_reinterpret(ctx: FunctionContext, call: Call) -> str:
    operand = call.args[0]
    have, want = VALUE_TYPE[operand.dtype], VALUE_TYPE[call.dtype]
    if parse_dtype(operand.dtype).lanes != parse_dtype(call.dtype).lanes and ctx.mask is not None:
        raise CodegenError(f"In {ctx.name}: reinterpret of {operand.dtype} as {call.dtype} inside a vector if_then_else; move it outside")
    value = ctx.value(operand)
    if have == want:
        return value
    instruction = "ptrtoint" if have == "ptr" else "inttoptr" if want == "ptr" else "bitcast"
    return ctx.text.value(f"{instruction} {have} {value} to {want}")


def _emit_extern(ctx: FunctionContext, call: Call) -> str:
    """A call of a C function by name; its parameters are declared as the arguments are."""
    name, *args = call.args
    if not isinstance(name, StringImm):
        raise CodegenError(f"In {ctx.name}: {call.op} takes the function's name first, as a string")
    if any(parse_dtype(arg.dtype).lanes > 1 for arg in args) or parse_dtype(call.dtype).lanes > 1:
        raise CodegenError(f"In {ctx.name}: the C function {name.value} can't take vectors; don't vectorise the loop around its call")
    values = [_extern_argument(ctx, arg) for arg in args]
    ctx.module.externs.add(name.value)
    result = VALUE_TYPE[call.dtype]
    own = name.value in ctx.module.symbols
    # A function of this module is defined here; a second declaration would clash with it.
    target = symbol(name.value) if own else ctx.module.text.declare(name.value, result, *(VALUE_TYPE[arg.dtype] for arg in args))
    # A pure function is remembered like any other value.
    if call.op == "tir.call_extern":
        ctx.reads |= IMPURE
        ctx.forget_reads()
    called = f"call {result} {target}({', '.join(values)})"
    return ctx.text.value(called)


def _extern_argument(ctx: FunctionContext, arg: PrimExpr) -> str:
    if isinstance(arg, StringImm):
        return f"ptr {ctx.module.text.string(arg.value)}"
    if isinstance(arg, Var) and arg.dtype == "handle":
        ctx.read_through.add(arg)  # what a foreign function does behind a pointer isn't known
        ctx.written_through.add(arg)
    parsed = parse_dtype(arg.dtype)
    if low_precision(arg.dtype):
        raise CodegenError(f"In {ctx.name}: {arg.dtype} can't be passed to a C function; convert it to float32")
    # The C calling convention leaves extending small integers to the caller.
    extension = "" if parsed.is_float or parsed.bits >= 32 else " signext" if parsed.is_signed else " zeroext"
    return f"{VALUE_TYPE[arg.dtype]}{extension} {ctx.value(arg)}"


def _emit_prefetch(ctx: FunctionContext, call: Call) -> str:
    """prefetch(element or address, for writing = 0, locality = 3, data cache = 1)."""
    what, *flags = call.args
    numbers = [flag.value for flag in flags if isinstance(flag, IntImm)]
    if len(numbers) < len(flags):
        raise CodegenError(f"In {ctx.name}: the flags of prefetch are integer constants")
    write, locality, cache = [*numbers, *(0, 3, 1)[len(numbers) :]]
    if isinstance(what, BufferLoad) and not is_register(what.buffer) and parse_dtype(what.dtype).lanes == 1:
        address, _ = element_pointer(ctx, what.buffer.data, what.indices[0], parse_dtype(what.buffer.dtype).itemsize)
    elif what.dtype == "handle":
        address = ctx.value(what)
    else:
        raise CodegenError(f"In {ctx.name}: prefetch takes an element of a buffer in memory, or an address, not {what}")
    # Not remembered: a second prefetch of the same address is a second instruction.
    ctx.reads |= IMPURE
    ctx.text.emit(f"call void @llvm.prefetch.p0(ptr {address}, i32 {write}, i32 {locality}, i32 {cache})")
    return "0"


def _emit_no_load_merge(ctx: FunctionContext, call: Call) -> str:
    """Loads from here on use pointers that LLVM can't recognise (see `address`), and none of them is moved before this place."""
    ctx.text.emit('call void asm sideeffect "", ""() nounwind')
    ctx.load_epoch += 1
    ctx.forget_reads()
    ctx.reads |= IMPURE
    return "0"


CALLS: Mapping[str, CallHandler] = {
    **dict.fromkeys(_LLVM_FLOAT, _emit_llvm_float),
    **dict.fromkeys(("tir.isnan", "tir.isinf", "tir.isfinite"), _emit_predicate),
    **dict.fromkeys(("tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor"), arithmetic.emit_bitwise),
    **dict.fromkeys(("tir.shift_left", "tir.shift_right"), arithmetic.emit_shift),
    **dict.fromkeys(("tir.call_extern", "tir.call_pure_extern"), _emit_extern),
    "tir.bitwise_not": arithmetic.emit_bitwise_not,
    "tir.fabs": _emit_fabs,
    "tir.fmod": _emit_fmod,
    "tir.popcount": _emit_popcount,
    "tir.clz": _emit_clz,
    "tir.if_then_else": emit_if_then_else,
    "tir.likely": _emit_likely,
    "tir.reinterpret": _emit_reinterpret,
    "tir.prefetch": _emit_prefetch,
    "tir.assume": emit_assume,
    "tir.isnullptr": emit_isnullptr,
    "tir.undef": emit_undef,
    "tir.atomic_add": emit_atomic_add,
    "tir.ldexp": emit_ldexp,
    "tir.no_load_merge": _emit_no_load_merge,
    **dict.fromkeys(("tir.tvm_call_packed", "tir.tvm_call_trace_packed"), emit_packed),
    "tir.tvm_access_ptr": emit_access_ptr,
    "tir.address_of": emit_address_of,
    **dict.fromkeys(("tir.call_llvm_intrin", "tir.call_llvm_pure_intrin"), emit_llvm_intrinsic),
}
