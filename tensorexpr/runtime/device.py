"""Devices: where arrays live and functions run. All can be named and asked whether they exist: CPUs do, and GPUs with a driver."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from .. import processor
from ..dataclass import dataclass
from ..errors import TargetError

# DLPack's numbers. The first name of a number is the one that is printed.
_NUMBERS = {
    **{"cpu": 1, "llvm": 1, "stackvm": 1, "c": 1, "hybrid": 1, "composite": 1, "test": 1},
    **{"cuda": 2, "gpu": 2, "nvptx": 2, "cuda_host": 3, "opencl": 4, "cl": 4, "sdaccel": 4},
    **{"vulkan": 7, "metal": 8, "mtl": 8, "vpi": 9, "rocm": 10, "rocm_host": 11, "ext_dev": 12, "cuda_managed": 13, "oneapi": 14},
    **{"webgpu": 15, "hexagon": 16, "aocl": 32, "aocl_sw_emu": 32},
}
_CPU = _NUMBERS["cpu"]
_NAMES = {number: name for name, number in reversed(_NUMBERS.items())}  # reversed, so that the first name of a number is set last


@dataclass(frozen=True)
class Device:
    """A device by its DLPack type number and its index. Prints as `cpu(0)`.

    What drivers say of a device (threads, clocks, memory) is None for a device that isn't there; of a CPU, what the system says.
    """

    device_type: int
    device_id: int = 0

    kDLCPU: ClassVar[int] = 1
    kDLCUDA: ClassVar[int] = 2
    kDLCUDAHost: ClassVar[int] = 3
    kDLOpenCL: ClassVar[int] = 4
    kDLVulkan: ClassVar[int] = 7
    kDLMetal: ClassVar[int] = 8
    kDLVPI: ClassVar[int] = 9
    kDLROCM: ClassVar[int] = 10
    kDLROCMHost: ClassVar[int] = 11
    kDLExtDev: ClassVar[int] = 12
    kDLCUDAManaged: ClassVar[int] = 13
    kDLOneAPI: ClassVar[int] = 14
    kDLWebGPU: ClassVar[int] = 15
    kDLHexagon: ClassVar[int] = 16
    kDLAOCL: ClassVar[int] = 32
    kDLSDAccel: ClassVar[int] = 4
    kOpenGL: ClassVar[int] = 34
    kDLMicroDev: ClassVar[int] = 35
    MASK2STR: ClassVar[dict[int, str]] = _NAMES
    STR2MASK: ClassVar[dict[str, int]] = _NUMBERS
    # What only drivers of other devices know.
    api_version: ClassVar[None] = None
    compute_version: ClassVar[None] = None
    driver_version: ClassVar[None] = None
    max_clock_rate: ClassVar[None] = None
    max_shared_memory_per_block: ClassVar[None] = None
    max_thread_dimensions: ClassVar[None] = None
    max_threads_per_block: ClassVar[None] = None
    texture_spatial_limit: ClassVar[None] = None
    warp_size: ClassVar[None] = None

    @property
    def exist(self) -> bool:
        """Whether the device is there: all CPUs are one device to us, a GPU needs its driver, and no other device is built."""
        if self.device_type == self.kDLCUDA:
            from .cuda_driver import has_device  # not loaded by programs of CPUs

            return has_device(self.device_id)
        return self.device_type == _CPU

    @property
    def device_name(self) -> str | None:
        """LLVM's name of the CPU."""
        return processor.host_cpu() if self.device_type == _CPU else None

    @property
    def multi_processor_count(self) -> int | None:
        """The cores that this process may run on."""
        return processor.usable_cores() if self.device_type == _CPU else None

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Bytes of the L2 cache that one core sees."""
        from ..target import Target  # not at the top: a program that only runs an exported network needs no targets

        return Target("llvm").l2_cache_size_bytes if self.device_type == _CPU else None

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of memory."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if self.device_type == _CPU else None

    @property
    def available_global_memory(self) -> int | None:
        """Bytes of memory that nobody uses."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") if self.device_type == _CPU else None

    def sync(self, stream: Any = None) -> None:
        """Wait until everything is done, which on a CPU it is when a call returns; of a GPU also for one stream.

        Raises:
            TargetError: for a device that isn't there.
        """
        self.check_exists()
        if self.device_type == self.kDLCUDA:
            self._driver().synchronize(stream)

    def create_raw_stream(self) -> int:
        """A stream of a GPU, by the driver's number of it: work in one stream is done in order, in several side by side.

        Raises:
            TargetError: for a device that isn't there, or has no streams.
        """
        return int(self._driver().make_stream())

    def free_raw_stream(self, stream: int) -> None:
        """Give back what `create_raw_stream` made."""
        self._driver().free_stream(stream)

    def set_raw_stream(self, stream: int | None) -> None:
        """Launch kernels in a stream from now on; None or 0 is the default one, in which copies are made."""
        self._driver().stream = stream or 0

    def _driver(self) -> Any:
        """The driver of a GPU."""
        if self.device_type != self.kDLCUDA:
            raise TargetError(f"{self} has no streams: what it does is done when a call returns")
        from .cuda_driver import driver

        return driver(self.device_id)

    def check_exists(self) -> None:
        """Refuse a device that isn't there.

        Raises:
            TargetError: naming those that are, or what is missing of a GPU's driver.
        """
        if self.device_type == self.kDLCUDA:
            from .cuda_driver import driver

            driver(self.device_id)
            return
        if not self.exist:
            raise TargetError(f"device {self} is not built yet; built: cpu. `device.exist` says whether a device is there")

    def __str__(self) -> str:
        return f"{_NAMES.get(self.device_type, f'device{self.device_type}')}({self.device_id})"

    def __repr__(self) -> str:
        return str(self)


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """A device by the name of its type, such as "cpu" or "cuda:1", or by its DLPack number. It need not be there.

    Raises:
        TargetError: for a type that doesn't exist or an index that is none.
    """
    name = str(dev_type).split(":")[0].split(" ")[0]
    if isinstance(dev_type, str) and ":" in dev_type and not dev_id:
        dev_id = int(dev_type.split(":")[1])
    if name not in _NUMBERS and dev_type not in _NAMES:
        raise TargetError(f"no device {dev_type!r}; there are {', '.join(_NAMES[number] for number in sorted(_NAMES))}")
    if isinstance(dev_id, bool) or not isinstance(dev_id, int) or dev_id < 0:
        raise TargetError(f"a device index is an integer from 0, not {dev_id!r}")
    return Device(_NUMBERS[name] if name in _NUMBERS else int(dev_type), dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The CPU. All indices mean the same memory."""
    return device("cpu", dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A CUDA GPU."""
    return device("cuda", dev_id)


def gpu(dev_id: int = 0) -> Device:
    """A CUDA GPU, as programs of early releases call it."""
    return device("cuda", dev_id)


def opencl(dev_id: int = 0) -> Device:
    """An OpenCL device."""
    return device("opencl", dev_id)


def cl(dev_id: int = 0) -> Device:
    """An OpenCL device."""
    return device("opencl", dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A Vulkan device."""
    return device("vulkan", dev_id)


def metal(dev_id: int = 0) -> Device:
    """A Metal device."""
    return device("metal", dev_id)


def mtl(dev_id: int = 0) -> Device:
    """A Metal device."""
    return device("metal", dev_id)


def rocm(dev_id: int = 0) -> Device:
    """A ROCm device."""
    return device("rocm", dev_id)


def vpi(dev_id: int = 0) -> Device:
    """A device of Verilog's programming interface."""
    return device("vpi", dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """A device of somebody's extension."""
    return device("ext_dev", dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A Hexagon DSP."""
    return device("hexagon", dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A WebGPU device."""
    return device("webgpu", dev_id)
