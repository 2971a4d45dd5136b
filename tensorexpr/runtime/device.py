"""Devices: where arrays live and functions run. Only CPUs are built."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import TargetError

_CPU = 1  # DLPack's number
_CPU_NAMES = ("cpu", "llvm")
_NOT_BUILT = ("cuda", "gpu", "opencl", "cl", "vulkan", "metal", "mtl", "rocm", "hexagon", "webgpu", "ext_dev", "vpi")


@dataclass(frozen=True)
class Device:
    """A device by its DLPack type number and its index. Prints as `cpu(0)`."""

    device_type: int
    device_id: int = 0

    @property
    def exist(self) -> bool:
        """Whether the device is there: all CPUs are one device to us."""
        return True

    def __str__(self) -> str:
        return f"cpu({self.device_id})"

    def __repr__(self) -> str:
        return str(self)


def cpu(dev_id: int = 0) -> Device:
    """The CPU. All indices mean the same memory."""
    return device("cpu", dev_id)


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """A device by the name of its type, such as "cpu", or by its DLPack number.

    Raises:
        TargetError: for devices that don't exist or aren't built yet.
    """
    name = str(dev_type).split(":")[0]
    if isinstance(dev_type, str) and ":" in dev_type and not dev_id:
        dev_id = int(dev_type.split(":")[1])
    if name in _CPU_NAMES or dev_type == _CPU:
        if isinstance(dev_id, bool) or not isinstance(dev_id, int) or dev_id < 0:
            raise TargetError(f"a device index is an integer from 0, not {dev_id!r}")
        return Device(_CPU, dev_id)
    if name in _NOT_BUILT:
        raise TargetError(f"device {name!r} is not built yet; built: cpu")
    raise TargetError(f"no device {dev_type!r}; built: cpu; not built yet: {', '.join(_NOT_BUILT)}")
