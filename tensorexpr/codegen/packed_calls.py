"""Calls of registered Python functions: their arguments as words, and a string that says what the words are.

    int32_t tensorexpr_call_packed(const char *call, int64_t *words)

`call` is JSON: [name, result dtype, [argument, ...], traced], with an argument one of ["array", dtype, rank, has strides],
["int"], ["float"], ["string", text]. An array's words are its address, extents and strides (in elements), a float's the
bits of a double. The result comes back in words[0]; a return value other than 0 means that the function raised.
"""

from __future__ import annotations

import json

from ..errors import CodegenError
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, PrimExpr, StringImm, Var
from ..tir.foreign import ARRAY, TRACE
from .casts import convert
from .context import FunctionContext
from .control import require
from .memo import IMPURE
from .signature import PACKED_SYMBOL, RAISED
from .types import VALUE_TYPE


def emit_packed(ctx: FunctionContext, call: Call) -> str:
    """tvm_call_packed, tvm_call_trace_packed."""
    name, *args = call.args
    if not isinstance(name, StringImm):
        raise CodegenError(f"In {ctx.name}: {call.op} takes the function's name first, as a string")
    if ctx.parent is not None or ctx.mask is not None:
        raise CodegenError(f"In {ctx.name}: the Python function {name.value} can't be called in a parallel loop or a vector")
    described, words = [], []
    for arg in args:
        kind, values = _argument(ctx, name.value, arg)
        described.append(kind)
        words += values
    text = ctx.text
    block = f"%{text.fresh('words')}"
    # In the entry block, as inside a loop the stack would grow with each round.
    text.entry.append(f"  {block} = alloca [{max(1, len(words))} x i64], align 8")
    for number, word in enumerate(words):
        place = text.value(f"getelementptr i64, ptr {block}, i64 {number}")
        text.emit(f"store i64 {word}, ptr {place}")
    ctx.reads |= IMPURE
    function = ctx.module.text.declare(PACKED_SYMBOL, "i32", "ptr", "ptr")
    line = ctx.module.text.string(json.dumps([name.value, call.dtype, described, call.op == TRACE]))
    failed = text.value(f"call i32 {function}(ptr {line}, ptr {block})")
    ctx.forget_reads()
    require(ctx, text.value(f"icmp eq i32 {failed}, 0"), RAISED.format(name.value))
    return _result(ctx, call, text.value(f"load i64, ptr {block}"))


def _result(ctx: FunctionContext, call: Call, word: str) -> str:
    """The word that came back, as the call's dtype."""
    if call.op == TRACE and parse_dtype(call.dtype).is_float:
        return convert(ctx, "float64", call.dtype, ctx.text.value(f"bitcast i64 {word} to double"))
    kind = VALUE_TYPE[call.dtype]
    return word if kind == "i64" else ctx.text.value(f"trunc i64 {word} to {kind}")


def _argument(ctx: FunctionContext, name: str, arg: PrimExpr) -> tuple[list[str | int | bool], list[str]]:
    """What an argument is, and its words."""
    if isinstance(arg, StringImm):
        return ["string", arg.value], []
    if isinstance(arg, Call) and arg.op == ARRAY:
        return _array(ctx, arg)
    parsed = parse_dtype(arg.dtype)
    if parsed.lanes > 1 or parsed.code == "handle":
        raise CodegenError(f"In {ctx.name}: the Python function {name} can't take {arg} ({arg.dtype}); pass buffers, numbers and strings")
    if parsed.is_float:
        return ["float"], [ctx.text.value(f"bitcast double {convert(ctx, arg.dtype, 'float64', ctx.value(arg))} to i64")]
    return ["int"], [ctx.index_value(arg)]


def _array(ctx: FunctionContext, call: Call) -> tuple[list[str | int | bool], list[str]]:
    data, shape, strides, _, element, offset = call.args
    if not isinstance(data, Var) or not isinstance(shape, Call) or not isinstance(strides, Call):
        raise CodegenError(f"In {ctx.name}: an array argument is made of a pointer, a shape and strides, not {call}")
    # What Python does behind the pointer isn't known.
    ctx.read_through.add(data)
    ctx.written_through.add(data)
    start = ctx.text.value(f"mul i64 {ctx.index_value(offset)}, {parse_dtype(element.dtype).itemsize}")
    address = ctx.text.value(f"getelementptr i8, ptr {ctx.variable(data)}, i64 {start}")
    numbers = [ctx.index_value(extent) for extent in (*shape.args, *strides.args)]
    return ["array", element.dtype, len(shape.args), bool(strides.args)], [ctx.text.value(f"ptrtoint ptr {address} to i64"), *numbers]
