"""Parallel loops: the body becomes a function of its own, run by every thread of an OpenMP team on its share.

Two functions come of one loop. `name_parallel_N(ptr)` is what OpenMP calls: it unpacks the values that the body uses
from a struct on the caller's stack and works out the thread's share, contiguous and equal to within one iteration.
`name_parallel_N_body` takes them as arguments, so that pointers keep their promise not to overlap.
"""

from __future__ import annotations

from typing import Any

from ..errors import CodegenError
from ..lower.pragmas import PARALLEL_FROM
from ..tir.arithmetic import as_int
from ..tir.expr import IntImm
from ..tir.stmt import For, ForKind, Stmt
from . import nontemporal, registers
from .builder import FunctionText
from .context import Capture, FunctionContext
from .control import bounds, emit_serial, run, unsupported_loop
from .function import finish
from .types import symbol

# The struct that the threads share: first, last (i64), the error code (i32), then what the body uses.
_LAST_AT = 8
_ERROR_AT = 16
_CAPTURES_AT = 24


def emit_for(ctx: FunctionContext, stmt: Stmt) -> None:
    """For, of any kind that may be left after phase 3."""
    assert isinstance(stmt, For)
    for key, value in stmt.annotations.items():
        ctx.module.note_pragma(key, value)
    # One level of threads: a parallel loop inside an outlined body runs in order.
    if stmt.kind == ForKind.PARALLEL and ctx.parent is None and ctx.module.target.num_cores > 1 and not _is_short(stmt):
        _emit_parallel(ctx, stmt)
    elif stmt.kind in (ForKind.SERIAL, ForKind.PARALLEL):
        emit_serial(ctx, stmt)
    else:
        raise unsupported_loop(ctx, stmt)


def _is_short(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value <= 1


def _emit_parallel(ctx: FunctionContext, loop: For) -> None:
    # Each thread would set its own copy, and none would be the one that is read afterwards.
    if registers.assigned(ctx, loop):
        raise CodegenError(
            f"In {ctx.name}: the parallel loop over {loop.loop_var.name} sets a register that is allocated outside it; "
            "allocate it inside, or make the loop serial"
        )
    text = ctx.text
    name = f"{ctx.name}_parallel_{ctx.parallel_count}"
    ctx.parallel_count += 1
    text.comment(f"parallel for {loop.loop_var.name}")
    first, last = bounds(ctx, loop)
    body = FunctionContext(ctx.module, f"{name}_body", ctx.noalias, parent=ctx)
    # The trampoline calls it only for a share that has iterations.
    run(body, loop, "%first", "%last", may_be_empty=False)
    nontemporal.fence(body)
    can_fail = bool(body.exits or body.workspaces)  # a workspace that can't be had is a failure too
    arguments = [*(_argument(capture, ctx.noalias) for capture in body.captures), "i64 %first", "i64 %last"]
    # After `can_fail`; before the layout, as only now all captures are known.
    finish(body, arguments, internal=True)
    layout, size = _layout(body.captures)
    _trampoline(ctx, name, layout, can_fail)
    _launch(ctx, name, layout, size, (first, last), loop.annotations.get(PARALLEL_FROM), can_fail)
    ctx.forget_reads()  # the threads have written memory


def _argument(capture: Capture, noalias: bool) -> str:
    promise = " noalias" if capture.is_pointer and noalias else ""
    return f"{capture.llvm_type}{promise} {capture.name}"


def _layout(captures: list[Capture]) -> tuple[list[tuple[Capture, int, str]], int]:
    """(capture, byte offset, type in memory) of each, and the size of the struct."""
    fields, offset = [], _CAPTURES_AT
    for capture in captures:
        # Bools are bytes in the struct: vectors of i1 would be packed into bits.
        kind = capture.llvm_type.replace("i1>", "i8>") if capture.llvm_type != "i1" else "i8"
        size = _size_of(kind)
        step = min(64, 1 << (size - 1).bit_length())  # its own size, rounded up, at most a cache line
        offset = -(-offset // step) * step
        fields.append((capture, offset, kind))
        offset += size
    return fields, -(-offset // 64) * 64


def _size_of(kind: str) -> int:
    lanes, _, scalar = kind[1:-1].partition(" x ") if kind.startswith("<") else ("1", "", kind)
    bits = {"ptr": 64, "double": 64, "float": 32}
    return int(lanes) * (bits[scalar] if scalar in bits else int(scalar[1:])) // 8


def _field(text: FunctionText, base: str, offset: int) -> str:
    return text.value(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base


def _launch(
    ctx: FunctionContext, name: str, layout: list[tuple[Capture, int, str]], size: int, span: tuple[str, str], least: Any, can_fail: bool
) -> None:
    """Fill the struct and run the team; of fewer iterations than `least` a team of one, which starts nothing."""
    (first, last), text, shared = span, ctx.text, f"%{ctx.text.fresh('shared')}"
    text.entry.append(f"  {shared} = alloca [{size} x i8], align 64")
    text.emit(f"store i64 {first}, ptr {shared}, align 8")
    text.emit(f"store i64 {last}, ptr {_field(text, shared, _LAST_AT)}, align 8")
    error = _field(text, shared, _ERROR_AT)
    text.emit(f"store i32 0, ptr {error}, align 4")
    for capture, offset, kind in layout:
        value = capture.outer
        if kind != capture.llvm_type:
            value = text.value(f"zext {capture.llvm_type} {value} to {kind}")
        text.emit(f"store {kind} {value}, ptr {_field(text, shared, offset)}, align {_alignment(offset)}")
    ctx.module.declare("GOMP_parallel", "void", "ptr", "ptr", "i32", "i32")
    threads = str(int(ctx.module.target.attrs.get("num-cores", 0)))  # 0: as many as OpenMP takes
    if (count := as_int(least)) is not None:
        few = text.value(f"icmp slt i64 {text.value(f'sub i64 {last}, {first}')}, {count}")
        threads = text.value(f"select i1 {few}, i32 1, i32 {threads}")
    text.emit(f"call void @GOMP_parallel(ptr {symbol(name)}, ptr {shared}, i32 {threads}, i32 0)")
    if can_fail:
        code = text.value(f"load i32, ptr {error}, align 4")
        failed, passed = text.fresh("failed"), text.fresh("passed")
        text.branch(text.value(f"icmp eq i32 {code}, 0"), passed, failed)
        text.start(failed)
        ctx.leave(code)
        text.start(passed)


def _alignment(offset: int) -> int:
    return min(64, offset & -offset)


def _trampoline(ctx: FunctionContext, name: str, layout: list[tuple[Capture, int, str]], can_fail: bool) -> None:
    """The function that OpenMP calls."""
    module = ctx.module.text
    text = FunctionText(module)
    for function in ("omp_get_num_threads", "omp_get_thread_num"):
        ctx.module.declare(function, "i32")
    begin, end = _share(text)
    values = []
    for capture, offset, kind in layout:
        value = text.value(f"load {kind}, ptr {_field(text, '%shared', offset)}, align {_alignment(offset)}")
        if kind != capture.llvm_type:
            value = text.value(f"trunc {kind} {value} to {capture.llvm_type}")
        values.append(f"{capture.llvm_type} {value}")
    arguments = ", ".join([*values, f"i64 {begin}", f"i64 {end}"])
    code = text.value(f"call i32 {symbol(name + '_body')}({arguments})")
    if can_fail:
        text.branch(text.value(f"icmp eq i32 {code}, 0"), "done", "failed")
        text.start("failed")
        # Several threads may fail; whichever code stays is one of theirs.
        text.emit(f"store atomic i32 {code}, ptr {_field(text, '%shared', _ERROR_AT)} monotonic, align 4")
    text.jump("done")
    text.start("done")
    text.emit("ret void")
    lines = "\n".join(str(line) for line in text.lines)
    module.functions.append(f"define internal void {symbol(name)}(ptr %shared) #0 {{\nentry:\n{lines}\n}}")


def _share(text: FunctionText) -> tuple[str, str]:
    """The part of the iterations that is this thread's; a thread without one returns at once."""
    write = text.value
    team = write(f"zext i32 {write('call i32 @omp_get_num_threads()')} to i64")
    mine = write(f"zext i32 {write('call i32 @omp_get_thread_num()')} to i64")
    first = write("load i64, ptr %shared, align 8")
    last = write(f"load i64, ptr {_field(text, '%shared', _LAST_AT)}, align 8")
    count = write(f"sub i64 {last}, {first}")
    # Of 10 iterations 4 threads get 3, 3, 2, 2: the first `rest` threads take one more.
    each, rest = write(f"sdiv i64 {count}, {team}"), write(f"srem i64 {count}, {team}")
    extra = write(f"call i64 @llvm.smin.i64(i64 {mine}, i64 {rest})")
    before = write(f"add i64 {write(f'mul i64 {each}, {mine}')}, {extra}")
    begin = write(f"add i64 {first}, {before}")
    one_more = write(f"zext i1 {write(f'icmp slt i64 {mine}, {rest}')} to i64")
    own = write(f"add i64 {each}, {one_more}")
    end = write(f"add i64 {begin}, {own}")
    text.branch(write(f"icmp slt i64 {begin}, {end}"), "work", "done")
    text.start("work")
    return begin, end
