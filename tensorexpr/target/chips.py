"""NVIDIA's architectures: the PTX version that is asked for, and what a block and a multiprocessor have.

The numbers are those of the table "Compute Capabilities" in the CUDA C++ Programming Guide, the versions those of "Release Notes" in the
PTX ISA; the lowest version that has the instructions of `codegen.ptx_intrinsics` is asked for, so that old drivers take the text: 6.2
has the exchanges of warps.
"""

from __future__ import annotations

from ..dataclass import dataclass
from ..errors import TargetError

STATIC_SHARED = 48 << 10
"""Bytes of shared memory that a kernel may declare with a constant size; more of it is dynamic."""

ASYNC_COPIES = 80
"""The first architecture that copies from global into shared memory while its threads go on."""

BULK_COPIES = 90
"""The first architecture whose engine copies boxes of tensors into shared memory by itself."""


@dataclass(frozen=True, slots=True)
class Chip:
    """An architecture.

    Args:
        ptx: the PTX version, such as 70 for 7.0.
        shared: KiB of shared memory that a block may ask for at launch.
        shared_sm: KiB of shared memory of a multiprocessor.
        warps: of a multiprocessor.
    """

    ptx: int
    shared: int
    shared_sm: int
    warps: int
    registers: int = 65536

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block may ask for at launch."""
        return self.shared << 10


CHIPS: dict[str, Chip] = {
    "sm_50": Chip(62, 48, 64, 64),
    "sm_52": Chip(62, 48, 96, 64),
    "sm_53": Chip(62, 48, 64, 64),
    "sm_60": Chip(62, 48, 64, 64),
    "sm_61": Chip(62, 48, 96, 64),
    "sm_62": Chip(62, 48, 64, 64),
    "sm_70": Chip(62, 96, 96, 64),
    "sm_72": Chip(62, 96, 96, 64),
    "sm_75": Chip(63, 64, 64, 32),
    "sm_80": Chip(70, 163, 164, 64),
    "sm_86": Chip(71, 99, 100, 48),
    "sm_87": Chip(74, 163, 164, 48),
    "sm_89": Chip(78, 99, 100, 48),
    "sm_90": Chip(80, 227, 228, 64),
    "sm_90a": Chip(80, 227, 228, 64),
    "sm_100": Chip(86, 227, 228, 64),
    "sm_120": Chip(87, 99, 100, 48),
}


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a product of an architecture is, by cycles of its boost clock.

    Args:
        multiprocessors: of the chip.
        fma: multiply-adds in float32 of a multiprocessor.
        memory_bytes: of the chip from its memory.
        l2: MiB of the cache that all multiprocessors share.
    """

    multiprocessors: int
    fma: int
    memory_bytes: float
    l2: int


# By the data sheets of a product of each: P100, V100, T4, A100 (40 GB), GeForce RTX 3090, RTX 4090, H100 SXM. Bytes per second over the
# boost clock: 732 GB/s at 1.48 GHz, 900 at 1.53, 320 at 1.59, 1555 at 1.41, 936 at 1.70, 1008 at 2.52, 3350 at 1.98.
RATES: dict[int, Rates] = {
    60: Rates(56, 64, 495, 4),
    70: Rates(80, 64, 588, 6),
    75: Rates(40, 64, 201, 4),
    80: Rates(108, 64, 1103, 40),
    86: Rates(82, 128, 551, 6),
    89: Rates(128, 128, 400, 72),
    90: Rates(132, 128, 1692, 50),
}


def rates_of(arch: str) -> Rates:
    """How fast products of an architecture are: by the newest one that isn't newer, the oldest of those that are known before."""
    number = capability(arch)
    return RATES[max((known for known in RATES if known <= number), default=min(RATES))]


def chip_of(arch: str) -> Chip:
    """The row of an architecture such as "sm_80".

    Raises:
        TargetError: naming those that code is generated for.
    """
    if arch not in CHIPS:
        raise TargetError(f"no code is generated for -arch={arch}; there are {', '.join(CHIPS)}")
    return CHIPS[arch]


def capability(arch: str) -> int:
    """The number of an architecture: 80 of "sm_80"."""
    return int("".join(c for c in arch if c.isdigit()) or 0)
