"""Addresses: an index as a sum of terms, each added to the pointer at the loop depth that determines it.

`A[i*1024 + k + 5]` in a loop over k inside one over i becomes a pointer to row i in front of the k loop, a step by k,
and the constant 20 as a displacement, which the machine's address forms take. All of it is 64-bit arithmetic; an index
of 32 bits counts as exact, since phase 1 chooses that width only where no element lies beyond it.
"""

from __future__ import annotations

from ..arith import linear_form
from ..tir.dtype import parse_dtype
from ..tir.expr import BinaryExpr, Broadcast, Call, Cast, CmpExpr, FloatImm, IntImm, LogicalExpr, Not, PrimExpr, Select, Var
from .context import FunctionContext
from .types import INDEX

_BIT_OPERATIONS = ("tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor", "tir.bitwise_not", "tir.shift_left", "tir.shift_right")

# The level of what must be written where it is used: reads of memory, calls, lets.
STAYS = 1 << 30


def _widens(cast: Cast) -> bool:
    """True for a conversion of an integer to one that holds all its values."""
    source, wanted = parse_dtype(cast.value.dtype), parse_dtype(cast.dtype)
    if not source.is_int or not wanted.is_int:
        return False
    return source.bits < wanted.bits and (wanted.is_signed or not source.is_signed)


def level_of(ctx: FunctionContext, expr: PrimExpr) -> int:
    """The loop depth at which an integer expression is determined, or `STAYS`."""
    if isinstance(expr, Var):
        if expr not in ctx.levels and ctx.find_wide(expr) is None:  # a variable of the function around gets its level here
            ctx.variable(expr)
        return ctx.levels[expr]
    return ctx.once(("level", id(expr)), lambda: _level(ctx, expr))


def _level(ctx: FunctionContext, expr: PrimExpr) -> int:
    match expr:
        case IntImm() | FloatImm():
            return 0
        case BinaryExpr(a, b) | CmpExpr(a, b) | LogicalExpr(a, b):
            return max(level_of(ctx, a), level_of(ctx, b))
        case Cast(_, value) | Broadcast(value, _) | Not(value):
            return level_of(ctx, value)
        case Select(condition, a, b):
            return max(level_of(ctx, condition), level_of(ctx, a), level_of(ctx, b))
        case Call(_, op, args) if op in _BIT_OPERATIONS:
            return max(level_of(ctx, arg) for arg in args)
    return STAYS


def element_pointer(ctx: FunctionContext, data: Var, index: PrimExpr, scale: int) -> tuple[str, int]:
    """The address `data + index * scale` bytes and its known alignment."""
    return ctx.once(("pointer", ctx.load_epoch, id(data), id(index), scale), lambda: _element_pointer(ctx, data, index, scale))


def _element_pointer(ctx: FunctionContext, data: Var, index: PrimExpr, scale: int) -> tuple[str, int]:
    pointer = ctx.variable(data)
    bits = ctx.alignments.get(data, 0) or 1
    level = ctx.levels[data]
    form = linear_form(index, _widens)
    terms = [(level_of(ctx, atom), atom, factor * scale) for atom, factor in form.terms.items()]
    if len(terms) > 1:
        # From the outermost loop in, so that an inner loop adds its steps to a pointer that is ready in front of it.
        terms.sort(key=lambda term: term[0])
    for at, atom, step in terms:
        level = max(level, at)
        pointer = _stepped(ctx, pointer, level, atom, step)
        bits |= step
    if ctx.load_epoch:
        pointer = _own_copy(ctx, pointer)
    if form.constant:
        # Written where it is used: the machine adds a constant for free, and hoisted it would hold a register.
        displacement = form.constant * scale
        bits |= displacement
        base = pointer
        pointer = ctx.once(("displaced", base, displacement), lambda: ctx.text.value(f"getelementptr i8, ptr {base}, i64 {displacement}"))
    # The lowest bit that is set in the array's alignment or any step: all of them are multiples of it.
    return pointer, bits & -bits


def _own_copy(ctx: FunctionContext, pointer: str) -> str:
    """The pointer as this epoch's loads see it: LLVM can't tell that it equals the epoch's before, so it merges no loads.

    Each copy is made of the one before, which is then of no use to anybody, so they need one register together.
    """
    latest: str = ctx.memo.get(("latest", pointer), pointer)

    def write() -> str:
        made = ctx.text.value(f'call ptr asm "", "=r,0"(ptr {latest}) nounwind')
        ctx.remember(("latest", pointer), made)
        return made

    return ctx.once(("own", ctx.load_epoch, pointer), write)


def _stepped(ctx: FunctionContext, pointer: str, level: int, atom: PrimExpr, step: int) -> str:
    """`pointer + atom * step`, written at a loop depth that knows both."""

    def write() -> str:
        offset, kind = ctx.index_value(atom), ctx.index_type(atom)
        # No type has a negative size, and the element type is what an index is multiplied by.
        if step < 0:
            return ctx.text.value(f"getelementptr i8, ptr {pointer}, i64 {ctx.text.value(f'mul i64 {ctx.index_as(INDEX, atom)}, {step}')}")
        return ctx.text.value(f"getelementptr {'i8' if step == 1 else f'[{step} x i8]'}, ptr {pointer}, {kind} {offset}")

    return ctx.once_at(level, ("step", pointer, id(atom), step), write)
