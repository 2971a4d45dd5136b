"""Arrays of the runtime, known as `nd`: `nd.array`, `nd.empty`, `nd.NDArray`.

An NDArray owns 64-byte aligned memory and shares it through DLPack without a copy, also for writing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from ..errors import ArgumentError, TypeMismatchError
from ..tir.dtype import from_numpy, parse_dtype, to_numpy
from . import dlpack
from .device import Device, cl, cpu, cuda, device, ext_dev, gpu, hexagon, metal, mtl, opencl, rocm, vpi, vulkan, webgpu

__all__ = [
    "Device",
    "NDArray",
    "array",
    "cl",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "gpu",
    "hexagon",
    "metal",
    "mtl",
    "numpyasarray",
    "opencl",
    "rocm",
    "vpi",
    "vulkan",
    "webgpu",
]

string_types = (str,)
_ALIGNMENT = 64  # a cache line, as TVM allocates
_Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


class NDArray:
    """An array in a device's memory. Make one with `nd.array` or `nd.empty`."""

    __slots__ = ("__weakref__", "_array", "_dtype", "device")

    def __init__(self, storage: _Array, device: Device) -> None:
        self._array = storage
        self._dtype = from_numpy(storage.dtype)
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._array.shape

    @property
    def dtype(self) -> str:
        """The dtype as the IR spells it, such as "float32"."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def ctx(self) -> Device:
        """The device, as programs of early releases call it."""
        return self.device

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def handle(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def same_as(self, other: object) -> bool:
        """Whether both are the same array in memory."""
        return isinstance(other, NDArray) and self.handle == other.handle and self.shape == other.shape and self.dtype == other.dtype

    @property
    def is_view(self) -> bool:
        """Whether the memory is somebody else's (an array that came through DLPack)."""
        # Views of views: NumPy mostly points past intermediate arrays, but not past foreign bases.
        base: Any = self._array
        while isinstance(base, np.ndarray):
            base = base.base
        return isinstance(base, dlpack.Owner)

    def host_values(self) -> _Array:
        """The values as a NumPy array: on a CPU the array's own memory, of a device a copy."""
        return self._array

    def viewed(self, shape: Sequence[int]) -> NDArray:
        """The same memory in another shape of as many elements."""
        return NDArray(self._array.reshape(shape), self.device)

    def numpy(self) -> _Array:
        """A copy as a NumPy array. For one that shares the memory use `np.from_dlpack(x)`."""
        # Always a copy, as TVM gives one: programs write into it without changing the array.
        copied: _Array = self._array.copy()
        return copied

    def asnumpy(self) -> _Array:
        """A copy as a NumPy array."""
        return self.numpy()

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copy values in, cast to this dtype, and return this array.

        Raises:
            ArgumentError: if the shapes differ.
        """
        source = _as_numpy(source_array)
        if source.shape != self.shape:
            raise ArgumentError(f"copyfrom: an array of shape {source.shape} does not fit into one of shape {self.shape}")
        self._array[...] = source
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy the values into another array, or into a new one on a device, and return that; a CPU has one memory scope."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target)
        if not isinstance(target, NDArray):
            raise ArgumentError(f"copyto takes an nd.array or a device such as tvm.cpu(0), not {target!r}")
        return target.copyfrom(self.host_values())

    def to_dlpack(self) -> Any:
        """A DLPack capsule that shares the memory."""
        return dlpack.export(self._array, self._dtype)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        # The type alone: there is one CPU, whatever index it is asked for.
        if dl_device is not None and next(iter(dl_device)) != dlpack.CPU_DEVICE[0]:
            raise BufferError(f"the array lives in CPU memory, not on DLPack device {dl_device}")
        return dlpack.export(self.numpy() if copy else self._array, self._dtype, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU_DEVICE

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> _Array:
        if copy is False and dtype is not None and np.dtype(dtype) != self._array.dtype:
            raise ValueError(f"no {np.dtype(dtype)} array without a copy of this {self._dtype} one")
        return self._array.astype(self._array.dtype if dtype is None else dtype, copy=copy is not False)

    def __getitem__(self, index: Any) -> Any:
        """An element, or a NumPy view of a part."""
        return self._array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = _as_numpy(value)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array)

    def __repr__(self) -> str:
        return f"nd.array({np.array2string(self._array, separator=', ')}, dtype={self._dtype!r})"


def empty(
    shape: int | Sequence[int],
    dtype: str = "float32",
    device: Device | None = None,
    mem_scope: str | None = None,
    ctx: Device | None = None,
) -> NDArray:
    """An array with undefined contents, aligned to 64 bytes.

    Args:
        shape: the extents.
        dtype: the element type.
        device: where it shall live; the CPU if None. `ctx` is its name in early releases.
        mem_scope: accepted; a CPU has one memory.

    Raises:
        ArgumentError: for a negative extent or a dtype without elements of its own (vectors, handles).
        TargetError: for a device that isn't there.
    """
    device = device or ctx or cpu()
    if isinstance(device, str):
        raise ArgumentError(f"an array lives on a device, such as tvm.cpu(0) or tvm.device({device!r}, 0), not on {device!r}")
    if type(device) is Device and device.device_type == Device.kDLCUDA:
        from .cuda_device import with_driver  # not loaded by programs of CPUs

        device = with_driver(device)
    elsewhere = getattr(device, "make_array", None)
    if elsewhere is not None:
        made: NDArray = elsewhere(shape, dtype)
        return made
    device.check_exists()
    try:
        extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"the shape of an array is a number, or a tuple of numbers, not {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise ArgumentError(f"an array can't have the shape {extents}: extents are at least 0")
    parsed = parse_dtype(dtype)
    if parsed.lanes > 1 or parsed.code == "handle":
        raise ArgumentError(f"an array can't hold {dtype} elements: use the scalar type, and one more dimension for lanes")
    element = to_numpy(dtype)
    size = math.prod(extents) * element.itemsize
    # Room to move the start up: NumPy itself promises 16 bytes at most.
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    # The bytes up to the next multiple; the view keeps `memory` alive.
    start = -memory.ctypes.data % _ALIGNMENT
    return NDArray(memory[start : start + size].view(element).reshape(extents), device)


def wrapped(storage: _Array, dtype: str) -> NDArray:
    """A NumPy array of a dtype that is known, in a third of the time that the class takes."""
    made = NDArray.__new__(NDArray)
    made._array, made._dtype, made.device = storage, dtype, _HERE
    return made


def adopted(values: _Array) -> NDArray:
    """An array of NumPy that nobody else writes as an NDArray: on its memory where that is compact and aligned as that of `empty`,
    else a copy."""
    if values.flags.c_contiguous and values.flags.writeable and values.ctypes.data % _ALIGNMENT == 0:
        return wrapped(values, from_numpy(values.dtype))
    return array(values)


_HERE = cpu()


def array(
    arr: Any, device: Device | None = None, mem_scope: str | None = None, dtype: str | None = None, ctx: Device | None = None
) -> NDArray:
    """A copy of anything that NumPy can read, an NDArray, or anything with DLPack.

    Args:
        arr: the values.
        device: where the array shall live; the CPU if None. `ctx` is its name in early releases.
        mem_scope: accepted; a CPU has one memory.
        dtype: the element type; that of the values if None.

    Raises:
        ArgumentError: for rows of unequal lengths.
        TypeMismatchError: for values that are no numbers, or of a dtype that has no name in the IR.
    """
    try:
        source = _as_numpy(arr)
    except ValueError as error:
        raise ArgumentError(f"no array can be made of {arr!r}: {error}") from None
    if source.dtype.kind in "OSU":
        raise TypeMismatchError(f"{source.dtype} is no dtype of arrays: they hold numbers, not {arr!r}")
    return empty(source.shape, dtype or from_numpy(source.dtype), device or ctx).copyfrom(source)


def numpyasarray(np_data: Any) -> NDArray:
    """A NumPy array as an NDArray on the same memory.

    Raises:
        ArgumentError: for a dtype that has no name in the IR, or an array that isn't compact.
    """
    return from_dlpack(np_data)


def from_dlpack(dltensor: Any) -> NDArray:
    """An array on the memory of anything with `__dlpack__`, or of a capsule, without a copy, also for writing.

    Of a GPU it has to be compact, and kernels that are launched from now on wait for its values.

    Raises:
        ArgumentError: if it lives on another device, or its dtype has no name in the IR.
        TargetError: if it lives on a GPU, and there is no driver.
    """
    if hasattr(dltensor, "__dlpack_device__") and int(next(iter(dltensor.__dlpack_device__()))) == Device.kDLCUDA:
        from . import cuda_device  # not loaded by programs of CPUs

        return cuda_device.from_dlpack(dltensor)
    return NDArray(dlpack.to_array(dltensor), cpu())


@overload
def _as_numpy(value: _Array) -> _Array: ...
@overload
def _as_numpy(value: Any) -> Any: ...
def _as_numpy(value: Any) -> Any:
    """`value` as an array, sharing memory where possible; scalars stay what they are for NumPy to broadcast."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, NDArray):
        return value.host_values()
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        return dlpack.to_array(value)
    return np.asarray(value)


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """A C array of a type of ctypes."""
    return (ctype * len(values))(*values)


NDArrayBase = NDArray
context = device  # its name in early releases
