"""Exported networks without the compiler: NumPy, ctypes and JSON are all that running one needs.

    net = tensorexpr.runtime.load("net.so")
    (y,) = net(x)

The file is the one that `export_library` writes; `load_module` reads it as an executable, with its graph.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import struct
import zlib
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import ArgumentError, RecordError, TargetError, TensorExprError

FORMAT = 2
# At the very end, where a reader finds it without knowing the size of the library: the checksum of all but itself, places and sizes of
# graph and weights. Format 1 had no checksum.
_CHECKSUM, _PLACES = struct.Struct("<Q"), struct.Struct("<QQQQ16s")
_MARK = b"tensorexpr graph"
_ALIGNMENT = 64
# What LLVM calls features by which code differs, where Linux has other names for them.
_LINUX = {"avxvnni": "avx_vnni", "avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16", "bmi": "bmi1"}
_CHECKED = ("avx", "avx2", "fma", "f16c", "bmi", "bmi2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni",
            "avx512bf16", "avx512fp16", "avxvnni")  # fmt: skip
_ARCHS = {"amd64": "x86_64", "arm64": "aarch64"}


def write_end(file_name: str, place: int, length: int, weights: int, count: int) -> None:
    """Write the end of a library with a network behind it.

    Args:
        file_name: of the library.
        place, length: of the description, in bytes.
        weights, count: place and size of the weights, which are the last.
    """
    end = _PLACES.pack(place, length, weights, count, _MARK)
    checksum = zlib.crc32(end, zlib.crc32(np.memmap(file_name, np.uint8, "r").data))
    with open(file_name, "ab") as file:
        file.write(_CHECKSUM.pack(checksum) + end)


# The system loads a file once, so its tables of constants are those of all networks that are loaded from it: these have to share a mapping,
# whose addresses stay right when one of them is gone.
_mapped: WeakValueDictionary[tuple[int, ...], np.ndarray[Any, Any]] = WeakValueDictionary()


def _whole(file_name: str) -> np.ndarray[Any, Any]:
    """A file, mapped once as long as something uses it."""
    found = os.stat(file_name)
    key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    held = _mapped.get(key)
    if held is None:
        held = _mapped[key] = np.memmap(file_name, np.uint8, "r").view(np.ndarray) if found.st_size else np.empty(0, np.uint8)
    return held


def tail(file_name: str) -> tuple[bytes, Any] | None:
    """What stands behind a library: its description, and its weights, mapped; None if there is nothing.

    Networks that are loaded from one file share the array that the weights are a part of (`base`).

    Raises:
        TensorExprError: for a torn file.
        RecordError: for one whose bytes aren't those that were written.
    """
    try:
        whole = _whole(file_name)
    except OSError as error:
        raise TensorExprError(f"{file_name}: no library can be read: {error}") from None
    size, end = whole.size, whole[-_PLACES.size :].tobytes()
    # The library of a module without graphs, or any other one.
    if len(end) < _PLACES.size or not end.endswith(_MARK):
        return None
    place, length, weights, count, _ = _PLACES.unpack(end)
    behind = size - _PLACES.size
    if weights + count == behind:
        raise TensorExprError(f"{file_name} has format 1, and this version of tensorexpr reads {FORMAT}; export it again")
    behind -= _CHECKSUM.size
    if not place + length <= weights <= weights + count == behind:
        raise TensorExprError(f"{file_name} is torn: its end says {weights + count + size - behind} bytes, and it has {size}")
    # Machine code is run, and weights are used, as they are: nothing behind this would notice a byte that flipped.
    (checksum,) = _CHECKSUM.unpack(whole[behind : behind + _CHECKSUM.size].tobytes())
    if zlib.crc32(end, zlib.crc32(whole[:behind].data)) != checksum:
        raise RecordError(f"{file_name} is damaged: its checksum isn't that of its bytes. Copy it again, or export it again")
    return whole[place : place + length].tobytes(), whole[weights:behind]


def _dtype(name: str) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes  # bfloat16 and floats of 8 bits, which NumPy hasn't

        found = np.dtype(getattr(ml_dtypes, {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}.get(name, name)))
    return found


def _check_cpu(file_name: str, arch: str, features: list[str]) -> None:
    here = platform.machine().lower()
    here = _ARCHS.get(here, here)
    if here != arch:
        raise TargetError(f"{file_name} holds code for {arch}, and this machine is {here}")
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), None)
    except OSError:
        return  # not Linux, where only the compiler's tables know
    missing = [] if flags is None else [one for one in features if one in _CHECKED and _LINUX.get(one, one) not in flags]
    if missing:
        raise TargetError(f"{file_name} needs {', '.join(missing)}, which this machine lacks; export it for its CPU: -mcpu=...")


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array from a cache line on, as kernels store whole vectors."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -room.ctypes.data % _ALIGNMENT
    return room[begin : begin + size].view(dtype).reshape(shape)


class Network:
    """A network that one native function computes: `outputs = net(x, mask=m)`. Calls from several threads may overlap.

    Args:
        path: what `export_library`, or `tvmc.compile(package_path="x.so")`, wrote.

    Raises:
        TensorExprError: for another file, or a network that needs the virtual machine.
        TargetError: for code that this machine can't run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        found = tail(name)
        if found is None:
            raise TensorExprError(f"{name} is no exported network; load_module reads libraries of functions")
        try:
            described = json.loads(found[0])
            version, plain = described["format"], described.get("network")
            if version != FORMAT:
                raise TensorExprError(f"{name} has format {version}, and this version of tensorexpr reads {FORMAT}; export it again")
            if "device" in described:
                kind = str(described["target"].get("kind")) if isinstance(described["target"], dict) else "a device"
                raise TensorExprError(f"{name} holds a network for {kind}, which the virtual machine runs: runtime.load_module")
            if described.get("late"):
                raise TensorExprError(f"{name} lacks weights that are kept apart: runtime.load_module, then load_late_bound_consts")
            if plain is None:
                raise TensorExprError(f"{name} has open shapes or control flow, so the virtual machine runs it: runtime.load_module")
            _check_cpu(name, str(plain["arch"]), list(plain["features"]))
            library = ctypes.CDLL(os.path.abspath(name))
            self._entry = getattr(library, str(plain["entry"]))
            self._entry.argtypes = [ctypes.c_void_p]
            self.inputs = {str(key): (tuple(map(int, shape)), str(dtype)) for key, shape, dtype in plain["inputs"]}
            self._dtypes = [_dtype(dtype) for _, dtype in self.inputs.values()]
            self._made = [(tuple(map(int, shape)), _dtype(dtype)) for shape, dtype in plain["made"]]
            self._results = [(int(place), tuple(map(int, shape))) for place, shape in plain["results"]]
            self._weights = found[1]
            if plain["table"] is not None:
                self._fill(library, str(plain["table"]), [described["constants"][int(n)] for n in plain["table_constants"]])
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            if isinstance(error, TensorExprError):
                raise
            raise RecordError(f"{name}: the description of the network can't be read: {error}") from None

    def _fill(self, library: Any, table: str, constants: list[Any]) -> None:
        """Write the addresses of constants, which lie in the mapped file, where the code looks for them."""
        cells = (ctypes.c_void_p * len(constants)).in_dll(library, table)
        base = self._weights.ctypes.data
        for n, (place, shape, dtype) in enumerate(constants):
            if not 0 <= place <= place + math.prod(shape) * _dtype(dtype).itemsize <= self._weights.size:
                raise ValueError(f"a constant lies at {place} of {self._weights.size} bytes")
            cells[n] = base + place

    def _arrays(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        shown = ", ".join(f"{name}: {shape} {dtype}" for name, (shape, dtype) in self.inputs.items())
        free = [name for name in self.inputs if name not in kwargs]
        if len(args) != len(free) or len(free) + len(kwargs) != len(self.inputs):
            names = [*("a value" for _ in args), *kwargs]
            raise ArgumentError(f"the network takes {shown}; given are {', '.join(names) or 'none'}")
        given = {**dict(zip(free, args, strict=True)), **kwargs}
        arrays = []
        for (name, (shape, _)), dtype in zip(self.inputs.items(), self._dtypes, strict=True):
            array = np.ascontiguousarray(given[name])
            if (array.shape != shape and np.shape(given[name]) != shape) or array.dtype != dtype:
                raise ArgumentError(f"input {name!r} is {np.shape(given[name])} {array.dtype}; the network takes {shown}")
            arrays.append(array)
        return arrays

    def __call__(self, *args: Any, **kwargs: Any) -> list[np.ndarray[Any, Any]]:
        """Run it.

        Args:
            args, kwargs: arrays, in the order of `inputs` or by their names.

        Returns:
            The results.

        Raises:
            ArgumentError: for arguments that don't fit.
        """
        arrays = self._arrays(args, kwargs)
        made = [_aligned(shape, dtype) for shape, dtype in self._made]
        words = (ctypes.c_uint64 * (len(arrays) + len(made)))(*(one.ctypes.data for one in (*arrays, *made)))
        code = self._entry(ctypes.addressof(words))
        if code:
            raise MemoryError("there is no memory for intermediate results") if code == -2 else TensorExprError(f"a kernel failed: {code}")
        return [made[place].reshape(shape) for place, shape in self._results]


def load(path: str | os.PathLike[str]) -> Network:
    """An exported network, to be called with arrays; see `Network`."""
    return Network(path)
