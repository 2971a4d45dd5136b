"""Machine: what schedules and the cost model may know of the processor that a target names.

Everything comes from the target's CPU and features (`cores`), from what the system says of this machine when the target is this
machine, and from options that a user sets: `-l1d=32K/8 -l2=512K/8 -l3=8M/16` (bytes / ways).
"""

from __future__ import annotations

import logging
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from .. import processor
from ..dataclass import dataclass
from ..log import once
from .cores import BY_FEATURE, CORES, OLDEST, Core
from .kinds import CACHE_OPTIONS

if TYPE_CHECKING:
    from .target import Target

_CACHE_WORDS = re.compile(rf" -(?:{'|'.join(CACHE_OPTIONS)})=\S+")
_LOGGER = logging.getLogger(__name__)
# Threads of an OpenMP runtime that wait for each other meet in about a microsecond.
_FORK_JOIN_CYCLES = 4000.0
# A chain of loads, one from each page, takes 8 cycles more per load where there are more pages than translations: measured on znver1,
# and taken for all cores.
_TRANSLATION_CYCLES = 8.0
# A line takes longer to arrive than a chain of single loads says, while others are under way and its page is not known: 80 cycles
# from the third cache of znver1 (40), by five products of 512 x 512 x 512 that read rows 2 KB apart. With 1.5 programs of an Ansor suite
# on an icelake-server have the same order.
_UNDER_LOAD = 2.0


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of the hierarchy.

    Args:
        size: in bytes, as one core sees it.
        ways: lines that share a set.
        fill_bytes: bytes per cycle that one core gets into it from the level below.
        line: bytes of a line.
        keeps: what fits stays from one call of a kernel to the next.
        wait: cycles until a line that nothing has asked for ahead arrives from the level below.
    """

    size: int
    ways: int
    fill_bytes: float
    line: int = 64
    keeps: bool = False
    wait: float = 12.0

    @property
    def wait_under_load(self) -> float:
        """Cycles until such a line arrives while others are under way."""
        return _UNDER_LOAD * self.wait

    @property
    def way_bytes(self) -> int:
        """Addresses this far apart share a set."""
        return max(self.line, self.size // self.ways)

    def rows(self, row_bytes: int) -> int:
        """How many rows at that distance it holds a line of, each next to all others.

        Rows that are 4096 bytes apart share one set of a cache with ways of 4096 bytes: it holds as many as it has ways.
        """
        # Rows fall on every gcd-th address of a way, so a distance that shares much with it leaves few sets.
        places = self.way_bytes // math.gcd(self.way_bytes, max(1, row_bytes))
        return max(1, self.ways * min(places, self.way_bytes // self.line))

    def __str__(self) -> str:
        """As options of a target give it, such as "32K/8"."""
        return f"{processor.size_text(self.size)}/{self.ways}"


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor, as one core of it sees it.

    Args:
        cores: that parallel loops use.
        core: the row of the table that the numbers are from; "" if the CPU is none that is known.
        vector_bits, vector_registers: of the widest registers that code for the target uses.
        mask_registers: lanes are switched off by registers of their own.
        scalar_registers: that a step of a register tile needs beside its accumulators and vectors.
        fma_per_cycle, loads_per_cycle, stores_per_cycle: of whole vectors of `vector_bits`.
        fma_latency: cycles until a sum can be added to again.
        masked_store_cycles: of a vector store of some lanes.
        caches: first to third level.
        window: vector instructions that one core has under way at a time.
        waiting: ... that wait for their operands at a time.
        page_bytes, translations: of the first-level TLB.
        fork_join_cycles: to start all threads and wait for them.
        load_delay: cycles that a load from the first cache delays the multiply-adds beside it.
        far_line: ... that a line of few numbers does that is more than half a page from the line before it.
    """

    cores: int
    core: str
    vector_bits: int
    vector_registers: int
    mask_registers: bool
    scalar_registers: int
    fma_per_cycle: float
    loads_per_cycle: float
    stores_per_cycle: float
    fma_latency: int
    masked_store_cycles: float
    caches: tuple[Cache, Cache, Cache]
    window: float
    waiting: float
    page_bytes: int
    translations: int
    fork_join_cycles: float = _FORK_JOIN_CYCLES
    load_delay: float = 0.1
    far_line: float = 0.0

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector register."""
        return self.vector_bits // 8

    def tile_rows(self, vectors: int, others: int = 0) -> int:
        """The most rows of a register tile of so many vectors: MR * NV accumulators, NV vectors, the scalars and others, in registers."""
        return (self.vector_registers - vectors - self.scalar_registers - others) // vectors

    @property
    def tlb(self) -> Cache:
        """The first-level TLB as a cache whose lines are pages; the second level has an address in some `_TRANSLATION_CYCLES`."""
        return Cache(self.translations * self.page_bytes, self.translations, self.page_bytes / _TRANSLATION_CYCLES, self.page_bytes)

    def step_cycles(self, multiply_adds: float, loads: float) -> float:
        """Cycles of one step of a loop-carried sum: its vector multiply-adds beside its loads, and no less than the latency of one."""
        return max(multiply_adds / self.fma_per_cycle, loads / self.loads_per_cycle, float(self.fma_latency))

    @property
    def line_bytes(self) -> int:
        """Bytes of a line of the first cache."""
        return self.caches[0].line


@lru_cache(maxsize=64)
def machine_of(target: Target, cores: int) -> Machine:
    """The machine that a target names, of so many cores; conservative numbers, and a warning once, for a CPU that nothing is known of."""
    name, row = _row_of(target)
    bits, features = target.vector_bits, target.features
    return Machine(
        cores=cores,
        core=name,
        vector_bits=bits,
        vector_registers=target.vector_registers,
        mask_registers=bool(features & {"avx512vl", "v"}) or target.sve_bits > 0,
        scalar_registers=_scalar_registers(features),
        fma_per_cycle=_vectors(row.fma, bits),
        loads_per_cycle=_vectors(row.load, bits),
        stores_per_cycle=_vectors(row.store, bits),
        fma_latency=row.latency,
        masked_store_cycles=row.masked_store,
        caches=_caches(target, row),
        window=_vectors((row.window, row.fma[1]), bits),  # what is wider than a pipe is under way as several
        waiting=_vectors((row.waiting, row.fma[1]), bits),
        page_bytes=row.page,
        translations=row.translations,
        load_delay=row.load_delay,
        far_line=row.far_line,
    )


def without_caches(text: str) -> str:
    """The text of a target without the sizes of its caches."""
    return _CACHE_WORDS.sub("", text)


def _row_of(target: Target) -> tuple[str, Core]:
    """The name and row of a target's core; without a name where only its features tell."""
    if target.kind != "llvm":
        return "", BY_FEATURE[-1][1]
    if target.mcpu in CORES:
        return target.mcpu, CORES[target.mcpu]
    found = next((row for feature, row in BY_FEATURE if feature in target.features), OLDEST)
    if not target.mcpu.startswith(("x86-64", "generic")):  # these names mean any CPU: nothing is missing
        once(
            _LOGGER,
            f"nothing is known of the core {target.mcpu!r}: schedules are made for a slow one with its features; -l1d, -l2, -l3 set caches",
        )
    return "", found


def _scalar_registers(features: frozenset[str]) -> int:
    """One for the broadcast, and one for the product where a multiplication and an addition are two instructions.

    For NEON, which multiplies by a lane, LLVM loads scalars in pairs and early: 28 accumulators and 2 vectors are spilled on
    Neoverse N1, V1 and N2, 26 and 2 aren't.
    """
    if "neon" in features:
        return 3
    return 1 if is_fused(features) else 2


def is_fused(features: frozenset[str]) -> bool:
    """True if a multiplication and an addition are one instruction."""
    return bool(features & {"fma", "avx512f", "neon", "v"})


def _vectors(pipes: tuple[int, int], bits: int) -> float:
    """Vectors of so many bits in a cycle, by pipes of so many bits each: a pipe takes a wider vector in parts."""
    count, width = pipes
    return count * min(1.0, width / bits)


def _caches(target: Target, row: Core) -> tuple[Cache, Cache, Cache]:
    """What the user says of each level, else the system if the target is this machine, else the table."""
    seen = processor.caches() if target.is_host_cpu else {}
    levels = []
    for level, (name, fill, wait) in enumerate(zip(CACHE_OPTIONS, row.fill, row.wait, strict=True), start=1):
        given = str(target.attrs.get(name, ""))
        size, ways = processor.parse_cache(given) or seen.get(level) or processor.parse_cache(getattr(row, name)) or (0, 1)
        levels.append(Cache(size, ways, float(fill), row.line, level == 3, float(wait)))
    return levels[0], levels[1], levels[2]
