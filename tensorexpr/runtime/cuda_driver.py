"""NVIDIA's driver by ctypes: a table of its functions' types, and errors that say what is missing.

`libcuda.so.1` comes with the driver, and no package is needed. Nothing here was run on hardware yet: the tests use a library of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import lru_cache
from typing import Any

from ..errors import TargetError, TensorExprError
from ..target.chips import capability
from .tensor_maps import MAP_BYTES, TensorMap

_LIBRARY = "libcuda.so.1"
_POINTER, _ADDRESS = POINTER(c_void_p), POINTER(c_uint64)
# Function -> the types of its parameters; each returns 0 or the number of an error (CUDA Driver API, reference).
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_POINTER, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_POINTER, c_char_p),
    "cuModuleGetFunction": (_POINTER, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, _POINTER, _POINTER),
    "cuMemAlloc_v2": (_ADDRESS, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemcpyDtoD_v2": (c_uint64, c_uint64, c_size_t),
    "cuMemsetD8_v2": (c_uint64, c_ubyte, c_size_t),
    "cuEventCreate": (_POINTER, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuStreamCreate": (_POINTER, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
_WORDS = POINTER(c_uint)
# Of drivers since CUDA 12.0: map, type, dimensions, address, extents, strides, box, steps, interleave, swizzle, promotion, what is outside.
NEWER_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuTensorMapEncodeTiled": (c_void_p, c_int, c_uint, c_void_p, _ADDRESS, _ADDRESS, _WORDS, _WORDS, c_int, c_int, c_int, c_int),
}
_MAP_TYPES = {"uint8": 0, "int8": 0, "uint16": 1, "int16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5}
_MAP_TYPES |= {"float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
_MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTED = 2  # lines of 128 bytes are fetched into the cache that all multiprocessors share
_MAX_DYNAMIC_SHARED = 8  # attribute of functions
_CAPABILITY = (75, 76)  # attributes of devices: major, minor
_L2_BYTES = 38
_NO_TIMING = 2  # flag of events
DEFAULT_STREAM = 0
"""The stream that nobody made, by the driver's number of it; DLPack and others say 1 to it."""
_REMEDIES = {
    222: "; the driver is older than the PTX: build for an older -arch, or update it",  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    209: "; the code is for another chip: build for this one's -arch",  # CUDA_ERROR_NO_BINARY_FOR_GPU
}


class Driver:
    """The driver's functions, checked, for one device. `library` is what ctypes loads, or has its functions."""

    def __init__(self, library: Any, index: int = 0) -> None:
        self._library = library
        for name, types in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = list(types), c_int
        for name, types in NEWER_SIGNATURES.items():
            newer = getattr(library, name, None)
            if newer is not None:
                newer.argtypes, newer.restype = list(types), c_int
        self._call("cuInit", 0)
        count, self._device, context = c_int(), c_int(), c_void_p()
        self._call("cuDeviceGetCount", byref(count))
        if index >= count.value:
            raise TargetError(
                f"cuda: the driver knows {count.value} devices, and no cuda({index}); code can be built, saved and assembled, not run"
            )
        self._call("cuDeviceGet", byref(self._device), index)
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._context = context
        self.stream = DEFAULT_STREAM
        self._functions: dict[tuple[str, str], c_void_p] = {}

    def _call(self, name: str, *args: Any) -> None:
        code = getattr(self._library, name)(*args)
        if code:
            raise TensorExprError(f"cuda: {name} failed with {code}: {self._message(code)}")

    def _message(self, code: int) -> str:
        text = c_char_p()
        self._library.cuGetErrorString(code, byref(text))
        return (text.value or b"an unknown error").decode() + _REMEDIES.get(code, "")

    def attribute(self, number: int) -> int:
        """A property of the device by its number."""
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    @property
    def compute_version(self) -> str:
        """The compute capability, such as "9.0"."""
        return ".".join(str(self.attribute(number)) for number in _CAPABILITY)

    @property
    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode()

    def allocate(self, size: int) -> int:
        """The address of so many bytes on the device."""
        address = c_uint64()
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuMemAlloc_v2", byref(address), max(size, 1))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuMemFree_v2", address)

    def write(self, address: int, source: int, size: int) -> None:
        """Copy bytes of the host, at `source`, to the device."""
        self._finish_stream()
        self._call("cuMemcpyHtoD_v2", address, source, size)
        self.order(DEFAULT_STREAM, self.stream)

    def read(self, target: int, address: int, size: int) -> None:
        """Copy bytes of the device to the host, at `target`."""
        self._finish_stream()
        self._call("cuMemcpyDtoH_v2", target, address, size)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes on the device."""
        self._finish_stream()
        self._call("cuMemcpyDtoD_v2", target, source, size)
        self.order(DEFAULT_STREAM, self.stream)

    def _finish_stream(self) -> None:
        """Wait for the stream of launches: copies are made in the default one, which doesn't wait for all streams of others."""
        self._call("cuCtxSetCurrent", self._context)
        if self.stream != DEFAULT_STREAM:
            self._call("cuStreamSynchronize", self.stream)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for all that was launched, or for what was launched in a stream."""
        self._call("cuCtxSetCurrent", self._context)
        if stream is None:
            self._call("cuCtxSynchronize")
        else:
            self._call("cuStreamSynchronize", stream)

    def make_stream(self) -> int:
        """A stream of its own, which the default one waits for, and which waits for that."""
        made = c_void_p()
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamCreate", byref(made), 0)
        return made.value or DEFAULT_STREAM

    def free_stream(self, stream: int) -> None:
        """Give a stream back when its work is done; launches go to the default one if they went there."""
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuStreamDestroy_v2", stream)
        self.stream = DEFAULT_STREAM if self.stream == stream else self.stream

    def order(self, before: int, after: int) -> None:
        """Let what is launched in a stream from now on wait for what was launched in another one."""
        if before == after or {before, after} == {DEFAULT_STREAM, 1}:
            return
        event = c_void_p()
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuEventCreate", byref(event), _NO_TIMING)
        try:
            self._call("cuEventRecord", event, before)
            self._call("cuStreamWaitEvent", after, event, 0)
        finally:
            self._call("cuEventDestroy_v2", event)

    def function(self, text: str, name: str, dynamic_shared: int) -> c_void_p:
        """A kernel of PTX text, loaded on first use."""
        key = text, name
        if key not in self._functions:
            module, function = c_void_p(), c_void_p()
            self._call("cuCtxSetCurrent", self._context)
            self._call("cuModuleLoadData", byref(module), text.encode() + b"\0")
            self._call("cuModuleGetFunction", byref(function), module, name.encode())
            if dynamic_shared:
                self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, dynamic_shared)
            self._functions[key] = function
        return self._functions[key]

    def tensor_map(self, described: TensorMap) -> bytes:
        """A map of a tensor for the copy engine.

        Raises:
            TargetError: for a driver that makes none, and for elements that the engine doesn't know.
        """
        if getattr(self._library, "cuTensorMapEncodeTiled", None) is None:
            raise TargetError("cuda: the driver makes no tensor maps, which those of CUDA 12.0 and later do; update it, or build for sm_80")
        if described.dtype not in _MAP_TYPES:
            raise TargetError(f"cuda: tensor maps are of {', '.join(_MAP_TYPES)}, not of {described.dtype}")
        rank = len(described.shape)
        room = ctypes.create_string_buffer(2 * MAP_BYTES)
        at = -(-ctypes.addressof(room) // 64) * 64
        extents, steps = ((c_uint64 * rank)(*reversed(values)) for values in (described.shape, described.byte_strides[:-1]))
        box, ones = (c_uint * rank)(*reversed(described.box)), (c_uint * rank)(*[1] * rank)
        swizzle = _MAP_SWIZZLES[described.swizzle]
        self._call("cuCtxSetCurrent", self._context)
        kind, address = _MAP_TYPES[described.dtype], described.address
        self._call("cuTensorMapEncodeTiled", at, kind, rank, address, extents, steps, box, ones, 0, swizzle, _PROMOTED, 0)
        return ctypes.string_at(at, MAP_BYTES)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set bytes on the device."""
        self._call("cuCtxSetCurrent", self._context)
        self._call("cuMemsetD8_v2", address, byte, size)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache that all multiprocessors share."""
        return self.attribute(_L2_BYTES)

    def launch(self, function: c_void_p, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], dynamic_shared: int) -> None:
        """Launch a kernel; `arguments` are numbers of NumPy."""
        self.prepared(function, grid, block, arguments, dynamic_shared)()

    def prepared(
        self, function: c_void_p, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], dynamic_shared: int
    ) -> Callable[[], None]:
        """What launches a kernel, any number of times, with as little work of the host as there can be."""
        held = [ctypes.create_string_buffer(argument.tobytes(), argument.nbytes) for argument in arguments]
        places = (c_void_p * max(1, len(held)))(*(ctypes.addressof(buffer) for buffer in held))

        def launch(held: Sequence[Any] = held) -> None:  # the buffers live as long as what points to them
            self._call("cuCtxSetCurrent", self._context)
            self._call("cuLaunchKernel", function, *grid, *block, dynamic_shared, self.stream, places, None)

        return launch

    def seconds(self, work: Any) -> float:
        """The seconds between two events around a call."""
        events = [c_void_p(), c_void_p()]
        elapsed = c_float()
        self._call("cuCtxSetCurrent", self._context)
        for event in events:
            self._call("cuEventCreate", byref(event), 0)
        try:
            self._call("cuEventRecord", events[0], self.stream)
            work()
            self._call("cuEventRecord", events[1], self.stream)
            self._call("cuEventSynchronize", events[1])
            self._call("cuEventElapsedTime", byref(elapsed), *events)
        finally:
            for event in events:
                self._call("cuEventDestroy_v2", event)
        return elapsed.value / 1e3


def check_device(arch: str, index: int = 0) -> None:
    """Check that this machine has a device that runs code for an architecture. Nothing is started on it.

    Raises:
        TargetError: without a driver or the device, and for one of another capability.
    """
    library = _library()
    count, device, value = c_int(), c_int(), c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(byref(count)) or index >= count.value:
        raise TargetError(f"cuda: the driver knows {count.value} devices, and no cuda({index})")
    library.cuDeviceGet(byref(device), index)
    has = 0
    for number in _CAPABILITY:
        library.cuDeviceGetAttribute(byref(value), number, device)
        has = 10 * has + value.value
    wanted = capability(arch)
    if has < wanted or (arch.endswith("a") and has != wanted):
        raise TargetError(f"code for {arch} can't run on cuda({index}), which is sm_{has}; build for -arch=sm_{has}")


def has_device(index: int) -> bool:
    """Whether there is a driver that knows a device."""
    try:
        driver(index)
    except TensorExprError:
        return False
    return True


@lru_cache(maxsize=8)
def driver(index: int = 0) -> Driver:
    """The driver for a device of this machine.

    Raises:
        TargetError: without a driver or the device.
    """
    return Driver(_library(), index)


def _library() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        raise TargetError(f"cuda: no NVIDIA driver here ({_LIBRARY} not found); code can be built, saved and assembled, not run") from None
