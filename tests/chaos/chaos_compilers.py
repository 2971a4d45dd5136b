"""Compilers for workers under test: each candidate's trace names what it does wrong, while compiling or while running.

Candidates compute C = A + 1 on 1024 floats. Their machine code is written here as LLVM IR, so nothing of lowering is involved.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensorexpr.errors import ScheduleError
from tensorexpr.runtime import engine
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureErrorNo, compiling
from tensorexpr.tune.measure.compiled import ArrayArgument, CompiledCandidate, Compiler

SIZE = 1024
# `{prologue}` is what the code does before its loop; it ends in the block `{last}`.
_TEXT = """
declare void @_exit(i32)
declare void @abort()
declare i32 @puts(ptr)
declare ptr @malloc(i64)
declare i32 @usleep(i32)
declare i32 @fork()
declare ptr @signal(i32, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@text = private constant [64 x i8] c"{letters}\\00"

define i32 @main__packed(ptr %words) {{
entry:
  %a = load ptr, ptr %words
  %place = getelementptr i64, ptr %words, i64 1
  %c = load ptr, ptr %place
  br label %prologue
prologue:
{prologue}
  br label %loop
loop:
  %i = phi i64 [ 0, %{last} ], [ %next, %loop ]
  %from = getelementptr float, ptr %a, i64 %i
  %to = getelementptr float, ptr %c, i64 %i
  %x = load float, ptr %from
  %y = fadd float %x, {addend}
  store float %y, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, {size}
  br i1 %more, label %loop, label %exit
exit:
  ret i32 {code}
}}
"""
_ENDLESS = """
  br label %again
again:
  {body}
  br label %again
unreached:"""
_PROLOGUES = {
    "deaf": "  %old = call ptr @signal(i32 15, ptr inttoptr (i64 1 to ptr))" + _ENDLESS.format(body=""),
    "fork": """
  %pid = call i32 @fork()
  %is_child = icmp eq i32 %pid, 0
  br i1 %is_child, label %again, label %unreached
again:
  call i32 @usleep(i32 100000)
  br label %again
unreached:""",
    "segv": "  store i32 1, ptr null",
    "spin": _ENDLESS.format(body=""),
    "exit": "  call void @_exit(i32 3)",
    "abort": "  call void @abort()",
    "print": _ENDLESS.format(body="call i32 @puts(ptr @text)"),
    "memory": _ENDLESS.format(
        body="%m = call ptr @malloc(i64 67108864)\n  call void @llvm.memset.p0.i64(ptr %m, i8 1, i64 67108864, i1 0)"
    ),
    "write_input": "  store float 0.0, ptr %a",
    "before": "  %past = getelementptr i8, ptr %c, i64 -4\n  store i32 7, ptr %past",
    "past": "  %past = getelementptr float, ptr %c, i64 1024\n  store float 7.0, ptr %past",
    "far": "  %past = getelementptr float, ptr %c, i64 2048\n  store float 7.0, ptr %past",
    "sleep": "  call i32 @usleep(i32 20000)",
}
_NOTHING = "define i32 @main__packed(ptr %words) {\n  ret i32 0\n}\n"
_FIELDS: dict[str, dict[str, str]] = {"wrong": {"addend": "2.0"}, "short": {"size": str(SIZE - 1)}, "code": {"code": "2"}}


def make_compiler(task: Mapping[str, Any]) -> Compiler:
    """A compiler that does what the trace says."""
    del task
    # LLVM is loaded and set up by the first use, which on a busy machine takes seconds: not those of a healthy candidate.
    engine.compile_text(kernel_text("good"), Target("llvm"), 0)
    return compile_candidate


def refuse(task: Mapping[str, Any]) -> Compiler:
    """A plug that can't serve any task."""
    raise ScheduleError("this task is refused")


def die(task: Mapping[str, Any]) -> Compiler:
    """A plug that ends its process."""
    print("dying on purpose", flush=True)
    os._exit(4)


def compile_candidate(trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
    """Machine code that does what `trace[0]` says, or something else if it says so."""
    name = trace[0][0]
    if name == "compile_slow":
        time.sleep(0.5)
    if name in _MISHAPS:
        _MISHAPS[name]()
    data = engine.compile_text(kernel_text(name), Target("llvm"), opt_level).data
    arguments = (ArrayArgument("A", "float32", (SIZE,)), ArrayArgument("C", "float32", (SIZE + (name == "shape"),)))
    return CompiledCandidate(data, "main__packed", arguments, ("first", "second: k out of range"), {"llvm": 0.0}, 0, 1)


# What candidates of a real task do in place of what their traces say, with the errors that their records may tell of: those that
# take all memory meet one of two limits first.
FICKLE: dict[str, tuple[MeasureErrorNo, ...]] = {
    "compile_hang": (MeasureErrorNo.BUILD_TIMEOUT,),
    "compile_crash": (MeasureErrorNo.COMPILE_HOST,),
    "compile_exit": (MeasureErrorNo.COMPILE_HOST,),
    "compile_memory": (MeasureErrorNo.COMPILE_HOST, MeasureErrorNo.BUILD_TIMEOUT),
    "compile_child": (MeasureErrorNo.BUILD_TIMEOUT,),
    "compile_garbage": (MeasureErrorNo.COMPILE_HOST,),
    "schedule_error": (MeasureErrorNo.INSTANTIATION_ERROR,),
    "segv": (MeasureErrorNo.RUNTIME_DEVICE,),
    "exit": (MeasureErrorNo.RUNTIME_DEVICE,),
    "memory": (MeasureErrorNo.RUNTIME_DEVICE, MeasureErrorNo.RUN_TIMEOUT),
    "deaf": (MeasureErrorNo.RUN_TIMEOUT,),
    "print": (MeasureErrorNo.RUN_TIMEOUT,),
    "nothing": (MeasureErrorNo.WRONG_ANSWER,),
}
_HEALTHY_SHARE = 1  # to each that misbehaves


def fickleness(steps: Sequence[Any]) -> str:
    """What a candidate of a real task does wrong; empty for the healthy ones, such as the unscheduled program."""
    drawn = zlib.crc32(json.dumps(steps).encode()) % ((1 + _HEALTHY_SHARE) * len(FICKLE))
    return list(FICKLE)[drawn] if steps and drawn < len(FICKLE) else ""


def make_fickle_compiler(task: Mapping[str, Any]) -> Compiler:
    """The compiler of a real task, half of whose candidates misbehave."""
    real = compiling.make_compiler(task)

    def compile_one(trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
        name = fickleness(trace)
        if name in _MISHAPS:
            _MISHAPS[name]()
        made = real(trace, opt_level)
        text = _NOTHING if name == "nothing" else kernel_text(name)
        broken = name and name not in _MISHAPS
        return replace(made, object_code=engine.compile_text(text, Target("llvm"), 0).data, entry="main__packed") if broken else made

    return compile_one


def kernel_text(name: str) -> str:
    """LLVM IR of a kernel that behaves as named; names that mean nothing here are good ones."""
    prologue = _PROLOGUES.get(name, "")
    last = "unreached" if "unreached:" in prologue else "prologue"
    fields = {"addend": "1.0", "size": str(SIZE), "code": "0", "letters": "x" * 63, **_FIELDS.get(name, {})}
    return _TEXT.format(prologue=prologue, last=last, **fields)


def _hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        time.sleep(1)


def _spin_natively() -> None:
    ctypes.CDLL(None).usleep(3_600_000_000)


def _print_a_gigabyte() -> None:
    block = b"0123456789abcdef" * 65536
    for _ in range(1024):
        os.write(1, block)


def _eat_memory() -> None:
    blocks = []
    while True:
        blocks.append(bytearray(64 << 20))


def _send(data: bytes) -> None:
    (argument,) = (argument for argument in sys.argv if argument.startswith("--write="))
    os.write(int(argument.partition("=")[2]), data)


def _end_in_the_middle() -> None:
    _send(b"TXM1\x10\x00\x00\x00\x00\x00\x00\x00{")
    os._exit(0)


def _leave_a_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    _hang()


def _fail() -> None:
    raise RuntimeError("the compiler is broken\nand says so at length")


def _refuse_schedule() -> None:
    raise ScheduleError("In schedule for C: nothing fits")


_MISHAPS: dict[str, Callable[[], object]] = {
    "compile_crash": lambda: ctypes.string_at(0),
    "compile_hang": _hang,
    "compile_native_hang": _spin_natively,
    "compile_exit": lambda: os._exit(7),
    "compile_sys_exit": sys.exit,
    "compile_kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "compile_memory": _eat_memory,
    "compile_print": _print_a_gigabyte,
    "compile_garbage": lambda: _send(b"garbage" * 100),
    "compile_oversized": lambda: _send(b"TXM1\xff\xff\xff\xff\x00\x00\x00\x00"),
    "compile_torn": _end_in_the_middle,
    "compile_child": _leave_a_child,
    "compile_error": _fail,
    "schedule_error": _refuse_schedule,
}
