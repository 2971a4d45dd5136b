"""What is known of CPU cores: pipes, latencies, caches and address translation, a row per core family.

Sources: Agner Fog, "The microarchitecture of Intel, AMD, and VIA CPUs" and "Instruction tables" (pipes, latencies); AMD, "Software
Optimization Guide" for families 17h, 19h and 1Ah; Intel, "64 and IA-32 Architectures Optimization Reference Manual"; Arm, Technical
Reference Manuals and Software Optimization Guides of Neoverse N1, Neoverse V1 and Cortex-A72; D. Johnson, "Apple M1 Microarchitecture
Research". Bytes per cycle beyond the first cache are what one core sustains: on znver3 and znver5 as measured with read kernels
(28 and 95 GB/s at 3.15 GHz with two threads on znver3), on icelake-server as convolutions gave it (half of what its guide says), on
others rounded down from their guides. Waits are those of a chain of loads, measured on znver1 alone (12, 37 to 46 and 300 to 370
cycles); those of the other rows, their reorder buffers and schedulers are numbers of the order that the guides have, not looked up one by
one. What loads delay multiply-adds is 0.44 cycles each in loops of register tiles on an icelake-server beside other work; its row has 0.2,
the best of three values for a suite of convolutions; its lines of 14 pixels 3 KB apart delay them by some 4 to 7 cycles, of which 1 is
enough to tell what is faster. Third levels differ between models of a family; the row has a common one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Core:
    """A row of the table.

    Args:
        fma: vector multiply-adds that start in a cycle, and bits of each.
        latency: cycles until a multiply-add's result can be added to.
        load, store: vector loads and stores in a cycle, and bits of each.
        masked_store: cycles of a vector store of some lanes, by mask registers where the core has them.
        l1d, l2, l3: size and ways of the caches that one core sees.
        fill: bytes per cycle that arrive from the second cache, the third cache and memory.
        wait: cycles until a line arrives from the second cache, the third cache and memory.
        window: instructions that wait for their operands or for those before them (the reorder buffer).
        waiting: vector instructions that wait for their operands (the scheduler, with the queue before it).
        translations: pages whose addresses are known without asking the second-level TLB.
        page: bytes of a page.
        line: bytes of a cache line.
        load_delay: cycles that a load from the first cache, of a whole vector or of a number to all its lanes, delays multiply-adds.
        far_line: ... that a line of few numbers delays them, which lies too far from the line before it for a prefetcher.
    """

    fma: tuple[int, int]
    latency: int
    load: tuple[int, int]
    store: tuple[int, int]
    masked_store: float
    l1d: str
    l2: str
    l3: str
    fill: tuple[float, float, float]
    wait: tuple[float, float, float]
    window: int
    waiting: int
    translations: int
    page: int = 4096
    line: int = 64
    load_delay: float = 0.1
    far_line: float = 0.0


_ZEN1 = Core((2, 128), 5, (2, 128), (1, 128), 18.0, "32K/8", "512K/8", "8M/16", (32, 10, 4), (12, 40, 300), 192, 100, 64)
_ZEN2 = Core((2, 256), 5, (2, 256), (1, 256), 12.0, "32K/8", "512K/8", "16M/16", (32, 15, 4), (12, 39, 300), 224, 100, 64)
_ZEN3 = Core((2, 256), 4, (2, 256), (1, 256), 12.0, "32K/8", "512K/8", "32M/16", (32, 15, 4.5), (12, 46, 300), 256, 128, 64, load_delay=0.2)
_ZEN4 = Core((2, 256), 4, (2, 256), (1, 256), 1.0, "32K/8", "1M/8", "32M/16", (32, 18, 6), (14, 50, 400), 320, 128, 72)
_ZEN5 = Core((2, 512), 4, (2, 512), (1, 512), 1.0, "48K/12", "1M/16", "32M/16", (64, 20, 8), (14, 50, 400), 448, 210, 96)
_HASWELL = Core((2, 256), 5, (2, 256), (1, 256), 1.0, "32K/8", "256K/8", "8M/16", (32, 10, 4), (12, 36, 250), 192, 60, 64)
_SKYLAKE = Core((2, 256), 4, (2, 256), (1, 256), 1.0, "32K/8", "256K/4", "8M/16", (32, 10, 4), (12, 42, 250), 224, 97, 64)
_SKYLAKE_SERVER = Core((2, 512), 4, (2, 512), (1, 512), 1.0, "32K/8", "1M/16", "24M/11", (64, 10, 4), (14, 68, 300), 224, 97, 64)
_ICELAKE_SERVER = Core(
    (2, 512),
    4,
    (2, 512),
    (1, 512),
    1.0,
    "48K/12",
    "1280K/20",
    "36M/12",
    (32, 10, 4),
    (14, 70, 350),
    352,
    97,
    64,
    load_delay=0.2,
    far_line=1.0,
)
_ICELAKE_CLIENT = Core((1, 512), 4, (2, 512), (1, 512), 1.0, "48K/12", "512K/8", "8M/16", (64, 12, 4), (13, 42, 250), 352, 97, 64)
_SAPPHIRE_RAPIDS = Core((2, 512), 4, (2, 512), (1, 512), 1.0, "48K/12", "2M/16", "60M/15", (32, 8, 4), (15, 100, 400), 512, 97, 96)
_GOLDEN_COVE = Core((2, 256), 4, (3, 256), (2, 256), 1.0, "48K/12", "1280K/10", "24M/12", (32, 14, 6), (15, 65, 350), 512, 97, 96)
_NEOVERSE_N1 = Core((2, 128), 4, (2, 128), (1, 128), 1.0, "64K/4", "1M/8", "32M/16", (32, 12, 6), (11, 80, 350), 128, 32, 48)
_NEOVERSE_V1 = Core((4, 128), 4, (3, 128), (2, 128), 1.0, "64K/4", "1M/8", "32M/16", (32, 12, 6), (10, 80, 350), 256, 56, 48)
_FIRESTORM = Core(
    (4, 128), 4, (3, 128), (2, 128), 1.0, "128K/8", "12M/12", "8M/16", (32, 20, 12), (16, 60, 350), 600, 144, 160, page=16384, line=128
)
_CORTEX_A72 = Core((2, 128), 7, (1, 128), (1, 128), 1.0, "32K/2", "1M/16", "1M/16", (16, 4, 2), (21, 80, 300), 128, 16, 48)

CORES: Mapping[str, Core] = MappingProxyType(
    {
        **dict.fromkeys(("znver1",), _ZEN1),
        **dict.fromkeys(("znver2",), _ZEN2),
        **dict.fromkeys(("znver3",), _ZEN3),
        **dict.fromkeys(("znver4",), _ZEN4),
        **dict.fromkeys(("znver5",), _ZEN5),
        **dict.fromkeys(("haswell", "core-avx2", "broadwell"), _HASWELL),
        **dict.fromkeys(("skylake",), _SKYLAKE),
        **dict.fromkeys(("skylake-avx512", "cascadelake", "cooperlake", "cannonlake"), _SKYLAKE_SERVER),
        **dict.fromkeys(("icelake-server",), _ICELAKE_SERVER),
        **dict.fromkeys(("icelake-client", "tigerlake", "rocketlake"), _ICELAKE_CLIENT),
        **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), _SAPPHIRE_RAPIDS),
        **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake", "lunarlake"), _GOLDEN_COVE),
        **dict.fromkeys(("neoverse-n1", "cortex-a76", "cortex-a77", "cortex-a78"), _NEOVERSE_N1),
        **dict.fromkeys(("neoverse-v1", "neoverse-v2", "neoverse-n2", "cortex-x1", "cortex-x2"), _NEOVERSE_V1),
        **dict.fromkeys(("apple-a14", "apple-m1", "apple-m2", "apple-m3", "apple-m4"), _FIRESTORM),
        **dict.fromkeys(("cortex-a72", "cortex-a57", "cortex-a73", "cortex-a53", "cortex-a55"), _CORTEX_A72),
    }
)

# Bits of SVE's registers, which the instructions don't show; those of other CPUs are what their users say.
SVE_BITS: Mapping[str, int] = MappingProxyType(
    {"a64fx": 512, "neoverse-v1": 256, **dict.fromkeys(("neoverse-n2", "neoverse-v2", "cortex-x2"), 128)}
)

# Cores that aren't in the table, by the most telling feature they have: the slowest that has it.
BY_FEATURE: tuple[tuple[str, Core], ...] = (
    ("avx512f", _SKYLAKE_SERVER),
    ("avx2", Core((2, 256), 5, (2, 256), (1, 256), 12.0, "32K/8", "256K/8", "8M/16", (32, 10, 4), (12, 40, 300), 168, 60, 64)),
    # of no core in particular: one pipe of the shortest registers that V allows
    ("v", Core((1, 128), 4, (1, 128), (1, 128), 1.0, "32K/4", "512K/8", "1M/16", (16, 8, 4), (12, 40, 300), 64, 16, 32)),
    ("neon", Core((2, 128), 4, (1, 128), (1, 128), 1.0, "32K/4", "512K/8", "1M/16", (16, 8, 4), (12, 40, 300), 128, 24, 32)),
)
# x86-64 before AVX2: a multiplication and an addition, one after the other, are a multiply-add.
OLDEST = Core((1, 128), 8, (1, 128), (1, 128), 1.0, "32K/8", "256K/8", "2M/16", (16, 8, 4), (12, 40, 300), 128, 36, 64)
