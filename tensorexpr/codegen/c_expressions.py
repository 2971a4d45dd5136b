"""Expressions as C: arithmetic as operators where these mean the same, else as helpers."""

from __future__ import annotations

from ..tir.dtype import parse_dtype
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    StringImm,
    Sub,
    Var,
)  # fmt: skip
from .c_context import AND, CHOICE, EQUAL, OR, ORDER, PRIMARY, PRODUCT, SUM, UNARY, CContext, ExprHandler, Text, is_impure, within
from .c_types import computed_in, float_literal, int_literal, is_narrow, memory_type, value_type
from .casts import is_between
from .types import computed, float_bits

_OPERATORS: dict[type[PrimExpr], tuple[str, int]] = {
    Add: ("+", SUM),
    Sub: ("-", SUM),
    Mul: ("*", PRODUCT),
    Div: ("/", PRODUCT),
    **dict.fromkeys((FloorDiv,), ("/", PRODUCT)),
    **dict.fromkeys((Mod, FloorMod), ("%", PRODUCT)),
    **{kind: (sign, ORDER) for kind, sign in ((LT, "<"), (LE, "<="), (GT, ">"), (GE, ">="))},
    **{kind: (sign, EQUAL) for kind, sign in ((EQ, "=="), (NE, "!="))},
}
_HELPERS: dict[type[PrimExpr], str] = {Div: "div", Mod: "mod", FloorDiv: "floordiv", FloorMod: "floormod", Min: "min", Max: "max"}
_ON_BOOLS: dict[type[PrimExpr], str] = {Add: "!=", Sub: "!=", Mul: "&&"}


def _int(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, IntImm)
    return Text(int_literal(node.value, node.dtype), UNARY if node.value < 0 else PRIMARY)


def _float(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, FloatImm)
    value = float(node)
    return Text(float_literal(value, computed_in(node.dtype)), UNARY if value < 0 else PRIMARY)


def _string(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, StringImm)
    return Text(string_literal(node.value))


def string_literal(text: str) -> str:
    """A string of C, in bytes of UTF-8."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def _variable(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, Var)
    return Text(ctx.variable(node))


# Arithmetic


def _binary(ctx: CContext, node: PrimExpr) -> Text:
    """Add, Sub, Mul, and Div of floats."""
    assert isinstance(node, BinaryExpr)
    parsed = parse_dtype(node.dtype)
    computed(parsed)
    if parsed.code == "bool":
        sign = _ON_BOOLS[type(node)]
        level = AND if sign == "&&" else EQUAL
        return Text(f"{ctx.text(node.a, UNARY)} {sign} {ctx.text(node.b, UNARY)}", level)
    sign, level = _OPERATORS[type(node)]
    made = Text(f"{_operand(ctx, node.a, node.b, level)} {sign} {_operand(ctx, node.b, node.a, level + 1)}", level)
    if is_narrow(node.dtype):
        return rounded(ctx, node.dtype, made.text)
    if not parsed.is_float and parsed.bits < 32:  # C computes in int
        return Text(f"({value_type(node.dtype)})({made.text})", UNARY)
    return made


def _operand(ctx: CContext, node: PrimExpr, other: PrimExpr, level: int) -> str:
    """One side of an operator: a constant has the type of the other side, if that is none."""
    if isinstance(node, IntImm) and node.dtype == "int64" and not isinstance(other, IntImm) and abs(node.value) < 1 << 31:
        return str(node.value)
    return ctx.text(node, level)


def rounded(ctx: CContext, dtype: str, value: str) -> Text:
    """A float as the narrow float next to it."""
    return Text(f"{ctx.module.helpers.rounded(dtype)}({value})", PRIMARY, value)


def _division(ctx: CContext, node: PrimExpr) -> Text:
    """Div, Mod, FloorDiv, FloorMod: operators where both sides are positive, or truncation is meant and the divisor known."""
    assert isinstance(node, BinaryExpr)
    if parse_dtype(node.dtype).is_float:
        if isinstance(node, Div):
            return _binary(ctx, node)
        raise ctx.refuse(f"{type(node).__name__} of {node.dtype} (floats take tir.floor(a / b) or tir.fmod(a, b)), which")
    low, (least, most) = ctx.limits(node.a)[0], ctx.limits(node.b)
    truncates = isinstance(node, (Div, Mod)) or low >= 0
    # The least integer divided by -1 has no room.
    if truncates and (least > 0 or (most < -1 and isinstance(node, (Div, Mod)))):
        sign, level = _OPERATORS[type(node)]
        return Text(f"{_operand(ctx, node.a, node.b, level)} {sign} {_operand(ctx, node.b, node.a, level + 1)}", level)
    helper = ctx.module.helpers.quotient(_HELPERS[type(node)], node.dtype)
    return Text(f"{helper}({ctx.text(node.a)}, {ctx.text(node.b)})")


def _extreme(ctx: CContext, node: PrimExpr) -> Text:
    """Min, Max."""
    assert isinstance(node, BinaryExpr)
    computed(parse_dtype(node.dtype))
    helper = ctx.module.helpers.extreme(_HELPERS[type(node)], computed_in(node.dtype))
    return Text(f"{helper}({ctx.text(node.a)}, {ctx.text(node.b)})")


def _compare(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, CmpExpr)
    computed(parse_dtype(node.a.dtype))
    sign, level = _OPERATORS[type(node)]
    if node.a is node.b and not parse_dtype(node.a.dtype).is_float:  # which compilers warn of
        return Text("true" if isinstance(node, (EQ, LE, GE)) else "false")
    # Compilers warn of comparisons of comparisons, so that these get parentheses.
    return Text(f"{_operand(ctx, node.a, node.b, SUM)} {sign} {_operand(ctx, node.b, node.a, SUM)}", level)


# Conditions


def _not(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, Not)
    return Text(f"!{ctx.text(node.a, UNARY)}", UNARY)


def _logical(ctx: CContext, node: PrimExpr) -> Text:
    """And, Or: the right side is evaluated where it decides."""
    assert isinstance(node, LogicalExpr)
    conjunction = isinstance(node, And)
    sign, level = ("&&", AND) if conjunction else ("||", OR)
    left = ctx.value(node.a)
    lines, right = ctx.arm(node.b)
    # `a || b && c` is right, and compilers warn of it.
    inner = level if conjunction else EQUAL
    if not lines:
        a = left.text if left.level == level else within(left, inner)
        return Text(f"{a} {sign} {within(right, inner if conjunction else EQUAL)}", level)
    name = ctx.names.fresh("holds")
    ctx.emit(f"bool {name} = {left.text};")
    with ctx.block(f"if ({'' if conjunction else '!'}{name}) {{"):
        ctx.lines += lines
        ctx.emit(f"{name} = {right.text};")
    return Text(name)


def _select(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, Select)
    return choice(ctx, node.condition, node.true_value, node.false_value)


def choice(ctx: CContext, condition: PrimExpr, true_value: PrimExpr, false_value: PrimExpr) -> Text:
    """One of two values; the other one is not evaluated."""
    flag = ctx.value(condition)
    (before_a, a), (before_b, b) = ctx.arm(true_value), ctx.arm(false_value)
    if not before_a and not before_b:
        return Text(f"{within(flag, ORDER)} ? {within(a, OR)} : {within(b, CHOICE)}", CHOICE)
    name = ctx.names.fresh("chosen")
    ctx.emit(f"{value_type(true_value.dtype)} {name};")
    for head, lines, made in ((f"if ({flag.text}) {{", before_a, a), ("} else {", before_b, b)):
        ctx.emit(head)
        ctx.lines += lines
        ctx.emit(f"  {name} = {made.text};")
    ctx.emit("}")
    return Text(name)


def _let(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, Let)
    define(ctx, node.var, node.value)
    return ctx.value(node.body)


def define(ctx: CContext, var: Var, value: PrimExpr) -> None:
    """A variable with its value."""
    text = ctx.text(value)
    kind = f"{ctx.elements[var]}*" if var in ctx.elements else value_type(var.dtype)
    name = ctx.bind(var)
    ctx.emit(f"{kind} {name} = ({kind})({text});" if var.dtype == "handle" else f"const {kind} {name} = {text};")
    if is_impure(value):
        ctx.effects.add(name)


# Conversions


def _cast(ctx: CContext, node: PrimExpr) -> Text:
    assert isinstance(node, Cast)
    source, wanted = node.value.dtype, node.dtype
    have, want = parse_dtype(source), parse_dtype(wanted)
    if have.is_float and have.bits <= 32 and want.is_int and want.bits <= 32 and is_between(node.value, want):
        return Text(f"({value_type(wanted)}){ctx.text(node.value, UNARY)}", UNARY)
    return convert(ctx, source, wanted, ctx.value(node.value))


def convert(ctx: CContext, source: str, wanted: str, value: Text) -> Text:
    """A value of one dtype as another one: integers wrap, floats become integers within their range by truncation."""
    if source == wanted:
        return value
    have, want, helpers = parse_dtype(source), parse_dtype(wanted), ctx.module.helpers
    plain = Text(f"({value_type(wanted)}){within(value, UNARY)}", UNARY)
    if want.code == "bool":
        return Text(f"{within(value, SUM)} != {'NULL' if have.code == 'handle' else '0'}", EQUAL)
    if is_narrow(wanted):
        if is_narrow(source) or source == "float32" or (not have.is_float and have.bits < 32):
            return rounded(ctx, wanted, value.text)
        exact = value.text
        if have.bits == 64 and not have.is_float and want.code == "bfloat":  # the other floats end where float64 has every integer
            exact = f"{helpers.odd(source)}({exact})"
        return rounded(ctx, wanted, f"{helpers.odd('float64')}({exact})")
    if have.is_float and want.is_float:
        return value if is_narrow(source) and wanted == "float32" else plain
    if have.is_float:
        return Text(f"{helpers.to_integer(computed_in(source), wanted)}({value.text})")
    if "handle" in (have.code, want.code):
        return Text(f"({value_type(wanted)})(uintptr_t){within(value, UNARY)}", UNARY)
    return plain


# Memory


def load(ctx: CContext, node: PrimExpr) -> Text:
    """BufferLoad."""
    assert isinstance(node, BufferLoad)
    if node.predicate is not None:
        raise ctx.refuse(f"a predicate of a load of one element ({node})")
    place = element(ctx, node.buffer.data, node.buffer.dtype, node.indices[0])
    if is_narrow(node.dtype):
        return Text(f"{ctx.module.helpers.from_narrow(node.dtype)}({place})")
    return Text(f"{place} != 0", EQUAL) if node.dtype == "bool" else Text(place)


def element(ctx: CContext, data: Var, dtype: str, index: PrimExpr, written: bool = False) -> str:
    """An element of memory, to be read or written."""
    (ctx.written_through if written else ctx.read_through).add(data)
    name, wanted = ctx.variable(data), memory_type(dtype)
    if data in ctx.single:
        return name
    have = ctx.elements.get(data)
    if have != wanted:
        if have is not None:
            ctx.module.notes["Compile with -fno-strict-aliasing: memory is accessed as elements of several types."] = None
        name = f"(({wanted}*){name})"
    return f"{name}[{ctx.text(index)}]"


def stored(ctx: CContext, node: PrimExpr) -> str:
    """What a store of a value writes: of narrow floats their bits."""
    if not is_narrow(node.dtype):
        return ctx.text(node)
    match node:
        case FloatImm():
            return f"{int(float_bits(float(node), node.dtype)):#x}"
        case BufferLoad(buffer, indices, _):  # a copy keeps all bits of a NaN
            return element(ctx, buffer.data, buffer.dtype, indices[0])
        case Call(_, "tir.reinterpret", (bits,)) if bits.dtype == memory_type(node.dtype).removesuffix("_t"):
            return ctx.text(bits)
    made = ctx.value(node)
    return f"{ctx.module.helpers.to_narrow(node.dtype)}({made.exact or made.text})"


EXPRESSIONS: dict[type, ExprHandler] = {
    IntImm: _int,
    FloatImm: _float,
    StringImm: _string,
    Var: _variable,
    **dict.fromkeys((Add, Sub, Mul), _binary),
    **dict.fromkeys((Div, Mod, FloorDiv, FloorMod), _division),
    **dict.fromkeys((Min, Max), _extreme),
    **dict.fromkeys((EQ, NE, LT, LE, GT, GE), _compare),
    **dict.fromkeys((And, Or), _logical),
    Not: _not,
    Select: _select,
    Cast: _cast,
    Let: _let,
    BufferLoad: load,
}
