"""The driver of GPUs: calls and errors, on a library that is none; and what is said where there is no driver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import TargetError, TensorExprError
from tensorexpr.runtime.cuda_device import CudaDevice
from tensorexpr.runtime.cuda_driver import Driver, has_device

from .driver_stand_in import Library


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
