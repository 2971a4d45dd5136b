"""Well-known machines by name: `Target("nvidia/geforce-rtx-3090")`.

The figures of NVIDIA's GPUs are those of its table of compute capabilities (CUDA C++ Programming Guide, appendix "Compute Capabilities").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import TargetError

if TYPE_CHECKING:
    from .target import Target

# What every one of these GPUs has without asking for more at launch.
_BLOCK = {"max_num_threads": 1024, "max_threads_per_block": 1024, "max_shared_memory_per_block": 48 << 10, "thread_warp_size": 32}
# Architecture, thousands (1024) of registers of a block, names.
# fmt: off
_NVIDIA: tuple[tuple[str, int, str], ...] = (
    ("sm_20", 32, """
        geforce-gtx-465 geforce-gtx-470 geforce-gtx-480 geforce-gtx-480m geforce-gtx-570 geforce-gtx-580 geforce-gtx-590
        quadro-plex-7000 tesla-c2050 tesla-c2070 tesla-c2075
    """),
    ("sm_21", 32, """
        geforce-410m geforce-610m geforce-705m geforce-710m geforce-800m geforce-820m geforce-gt-415m geforce-gt-420m geforce-gt-430
        geforce-gt-435m geforce-gt-440 geforce-gt-445m geforce-gt-520 geforce-gt-520m geforce-gt-520mx geforce-gt-525m geforce-gt-540m
        geforce-gt-550m geforce-gt-555m geforce-gt-610 geforce-gt-620 geforce-gt-620m geforce-gt-625m geforce-gt-630 geforce-gt-630m
        geforce-gt-635m geforce-gt-640-gddr3 geforce-gt-720m geforce-gt-730-ddr3,128bit geforce-gts-450 geforce-gtx-460 geforce-gtx-460m
        geforce-gtx-470m geforce-gtx-485m geforce-gtx-550-ti geforce-gtx-560-ti geforce-gtx-560m geforce-gtx-570m geforce-gtx-580m
        geforce-gtx-670m geforce-gtx-675m nvidia-nvs-310 nvidia-nvs-315 nvs-4200m nvs-5200m nvs-5400m
    """),
    ("sm_30", 64, """
        geforce-gt-640m geforce-gt-640m-le geforce-gt-645m geforce-gt-650m geforce-gt-730m geforce-gt-735m geforce-gt-740
        geforce-gt-740m geforce-gt-745m geforce-gt-750m geforce-gt-755m geforce-gtx-650 geforce-gtx-650-ti geforce-gtx-650-ti-boost
        geforce-gtx-660 geforce-gtx-660-ti geforce-gtx-660m geforce-gtx-670 geforce-gtx-670mx geforce-gtx-675mx geforce-gtx-680
        geforce-gtx-680m geforce-gtx-680mx geforce-gtx-690 geforce-gtx-760 geforce-gtx-760m geforce-gtx-765m geforce-gtx-770
        geforce-gtx-770m geforce-gtx-780m geforce-gtx-860m-sm-30 geforce-gtx-870m geforce-gtx-880m nvidia-nvs-510 quadro-410
        quadro-k1100m quadro-k2000 quadro-k2000d quadro-k2100m quadro-k2200m quadro-k3100m quadro-k4000 quadro-k4100m quadro-k420
        quadro-k4200 quadro-k4200m quadro-k5000 quadro-k500m quadro-k5100m quadro-k5200m quadro-k600 quadro-k6000m tesla-k10
    """),
    ("sm_35", 64, """
        geforce-920m geforce-gt-640-gddr5 geforce-gt-705 geforce-gt-720 geforce-gt-730 geforce-gtx-780 geforce-gtx-780-ti
        geforce-gtx-titan geforce-gtx-titan-black geforce-gtx-titan-z quadro-k510m quadro-k5200 quadro-k6000 quadro-k610m tesla-k20
        tesla-k40
    """),
    ("sm_37", 64, """
        tesla-k80
    """),
    ("sm_50", 64, """
        geforce-830m geforce-840m geforce-930m geforce-940m geforce-gtx-750 geforce-gtx-750-ti geforce-gtx-850m geforce-gtx-860m-sm-50
        geforce-gtx-950m geforce-gtx-960m nvidia-nvs-810 quadro-k1200 quadro-k2200 quadro-k620 quadro-k620m quadro-m1000m quadro-m1200
        quadro-m2000m quadro-m3000m quadro-m4000m quadro-m5000m quadro-m500m quadro-m520 quadro-m600m
    """),
    ("sm_52", 64, """
        geforce-910m geforce-gtx-950 geforce-gtx-960 geforce-gtx-965m geforce-gtx-970 geforce-gtx-970m geforce-gtx-980
        geforce-gtx-980-ti geforce-gtx-980m geforce-gtx-titan-x quadro-m2000 quadro-m2200 quadro-m4000 quadro-m5000 quadro-m5500m
        quadro-m6000 quadro-m6000-24gb quadro-m620 tesla-m40 tesla-m60
    """),
    ("sm_53", 32, """
        jetson-nano jetson-tx1 tegra-x1
    """),
    ("sm_60", 64, """
        quadro-gp100 tesla-p100
    """),
    ("sm_61", 64, """
        geforce-gtx-1050 geforce-gtx-1060 geforce-gtx-1070 geforce-gtx-1070-ti geforce-gtx-1080 geforce-gtx-1080-ti nvidia-titan-x
        nvidia-titan-xp p520 p620 quadro-p1000 quadro-p2000 quadro-p2200 quadro-p3000 quadro-p3200 quadro-p400 quadro-p4000 quadro-p4200
        quadro-p500 quadro-p5000 quadro-p5200 quadro-p600 quadro-p6000 quadro-p620 tesla-p4 tesla-p40
    """),
    ("sm_62", 32, """
        jetson-tx2
    """),
    ("sm_70", 64, """
        nvidia-titan-v nvidia-v100 quadro-gv100
    """),
    ("sm_72", 64, """
        jetson-agx-xavier
    """),
    ("sm_75", 64, """
        geforce-rtx-2060 geforce-rtx-2070 geforce-rtx-2080 geforce-rtx-2080-ti nvidia-t4 nvidia-titan-rtx quadro-rtx-4000
        quadro-rtx-5000 quadro-rtx-6000 quadro-rtx-8000 rtx-3000 rtx-4000 rtx-5000 t1000 t2000
    """),
    ("sm_80", 64, """
        nvidia-a100 nvidia-a30
    """),
    ("sm_86", 64, """
        geforce-rtx-3060 geforce-rtx-3070 geforce-rtx-3070-ti geforce-rtx-3080 geforce-rtx-3080-ti geforce-rtx-3090 geforce-rtx-3090-ti
        nvidia-a10 nvidia-a10g nvidia-a16 nvidia-a2 nvidia-a40 rtx-a6000
    """),
    ("sm_87", 64, """
        jetson-agx-orin-32gb jetson-agx-orin-64gb jetson-orin-nano
    """),
    ("sm_89", 64, """
        geforce-rtx-4090
    """),
    ("sm_90a", 64, """
        nvidia-h100
    """),
)
# fmt: on
_L2_MEGABYTES = {"nvidia-a100": 40, "nvidia-h100": 50, "geforce-rtx-4090": 72}
# The CPUs of boards: cores, CPU.
_BOARDS = {
    "jetson-agx-xavier": (8, "carmel"),
    "jetson-orin-nano": (6, "carmel"),
    "jetson-agx-orin-32gb": (8, "cortex-a78"),
    "jetson-agx-orin-64gb": (12, "cortex-a78"),
}
# Instances of AWS: cores, CPU.
_C5 = {"": 1, "x": 2, "2x": 4, "4x": 8, "9x": 18, "12x": 24, "18x": 36, "24x": 48}
_CASCADE_LAKE = ("12x", "24x")
_APPLE_THREADS = {"m1-gpu": 1024, "m1-gpu-restricted": 256, "m2-gpu": 1024}


def _arm(cores: int, cpu: str) -> dict[str, Any]:
    return {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mcpu": cpu, "num-cores": cores}


def _tags() -> Iterator[tuple[str, dict[str, Any]]]:
    for arch, registers, names in _NVIDIA:
        for name in names.split():
            cache = {"l2_cache_size_bytes": _L2_MEGABYTES[name] << 20} if name in _L2_MEGABYTES else {}
            made = {"kind": "cuda", "arch": arch, **_BLOCK, "registers_per_block": registers << 10, **cache}
            yield f"nvidia/{name}", {**made, **({"host": _arm(*_BOARDS[name])} if name in _BOARDS else {})}
    yield "nvidia/gtx1080ti", {"kind": "cuda", "arch": "sm_61"}
    for size, cores in _C5.items():
        cpu = "cascadelake" if size in _CASCADE_LAKE else "skylake-avx512"
        yield f"aws/cpu/c5.{size}large", {"kind": "llvm", "keys": ["x86", "cpu"], "mcpu": cpu, "num-cores": cores}
    for name, threads in _APPLE_THREADS.items():
        host = {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m4"}
        yield f"apple/{name}", {"kind": "metal", "max_threads_per_block": threads, "thread_warp_size": 32, "host": host}
    pi = {**_arm(4, "cortex-a72"), "mattr": ["+neon"]}
    yield "raspberry-pi/4b-aarch64", {**pi, "host": pi}


TAGS: dict[str, dict[str, Any]] = dict(_tags())


def find_tag(name: str) -> dict[str, Any] | None:
    """What a tag stands for, as a dict that `Target` reads; None for what is no tag."""
    found = TAGS.get(name)
    return None if found is None else dict(found)


def list_tags() -> dict[str, Target]:
    """The targets by their tags."""
    from .target import Target

    return {name: Target(config) for name, config in TAGS.items()}


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> Target:
    """Give a target a name.

    Args:
        name: the tag; it can't be the name of a kind.
        config: what it stands for, as a dict that `Target` reads.
        override: whether a tag of this name may be replaced.

    Raises:
        TargetError: for a config that is none, a name that is taken, or one that could not be read back.
    """
    from .kinds import KINDS
    from .target import Target

    made = Target(config)
    if name in KINDS or not name or any(c.isspace() for c in name):
        raise TargetError(f"{name!r} can't be a tag: it is the name of a kind, empty or has blanks")
    if name in TAGS and not override:
        raise TargetError(f"tag {name!r} exists, as {Target(TAGS[name])}; override=True replaces it")
    TAGS[name] = made.export()
    return made
