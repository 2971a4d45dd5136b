"""A stand-in of NVIDIA's driver: its functions with their types, on memory of the host and the emulator of PTX."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorexpr.runtime import cuda_driver
from tensorexpr.runtime.cuda_driver import NEWER_SIGNATURES, SIGNATURES
from tensorexpr.runtime.tensor_maps import TensorMap
from tensorexpr.testing.ptx import emulator

# A process that loads the driver by its name gets the stand-in. Of the launches in it the one with the number given fails, as after an
# access beside an array, and all that follow.
_SITE = """
import ctypes, importlib.util, os
load = ctypes.CDLL
spec = importlib.util.spec_from_file_location("driver_stand_in", {path!r})
made = []
def stand_in(name, *args, **options):
    if name != "libcuda.so.1":
        return load(name, *args, **options)
    if not made:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made.append(module.Library(breaks_at=int(os.environ.get("BREAKS_AT", "0"))))
    return made[0]
ctypes.CDLL = stand_in
"""
_ATTRIBUTES = {75: 9, 76: 0, 38: 1 << 16}


class Library:
    """Functions with the driver's types: memory is the host's, kernels run on the emulator, and any call can be made to fail."""

    def __init__(self, failing: dict[str, int] | None = None, devices: int = 1, breaks_at: int = 0) -> None:
        self.calls: list[str] = []
        self._failing, self._devices, self._left = failing or {}, devices, breaks_at
        self._memory: dict[int, Any] = {}
        self._text = b""
        self.streams: list[tuple[str, int]] = []  # what was launched, recorded or made to wait, and where
        for name, types in (SIGNATURES | NEWER_SIGNATURES).items():
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._traced(name)))

    def _traced(self, name: str) -> Callable[..., int]:
        def call(*args: Any) -> int:
            self.calls.append(name)
            if name == "cuLaunchKernel" and self._left:
                self._left -= 1
                if not self._left:  # what cuCtxSynchronize and all after it say of an access beside an array
                    self._failing = {**dict.fromkeys(SIGNATURES, 700), "cuGetErrorString": 0}
            if name in self._failing:
                return self._failing[name]
            own = getattr(self, f"_{name}", None)
            if own is not None:
                own(*args)
            return 0

        return call

    def _cuDeviceGetCount(self, count: Any) -> None:
        count[0] = self._devices

    def _cuDeviceGetAttribute(self, value: Any, number: int, device: int) -> None:
        value[0] = _ATTRIBUTES[number]

    def _cuModuleLoadData(self, module: Any, text: bytes) -> None:
        self._text = text

    def _cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        self._name, function[0] = name.decode(), 1

    def _cuMemAlloc_v2(self, address: Any, size: int) -> None:
        room = np.zeros(size + 256, np.uint8)
        address[0] = room.ctypes.data + -room.ctypes.data % 256
        self._memory[address[0]] = (room, size)

    def _cuMemFree_v2(self, address: int) -> None:
        del self._memory[address]

    def _cuMemcpyHtoD_v2(self, address: int, source: int, size: int) -> None:
        ctypes.memmove(address, source, size)

    def _cuMemcpyDtoH_v2(self, target: int, address: int, size: int) -> None:
        ctypes.memmove(target, address, size)

    def _cuMemsetD8_v2(self, address: int, byte: int, size: int) -> None:
        ctypes.memset(address, byte, size)

    def _cuMemcpyDtoD_v2(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def _cuStreamCreate(self, stream: Any, flags: int) -> None:
        stream[0] = 0x5000 + len(self.calls)

    def _cuEventRecord(self, event: int, stream: int | None) -> None:
        self.streams.append(("record", stream or 0))

    def _cuStreamWaitEvent(self, stream: int | None, event: int, flags: int) -> None:
        self.streams.append(("wait", stream or 0))

    def _cuEventElapsedTime(self, elapsed: Any, *events: Any) -> None:
        elapsed[0] = 8.0

    def _cuTensorMapEncodeTiled(self, target: int, kind: int, rank: int, address: int, *rest: Any) -> None:
        assert target % 64 == 0
        shape, steps, box, ones, interleave, swizzle, _, outside = rest
        size = {6: 2, 9: 2, 7: 4, 0: 1}[kind]
        assert (interleave, outside) == (0, 0) and all(ones[number] == 1 for number in range(rank))
        extents, sides = ([numbers[number] for number in reversed(range(rank))] for numbers in (shape, box))
        strides = tuple(steps[number] // size for number in reversed(range(rank - 1)))
        made = TensorMap(address, f"uint{8 * size}", tuple(extents), strides, tuple(sides), (0, 32, 64, 128)[swizzle])
        ctypes.memmove(target, made.packed(), 128)

    def _cuLaunchKernel(self, function: Any, *args: Any) -> None:
        grid, block, shared, stream, places = args[:3], args[3:6], args[6], args[7], args[8]
        self.streams.append(("launch", stream or 0))
        head = re.search(rf"\.entry {re.escape(self._name)}\((.*?)\)", self._text.decode(), re.DOTALL)
        assert head is not None
        words: list[Any] = []
        for number, param in enumerate(head[1].split(".param")[1:]):
            size = re.search(r"\[(\d+)\]", param)  # of one that is passed by value
            whole = np.frombuffer(ctypes.string_at(places[number], int(size[1])), np.uint8) if size else None
            words.append(np.uint64(ctypes.c_uint64.from_address(places[number]).value) if whole is None else whole)
        memory = [(address, size) for address, (_, size) in self._memory.items()]
        emulator().run_text(self._text.decode(), self._name, grid, block, words, memory, shared)


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in as the driver of this machine, in this process and in those that it starts meanwhile."""
    (folder / "sitecustomize.py").write_text(_SITE.format(path=__file__))
    monkeypatch.syspath_prepend(folder)  # processes get it too
    library = Library()
    monkeypatch.setattr(cuda_driver, "_library", lambda: library)
    yield
    cuda_driver.driver.cache_clear()
