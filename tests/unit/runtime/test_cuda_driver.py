"""The driver of GPUs: calls and errors, on a library that is none; and what is said where there is no driver."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ArgumentError, TargetError, TensorExprError
from tensorexpr.runtime import cuda_driver, dlpack
from tensorexpr.runtime.cuda_device import CudaDevice
from tensorexpr.runtime.cuda_driver import Driver, has_device

from .driver_stand_in import Library


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The stand-in as this machine's driver."""
    made = Library()
    cuda_driver.driver.cache_clear()
    monkeypatch.setattr(cuda_driver, "_library", lambda: made)
    yield made
    cuda_driver.driver.cache_clear()


class Foreign:
    """An array of another library on the GPU: it shares memory by DLPack, and notes the stream that it is asked for."""

    def __init__(self, array: tvm.nd.NDArray, device: tuple[int, int] = (2, 0)) -> None:
        self.array, self.device, self.streams = array, device, list[Any]()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__(stream=-1)


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


def test_memory_is_shared_and_lives_as_long_as_somebody_uses_it(library: Library) -> None:
    x = np.arange(12, dtype="float32").reshape(3, 4)
    own = tvm.nd.array(x, tvm.cuda(0))
    shared = tvm.nd.from_dlpack(own)
    assert own.__dlpack_device__() == (2, 0) and shared.is_view and not own.is_view
    assert shared.handle == own.handle and shared.shape == (3, 4) and str(shared.device) == "cuda(0)"
    shared.copyfrom(x + 1)
    np.testing.assert_array_equal(own.numpy(), x + 1)
    del own
    gc.collect()
    assert "cuMemFree_v2" not in library.calls
    np.testing.assert_array_equal(shared.numpy(), x + 1)
    del shared
    gc.collect()
    assert library.calls.count("cuMemFree_v2") == 1
    unused = tvm.nd.array(x, tvm.cuda(0)).to_dlpack()  # a capsule that nobody takes
    del unused
    gc.collect()
    assert library.calls.count("cuMemFree_v2") == 2


@pytest.mark.usefixtures("library")
def test_values_on_the_device_are_never_those_of_the_host() -> None:
    x = np.arange(6, dtype="float32")
    there = tvm.nd.array(x, tvm.cuda(0))
    np.testing.assert_array_equal(tvm.nd.array(there).numpy(), x)
    np.testing.assert_array_equal(tvm.nd.empty((6,)).copyfrom(there).numpy(), x)
    np.testing.assert_array_equal(list(there), x)
    here = tvm.nd.empty((6,))
    here[:] = there
    np.testing.assert_array_equal(here.numpy(), x)
    np.testing.assert_array_equal(np.from_dlpack(tvm.nd.from_dlpack(there.__dlpack__(dl_device=(1, 0)))), x)
    copied = tvm.nd.from_dlpack(Foreign(there))
    assert copied.handle == there.handle
    with pytest.raises(BufferError, match=r"lives on cuda\(0\), not on DLPack device \(4, 0\)"):
        there.__dlpack__(dl_device=(4, 0))
    with pytest.raises(BufferError, match="isn't copied there"):
        there.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.usefixtures("library")
def test_what_others_take_without_dlpack() -> None:
    array: Any = tvm.nd.array(np.zeros((2, 3), "int16"), tvm.cuda(0))
    described = array.__cuda_array_interface__
    assert described == {"shape": (2, 3), "typestr": "<i2", "data": (array.handle, False), "strides": None, "stream": 1, "version": 3}
    assert not hasattr(tvm.nd.empty((2,), "bfloat16", tvm.cuda(0)), "__cuda_array_interface__")


def test_streams_wait_for_each_other_where_memory_changes_hands(library: Library) -> None:
    inputs, args = _program()
    module: Any = tvm.build(inputs, args, target="cuda -arch=sm_80")
    device, x = tvm.cuda(0), np.arange(100, dtype="float32")
    stream = device.create_raw_stream()
    a: Any = tvm.nd.array(x, device)
    b: Any = tvm.nd.empty((100,), "float32", device)
    foreign = Foreign(a)
    module(foreign, Foreign(b))  # used in the default stream
    assert foreign.streams == [1] and library.streams == [("launch", 0)]
    np.testing.assert_array_equal(b.numpy(), x * 2)
    device.set_raw_stream(stream)
    module(foreign, Foreign(b))
    assert foreign.streams == [1, stream] and library.streams[1:] == [("launch", stream)]
    b.copyfrom(b.numpy())  # copies are made in the default stream
    assert library.calls[-8:].index("cuStreamSynchronize") < library.calls[-8:].index("cuMemcpyHtoD_v2")
    assert library.streams[2:] == [("record", 0), ("wait", stream)]
    library.streams.clear()
    b.__dlpack__(stream=-1)
    b.__dlpack__(stream=stream)
    assert library.streams == []
    b.__dlpack__(stream=None)
    b.__dlpack__(stream=7)
    assert library.streams == [("record", stream), ("wait", 1), ("record", stream), ("wait", 7)]
    assert b.__cuda_array_interface__["stream"] == stream
    with pytest.raises(BufferError, match="say 1 or 2"):
        b.__dlpack__(stream=0)
    device.sync(stream)
    assert library.calls[-1] == "cuStreamSynchronize"
    device.free_raw_stream(stream)
    module(a, b)
    assert library.streams[-1] == ("launch", 0)


def test_arrays_of_others_that_can_not_be_used(library: Library) -> None:
    inputs, args = _program()
    module: Any = tvm.build(inputs, args, target="cuda -arch=sm_80")

    class Turned(Foreign):
        def __dlpack__(self, *, stream: Any = None) -> Any:
            return dlpack.export_memory(self.array.handle, (3, 2), (1, 3), "float32", (2, 0), self.array)

    with pytest.raises(ArgumentError, match=r"Turned of shape \(3, 2\) has gaps or another order of axes"):
        tvm.nd.from_dlpack(Turned(tvm.nd.empty((6,), "float32", tvm.cuda(0))))
    with pytest.raises(ArgumentError, match=r"lives on DLPack device \(4, 0\), not in CPU memory"):
        tvm.nd.from_dlpack(Foreign(tvm.nd.empty((6,)), (4, 0)))
    with pytest.raises(ArgumentError, match="argument A lives in memory of Foreign"):
        module(Foreign(tvm.nd.empty((100,)), (1, 0)), Foreign(tvm.nd.empty((100,)), (1, 0)))
    with pytest.raises(TargetError, match="streams"):
        tvm.cpu().create_raw_stream()
    assert library.calls.count("cuMemFree_v2") == 1


@pytest.mark.skipif(has_device(0), reason="this machine has a driver")
def test_without_a_driver() -> None:
    assert not tvm.cuda(0).exist
    for wish in (lambda: tvm.nd.empty((3,), "float32", tvm.cuda(0)), tvm.cuda(0).sync):
        with pytest.raises(
            TargetError, match=r"cuda: no NVIDIA driver here \(libcuda.so.1 not found\); code can be built, saved and assembled"
        ):
            wish()
