"""Targets of device families by function: a table of models, one way to make a target of a row."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ..errors import TargetError
from .reading import read
from .target import Target

_NEON = ("-mattr=+neon",)
_ANDROID = ("-mtriple=arm64-linux-android", *_NEON)
_ARMV7 = ("-mtriple=armv7l-linux-gnueabihf", *_NEON)
_AARCH64 = ("-mtriple=aarch64-linux-gnu", *_NEON)

# Board or phone -> its chip and what LLVM is told about it.
_ARM_MODELS: dict[str, tuple[str, ...]] = {
    "pixel2": ("-model=snapdragon835", *_ANDROID),
    "mate10": ("-model=kirin970", *_ANDROID),
    "mate10pro": ("-model=kirin970", *_ANDROID),
    "p20": ("-model=kirin970", *_ANDROID),
    "p20pro": ("-model=kirin970", *_ANDROID),
    "rasp3b": ("-model=bcm2837", *_ARMV7),
    "rasp4b": ("-model=bcm2711", "-mtriple=armv8l-linux-gnueabihf", *_NEON, "-mcpu=cortex-a72"),
    "rasp4b64": ("-model=bcm2711", *_AARCH64, "-mcpu=cortex-a72"),
    "rk3399": ("-model=rk3399", *_AARCH64),
    "pynq": ("-model=pynq", "-mtriple=armv7a-linux-eabi", "-mattr=+neon"),
    "ultra96": ("-model=ultra96", *_AARCH64),
    "beagleai": ("-model=beagleai", "-mtriple=armv7a-linux-gnueabihf", "-mattr=+neon,+vfp4,+thumb2", "-mcpu=cortex-a15"),
    "stm32mp1": ("-model=stm32mp1", "-mtriple=armv7a-linux-gnueabihf", "-mattr=+neon,+vfp4,+thumb2", "-mcpu=cortex-a7"),
    "thunderx": ("-model=thunderx", *_AARCH64, "-mcpu=thunderxt88"),
}
_RISCV_CPUS = ("sifive-e31", "sifive-e76", "sifive-u54", "sifive-u74")
_RISCV_LINUX = ("-mtriple=riscv64-unknown-linux-gnu", "-mabi=lp64d")
# Series of STM32 -> the core in it.
_STM32_CORES = {
    **dict.fromkeys(("stm32H7xx", "stm32F7xx"), "cortex-m7"),
    **dict.fromkeys(("stm32F4xx", "stm32G4xx", "stm32F3xx", "stm32L4xx"), "cortex-m4"),
    **dict.fromkeys(("stm32F2xx", "stm32F1xx", "stm32L1xx"), "cortex-m3"),
    **dict.fromkeys(("stm32U5xx", "stm32L5xx"), "cortex-m33"),
    **dict.fromkeys(("stm32G0xx", "stm32L0xx"), "cortex-m0+"),
    "stm32F0xx": "cortex-m0",
}
STM32_SUPPORTED_SERIES: dict[str, list[str]] = {
    series: ["-keys=arm_cpu,cpu", "-device=arm_cpu", f"-mcpu={core}", *(["-march=armv7e-m"] if series == "stm32H7xx" else [])]
    for series, core in _STM32_CORES.items()
}
# Boards and chips of microcontrollers -> the core in them; those of "" have cores of other families than ARM's, or none of their own.
_MICRO_CORES = {
    **dict.fromkeys(("host", "esp32"), ""),
    **dict.fromkeys(("stm32f746xx", "stm32h7xx", "imxrt10xx"), "cortex-m7"),
    **dict.fromkeys(("atsamd51", "cxd5602gg", "stm32f4xx", "stm32l4r5zi", "nrf52832"), "cortex-m4"),
    **dict.fromkeys(("mps2_an521", "nrf5340dk", "stm32u5xx"), "cortex-m33"),
    **{"mps3_an547": "cortex-m55", "nrf52840": "cortex-m4+nodsp", "rp2040": "cortex-m0", "sam3x8e": "cortex-m3", "zynq_mp_r5": "cortex-r5"},
}
_HEXAGON_VTCM_MB = {"v65": 0, "v66": 0, "v67": 0, "v68": 4, "v69": 8, "v71": 8, "v73": 8, "v75": 8}


def create(target: Any) -> Target:
    """`Target(target)`, as programs of early releases write it."""
    return Target(target)


def _made(kind: str, fixed: Sequence[str], options: str | Sequence[str] | None) -> Target:
    """A target of fixed words and of those of a user, which win."""
    given = shlex.split(options) if isinstance(options, str) else list(options or ())
    return Target({**read(" ".join([kind, *fixed])), **{name: v for name, v in read(" ".join([kind, *given])).items() if name != "kind"}})


def cuda(model: str = "unknown", arch: str | None = None, options: str | Sequence[str] | None = None) -> Target:
    """A CUDA GPU.

    Args:
        model: a label, such as "1080ti".
        arch: the architecture, such as "sm_80".
        options: more options, as text or as words.
    """
    return _made("cuda", (f"-model={model}", *((f"-arch={arch}",) if arch else ())), options)


def rocm(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A GPU of AMD; arguments as for `cuda`."""
    return _made("rocm", (f"-model={model}",), options)


def mali(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Mali GPU of the Midgard family by OpenCL; arguments as for `cuda`."""
    return _made("opencl", ("-device=mali", f"-model={model}"), options)


def bifrost(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A Mali GPU of the Bifrost family by OpenCL; arguments as for `cuda`."""
    return _made("opencl", ("-device=bifrost", f"-model={model}"), options)


def intel_graphics(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A GPU of Intel by OpenCL; arguments as for `cuda`."""
    return _made("opencl", ("-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"), options)


def arm_cpu(model: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """An ARM CPU.

    Args:
        model: a board or phone whose triple and features are known, such as "rasp4b64", or a label.
        options: more options, as text or as words.
    """
    return _made("llvm", ("-device=arm_cpu", *_ARM_MODELS.get(model, (f"-model={model}",))), options)


def rasp(options: str | Sequence[str] | None = None) -> Target:
    """A Raspberry Pi 3B: `arm_cpu("rasp3b")`."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: str | Sequence[str] | None = None) -> Target:
    """A RISC-V CPU with Linux, one of SiFive's or a label; `options` as for `cuda`."""
    known = (f"-mcpu={model}", *_RISCV_LINUX) if model in _RISCV_CPUS else ()
    return _made("llvm", ("-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={model}", *known), options)


def stm32(series: str = "unknown", options: str | Sequence[str] | None = None) -> Target:
    """A microcontroller of STM32 by its series.

    Raises:
        TargetError: for a series that isn't known.
    """
    if series not in _STM32_CORES:
        raise TargetError(f"no series {series!r} of STM32 is known; known: {', '.join(_STM32_CORES)}")
    arch = ("-march=armv7e-m",) if series == "stm32H7xx" else ()
    return _made("c", ("-keys=arm_cpu,cpu", "-device=arm_cpu", f"-mcpu={_STM32_CORES[series]}", *arch), options)


def micro(model: str = "host", options: str | Sequence[str] | None = None) -> Target:
    """A microcontroller by its board or chip, for C text.

    Raises:
        TargetError: for a model that isn't known.
    """
    if model not in _MICRO_CORES:
        raise TargetError(f"no microcontroller {model!r} is known; known: {', '.join(_MICRO_CORES)}")
    core = _MICRO_CORES[model]
    return _made("c", (*(("-keys=arm_cpu,cpu", f"-mcpu={core}") if core else ()), f"-model={model}"), options)


def hexagon(cpu_ver: str = "v68", num_cores: int = 4, vtcm_capacity: int | None = None, hvx: int = 128) -> Target:
    """A Hexagon DSP.

    Args:
        cpu_ver: its version, such as "v68".
        num_cores: its hardware threads.
        vtcm_capacity: bytes of its coupled memory; what the version has by default.
        hvx: bytes of a vector: 0 for none, 64 or 128.

    Raises:
        TargetError: for a version or a vector length that doesn't exist.
    """
    if cpu_ver not in _HEXAGON_VTCM_MB:
        raise TargetError(f"hexagon: no version {cpu_ver!r}; known: {', '.join(_HEXAGON_VTCM_MB)}")
    if hvx not in (0, 64, 128):
        raise TargetError(f"hexagon: a vector has 0, 64 or 128 bytes, not {hvx}")
    floats = cpu_ver >= "v68" and hvx > 0
    features = [f"+hvx{cpu_ver}", f"+hvx-length{hvx}b"] if hvx else []
    config: dict[str, Any] = {"kind": "hexagon", "mcpu": f"hexagon{cpu_ver}", "mtriple": "hexagon", "num-cores": num_cores}
    config["vtcm-capacity"] = _HEXAGON_VTCM_MB[cpu_ver] << 20 if vtcm_capacity is None else vtcm_capacity
    if features:
        config["mattr"] = [*features, *(["+hvx-qfloat", "-hvx-ieee-fp"] if floats else [])]
    return Target({**config, **({"llvm-options": ["-force-hvx-float"]} if floats else {})})
