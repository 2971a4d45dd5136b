"""Where a machine keeps its arrays: in the host's memory, or in that of a device that runs the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError
from ...runtime.device import Device, cpu
from ...runtime.ndarray import NDArray, array, empty
from ...target import Target
from ...target.kinds import DEVICE_KINDS


class Placement:
    """Puts arrays where kernels find them.

    Args:
        device: whose kernels run; None for the host.
    """

    def __init__(self, device: Device | None) -> None:
        self.device = device
        self._constants: dict[int, tuple[NDArray, NDArray]] = {}

    @classmethod
    def of(cls, target: Target, devices: Sequence[Device] | None) -> Placement:
        """The placement for kernels of a target among the devices that a program names; by default the first there is.

        Raises:
            ArgumentError: for devices that kernels of the target don't run on.
        """
        wanted = Device.kDLCUDA if target.kind in DEVICE_KINDS else Device.kDLCPU
        given = [Device(wanted)] if devices is None else list(devices)
        # Programs name the host beside the device, for what runs there.
        own = [one for one in given if one.device_type == wanted]
        if not own or any(one.device_type not in (wanted, Device.kDLCPU) for one in given):
            raise ArgumentError(f"a graph that is built for {target.kind.name} runs on {Device(wanted)}, not on {given}")
        return cls(own[0] if wanted != Device.kDLCPU else None)

    def __call__(self, value: Any) -> Any:
        """A value of the machine with its arrays where kernels find them; those that are there already aren't copied."""
        if self.device is None:
            return value
        if isinstance(value, (tuple, list)):
            return type(value)(map(self, value))
        if isinstance(value, NDArray) and value.device.device_type == cpu().device_type:
            return array(value, self.device)
        return value

    def constant(self, given: NDArray) -> NDArray:
        """A constant there, copied once however many functions hold it."""
        if self.device is None:
            return given
        # With the given one, which keeps its id.
        return self._constants.setdefault(id(given), (given, self(given)))[1]

    def copied(self, given: NDArray) -> NDArray:
        """A copy of an array there."""
        return array(given, self.device)

    def empty(self, extents: Sequence[int], dtype: str) -> NDArray:
        """Room there."""
        return empty(extents, dtype, self.device)
