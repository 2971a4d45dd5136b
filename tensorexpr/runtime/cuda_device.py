"""A GPU as a device of the runtime: arrays in its memory, copies, launches, and its clock."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import ArgumentError
from ..tir.dtype import to_numpy
from . import dlpack, ndarray
from .cuda_driver import Driver, driver
from .device import Device
from .device_module import DeviceCode
from .ndarray import NDArray
from .tensor_maps import TensorMap
from .timing import BenchmarkResult

_Array = np.ndarray[Any, np.dtype[Any]]


class CudaArray(NDArray):
    """An array in a GPU's memory: `numpy()` and `copyto` bring its values to the host, `copyfrom` takes them from there.

    `torch.from_dlpack(x)` and `cupy.asarray(x)` share its memory, also for writing.

    Args:
        shadow: its shape and dtype.
        device: where it is.
        driver: the device's.
        guard: bytes before and behind it that are its own too; a multiple of the 256 that addresses begin at.
        borrowed: the address of memory that somebody else owns, and the owner.
    """

    __slots__ = ("_address", "_driver", "_owner")

    def __init__(self, shadow: _Array, device: Device, driver: Driver, guard: int = 0, borrowed: tuple[int, Any] | None = None) -> None:
        super().__init__(shadow, device)
        self._driver, self._owner = driver, None
        if borrowed is not None:
            self._address, self._owner = borrowed
            return
        whole = driver.allocate(shadow.nbytes + 2 * guard)
        self._address = whole + guard
        weakref.finalize(self, driver.free, whole)

    @property
    def handle(self) -> int:
        """The address of the first element, on the device."""
        return self._address

    @property
    def is_view(self) -> bool:
        """Whether the memory is somebody else's (an array that came through DLPack)."""
        return self._owner is not None

    def viewed(self, shape: Sequence[int]) -> CudaArray:
        """The same memory in another shape of as many elements, which it keeps alive."""
        return CudaArray(self._array.reshape(shape), self.device, self._driver, borrowed=(self._address, self))

    def host_values(self) -> _Array:
        """A copy on the host."""
        return self.numpy()

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

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory, for use in the default stream."""
        return self.__dlpack__()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """A DLPack capsule that shares the memory.

        Args:
            stream: where the consumer will use it; it waits for what was launched here. None is the default one, -1 asks for no wait.
            max_version: as of arrays on CPUs.
            dl_device: this device, or a CPU, which gets a copy.
            copy: whether the consumer wants memory of its own; False refuses one.

        Raises:
            BufferError: for another device, for a copy that is refused, and for stream 0, which has no meaning here.
        """
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            if int(dl_device[0]) != dlpack.CPU_DEVICE[0] or copy is False:
                raise BufferError(f"the array lives on {self.device}, not on DLPack device {dl_device}, and isn't copied there")
            return ndarray.array(self.numpy(), dtype=self.dtype).__dlpack__(max_version=max_version)
        if stream == 0:
            raise BufferError("stream 0 may be the default stream or one of each thread: say 1 or 2")
        shared = self
        if copy:
            shared = CudaArray(self._array, self.device, self._driver)
            self._driver.copy(shared.handle, self.handle, self._array.nbytes)
        if stream != -1:
            self._driver.order(self._driver.stream, 1 if stream is None else int(stream))
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(self.ndim)]
        return dlpack.export_memory(shared.handle, self.shape, steps, self.dtype, self.__dlpack_device__(), shared, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.device_type, self.device.device_id

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as numba and cupy take it; bfloat16 and other dtypes that NumPy has no name for go through DLPack alone."""
        if self._array.dtype.kind not in "biuf" or self._array.dtype.str[1] == "V":
            raise AttributeError(f"__cuda_array_interface__ has no name for {self.dtype}; use DLPack")
        described = {"shape": self.shape, "typestr": self._array.dtype.str, "data": (self.handle, False), "strides": None}
        return {**described, "stream": self._driver.stream or 1, "version": 3}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array:
        return self.numpy().astype(self._array.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        """An element, or a part, of a copy on the host."""
        return self.numpy()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.numpy()
        values[index] = value
        self.copyfrom(values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

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

    def tensor_map(self, described: TensorMap) -> bytes:
        """A map as the driver makes it."""
        return self.driver.tensor_map(described)

    def launch(
        self,
        code: DeviceCode,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
    ) -> None:
        """Launch a kernel in the stream that was set."""
        shared = code.kernels[kernel].dynamic_shared
        self.driver.launch(self.driver.function(code.assembly, kernel, shared), grid, block, arguments, shared)

    def sync(self, stream: int | None = None) -> None:
        """Wait until everything is done, or what was launched in a stream."""
        self.driver.synchronize(stream)

    def _driver(self) -> Driver:
        return self.driver

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


def from_dlpack(value: Any) -> CudaArray:
    """An array on the memory of anything with `__dlpack__` on a GPU; the stream in which kernels are launched waits for its values.

    Raises:
        ArgumentError: if it isn't compact, or its dtype has no name in the IR.
        TargetError: without a driver or the device.
    """
    device = with_driver(Device(*map(int, value.__dlpack_device__())))
    address, shape, dtype, owner = dlpack.to_memory(value, device.driver.stream or 1)
    shadow = np.broadcast_to(np.empty((), to_numpy(dtype)), shape)
    return CudaArray(shadow, device, device.driver, borrowed=(address, owner))


def with_driver(device: Device) -> CudaDevice:
    """The device with the driver of this machine.

    Raises:
        TargetError: without a driver or the device.
    """
    return CudaDevice(device.device_type, device.device_id, driver(device.device_id))
