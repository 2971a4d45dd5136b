"""Buffers of scope "register": every slot is an SSA value, with phis where control flow joins.

LLVM never sees memory there, so an accumulator tile stays in vector registers whatever LLVM's own passes do.
Every index is a constant: phase 2 promotes a buffer only then.

LLVM carries vectors of `i1` between blocks bit by bit. A mask is 0 or -1 there, in integers as wide as what was compared, which is what
comparisons of vectors make: `acc |= x > 0.5` of floats is a comparison and an `or`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CodegenError
from ..lower.rebuild import walk_statements
from ..tir.buffer import Buffer
from ..tir.dtype import parse_dtype
from ..tir.expr import BufferLoad, Call, CmpExpr, IntImm, PrimExpr
from ..tir.rewriting import walk
from ..tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from .context import FunctionContext, Slot
from .memo import REGISTERS
from .types import POISON, VALUE_TYPE

SCOPE = "register"
_Slots = dict[Slot, str]


def is_register(buffer: Buffer) -> bool:
    """True for a buffer that lives in SSA values."""
    return buffer.scope() == SCOPE


def slot_of(name: str, buffer: Buffer, indices: Sequence[PrimExpr]) -> Slot:
    """The slot that constant indices name.

    Raises:
        CodegenError: for an index that is no constant.
    """
    index = indices[0] if len(indices) == 1 else None
    if not isinstance(index, IntImm):
        shown = ", ".join(map(str, indices))
        raise CodegenError(
            f"In {name}: {buffer.name}[{shown}] is in registers, where every index is a constant; unroll the loops around it, "
            'or give the buffer scope "local"'
        )
    return buffer.data, index.value


def find(ctx: FunctionContext, slot: Slot) -> str:
    """The present value of a slot; poison before the first store."""
    found = ctx.registers.get(slot)
    if found is not None:
        return found
    if ctx.parent is None:
        return POISON
    outer = find(ctx.parent, slot)
    if outer == POISON:
        return POISON
    # An outlined body is a function of its own: the value comes in as an argument, once, however often it is read.
    captured = ctx.registers[slot] = ctx.capture(ctx.parent.slot_types[slot], outer, slot[0].name)
    return captured


def allocate(ctx: FunctionContext, stmt: Allocate) -> None:
    """Slots that hold nothing yet."""
    var = stmt.buffer_var
    for slot in [slot for slot in ctx.registers if slot[0] is var]:
        del ctx.registers[slot]  # the same allocation met again holds nothing yet
    dtype = parse_dtype(stmt.dtype)
    if dtype.code == "bool" and dtype.lanes > 1:
        values = [one.value for one in walk_statements(stmt.body) if isinstance(one, BufferStore) and one.buffer.data is var]
        compared = (parse_dtype(node.a.dtype).bits for value in values for node in walk(value) if isinstance(node, CmpExpr))
        ctx.mask_bits[var] = max(compared, default=8)


def _type(ctx: FunctionContext, buffer: Buffer) -> str:
    """The LLVM type of a slot."""
    bits = ctx.mask_bits.get(buffer.data)
    return VALUE_TYPE[buffer.dtype if bits is None else f"int{bits}x{parse_dtype(buffer.dtype).lanes}"]


def load(ctx: FunctionContext, buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
    """The value of a slot."""
    ctx.reads |= REGISTERS
    value = find(ctx, slot_of(ctx.name, buffer, indices))
    if buffer.data not in ctx.mask_bits:
        return value
    return ctx.text.value(f"icmp slt {_type(ctx, buffer)} {value}, zeroinitializer")


def value_of(ctx: FunctionContext, buffer: Buffer, expr: PrimExpr) -> str:
    """A value as the slots of a buffer hold it."""
    if buffer.data not in ctx.mask_bits:
        return ctx.value(expr)
    llvm_type = _type(ctx, buffer)
    match expr:
        # as a conversion of the whole, LLVM would make the slot itself a vector of `i1`
        case Call(op="tir.bitwise_or" | "tir.bitwise_and", args=(a, b)):
            first, second = value_of(ctx, buffer, a), value_of(ctx, buffer, b)
            return ctx.text.value(f"{expr.op.removeprefix('tir.bitwise_')} {llvm_type} {first}, {second}")
        case BufferLoad() if expr.buffer.data is buffer.data and expr.predicate is None:
            ctx.reads |= REGISTERS
            return find(ctx, slot_of(ctx.name, buffer, expr.indices))
    return ctx.text.value(f"sext {VALUE_TYPE[expr.dtype]} {ctx.value(expr)} to {llvm_type}")


def store(ctx: FunctionContext, buffer: Buffer, indices: Sequence[PrimExpr], value: str, mask: str | None) -> None:
    """Set a slot to a `value_of` its buffer, or the lanes of it where `mask` holds."""
    slot = slot_of(ctx.name, buffer, indices)
    llvm_type = _type(ctx, buffer)
    # The lanes that are off keep what they had; there is no masked store to a value.
    if mask is not None:
        lanes = parse_dtype(buffer.dtype).lanes
        condition = "i1" if lanes == 1 else f"<{lanes} x i1>"
        value = ctx.text.value(f"select {condition} {mask}, {llvm_type} {value}, {llvm_type} {find(ctx, slot)}")
    ctx.registers[slot] = value
    ctx.slot_types[slot] = llvm_type
    ctx.invalidate(REGISTERS)


def assigned(ctx: FunctionContext, stmt: Stmt) -> tuple[Slot, ...]:
    """The slots that a loop or conditional sets and that outlive it, in order of first store."""
    found = ctx.assigned.get(id(stmt))
    if found is None:
        slots = _scan(ctx, stmt)
        ctx.slot_types.update(slots)
        found = ctx.assigned.setdefault(id(stmt), tuple(slots))
    return found


def _scan(ctx: FunctionContext, stmt: Stmt) -> _Slots:
    """Slots (with their types) that a statement sets; noted for every loop and conditional inside it."""
    match stmt:
        case BufferStore(buffer, _, indices):
            return {slot_of(ctx.name, buffer, indices): _type(ctx, buffer)} if is_register(buffer) else {}
        case SeqStmt(parts):
            return _union(ctx, *parts)
        case For(body=body) | While(body=body):
            # One pass notes inner statements too: asking for each anew would take quadratic time in the depth.
            return _noted(ctx, stmt, _scan(ctx, body))
        case IfThenElse(_, then_case, else_case):
            return _noted(ctx, stmt, _union(ctx, then_case, *((else_case,) if else_case else ())))
        case Allocate(buffer_var=var, body=body):
            # Slots allocated inside are new in each round, and need no phi around it.
            return {slot: kind for slot, kind in _scan(ctx, body).items() if slot[0] is not var}
        case (
            AllocateConst(body=body)
            | LetStmt(body=body)
            | AssertStmt(body=body)
            | AttrStmt(body=body)
            | DeclBuffer(body=body)
            | BufferRealize(body=body)
        ):
            return _scan(ctx, body)
    return {}


def _union(ctx: FunctionContext, *parts: Stmt) -> _Slots:
    slots: _Slots = {}
    for part in parts:
        slots.update(_scan(ctx, part))
    return slots


def _noted(ctx: FunctionContext, stmt: Stmt, slots: _Slots) -> _Slots:
    ctx.assigned[id(stmt)] = tuple(slots)
    ctx.slot_types.update(slots)  # a loop may have its own slots, which no statement around it sees
    return slots


def snapshot(ctx: FunctionContext, slots: Sequence[Slot]) -> list[str]:
    """The present values of some slots."""
    return [find(ctx, slot) for slot in slots]


def join(ctx: FunctionContext, slots: Sequence[Slot], *arms: tuple[list[str], str]) -> None:
    """At the start of a block that several (values, label) reach: each slot becomes a phi of its values."""
    for number, slot in enumerate(slots):
        ctx.registers[slot] = ctx.text.phi(ctx.slot_types[slot], *((values[number], label) for values, label in arms))
    if slots:
        ctx.invalidate(REGISTERS)
