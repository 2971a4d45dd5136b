"""DLPack both ways without a copy, bfloat16 and writing included, which NumPy's own support leaves out.

Layout and names of the structures: https://dmlc.github.io/dlpack/latest/c_api.html (version 0 capsules, which all libraries speak).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tir.dtype import parse_dtype, to_numpy

CPU_DEVICE = (1, 0)
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_CODE_OF = {name: code for code, name in _CODES.items()}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _ManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


def _api(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))
    return function


_capsule_new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_capsule_is = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_rename = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# A destructor gets a capsule that is being freed: as a py_object it would be revived, so it stays an address.
_dying_is = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_dying_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

# Names must outlive every capsule that points to them.
_NAME = ctypes.c_char_p(b"dltensor")
_USED_NAME = ctypes.c_char_p(b"used_dltensor")
_exported: dict[int, tuple[Any, ...]] = {}


def _release(address: int) -> None:
    _exported.pop(address, None)


def _destroy(capsule: int) -> None:
    if _dying_is(capsule, _NAME):
        _exported.pop(_dying_pointer(capsule, _NAME), None)


_release_entry = _Deleter(_release)
_destroy_entry = _Destructor(_destroy)


def export(array: np.ndarray[tuple[int, ...], np.dtype[Any]], dtype: str) -> Any:
    """A capsule "dltensor" that shares the memory of an array of the given IR dtype, and keeps it alive."""
    parsed = parse_dtype(dtype)
    extents = (ctypes.c_int64 * array.ndim)(*array.shape)
    steps = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
    managed = _ManagedTensor()
    managed.tensor = _Tensor(
        array.ctypes.data, *CPU_DEVICE, array.ndim, _CODE_OF[parsed.code], max(parsed.bits, 8), parsed.lanes, extents, steps, 0
    )
    managed.deleter = ctypes.cast(_release_entry, ctypes.c_void_p).value
    address = ctypes.addressof(managed)
    _exported[address] = (managed, array, extents, steps)
    return _capsule_new(address, _NAME, ctypes.cast(_destroy_entry, ctypes.c_void_p))


def to_array(value: Any) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    """An array on the memory of anything with `__dlpack__`, or of a capsule "dltensor", writable, without a copy.

    Raises:
        ArgumentError: if it lives on another device, has a dtype that the IR has no name for, or does not let itself be shared.
    """
    device = tuple(value.__dlpack_device__()) if hasattr(value, "__dlpack_device__") else CPU_DEVICE
    if int(device[0]) != CPU_DEVICE[0]:
        raise ArgumentError(f"{type(value).__name__} lives on DLPack device {device}, not in CPU memory; copy it to the CPU first")
    try:
        capsule = value.__dlpack__() if hasattr(value, "__dlpack__") else value
    except (BufferError, RuntimeError, TypeError) as error:
        raise ArgumentError(f"{type(value).__name__} can't be shared through DLPack: {error}") from None
    if not _capsule_is(capsule, _NAME):
        raise ArgumentError(f"expected an object with __dlpack__ or an unused DLPack capsule, got {type(value).__name__}")
    managed = _ManagedTensor.from_address(_capsule_pointer(capsule, _NAME))
    array = _view(managed.tensor, Owner(capsule, managed))
    _capsule_rename(capsule, _USED_NAME)
    return array


class Owner:
    """The base of the arrays on an imported tensor: calls the tensor's deleter when the last of them is gone."""

    __array_interface__: dict[str, Any]

    def __init__(self, capsule: Any, managed: _ManagedTensor) -> None:
        self._capsule = capsule
        self._managed = managed

    def __del__(self) -> None:
        # A capsule that was never renamed cleans up after itself.
        if _capsule_is(self._capsule, _USED_NAME) and self._managed.deleter:
            _Deleter(self._managed.deleter)(ctypes.addressof(self._managed))


def _view(tensor: _Tensor, owner: Owner) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    if tensor.code not in _CODES or tensor.lanes != 1:
        raise ArgumentError(f"DLPack type code {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes has no dtype here")
    name = _CODES[tensor.code]
    dtype = to_numpy(name if name == "bool" else f"{name}{tensor.bits}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype)
    owner.__array_interface__ = {
        "version": 3,
        "shape": shape,
        "strides": tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim)) if tensor.strides else None,
        "typestr": f"<u{dtype.itemsize}",
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
    }
    return np.asarray(owner).view(dtype)
