"""Conditions inside expressions: Select, And, Or, and if_then_else, whose untaken arm must not be evaluated.

An arm that reads memory or calls out is put in a block of its own; under a vector condition its loads are masked lane
by lane instead. Arms of plain arithmetic are computed both, which is cheaper than a branch.
"""

from __future__ import annotations

from ..tir.dtype import parse_dtype
from ..tir.expr import And, BufferLoad, Call, Div, FloorDiv, FloorMod, IntImm, LogicalExpr, Mod, PrimExpr, Select
from ..tir.rewriting import children
from .arithmetic import inverted
from .context import FunctionContext
from .masks import surrounding
from .registers import is_register
from .types import VALUE_TYPE

_CHEAP_CALLS = {f"tir.{name}" for name in ("floor", "ceil", "trunc", "nearbyint", "fabs", "copysign", "fma", "popcount", "clz")}
_CHEAP_CALLS |= {f"tir.{name}" for name in ("isnan", "isinf", "isfinite", "likely", "reinterpret", "if_then_else")}
_CHEAP_CALLS |= {f"tir.{name}" for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right")}


def may_speculate(ctx: FunctionContext, expr: PrimExpr) -> bool:
    """True if evaluating `expr` where its value isn't wanted is harmless and cheap."""
    return ctx.once(("speculate", id(expr)), lambda: _may_speculate(ctx, expr))


def _may_speculate(ctx: FunctionContext, expr: PrimExpr) -> bool:
    match expr:
        case BufferLoad(buffer):
            return is_register(buffer)
        case Call(_, op):
            if op not in _CHEAP_CALLS:
                return False
        case Div() | Mod() | FloorDiv() | FloorMod():
            if not parse_dtype(expr.dtype).is_float and not isinstance(expr.b, IntImm):
                return False  # harmless here, but slow
    return all(may_speculate(ctx, child) for child in children(expr) if isinstance(child, PrimExpr))


def emit_select(ctx: FunctionContext, node: PrimExpr) -> str:
    """Select: both arms are evaluated."""
    assert isinstance(node, Select)
    return _select(ctx, node.condition, node.true_value, node.false_value)


def _select(ctx: FunctionContext, condition: PrimExpr, true_value: PrimExpr, false_value: PrimExpr) -> str:
    llvm_type = VALUE_TYPE[true_value.dtype]
    flag, a, b = ctx.value(condition), ctx.value(true_value), ctx.value(false_value)
    return ctx.text.value(f"select {VALUE_TYPE[condition.dtype]} {flag}, {llvm_type} {a}, {llvm_type} {b}")


def emit_if_then_else(ctx: FunctionContext, call: Call) -> str:
    """if_then_else: only the wanted arm is evaluated."""
    condition, true_value, false_value = call.args
    if may_speculate(ctx, true_value) and may_speculate(ctx, false_value):
        return _select(ctx, condition, true_value, false_value)
    lanes = parse_dtype(condition.dtype).lanes
    if lanes > 1:
        return _masked_select(ctx, condition, lanes, true_value, false_value)
    flag, llvm_type, text = ctx.value(condition), VALUE_TYPE[call.dtype], ctx.text
    then, otherwise, merge = text.fresh("then"), text.fresh("else"), text.fresh("merge")
    text.branch(flag, then, otherwise)
    incoming = []
    for label, arm in ((then, true_value), (otherwise, false_value)):
        text.start(label)
        with ctx.scope():
            value = ctx.value(arm)
        incoming.append((value, text.block))
        text.jump(merge)
    text.start(merge)
    return text.phi(llvm_type, *incoming)


def _masked_select(ctx: FunctionContext, condition: PrimExpr, lanes: int, true_value: PrimExpr, false_value: PrimExpr) -> str:
    flag = ctx.value(condition)
    kind, llvm_type = f"<{lanes} x i1>", VALUE_TYPE[true_value.dtype]
    values = []
    for arm, mask in ((true_value, flag), (false_value, "")):
        if may_speculate(ctx, arm):
            values.append(ctx.value(arm))
            continue
        active = mask or inverted(ctx, flag, lanes)
        # Nested conditionals: lanes run where the outer one lets them.
        if ctx.mask is not None:
            active = ctx.text.value(f"and {kind} {surrounding(ctx, lanes)}, {active}")
        with ctx.masked(active, lanes):
            values.append(ctx.value(arm))
    return ctx.text.value(f"select {kind} {flag}, {llvm_type} {values[0]}, {llvm_type} {values[1]}")


def emit_logical(ctx: FunctionContext, node: PrimExpr) -> str:
    """And and Or: the right side is skipped where the left side decides, if it reads memory."""
    assert isinstance(node, LogicalExpr)
    conjunction, lanes, text = isinstance(node, And), parse_dtype(node.dtype).lanes, ctx.text
    instruction, kind = "and" if conjunction else "or", VALUE_TYPE[node.dtype]
    a = ctx.value(node.a)
    if may_speculate(ctx, node.b):
        return text.value(f"{instruction} {kind} {a}, {ctx.value(node.b)}")
    if lanes > 1:
        active = a if conjunction else inverted(ctx, a, lanes)
        if ctx.mask is not None:
            active = text.value(f"and {kind} {surrounding(ctx, lanes)}, {active}")
        with ctx.masked(active, lanes):
            b = ctx.value(node.b)
        return text.value(f"{instruction} {kind} {a}, {b}")
    right, merge, before = text.fresh("right"), text.fresh("merge"), text.block
    text.branch(a, *((right, merge) if conjunction else (merge, right)))
    text.start(right)
    with ctx.scope():
        b = ctx.value(node.b)
    after = text.block
    text.jump(merge)
    text.start(merge)
    return text.phi("i1", ("false" if conjunction else "true", before), (b, after))
