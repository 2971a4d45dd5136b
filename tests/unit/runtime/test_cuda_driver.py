"""The driver of GPUs: calls and errors, on a library that is none; and what is said where there is no driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import TargetError, TensorExprError
from tensorexpr.runtime.cuda_device import CudaDevice
from tensorexpr.runtime.cuda_driver import SIGNATURES, Driver, has_device
from tensorexpr.testing.ptx import emulator


class Library:
    """Functions with the driver's types: memory is the host's, kernels run on the emulator, and any call can be made to fail."""

    def __init__(self, failing: dict[str, int] | None = None, devices: int = 1) -> None:
        self.calls: list[str] = []
        self._failing, self._devices = failing or {}, devices
        self._memory: dict[int, Any] = {}
        self._text = b""
        for name, types in SIGNATURES.items():
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._traced(name)))

    def _traced(self, name: str) -> Callable[..., int]:
        def call(*args: Any) -> int:
            self.calls.append(name)
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
        value[0] = {75: 9, 76: 0}[number]

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

    def _cuEventElapsedTime(self, elapsed: Any, *events: Any) -> None:
        elapsed[0] = 8.0

    def _cuLaunchKernel(self, function: Any, *args: Any) -> None:
        grid, block, shared, places = args[:3], args[3:6], args[6], args[8]
        words = [np.uint64(ctypes.c_uint64.from_address(places[number]).value) for number in range(2)]
        memory = [(address, size) for address, (_, size) in self._memory.items()]
        emulator().run_text(self._text.decode(), self._name, grid, block, words, memory, shared)


def _device(library: Library) -> CudaDevice:
    return CudaDevice(2, 0, Driver(library))


def _program() -> tuple[Any, list[Any]]:
    a = te.placeholder((100,), name="A")
    b = te.compute((100,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=32)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    return s, [a, b]


def test_arrays_kernels_and_the_clock() -> None:
    library = Library()
    device = _device(library)
    inputs, args = _program()
    module: Any = tvm.build(inputs, args, target="cuda -arch=sm_80")
    x = np.arange(100, dtype="float32")
    a, b = tvm.nd.array(x, device), tvm.nd.empty((100,), "float32", device)
    module(a, b)
    np.testing.assert_array_equal(b.numpy(), x * 2)
    np.testing.assert_array_equal(b.copyto(tvm.cpu()).numpy(), x * 2)
    assert b[3] == 6 and np.asarray(a).sum() == x.sum() and a.device.compute_version is None
    assert module.time_evaluator(module.entry_name, device, number=4, repeat=2)(a, b).results == (0.002, 0.002)
    device.sync()
    assert library.calls.count("cuModuleLoadData") == 1 and library.calls[-1] == "cuCtxSynchronize"
    del a, b
    assert library.calls.count("cuMemFree_v2") == 2
    assert device.driver.compute_version == "9.0"


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        ({"cuMemAlloc_v2": 2}, "cuMemAlloc_v2 failed with 2: an unknown error"),
        ({"cuModuleLoadData": 222}, "failed with 222: an unknown error; the driver is older than the PTX"),
        ({"cuModuleLoadData": 209}, "the code is for another chip"),
        ({"cuLaunchKernel": 1}, "cuLaunchKernel failed with 1"),
    ],
)
def test_what_fails_is_named(failing: dict[str, int], message: str) -> None:
    device = _device(Library(failing))
    inputs, args = _program()
    module: Any = tvm.build(inputs, args, target="cuda -arch=sm_80")
    with pytest.raises(TensorExprError, match=message):
        arrays = [tvm.nd.empty((100,), "float32", device) for _ in "ab"]
        module(*arrays)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(TargetError, match=r"the driver knows 1 devices, and no cuda\(1\)"):
        Driver(Library(), 1)


@pytest.mark.skipif(has_device(0), reason="this machine has a driver")
def test_without_a_driver() -> None:
    assert not tvm.cuda(0).exist
    for wish in (lambda: tvm.nd.empty((3,), "float32", tvm.cuda(0)), tvm.cuda(0).sync):
        with pytest.raises(
            TargetError, match=r"cuda: no NVIDIA driver here \(libcuda.so.1 not found\); code can be built, saved and assembled"
        ):
            wish()
