"""A GPU as a device of the runtime: arrays in its memory, copies, launches, and its clock."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ArgumentError
from . import ndarray
from .cuda_driver import Driver, driver
from .device import Device
from .device_module import DeviceCode
from .ndarray import NDArray
from .timing import BenchmarkResult

_Array = np.ndarray[Any, np.dtype[Any]]


class CudaArray(NDArray):
    """An array in a GPU's memory: `numpy()` and `copyto` bring its values to the host, `copyfrom` takes them from there.

    Args:
        shadow: its shape and dtype.
        device: where it is.
        driver: the device's.
        guard: bytes before and behind it that are its own too; a multiple of the 256 that addresses begin at.
    """

    __slots__ = ("_address", "_driver")

    def __init__(self, shadow: _Array, device: Device, driver: Driver, guard: int = 0) -> None:
        super().__init__(shadow, device)
        self._driver = driver
        whole = driver.allocate(shadow.nbytes + 2 * guard)
        self._address = whole + guard
        weakref.finalize(self, driver.free, whole)

    @property
    def handle(self) -> int:
        """The address of the first element, on the device."""
        return self._address

    def numpy(self) -> _Array:
        """A copy on the host."""
        found = np.empty(self.shape, self._array.dtype)
        if found.nbytes:
            self._driver.read(found.ctypes.data, self._address, found.nbytes)
        return found

    def copyfrom(self, source_array: Any) -> CudaArray:
        """Copy values in, cast to this dtype, and return this array.

        Raises:
            ArgumentError: if the shapes differ.
        """
        source = source_array.numpy() if isinstance(source_array, NDArray) else np.asarray(source_array)
        if source.shape != self.shape:
            raise ArgumentError(f"copyfrom: an array of shape {source.shape} does not fit into one of shape {self.shape}")
        values = np.ascontiguousarray(source, self._array.dtype)
        if values.nbytes:
            self._driver.write(self._address, values.ctypes.data, values.nbytes)
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy the values into another array, or into a new one on a device, and return that."""
        where = ndarray.empty(self.shape, self.dtype, target) if isinstance(target, Device) else target
        return where.copyfrom(self.numpy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array:
        return self.numpy().astype(self._array.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        """An element, or a part, of a copy on the host."""
        return self.numpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.numpy()
        values[index] = value
        self.copyfrom(values)

    def __repr__(self) -> str:
        return f"<array of {self.dtype} {self.shape} on {self.device}>"


@dataclass(frozen=True)
class CudaDevice(Device):
    """A GPU with its driver; `tvm.cuda(0)` finds it when arrays are made there."""

    driver: Driver = field(default=None, compare=False, repr=False)  # type: ignore[assignment]

    def make_array(self, shape: int | Sequence[int], dtype: str, guard: int = 0) -> CudaArray:
        """An array on this device; `guard` as of `CudaArray`."""
        plain = ndarray.empty(shape, dtype)
        # Shape and dtype without memory: whoever reads the values goes through the driver.
        shadow = np.broadcast_to(np.empty((), plain._array.dtype), plain.shape)
        return CudaArray(shadow, self, self.driver, guard)

    def host_view(self, array: NDArray) -> _Array:
        """An array of NumPy at the address on the device, which nobody may look into."""
        size = max(1, array.size * array._array.itemsize)
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(array.handle))
        return memory[: array.size * array._array.itemsize].view(array._array.dtype).reshape(array.shape)

    def allocate(self, size: int) -> tuple[int, Any]:
        """The address of so many bytes, and the array that keeps them."""
        kept = self.make_array((size,), "uint8")
        return kept.handle, kept

    def launch(
        self,
        code: DeviceCode,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
    ) -> None:
        """Launch a kernel on the default stream."""
        shared = code.kernels[kernel].dynamic_shared
        self.driver.launch(self.driver.function(code.assembly, kernel, shared), grid, block, arguments, shared)

    def sync(self, stream: Any = None) -> None:
        """Wait until everything is done."""
        self.driver.synchronize()

    def time(self, function: Any, number: int, repeat: int) -> Any:
        """What `time_evaluator` gives: a function that measures `function` by events, after a call that isn't measured."""

        def measure(*args: Any) -> BenchmarkResult:
            function(*args)

            def rounds() -> None:
                for _ in range(number):
                    function(*args)

            return BenchmarkResult(tuple(self.driver.seconds(rounds) / number for _ in range(repeat)))

        return measure

    def __str__(self) -> str:
        return f"cuda({self.device_id})"

    __repr__ = __str__


def with_driver(device: Device) -> CudaDevice:
    """The device with the driver of this machine.

    Raises:
        TargetError: without a driver or the device.
    """
    return CudaDevice(device.device_type, device.device_id, driver(device.device_id))
