"""Calls as C: functions of C's math library by name, formulas, operators on bits, functions of others, and Python's."""

from __future__ import annotations

import json
from collections.abc import Callable

from ..errors import CodegenError
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, StringImm, Var
from ..tir.foreign import ARRAY, LIBM_FUNCTIONS, TRACE
from ..tir.intrin import INTRINSICS, intrinsic_of
from ..tir.op_registry import lowering_rule
from .c_context import EQUAL, PRODUCT, SUM, UNARY, CContext, Text, within
from .c_expressions import choice, convert, element, rounded, stored, string_literal
from .c_types import computed_in, float_literal, is_narrow, memory_type, value_type
from .signature import PACKED_SYMBOL, RAISED

CallHandler = Callable[[CContext, Call], Text]

# Of what C has no function: the value by its operand x, with constants of its type and functions of its name.
_FORMULAS = {
    "tir.rsqrt": "{one} / sqrt{f}({x})",
    "tir.sigmoid": "{one} / ({one} + exp{f}(-({x})))",
    "tir.exp10": "pow{f}({ten}, {x})",
}
_LEVELS = {"tir.rsqrt": PRODUCT, "tir.sigmoid": PRODUCT}
_BITWISE = {"tir.bitwise_and": "&", "tir.bitwise_or": "|", "tir.bitwise_xor": "^"}
# What standard headers declare, which may not be declared again; those of math.h are there anyway.
_HEADERS = {
    **dict.fromkeys(("printf", "puts", "putchar", "fflush"), "stdio.h"),
    **dict.fromkeys(("malloc", "calloc", "free", "abort", "exit", "abs", "labs", "rand", "srand", "atoi"), "stdlib.h"),
    **dict.fromkeys(("memcpy", "memset", "memmove", "memcmp", "strlen"), "string.h"),
    **dict.fromkeys(LIBM_FUNCTIONS, "math.h"),
}


def call(ctx: CContext, node: PrimExpr) -> Text:
    """Call."""
    assert isinstance(node, Call)
    row = intrinsic_of(node)
    rule = lowering_rule(node.op, ctx.module.target.kind.name)  # a user's, which goes before ours
    lowered = None if rule is None else rule(node)
    if isinstance(lowered, PrimExpr) and lowered is not node:
        return ctx.value(lowered)
    handler = _CALLS.get(node.op)
    if handler is not None:
        return handler(ctx, node)
    if row.kind in ("float", "predicate"):
        return _math(ctx, node)
    if node.op in ("tir.call_llvm_intrin", "tir.call_llvm_pure_intrin"):
        raise ctx.refuse(f"an intrinsic of LLVM ({node})")
    raise ctx.refuse(f"the intrinsic {node.op.removeprefix('tir.')} ({node})")


# Math


def _math(ctx: CContext, node: Call) -> Text:
    """A function of floats of one dtype; the narrow ones are computed in float."""
    dtype, name = computed_in(node.args[0].dtype), node.op.removeprefix("tir.")
    f = "" if dtype == "float64" else "f"
    if node.op in _FORMULAS:
        constants = {"one": float_literal(1.0, dtype), "ten": float_literal(10.0, dtype)}
        made = Text(_FORMULAS[node.op].format(f=f, x=ctx.text(node.args[0]), **constants), _LEVELS.get(node.op, UNARY))
    else:
        suffix = "" if INTRINSICS[node.op].kind == "predicate" else f
        made = Text(f"{name}{suffix}({', '.join(ctx.text(arg) for arg in node.args)})")
    if INTRINSICS[node.op].kind == "predicate":
        return Text(f"{made.text} != 0", EQUAL)  # any number says yes
    return rounded(ctx, node.dtype, made.text) if is_narrow(node.dtype) else made


def _fabs(ctx: CContext, node: Call) -> Text:
    parsed, value = parse_dtype(node.dtype), ctx.text(node.args[0])
    if parsed.is_float:
        return Text(f"fabs{'' if node.dtype == 'float64' else 'f'}({value})")
    if not parsed.is_signed:
        return ctx.value(node.args[0])
    kind = value_type(node.dtype)
    return Text(f"({kind}){ctx.module.helpers.extreme('max', node.dtype)}({value}, ({kind})(-({value})))", UNARY)


def _ldexp(ctx: CContext, node: Call) -> Text:
    value, power = (ctx.text(arg) for arg in node.args)
    made = f"ldexp{'' if node.dtype == 'float64' else 'f'}({value}, {power})"
    return rounded(ctx, node.dtype, made) if is_narrow(node.dtype) else Text(made)


# Bits


def _bitwise(ctx: CContext, node: Call) -> Text:
    a, b = (ctx.text(arg, UNARY) for arg in node.args)  # with all parentheses: few know how these bind
    return Text(f"({value_type(node.dtype)})({a} {_BITWISE[node.op]} {b})", UNARY)


def _bitwise_not(ctx: CContext, node: Call) -> Text:
    if node.dtype == "bool":
        return Text(f"!{ctx.text(node.args[0], UNARY)}", UNARY)
    return Text(f"({value_type(node.dtype)})~{ctx.text(node.args[0], UNARY)}", UNARY)


def _shift(ctx: CContext, node: Call) -> Text:
    parsed, to_left = parse_dtype(node.dtype), node.op == "tir.shift_left"
    low, high = ctx.limits(node.args[1])
    if not (low >= 0 and high < parsed.bits):
        helper = ctx.module.helpers.shift(to_left, node.dtype)
        return Text(f"{helper}({ctx.text(node.args[0])}, {ctx.text(node.args[1])})")
    value, count = (ctx.text(arg, UNARY) for arg in node.args)
    if to_left and parsed.is_signed:
        value = f"(uint{parsed.bits}_t){value}"  # bits may go out at the top
    return Text(f"({value_type(node.dtype)})({value} {'<<' if to_left else '>>'} {count})", UNARY)


def _counted(ctx: CContext, node: Call) -> Text:
    return Text(f"{ctx.module.helpers.count(node.op.removeprefix('tir.'), node.dtype)}({ctx.text(node.args[0])})")


def _reinterpret(ctx: CContext, node: Call) -> Text:
    [operand] = node.args
    source, wanted = operand.dtype, node.dtype
    if source == wanted:
        return ctx.value(operand)
    if "handle" in (source, wanted):
        return convert(ctx, source, wanted, ctx.value(operand))
    if is_narrow(wanted):
        return Text(f"{ctx.module.helpers.from_narrow(wanted)}({_bits(ctx, operand)})")
    if is_narrow(source) or not (parse_dtype(source).is_float or parse_dtype(wanted).is_float):
        return Text(f"({value_type(wanted)})({_bits(ctx, operand)})", UNARY)
    return Text(f"{ctx.module.helpers.bits_of(source, wanted)}({ctx.text(operand)})")


def _bits(ctx: CContext, operand: PrimExpr) -> str:
    return stored(ctx, operand) if is_narrow(operand.dtype) else ctx.text(operand)


# Conditions and hints


def _if_then_else(ctx: CContext, node: Call) -> Text:
    return choice(ctx, *node.args)


def _same(ctx: CContext, node: Call) -> Text:
    return ctx.value(node.args[0])


def _nothing(ctx: CContext, node: Call) -> Text:
    """Hints, which C has no words for; undef is zero, so that a program does the same every time."""
    return Text("0" if not parse_dtype(node.dtype).is_float else float_literal(0.0, computed_in(node.dtype)))


# Pointers


def _isnullptr(ctx: CContext, node: Call) -> Text:
    return Text(f"{ctx.text(node.args[0], SUM)} == NULL", EQUAL)


def _address_of(ctx: CContext, node: Call) -> Text:
    [what] = node.args
    if not isinstance(what, BufferLoad):
        raise ctx.refuse(f"the address of what is no element of a buffer ({node})")
    return _pointer(ctx, what.buffer.data, what.buffer.dtype, what.indices[0])


def _access_ptr(ctx: CContext, node: Call) -> Text:
    kind, data, offset, _, _ = node.args
    if not isinstance(data, Var):
        raise ctx.refuse(f"tvm_access_ptr of what is no pointer variable ({node})")
    lanes = parse_dtype(kind.dtype).lanes
    return _pointer(ctx, data, str(parse_dtype(kind.dtype).scalar), offset if lanes == 1 else offset * lanes)


def _pointer(ctx: CContext, data: Var, dtype: str, index: PrimExpr) -> Text:
    if data in ctx.single:
        raise ctx.refuse(f"the address of {data.name}, which is in registers,")
    place = element(ctx, data, dtype, index, written=True)
    ctx.read_through.add(data)  # what happens behind a pointer that is handed out isn't known
    if isinstance(index, IntImm) and index.value == 0:
        return Text(place.removesuffix("[0]"))
    return Text(f"&{place}", UNARY)


def _atomic_add(ctx: CContext, node: Call) -> Text:
    pointer, value = node.args
    kind = memory_type(node.dtype)
    if is_narrow(node.dtype):
        raise ctx.refuse(f"atomic_add of {node.dtype}")
    old, place = ctx.names.fresh("old"), ctx.names.fresh("place")
    ctx.emit(f"{kind}* {place} = ({kind}*)({ctx.text(pointer)});")
    ctx.emit(f"const {kind} by_{place} = {ctx.text(value)};")
    ctx.emit(f"{kind} {old};")
    ctx.directive("#ifdef _OPENMP")
    ctx.directive("#pragma omp atomic capture")
    ctx.directive("#endif")
    ctx.emit(f"{{ {old} = *{place}; *{place} += by_{place}; }}")
    ctx.emit(f"(void){old};")
    return Text(old)


# Functions of others


def _extern(ctx: CContext, node: Call) -> Text:
    """A C function by name, declared as it is called unless C source that came along or a header has it."""
    name, *args = node.args
    if not isinstance(name, StringImm):
        raise CodegenError(f"In {ctx.name}: {node.op} takes the function's name first, as a string")
    if name.value in ctx.module.symbols:
        raise ctx.refuse(f"a call of {name.value}, another function of the module, which takes packed arguments here,")
    if any(is_narrow(arg.dtype) for arg in (*args, node)):
        raise CodegenError(f"In {ctx.name}: {node.dtype} can't be passed to a C function; convert it to float32")
    texts = [ctx.text(arg) for arg in args]
    for arg in args:
        if isinstance(arg, Var) and arg.dtype == "handle":
            ctx.read_through.add(arg)
            ctx.written_through.add(arg)
    if name.value in _HEADERS:
        ctx.module.externs[name.value] = f"#include <{_HEADERS[name.value]}>"
    elif name.value not in ctx.module.externs:
        kinds = ["const char*" if isinstance(arg, StringImm) else value_type(arg.dtype) for arg in args]
        ctx.module.externs[name.value] = f"extern {value_type(node.dtype)} {name.value}({', '.join(kinds) or 'void'});"
    return Text(f"{name.value}({', '.join(texts)})")


def _packed(ctx: CContext, node: Call) -> Text:
    """A registered Python function: `codegen.packed_calls` says how its arguments travel."""
    name, *args = node.args
    if not isinstance(name, StringImm):
        raise CodegenError(f"In {ctx.name}: {node.op} takes the function's name first, as a string")
    if ctx.exit_label is not None:
        raise CodegenError(f"In {ctx.name}: the Python function {name.value} can't be called in a parallel loop or a vector")
    described, words = [], []
    for arg in args:
        kind, values = _argument(ctx, name.value, arg)
        described.append(kind)
        words += values
    ctx.module.externs[PACKED_SYMBOL] = f"int32_t (*{PACKED_SYMBOL})(const char* call, int64_t* words);"
    block = ctx.names.fresh("call_words")
    ctx.emit(f"int64_t {block}[{max(1, len(words))}];")
    for number, word in enumerate(words):
        ctx.emit(f"{block}[{number}] = {word};")
    line = string_literal(json.dumps([name.value, node.dtype, described, node.op == TRACE]))
    with ctx.block(f"if ({PACKED_SYMBOL}({line}, {block}) != 0) {{"):
        ctx.fail(RAISED.format(name.value))
    if node.op == TRACE and parse_dtype(node.dtype).is_float:
        traced = f"{ctx.module.helpers.bits_of('int64', 'float64')}({block}[0])"
        return convert(ctx, "float64", node.dtype, Text(traced))
    return Text(f"({value_type(node.dtype)}){block}[0]", UNARY)


def _argument(ctx: CContext, name: str, arg: PrimExpr) -> tuple[list[str | int | bool], list[str]]:
    if isinstance(arg, StringImm):
        return ["string", arg.value], []
    if isinstance(arg, Call) and arg.op == ARRAY:
        data, shape, strides, _, kind, offset = arg.args
        assert isinstance(data, Var)
        assert isinstance(shape, Call)
        assert isinstance(strides, Call)
        place = _pointer(ctx, data, kind.dtype, offset)
        numbers = [ctx.text(extent) for extent in (*shape.args, *strides.args)]
        return ["array", kind.dtype, len(shape.args), bool(strides.args)], [f"(int64_t)(intptr_t){within(place, UNARY)}", *numbers]
    parsed = parse_dtype(arg.dtype)
    if parsed.code == "handle":
        raise CodegenError(f"In {ctx.name}: the Python function {name} can't take {arg} ({arg.dtype}); pass buffers, numbers and strings")
    if parsed.is_float:
        bits = ctx.module.helpers.bits_of("float64", "int64")
        return ["float"], [f"{bits}({convert(ctx, arg.dtype, 'float64', ctx.value(arg)).text})"]
    return ["int"], [f"(int64_t){ctx.text(arg, UNARY)}"]


def no_value(node: PrimExpr) -> bool:
    """Whether a call is nothing but a hint."""
    return isinstance(node, Call) and _CALLS.get(node.op) is _nothing


def is_foreign(node: PrimExpr) -> bool:
    """Whether an expression is a call of a C function."""
    return isinstance(node, Call) and _CALLS.get(node.op) is _extern


_CALLS: dict[str, CallHandler] = {
    **dict.fromkeys(_BITWISE, _bitwise),
    **dict.fromkeys(("tir.shift_left", "tir.shift_right"), _shift),
    **dict.fromkeys(("tir.popcount", "tir.clz"), _counted),
    **dict.fromkeys(("tir.call_extern", "tir.call_pure_extern"), _extern),
    **dict.fromkeys(("tir.tvm_call_packed", TRACE), _packed),
    **dict.fromkeys(("tir.prefetch", "tir.no_load_merge", "tir.assume", "tir.undef"), _nothing),
    "tir.bitwise_not": _bitwise_not,
    "tir.fabs": _fabs,
    "tir.ldexp": _ldexp,
    "tir.reinterpret": _reinterpret,
    "tir.if_then_else": _if_then_else,
    "tir.likely": _same,
    "tir.isnullptr": _isnullptr,
    "tir.address_of": _address_of,
    "tir.tvm_access_ptr": _access_ptr,
    "tir.atomic_add": _atomic_add,
}
