"""nd.array: copies, views, dtypes, and DLPack both ways."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.errors import ArgumentError, TargetError, TypeMismatchError
from tensorexpr.runtime import dlpack
from tensorexpr.runtime import ndarray as nd
from tensorexpr.runtime.ndarray import NDArray
from tests.effort import share_of

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16"),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_survives_dlpack_and_stays_shared(dtype: str) -> None:
    array = nd.array(np.arange(6).reshape(2, 3) % 2, dtype=dtype)
    assert (array.shape, array.dtype, array.ndim) == ((2, 3), dtype, 2)
    view = nd.from_dlpack(array)
    assert view.dtype == dtype
    view[1, 2] = 0
    assert (array.numpy() == np.array([[0, 1, 0], [1, 0, 0]])).all()
    assert view.is_view and not array.is_view


def test_memory_is_aligned_to_64_bytes() -> None:
    arrays = [nd.empty((size,), "int8") for size in (1, 3, 64, 1000)]
    assert all(array[...].ctypes.data % 64 == 0 for array in arrays)


def test_array_copies_and_numpy_copies() -> None:
    source = np.arange(3, dtype=np.float32)
    array = nd.array(source)
    source[0] = 9
    array.numpy()[1] = 9
    assert array.asnumpy().tolist() == [0, 1, 2]


def test_what_array_reads() -> None:
    assert nd.array([1, 2]).dtype == "int64"
    assert nd.array(2.5).shape == ()
    assert nd.array(nd.array([True])).dtype == "bool"
    assert nd.array(np.float32(3)).dtype == "float32"
    assert nd.array([1.6], dtype="int32").numpy().tolist() == [1]
    assert nd.array(np.arange(6).reshape(2, 3).T).numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_copyfrom_and_copyto() -> None:
    first, second = nd.array([1.0, 2.0]), nd.empty((2,), "float32")
    assert first.copyto(second) is second
    assert second.numpy().tolist() == [1, 2]
    assert second.copyfrom(np.array([5, 6])) is second
    third = second.copyto(nd.cpu(1))
    assert (third.device, third.numpy().tolist()) == (nd.cpu(1), [5, 6])


def test_items_and_length() -> None:
    array = nd.empty((2, 2), "int32")
    array[:] = nd.array([[1, 2], [3, 4]])
    array[0, 1] = 7
    assert (array[0, 1], array[1].tolist(), len(array), [row.sum() for row in array]) == (7, [3, 4], 2, [8, 7])


def test_numpy_sees_it() -> None:
    array = nd.array([1.0, 2.0], dtype="float32")
    assert np.asarray(array, dtype=np.float64).dtype == np.float64
    assert (np.add(array, 1) == [2, 3]).all()
    shared = np.asarray(array, copy=False)
    shared[0] = 5
    assert array[0] == 5
    with pytest.raises(ValueError, match="without a copy"):
        array.__array__(np.dtype(np.int8), copy=False)
    np.from_dlpack(array)[1] = 8
    assert array[1] == 8


def test_repr_shows_values_and_dtype() -> None:
    assert repr(nd.array([1, 2], dtype="int8")) == "nd.array([1, 2], dtype='int8')"


def test_bfloat16_is_ml_dtypes() -> None:
    assert nd.empty((1,), "bfloat16").numpy().dtype == np.dtype(ml_dtypes.bfloat16)


def test_devices() -> None:
    assert (str(nd.cpu()), nd.device("cpu", 0), nd.device("llvm"), nd.device("cpu:1")) == ("cpu(0)", nd.cpu(), nd.cpu(), nd.cpu(1))
    assert nd.device(1) == nd.cpu() and nd.cpu() != nd.cpu(1) and nd.cpu().exist


def test_tensors_die_once_and_not_before_their_last_view() -> None:
    array: Any = nd.array(np.arange(4.0))
    memory = weakref.ref(array._array)
    unused: list[Any] = [array.to_dlpack(), array.__dlpack__(max_version=(1, 2))]
    part: Any = nd.from_dlpack(array.to_dlpack())[1:3]
    other: Any = np.from_dlpack(array)[2:]
    array = None
    unused.clear()
    assert memory() is not None and part.tolist() == [1, 2] and other.tolist() == [2, 3]
    part = None
    assert memory() is not None and other.tolist() == [2, 3]
    other = None
    gc.collect()
    assert memory() is None


def test_a_tensor_may_die_while_an_exception_is_on_its_way() -> None:
    array: Any = nd.array(np.arange(4.0))
    memory = weakref.ref(array._array)

    def fail() -> None:
        view = np.from_dlpack(array)
        raise ValueError(f"array of {view.shape}")

    with pytest.raises(ValueError, match="array of"):
        fail()
    array = None
    gc.collect()
    assert memory() is None


def test_a_capsule_is_used_once() -> None:
    capsule = nd.array([1.0]).to_dlpack()
    nd.from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="unused DLPack capsule"):
        nd.from_dlpack(capsule)


def test_dlpack_copy_on_request() -> None:
    array = nd.array([1.0])
    nd.from_dlpack(array.__dlpack__(copy=True))[0] = 5
    assert array[0] == 1


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(st.data())
def test_strided_arrays_of_others_come_as_they_are(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 5), max_size=4))
    base = np.arange(int(np.prod(shape)), dtype=data.draw(st.sampled_from(["int8", "float64", "uint16"]))).reshape(shape)
    view: Any = base.transpose(data.draw(st.permutations(range(base.ndim))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in range(view.ndim))
    view = view.__getitem__((..., *steps))
    shared = nd.from_dlpack(view)
    assert (shared.numpy() == view).all() and shared.shape == view.shape
    if view.size:
        shared[...] = 1
        assert (view == 1).all()


class Elsewhere:
    """An array on another device."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (4, 0)


class Shy:
    """An array that does not let itself be shared."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self) -> Any:
        raise BufferError("requires grad")


def _read_only() -> Any:
    array = np.arange(3)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: nd.empty((-1,)), ArgumentError, "can't have the shape (-1,)"),
        (lambda: nd.empty((2,), "float32x4"), ArgumentError, "can't hold float32x4 elements"),
        (lambda: nd.empty((2,), "handle"), ArgumentError, "can't hold handle elements"),
        (lambda: nd.empty((2,), "float31"), TypeMismatchError, "'float31' is no dtype"),
        (lambda: nd.array(["a"]), TypeMismatchError, "is no dtype"),
        (lambda: nd.array([1, 2]).copyfrom([1, 2, 3]), ArgumentError, "shape (3,) does not fit into one of shape (2,)"),
        (lambda: nd.from_dlpack(Elsewhere()), ArgumentError, "lives on DLPack device (4, 0)"),
        (lambda: nd.from_dlpack(Shy()), ArgumentError, "can't be shared through DLPack: requires grad"),
        (lambda: nd.from_dlpack(_read_only()), ArgumentError, "can't be shared through DLPack"),
        (lambda: nd.from_dlpack(3), ArgumentError, "expected an object with __dlpack__"),
        (lambda: nd.from_dlpack(np.zeros(2, np.complex64)), ArgumentError, "DLPack type code 5 with 64 bits"),
        (lambda: nd.array([1]).__dlpack__(dl_device=(2, 0)), BufferError, "not on DLPack device (2, 0)"),
        (lambda: nd.empty(3, device=nd.rocm(1)), TargetError, "device rocm(1) is not built yet; built: cpu"),
        (lambda: nd.device("opencl").sync(), TargetError, "device opencl(0) is not built yet"),
        (lambda: nd.device("toaster"), TargetError, "no device 'toaster'; there are cpu, "),
        (lambda: nd.cpu(-1), TargetError, "a device index is an integer from 0, not -1"),
    ],
)
def test_refusals(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        make()
    assert message in str(error.value)


def test_an_array_may_be_referenced_weakly() -> None:
    array: NDArray | None = nd.array([1])
    reference = weakref.ref(array)
    array = None
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("extents", [(0,), (3, 0), (3,)])
def test_an_imported_array_is_let_go(extents: tuple[int, ...]) -> None:
    array = np.zeros(extents, "float32")
    before = sys.getrefcount(array)
    borrowed = dlpack.to_array(dlpack.export(array, "float32"))
    assert borrowed.shape == extents
    del borrowed
    gc.collect()
    assert sys.getrefcount(array) == before
