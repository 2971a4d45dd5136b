"""A device together with what code for it is built for and which of its memories is meant."""

from __future__ import annotations

from typing import Any

from ..dataclass import dataclass
from .target import Target


@dataclass(frozen=True)
class VirtualDevice:
    """Where a value lives, as far as it is known.

    Args:
        device: a `Device`, or None.
        target: what code that makes the value is built for, or None.
        memory_scope: the memory, such as "global"; "" for any.
    """

    device: Any = None
    target: Target | None = None
    memory_scope: str = ""

    @property
    def device_type(self) -> int:
        """DLPack's number of the device, -1 if it isn't known."""
        if self.device is not None:
            return int(self.device.device_type)
        return -1 if self.target is None else self.target.get_target_device_type()

    @property
    def device_type_int(self) -> int:
        """The same as `device_type`."""
        return self.device_type

    @property
    def virtual_device_id(self) -> int:
        """The device's index, -1 if it isn't known."""
        return -1 if self.device is None else int(self.device.device_id)
