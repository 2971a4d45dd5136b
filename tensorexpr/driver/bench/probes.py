"""The machine's limits, measured: multiply-adds per second and bytes per second, on the threads that kernels use.

Both are LLVM IR text through the same compiler and the same OpenMP runtime as kernels. The FMA probe keeps
independent accumulators of full vectors in registers; the bandwidth probe reads and writes whole vectors of arrays.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from ...dataclass import asdict, dataclass
from ...runtime import engine
from ...runtime.timing import repeat
from ...target import Target

# Accumulators of the FMA probe: two units with a latency of four or five cycles need ten; all the others only have to fit.
_MOST_CHAINS = 24
_OTHER_REGISTERS = 4
# Of the probe's best: clocks and neighbours on the memory cost it a tenth, another process on a core half.
OWN_CORES = 0.8
_DRAM_BYTES = 64 << 20
_CACHE_BYTES = 4 << 20


@dataclass(frozen=True)
class Limits:
    """The best of several rounds: GFLOPS of float32 multiply-adds, and GB/s of reading and of a[i] = b[i] + s * c[i]."""

    fma_gflops: float
    read_dram: float
    triad_dram: float
    read_cache: float
    triad_cache: float
    threads: int

    def to_json(self) -> dict[str, float]:
        """The limits as a JSON object."""
        return asdict(self)


def measure_limits(target: Target, rounds: int = 7, probes: Probes | None = None) -> Limits:
    """The limits of this machine with the target's threads: the best of `rounds`, as a limit is what can be reached."""
    probes = probes or Probes(target)
    return Limits(
        fma_gflops=_best(probes.fma, rounds),
        read_dram=_best(lambda: probes.read(_DRAM_BYTES), rounds),
        triad_dram=_best(lambda: probes.triad(_DRAM_BYTES), rounds),
        read_cache=_best(lambda: probes.read(_CACHE_BYTES), rounds),
        triad_cache=_best(lambda: probes.triad(_CACHE_BYTES), rounds),
        threads=target.num_cores,
    )


def _best(probe: Any, rounds: int) -> float:
    return max(float(probe()) for _ in range(rounds))


class Probes:
    """The compiled probes; each method measures once."""

    def __init__(self, target: Target) -> None:
        self._threads = target.num_cores
        self._lanes = target.vector_bits // 32
        self._chains = min(_MOST_CHAINS, target.vector_registers - _OTHER_REGISTERS)
        text = _text(self._lanes, self._chains)
        self._code = engine.load_object(engine.compile_text(text, target, 1).data, ("fma", "read", "triad"))
        self._arrays: dict[int, Any] = {}
        self.best_fma = 0.0

    def share_of_best(self, milliseconds: float = 2.0) -> float:
        """What part of its own best the FMA probe reaches now: below `OWN_CORES`, something else runs on them."""
        return self.fma(milliseconds) / self.best_fma

    def fma(self, milliseconds: float = 20.0) -> float:
        """GFLOPS of multiply-adds in registers."""
        steps = 1 << 14
        seconds = self._run("fma", steps)
        while seconds < milliseconds * 1e-3:
            # doubled until it lasts: a rate over microseconds is mostly the start of threads
            steps *= 2
            seconds = self._run("fma", steps)
        found = 2.0 * self._chains * self._lanes * steps * self._threads / seconds / 1e9
        self.best_fma = max(self.best_fma, found)
        return found

    def read(self, size: int) -> float:
        """GB/s of reading an array of so many bytes."""
        array = self._array(size, 1)
        return size / self._run("read", *self._share(array, 1)) / 1e9

    def triad(self, size: int) -> float:
        """GB/s of a[i] = b[i] + s * c[i] on three arrays of so many bytes in all; the write counts once."""
        array = self._array(size, 3)
        return size / self._run("triad", *self._share(array, 3)) / 1e9

    def _array(self, size: int, parts: int) -> Any:
        key = size * 4 + parts
        if key not in self._arrays:
            self._arrays[key] = np.ones(size // 4 + 64, np.float32)
        return self._arrays[key]

    def _share(self, array: Any, parts: int) -> tuple[int, ...]:
        """The first vector boundary, and the vectors of each part of each thread."""
        vector = self._lanes * 4
        start = -(-array.ctypes.data // 64) * 64
        # whole groups of four, which the reading loop takes at a time; 256 bytes are room for the boundary
        vectors = (array.nbytes - 256) // vector // (self._threads * parts) // 4 * 4
        return start, vectors

    def _run(self, name: str, *words: int) -> float:
        block = (ctypes.c_uint64 * (len(words) + 1))(self._threads, *words)
        seconds, _ = repeat(self._code[name], block, 1)
        return max(seconds, 1e-9)


def _text(lanes: int, chains: int) -> str:
    vector = f"<{lanes} x float>"
    # x / 2 + 1/2 goes to 1 and stays there: no overflow, and no denormal numbers, which some cores compute slowly
    half = f"{vector} <{', '.join(['float 0.5'] * lanes)}>"
    phis = "\n".join(f"  %x{c} = phi {vector} [ zeroinitializer, %entry ], [ %y{c}, %loop ]" for c in range(chains))
    steps = "\n".join(f"  %y{c} = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %x{c}, {half}, {half})" for c in range(chains))
    # volatile: LLVM would drop loops whose results nobody reads
    sinks = "\n".join(f"  store volatile {vector} %y{c}, ptr %sink" for c in range(chains))
    # four sums: a single one would wait for the latency of its additions, not for memory
    sums = "\n".join(f"  %s{c} = phi {vector} [ zeroinitializer, %entry ], [ %t{c}, %loop ]" for c in range(4))
    reads = "\n".join(
        f"  %i{c} = add i64 %i, {c}\n  %p{c} = getelementptr {vector}, ptr %mine, i64 %i{c}\n"
        f"  %v{c} = load {vector}, ptr %p{c}, align 64\n  %t{c} = fadd {vector} %s{c}, %v{c}"
        for c in range(4)
    )
    read_sinks = "\n".join(f"  store volatile {vector} %t{c}, ptr %sink" for c in range(4))
    triad = f"""  %b = getelementptr {vector}, ptr %mine, i64 %count
  %c = getelementptr {vector}, ptr %b, i64 %count"""
    triad_step = f"""  %pa = getelementptr {vector}, ptr %mine, i64 %i
  %pb = getelementptr {vector}, ptr %b, i64 %i
  %pc = getelementptr {vector}, ptr %c, i64 %i
  %vb = load {vector}, ptr %pb, align 64
  %vc = load {vector}, ptr %pc, align 64
  %va = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %vc, {half}, {vector} %vb)
  store {vector} %va, ptr %pa, align 64"""
    bodies = "\n\n".join(
        (
            _stream("read", vector, 1, "", f"{sums}\n{reads}", 4, f"  %sink = alloca {vector}\n{read_sinks}"),
            _stream("triad", vector, 3, triad, triad_step, 1, ""),
        )
    )
    entries = "\n".join(
        f"""define i32 @{name}(ptr %words) {{
  %threads = load i64, ptr %words
  %number = trunc i64 %threads to i32
  %rest = getelementptr i64, ptr %words, i64 1
  call void @GOMP_parallel(ptr @{name}.body, ptr %rest, i32 %number, i32 0)
  ret i32 0
}}"""
        for name in ("fma", "read", "triad")
    )
    return f"""
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})

define internal void @fma.body(ptr %words) {{
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
  %sink = alloca {vector}
{sinks}
  ret void
}}

{bodies}

{entries}
"""


def _stream(name: str, vector: str, parts: int, setup: str, step: str, width: int, finish: str) -> str:
    """A body that goes over the share of its thread, which is `parts` arrays of as many vectors, `width` at a time."""
    return f"""define internal void @{name}.body(ptr %words) {{
entry:
  %start = load ptr, ptr %words
  %count.at = getelementptr i64, ptr %words, i64 1
  %count = load i64, ptr %count.at
  %thread = call i32 @omp_get_thread_num()
  %own = sext i32 %thread to i64
  %share = mul i64 %count, {parts}
  %first = mul i64 %own, %share
  %mine = getelementptr {vector}, ptr %start, i64 %first
{setup}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
{step}
  %i.next = add i64 %i, {width}
  %left = icmp ult i64 %i.next, %count
  br i1 %left, label %loop, label %exit
exit:
{finish}
  ret void
}}"""


def wait_until_quiet(probes: Probes, patience: float = 20.0) -> float:
    """Wait until the FMA probe reaches 90 % of its best: a neighbour on a core makes any figure worthless.

    Returns the part of its best that it reaches; less if that didn't happen within `patience` seconds.
    """
    start = time.perf_counter()
    while (share := probes.share_of_best()) < 0.9:
        if time.perf_counter() - start > patience:
            break
        time.sleep(0.2)
    return share
