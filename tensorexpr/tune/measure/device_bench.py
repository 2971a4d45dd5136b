"""The arrays of a task in a GPU's memory, and candidates run on them: what `bench` does on a CPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import TuningError
from ...runtime.cuda_device import CudaArray, CudaDevice, with_driver
from ...runtime.device import Device
from ...runtime.device_export import from_parts
from ...runtime.device_module import DeviceCode
from ...runtime.ndarray import NDArray
from ...runtime.tensor_maps import TensorMap
from ...te.tolerance import Tolerance
from ...tir.dtype import to_numpy
from .arrays import StoredArray
from .bench import Arrays, Bench, Kernel, Output
from .compiled import ArrayArgument
from .memory import OFFSET, Array, frozen_copy
from .timing import Quiet, TimingPolicy

_GUARD = 256  # bytes beside each result, a multiple of what addresses begin at
_CANARY = 0xA5


class DeviceMemory:
    """A result on a device, with bytes beside it that nobody may write."""

    def __init__(self, device: CudaDevice, shape: Sequence[int], dtype: str) -> None:
        self.on_device: CudaArray = device.make_array(tuple(shape), dtype, _GUARD)
        self._driver = device.driver
        self._shape, self._dtype = tuple(shape), np.dtype(to_numpy(dtype))
        self._size = prod(self._shape) * self._dtype.itemsize
        self._poisoned = np.full(self._size + 2 * _GUARD, _CANARY, np.uint8)
        if self._dtype.kind not in "biu":
            self._poisoned[_GUARD : _GUARD + self._size].view(self._dtype)[...] = np.nan

    def _read(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        found = np.empty_like(self._poisoned)
        self._driver.read(found.ctypes.data, self.on_device.handle - _GUARD, found.nbytes)
        return found

    @property
    def array(self) -> Array:
        """A copy of what is there now."""
        return self._read()[_GUARD : _GUARD + self._size].view(self._dtype).reshape(self._shape)

    @property
    def address(self) -> int:
        """The address of the first element, on the device."""
        return self.on_device.handle

    @property
    def is_intact(self) -> bool:
        """Whether the bytes beside the array still hold what was put there."""
        found = self._read()
        return bool((found[:_GUARD] == _CANARY).all() and (found[_GUARD + self._size :] == _CANARY).all())

    def poison(self) -> None:
        """Fill the array with values that no right answer holds: NaN, or a bit pattern for integers."""
        self._driver.write(self.on_device.handle - _GUARD, self._poisoned.ctypes.data, self._poisoned.nbytes)


@dataclass(frozen=True)
class DeviceKernel(Kernel):
    """A candidate on a device: its launches, ready to go, and the memory between its kernels."""

    launches: Sequence[Callable[[], None]] = ()
    kept: Sequence[Any] = ()


@dataclass
class _Recorder:
    """A device that notes launches, so that a call of a candidate costs the host nothing else."""

    device: CudaDevice
    launches: list[Callable[[], None]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)

    def host_view(self, array: NDArray) -> np.ndarray[Any, Any]:
        """See `Launcher`."""
        return self.device.host_view(array)

    def allocate(self, size: int) -> tuple[int, Any]:
        """See `Launcher`."""
        address, keep = self.device.allocate(size)
        self.kept.append(keep)
        return address, keep

    def tensor_map(self, described: TensorMap) -> bytes:
        """See `Launcher`."""
        return self.device.tensor_map(described)

    def launch(
        self,
        code: DeviceCode,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
    ) -> None:
        """Load a kernel, and note its launch."""
        driver, shared = self.device.driver, code.kernels[kernel].dynamic_shared
        self.launches.append(driver.prepared(driver.function(code.assembly, kernel, shared), grid, block, arguments, shared))


class DeviceBench(Bench):
    """Inputs and results of a task on a GPU; every candidate of the task runs on them, timed by the GPU's own clock."""

    def __init__(self, arrays: Sequence[StoredArray], folder: Path, policy: TimingPolicy, device: int) -> None:
        self._policy = policy
        self._device = with_driver(Device(Device.kDLCUDA, device))
        self._on_device: list[NDArray] = []
        self._outputs: list[Output] = []
        for array in arrays:
            if array.is_output:
                memory = DeviceMemory(self._device, array.shape, array.dtype)
                expected = frozen_copy(array.load(folder)) if array.file else None
                self._outputs.append(Output(array.name, memory, expected, Tolerance(array.rtol, array.atol)))
                self._on_device.append(memory.on_device)
            else:
                self._on_device.append(self._device.make_array(array.shape, array.dtype).copyfrom(array.load(folder)))
        # Other programs of the host's cores are no trouble to a GPU.
        self.quiet = Quiet(lambda: 0.0, 0.0)
        cold = policy.flush_caches or policy.swept_bytes
        self._swept = self._device.make_array((2 * self._device.driver.cache_bytes,), "uint8") if cold else None

    def offsets(self, asked: Sequence[int]) -> Sequence[int]:
        """The first alone: arrays begin where the driver puts them."""
        return asked[:1]

    def speed(self) -> float:
        """0: nobody probes how free the cores of the host are."""
        return 0.0

    def load(
        self, data: bytes, entry: str, errors: Sequence[str], arguments: Sequence[ArrayArgument] = (), offset: int = OFFSET
    ) -> DeviceKernel:
        """Load kernels, and prepare what a call of the candidate launches.

        Args:
            data: the kernels' text and description.
            entry: the function.
            errors: none: kernels report nothing.
            arguments: how it takes the arrays.
            offset: of arrays on a CPU.

        Raises:
            TuningError: for layouts of its own, in which nothing is packed on a device.
            TensorExprError: if the driver doesn't take the kernels.
        """
        relaid = [argument.name for argument in arguments if argument.layout is not None]
        if relaid:
            raise TuningError(f"programs for GPUs are measured with arrays as they are declared, and this one packs {', '.join(relaid)}")
        recorder = _Recorder(self._device)
        from_parts(*json.loads(data))[entry].run_on(recorder, self._on_device)
        return DeviceKernel(0, errors, None, None, (), self._outputs, Arrays(OFFSET, (), ()), recorder.launches, recorder.kept)

    def run(self, kernel: Kernel, number: int) -> float:
        """Seconds per call of `number` calls in a row, between two events of the device.

        Raises:
            TensorExprError: if a kernel fails; nothing of this process runs on the device any more then.
        """
        assert isinstance(kernel, DeviceKernel)
        if self._swept is not None:
            return float(np.median([self._timed(kernel.launches, 1) for _ in range(number)]))
        return self._timed(kernel.launches, number) / number

    def _timed(self, launches: Sequence[Callable[[], None]], number: int) -> float:
        driver = self._device.driver
        if self._swept is not None:
            driver.fill(self._swept.handle, 0, self._swept.size)

        def calls() -> None:
            for _ in range(number):
                for launch in launches:
                    launch()

        seconds = driver.seconds(calls)
        driver.synchronize()  # here an access beside an array is reported
        return seconds
