"""The native helpers of measuring: a probe of how free the cores are, a cache flush, and a sweep of the caches of one core.

They are LLVM IR text, compiled once in the measuring process. The timing loop itself is `runtime.timing.repeat`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import TuningError
from ...runtime import engine
from ...runtime.timing import repeat
from ...target import Target

# more independent multiply-adds than two pipes of a latency of 4 have under way: their number decides, not the latency
_CHAINS = 10
# A product of integers takes three cycles on all x86-64 and AArch64 cores of the last ten years, the xor behind it, without which LLVM
# would multiply in another order, one more.
_PRODUCTS, _PRODUCT_CYCLES = 16, 4
_CLOCK_ITERATIONS = 20_000
_PROBE_SECONDS = 1e-3
_CALIBRATING_PROBES = 20
_FIRST_PROBE_ITERATIONS = 20_000

# Lines are written back and dropped from the caches of all cores.
_DROP_LINE = {
    "x86_64": "call void @llvm.x86.sse2.clflush(ptr %line)",
    "aarch64": 'call void asm sideeffect "dc civac, $0", "r"(ptr %line)',
}
_DECLARATIONS = {"x86_64": "declare void @llvm.x86.sse2.clflush(ptr)", "aarch64": ""}

# Both have the form of packed entries, so that `repeat` times the probe as it times kernels.
# tx_flush: the words are a number of ranges and then the address and bytes of each.
# tx_probe: the words are iterations and threads.
# tx_clock: the words are iterations, and an odd number.
# tx_sweep: the words are threads, the address and the bytes of what each of them reads.
_TEXT = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare <8 x float> @llvm.fmuladd.v8f32(<8 x float>, <8 x float>, <8 x float>)
{declarations}

define i32 @tx_flush(ptr %words) {{
entry:
  %count = load i64, ptr %words
  br label %range
range:
  %r = phi i64 [ 0, %entry ], [ %r.next, %done ]
  %more = icmp ult i64 %r, %count
  br i1 %more, label %open, label %exit
open:
  %twice = mul i64 %r, 2
  %at = add i64 %twice, 1
  %start.at = getelementptr i64, ptr %words, i64 %at
  %start = load ptr, ptr %start.at
  %bytes.at = getelementptr i64, ptr %start.at, i64 1
  %bytes = load i64, ptr %bytes.at
  br label %step
step:
  %b = phi i64 [ 0, %open ], [ %b.next, %drop ]
  %left = icmp ult i64 %b, %bytes
  br i1 %left, label %drop, label %done
drop:
  %line = getelementptr i8, ptr %start, i64 %b
  {drop_line}
  %b.next = add i64 %b, 64
  br label %step
done:
  %r.next = add i64 %r, 1
  br label %range
exit:
  fence seq_cst
  ret i32 0
}}

define internal void @busy(ptr %words) {{
entry:
  %limit = load i64, ptr %words
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
{phis}
{steps}
  %i.next = add i64 %i, 1
  %left = icmp ult i64 %i.next, %limit
  br i1 %left, label %loop, label %exit
exit:
  %sink = alloca <8 x float>
{sinks}
  ret void
}}

define i32 @tx_probe(ptr %words) {{
  %threads.at = getelementptr i64, ptr %words, i64 1
  %threads = load i64, ptr %threads.at
  %number = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @busy, ptr %words, i32 %number, i32 0)
  ret i32 0
}}

define i32 @tx_clock(ptr %words) {{
entry:
  %limit = load i64, ptr %words
  %odd.at = getelementptr i64, ptr %words, i64 1
  %odd = load i64, ptr %odd.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %z0 = phi i64 [ %odd, %entry ], [ %z{products}, %loop ]
{multiplied}
  %i.next = add i64 %i, 1
  %left = icmp ult i64 %i.next, %limit
  br i1 %left, label %loop, label %exit
exit:
  %sink = alloca i64
  store volatile i64 %z{products}, ptr %sink
  ret i32 0
}}

define internal void @read(ptr %words) {{
entry:
  %start.at = getelementptr i64, ptr %words, i64 1
  %start = load ptr, ptr %start.at
  %bytes.at = getelementptr i64, ptr %words, i64 2
  %bytes = load i64, ptr %bytes.at
  %thread = call i32 @omp_get_thread_num()
  %own = sext i32 %thread to i64
  %before = mul i64 %own, %bytes
  %mine = getelementptr i8, ptr %start, i64 %before
  br label %loop
loop:
  %b = phi i64 [ 0, %entry ], [ %b.next, %loop ]
  %line = getelementptr i8, ptr %mine, i64 %b
  %ignored = load volatile i64, ptr %line
  %b.next = add i64 %b, 64
  %left = icmp ult i64 %b.next, %bytes
  br i1 %left, label %loop, label %exit
exit:
  ret void
}}

define i32 @tx_sweep(ptr %words) {{
  %threads = load i64, ptr %words
  %number = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @read, ptr %words, i32 %number, i32 0)
  ret i32 0
}}
"""


def _text(arch: str) -> str:
    # x / 2 + 1 / 2 goes to 1: neither denormal nor infinite numbers, which some cores are slow at
    half = f"<8 x float> <{', '.join(['float 0.5'] * 8)}>"
    phis = [f"  %x{c} = phi <8 x float> [ zeroinitializer, %entry ], [ %y{c}, %loop ]" for c in range(_CHAINS)]
    steps = [f"  %y{c} = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %x{c}, {half}, {half})" for c in range(_CHAINS)]
    # volatile: LLVM would drop a loop whose results nobody reads
    sinks = [f"  store volatile <8 x float> %y{c}, ptr %sink" for c in range(_CHAINS)]
    return _TEXT.format(
        declarations=_DECLARATIONS[arch],
        drop_line=_DROP_LINE[arch],
        phis="\n".join(phis),
        steps="\n".join(steps),
        sinks="\n".join(sinks),
        products=_PRODUCTS,
        multiplied="\n".join(f"  %y{n} = mul i64 %z{n}, %odd\n  %z{n + 1} = xor i64 %y{n}, %odd" for n in range(_PRODUCTS)),
    )


@dataclass(frozen=True)
class _Helpers:
    """The loaded code, which must live as long as its addresses are used."""

    code: engine.LoadedCode
    flush: Callable[..., int]


@lru_cache(maxsize=1)
def _helpers() -> _Helpers:
    """The helpers of this process.

    Raises:
        TuningError: if they can't be compiled or loaded here.
    """
    try:
        target = Target("llvm")
        code = engine.load_object(engine.compile_text(_text(target.arch), target, 0).data, ("tx_flush", "tx_probe", "tx_clock", "tx_sweep"))
    except Exception as error:
        raise TuningError(f"the helpers of measuring can't be built on this machine: {error}") from error
    return _Helpers(code, ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code["tx_flush"]))


def drop_from_caches(ranges: Sequence[tuple[int, int]]) -> None:
    """Write memory, given as (address, bytes), back and drop it from the caches of all cores."""
    words = [len(ranges), *(word for pair in ranges for word in pair)]
    _helpers().flush((ctypes.c_uint64 * len(words))(*words))


class Probe:
    """Seconds that `threads` threads take for an amount of multiply-adds that needs about a millisecond on free cores."""

    def __init__(self, threads: int) -> None:
        self._words: Any = (ctypes.c_int64 * 2)(_FIRST_PROBE_ITERATIONS, threads)
        self._words[0] = max(1, round(_FIRST_PROBE_ITERATIONS * _PROBE_SECONDS / max(1e-9, min(self() for _ in range(3)))))

    def __call__(self) -> float:
        """Probe now."""
        return repeat(_helpers().code["tx_probe"], self._words, 1)[0]

    def speed(self, seconds: float) -> float:
        """How fast the cores are that take so many seconds for it: steps of each thread a second."""
        return self._words[0] / seconds if seconds else 0.0


def calibrated(threads: int) -> float:
    """`Probe.speed` of some threads on this machine, the fastest of some milliseconds.

    Raises:
        TuningError: if the helpers can't be compiled or loaded here.
    """
    probe = Probe(threads)
    return probe.speed(min(probe() for _ in range(_CALIBRATING_PROBES)))


@lru_cache(maxsize=1)
def cycles_per_second() -> float:
    """How fast a core of this machine goes, the fastest of a few milliseconds.

    Raises:
        TuningError: if the helpers can't be compiled or loaded here.
    """
    words: Any = (ctypes.c_int64 * 2)(_CLOCK_ITERATIONS, 3)
    seconds = min(repeat(_helpers().code["tx_clock"], words, 1)[0] for _ in range(10))
    return _CLOCK_ITERATIONS * _PRODUCTS * _PRODUCT_CYCLES / seconds


class Sweep:
    """Reads `size` bytes on each of some threads, so that their own caches hold these and nothing else."""

    def __init__(self, threads: int, size: int) -> None:
        # touched once: pages that were never written are all the same one
        self._memory = np.ones(threads * size // 8 + 8, np.float64)
        self._words: Any = (ctypes.c_uint64 * 3)(threads, self._memory.ctypes.data, size)

    def __call__(self) -> None:
        """Read all of it."""
        repeat(_helpers().code["tx_sweep"], self._words, 1)
