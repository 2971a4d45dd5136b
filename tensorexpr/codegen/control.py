"""Loops, branches, bindings and asserts.

A loop counts in 64 bits and is rotated: one test before it where it may be empty, one at its end. Register slots that
its body sets are phis at its head.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CodegenError
from ..target.machine import is_fused
from ..tir.expr import And, Call, IntImm, Let, PrimExpr, Range, StringImm
from ..tir.stmt import (
    AssertStmt,
    AttrStmt,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from ..tir.thread import bound_tag
from . import registers
from .context import FunctionContext, Loop, Slot
from .types import identifier

# A shorter loop isn't worth the time that LLVM takes to look at it.
_FEW_STEPS = 8
# Accumulators that are added to in all iterations of a loop that are written out, lines of LLVM's text for these, and the registers of
# machines whose tiles are so small that it matters.
_SUMMED_AT_ONCE, _WRITTEN_OUT, _FEW_REGISTERS = 48, 256, 16
# The weights of a branch that is taken but at a border.
_LIKELY = '!{!"branch_weights", i32 2000, i32 1}'


def statement(ctx: FunctionContext, stmt: Stmt) -> None:
    """The code of a statement, appended here."""
    handler = ctx.module.statements.get(type(stmt))
    if handler is None:
        raise CodegenError(f"In {ctx.name}: {type(stmt).__name__} has no code; lower the function through phase 3 first")
    handler(ctx, stmt)


def emit_sequence(ctx: FunctionContext, stmt: Stmt) -> None:
    """SeqStmt."""
    assert isinstance(stmt, SeqStmt)
    for part in stmt.seq:
        statement(ctx, part)


def bounds(ctx: FunctionContext, loop: For) -> tuple[str, str]:
    """The first value of a loop's variable and the one after the last, in the variable's index type."""
    kind = ctx.index_type(loop.loop_var)
    first = ctx.index_as(kind, loop.min)
    if isinstance(loop.min, IntImm) and isinstance(loop.extent, IntImm):
        return first, str(loop.min.value + loop.extent.value)
    extent = ctx.index_as(kind, loop.extent)
    return first, extent if first == "0" else ctx.text.value(f"add {kind} {first}, {extent}")


def emit_serial(ctx: FunctionContext, loop: For) -> None:
    """A loop that runs in order."""
    extent = loop.extent.value if isinstance(loop.extent, IntImm) else None
    if extent is not None and extent <= 0:
        return
    if extent == 1:
        _single(ctx, loop)
        return
    first, last = bounds(ctx, loop)
    run(ctx, loop, first, last, may_be_empty=extent is None)


def _single(ctx: FunctionContext, loop: For) -> None:
    """A loop of one iteration: its variable is a value."""
    ctx.wide[loop.loop_var] = ctx.index_as(ctx.index_type(loop.loop_var), loop.min)
    ctx.values.pop(loop.loop_var, None)  # of an earlier loop over the same variable
    ctx.levels[loop.loop_var] = 0 if isinstance(loop.min, IntImm) else len(ctx.loops)
    with ctx.scope(), ctx.ranged(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
        statement(ctx, loop.body)


def _is_undecided(loop: For, lines: Sequence[str | list[str]]) -> bool:
    """Whether a schedule has said nothing about an innermost loop: it runs in order, on single elements, and isn't just a few steps."""
    few = isinstance(loop.extent, IntImm) and loop.extent.value < _FEW_STEPS
    if few or loop.kind is not ForKind.SERIAL:
        return False
    # Lists are reserved places, for phis and for what stands in front of loops: no steps of the body.
    written = [line for line in lines if isinstance(line, str)]
    innermost = not any("!llvm.loop" in line for line in written)  # an inner loop ends in a branch that names its metadata
    scalar = not any("<" in line and " x " in line for line in written)  # vector types are `<8 x float>`
    return innermost and scalar


def _at_once(ctx: FunctionContext, loop: For, slots: Sequence[Slot], inside: int) -> int:
    """How many iterations of an innermost loop over register tiles are written one behind the other.

        6 x 2 with AVX2: 12 multiply-adds, 8 loads and 3 instructions of the loop    ->    48, 32 and 3

    Where accumulators leave a quarter of the registers to other values: LLVM loads for an iteration while the one before multiplies, and
    would move accumulators to the stack for it. (Two cores of a Zen 3 server whose other threads are other guests': docs/performance.md,
    "Steps one behind the other".)

    Args:
        slots: the accumulators.
        inside: the number of the body's first line.
    """
    tile, target = len(slots), ctx.module.target
    # Tiles of 32 registers have twice as many steps for each of the loop's own; nobody has measured them.
    if not 0 < 4 * tile <= 3 * target.vector_registers or target.vector_registers > _FEW_REGISTERS or not is_fused(target.features):
        return 1
    if not all(ctx.slot_types[slot].startswith("<") and ctx.slot_types[slot].endswith("float>") for slot in slots):
        return 1
    written = [line for line in ctx.text.lines[inside:] if isinstance(line, str)]
    if any(line.startswith("  br ") for line in written):
        return 1
    count = next((n for n in (8, 4, 2) if n * tile <= _SUMMED_AT_ONCE and n * len(written) <= _WRITTEN_OUT), 1)
    return 1 if isinstance(loop.extent, IntImm) and loop.extent.value < 2 * count else count


def run(ctx: FunctionContext, loop: For, first: str, last: str, may_be_empty: bool) -> None:
    """`loop.body` for the values of its variable from `first` up to, not including, `last`."""
    text, name, kind = ctx.text, identifier(loop.loop_var.name), ctx.index_type(loop.loop_var)
    slots = registers.assigned(ctx, loop)
    text.comment(f"for {loop.loop_var.name}")
    body, done = text.fresh(f"for.{name}"), text.fresh("done")
    preheader = text.reserve()
    before, initial = text.block, registers.snapshot(ctx, slots)
    if may_be_empty:
        text.branch(text.value(f"icmp slt {kind} {first}, {last}"), body, done)
    else:
        text.jump(body)
    text.start(body)
    # The phis are written when the body has given the values that come back.
    phis, variable = text.reserve(), f"%{text.fresh(name)}"
    heads = [f"%{text.fresh(identifier(slot[0].name))}" for slot in slots]
    ctx.registers.update(zip(slots, heads, strict=True))
    # What the body writes, its next round reads: loads from before the loop don't count inside.
    ctx.forget_reads()
    ctx.loops.append(Loop(preheader))
    inside = len(text.lines)
    outer_epoch = ctx.load_epoch
    ctx.wide[loop.loop_var] = variable
    ctx.values.pop(loop.loop_var, None)
    ctx.levels[loop.loop_var] = len(ctx.loops)
    with ctx.scope(), ctx.ranged(loop.loop_var, Range.from_min_extent(loop.min, loop.extent)):
        statement(ctx, loop.body)
    ctx.loops.pop()
    ctx.load_epoch = outer_epoch
    at_once = _at_once(ctx, loop, slots, inside)
    final, latch = registers.snapshot(ctx, slots), text.block
    # It can't overflow: the counter ends at `last`, which is of its type.
    following = text.value(f"add nsw {kind} {variable}, 1")
    whole_numbers = all(ctx.slot_types[slot].startswith("i") for slot in slots)  # sums of others keep their order, one by one
    node = ctx.module.text.loop_node(whole_numbers and _is_undecided(loop, text.lines[inside:]), at_once)
    text.branch(text.value(f"icmp slt {kind} {following}, {last}"), body, done, f", !llvm.loop !{node}")
    phis.append(f"  {variable} = phi {kind} [ {first}, %{before} ], [ {following}, %{latch} ]")
    for slot, head, start, end in zip(slots, heads, initial, final, strict=True):
        phis.append(f"  {head} = phi {ctx.slot_types[slot]} [ {start}, %{before} ], [ {end}, %{latch} ]")
    text.start(done)
    # A loop that surely runs is the only way here, so its last values hold as they are.
    if may_be_empty:
        registers.join(ctx, slots, (initial, before), (final, latch))


def emit_while(ctx: FunctionContext, stmt: Stmt) -> None:
    """While: the condition is tested before each round."""
    assert isinstance(stmt, While)
    text, slots = ctx.text, registers.assigned(ctx, stmt)
    text.comment("while")
    test, body, done = (text.fresh(hint) for hint in ("while", "body", "done"))
    preheader = text.reserve()
    before, initial = text.block, registers.snapshot(ctx, slots)
    text.jump(test)
    text.start(test)
    # The heads are known before the condition is written, which may read the slots.
    phis, heads = text.reserve(), [f"%{text.fresh(identifier(slot[0].name))}" for slot in slots]
    ctx.registers.update(zip(slots, heads, strict=True))
    ctx.forget_reads()
    ctx.loops.append(Loop(preheader))
    with ctx.scope():
        text.branch(ctx.value(stmt.condition), body, done)
        left = text.block  # the condition may have begun blocks of its own
        text.start(body)
        statement(ctx, stmt.body)
    ctx.loops.pop()
    final, latch = registers.snapshot(ctx, slots), text.block
    text.emit(f"br label %{test}, !llvm.loop !{ctx.module.text.loop_node()}")
    for slot, head, start, end in zip(slots, heads, initial, final, strict=True):
        phis.append(f"  {head} = phi {ctx.slot_types[slot]} [ {start}, %{before} ], [ {end}, %{latch} ]")
    text.start(done)
    registers.join(ctx, slots, (heads, left))


def emit_if(ctx: FunctionContext, stmt: Stmt) -> None:
    """IfThenElse."""
    assert isinstance(stmt, IfThenElse)
    if isinstance(stmt.condition, IntImm):
        chosen = stmt.then_case if stmt.condition.value else stmt.else_case
        if chosen is not None:
            statement(ctx, chosen)
        return
    text, slots = ctx.text, registers.assigned(ctx, stmt)
    text.comment("if")
    initial = registers.snapshot(ctx, slots)
    weights = f", !prof !{ctx.module.text.node(_LIKELY)}" if _is_likely(stmt.condition) else ""
    condition = ctx.value(stmt.condition)
    then, merge = text.fresh("then"), text.fresh("endif")
    otherwise = text.fresh("else") if stmt.else_case is not None else merge
    before = text.block
    text.branch(condition, then, otherwise, weights)
    # Without an else the branch itself goes to the end, with the values from before.
    arms = [] if stmt.else_case is not None else [(initial, before)]
    for label, case in ((then, stmt.then_case), (otherwise, stmt.else_case)):
        if case is not None:
            text.start(label)
            # Either arm starts from what held before the branch.
            ctx.registers.update(zip(slots, initial, strict=True))
            ctx.conditions += 1
            with ctx.scope():
                statement(ctx, case)
            ctx.conditions -= 1
            arms.append((registers.snapshot(ctx, slots), text.block))
            text.jump(merge)
    text.start(merge)
    registers.join(ctx, slots, *arms)


def _is_likely(condition: PrimExpr) -> bool:
    match condition:
        case Call(_, "tir.likely"):
            return True
        case And(a, b):
            return _is_likely(a) or _is_likely(b)
    return False


def emit_let_stmt(ctx: FunctionContext, stmt: Stmt) -> None:
    """LetStmt."""
    assert isinstance(stmt, LetStmt)
    ctx.bind(stmt.var, ctx.value(stmt.value))
    with ctx.scope():
        statement(ctx, stmt.body)


def emit_let(ctx: FunctionContext, node: PrimExpr) -> str:
    """Let: what depends on the variable is not remembered beyond the body."""
    assert isinstance(node, Let)
    ctx.bind(node.var, ctx.value(node.value))
    with ctx.scope():
        return ctx.value(node.body)


def emit_assert(ctx: FunctionContext, stmt: Stmt) -> None:
    """AssertStmt: where the condition fails, the function returns the number of the message."""
    assert isinstance(stmt, AssertStmt)
    message = stmt.message.value if isinstance(stmt.message, StringImm) else str(stmt.message)
    if not (isinstance(stmt.condition, IntImm) and stmt.condition.value):
        require(ctx, ctx.value(stmt.condition), message)
    statement(ctx, stmt.body)


def require(ctx: FunctionContext, condition: str, message: str) -> None:
    """Go on where `condition` holds, else return the code of `message`."""
    text = ctx.text
    passed, failed = text.fresh("passed"), text.fresh("failed")
    text.branch(condition, passed, failed, f", !prof !{ctx.module.text.node(_LIKELY)}")
    text.start(failed)
    ctx.leave(str(ctx.error_code(message)))
    text.start(passed)


def emit_body(ctx: FunctionContext, stmt: Stmt) -> None:
    """AttrStmt, DeclBuffer: only their body is code."""
    assert isinstance(stmt, (AttrStmt, DeclBuffer))
    statement(ctx, stmt.body)


def emit_evaluate(ctx: FunctionContext, stmt: Stmt) -> None:
    """Evaluate: the value is computed for its effect."""
    assert isinstance(stmt, Evaluate)
    if not isinstance(stmt.value, (IntImm, StringImm)):
        ctx.value(stmt.value)


def unsupported_thread(ctx: FunctionContext, stmt: AttrStmt) -> CodegenError:
    """The error of a thread axis that is no loop."""
    tag = getattr(stmt.node, "thread_tag", "") or "a thread"
    return CodegenError(
        f"In {ctx.name}: T.launch_thread starts {tag}, and a CPU has no such threads; write a loop of T.parallel in its place"
    )


def unsupported_loop(ctx: FunctionContext, loop: For) -> CodegenError:
    """The error of a loop kind that phase 2 should have removed."""
    tag = bound_tag(loop)
    if tag is not None:
        return CodegenError(
            f"In {ctx.name}: the loop over {loop.loop_var.name} is bound to {tag}, and a CPU has no such threads; "
            "run it with parallel(axis) in place of bind, or interleave it with te.thread_axis('vthread')"
        )
    kind = ForKind(loop.kind).name.lower()
    return CodegenError(
        f"In {ctx.name}: the loop over {loop.loop_var.name} is still {kind}; lower the function through phase 3 "
        "(serial and parallel loops have code)"
    )
