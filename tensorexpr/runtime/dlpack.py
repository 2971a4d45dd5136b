"""DLPack both ways without a copy, bfloat16 and writing included, which NumPy's own support leaves out.

Layout and names of the structures: https://dmlc.github.io/dlpack/latest/c_api.html. We export version 1 to consumers
that ask for it (version 0 is read-only to NumPy), else version 0, and import version 0, which all libraries speak.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..target import Target
from ..tir.dtype import parse_dtype, to_numpy
from . import engine, python_api

CPU_DEVICE = (1, 0)
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}
_CODE_OF = {name: code for code, name in _CODES.items()}
_Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


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


class _VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


# What consumers call to let go. Native, because it may be called by any thread, and while an exception is on its way.
# The context is a Python object that owns the array and this structure itself.
_RELEASE_IR = """
@{name}_name = constant [{length} x i8] c"{capsule}\\00"
declare i32 @Py_IsInitialized()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @Py_DecRef(ptr)
declare i32 @PyCapsule_IsValid(ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)

define void @{name}_release(ptr %managed) {{
  %alive = call i32 @Py_IsInitialized()
  %dead = icmp eq i32 %alive, 0
  br i1 %dead, label %done, label %drop
drop:
  %state = call i32 @PyGILState_Ensure()
  %place = getelementptr i8, ptr %managed, i64 {context}
  %owner = load ptr, ptr %place
  call void @Py_DecRef(ptr %owner)
  call void @PyGILState_Release(i32 %state)
  br label %done
done:
  ret void
}}

; A capsule that nobody consumed still has its first name.
define void @{name}_destroy(ptr %capsule) {{
  %valid = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @{name}_name)
  %used = icmp eq i32 %valid, 0
  br i1 %used, label %done, label %drop
drop:
  %managed = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @{name}_name)
  call void @{name}_release(ptr %managed)
  br label %done
done:
  ret void
}}
"""
_RELEASE_API = ("Py_IsInitialized", "PyGILState_Ensure", "PyGILState_Release", "Py_DecRef", "PyCapsule_IsValid", "PyCapsule_GetPointer")
_FORMS: dict[type[ctypes.Structure], tuple[str, str]] = {
    _ManagedTensor: ("plain", "dltensor"),
    _VersionedTensor: ("versioned", "dltensor_versioned"),
}

_capsule_new = python_api.function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_capsule_pointer = python_api.function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_capsule_is = python_api.function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_capsule_rename = python_api.function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_add_reference = python_api.function("Py_IncRef", None, ctypes.py_object)
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# Capsules point to their names, which must outlive them.
_NAME = ctypes.c_char_p(b"dltensor")
_USED_NAME = ctypes.c_char_p(b"used_dltensor")


@lru_cache(maxsize=2)
def _release_code(form: type[ctypes.Structure]) -> engine.LoadedCode:
    name, capsule = _FORMS[form]
    context = getattr(form, "context").offset  # noqa: B009 - a field, which mypy does not see
    text = _RELEASE_IR.format(name=name, capsule=capsule, length=len(capsule) + 1, context=context)
    names = [f"{name}_{part}" for part in ("release", "destroy", "name")]
    return engine.load_object(engine.compile_text(text, Target("llvm"), 0).data, names, python_api.addresses(*_RELEASE_API))


def export(array: _Array, dtype: str, max_version: tuple[int, int] | None = None) -> Any:
    """A capsule that shares the memory of an array of the given IR dtype, and keeps it alive.

    Args:
        array: a writable array.
        dtype: what its elements are.
        max_version: the newest DLPack version that the consumer knows; None means version 0.
    """
    # DLPack counts strides in elements, NumPy in bytes.
    steps = tuple(stride // array.itemsize for stride in array.strides)
    return export_memory(array.ctypes.data, array.shape, steps, dtype, CPU_DEVICE, array, max_version)


def export_memory(
    address: int,
    shape: Sequence[int],
    steps: Sequence[int],
    dtype: str,
    device: tuple[int, int],
    keep: Any,
    max_version: tuple[int, int] | None = None,
) -> Any:
    """A capsule for memory of any device; see `export`.

    Args:
        address: of the first element, as the device counts.
        shape: the extents.
        steps: the elements from one index of each axis to the next.
        dtype: what the elements are.
        device: DLPack's number of the kind of device, and of the device.
        keep: what owns the memory.
        max_version: as of `export`.
    """
    form = _VersionedTensor if max_version is not None and max_version[0] >= 1 else _ManagedTensor
    name, _ = _FORMS[form]
    code = _release_code(form)
    parsed = parse_dtype(dtype)
    extents, strides = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*steps)
    kind = (_CODE_OF[parsed.code], max(parsed.bits, 8), parsed.lanes)
    # A bool has 1 bit in the IR and takes a byte, which is what DLPack counts.
    managed = form(tensor=_Tensor(address, *device, len(shape), *kind, extents, strides, 0), deleter=code[f"{name}_release"])
    if isinstance(managed, _VersionedTensor):
        managed.major = 1
    # The structure points into the arrays of extents and steps, which nothing else would keep.
    owner = (managed, keep, extents, strides)
    managed.context = id(owner)
    _add_reference(owner)  # the one that `release` gives back
    return _capsule_new(ctypes.addressof(managed), code[f"{name}_name"], code[f"{name}_destroy"])


def borrow(value: Any, written: bool) -> _Array:
    """An array on the memory of anything with `__dlpack__`, for the time of a call; writable if `written`.

    NumPy's import takes 2 us where ours takes 8, but gives bfloat16 to nobody, and writing only where both sides speak version 1.

    Raises:
        ArgumentError: as `to_array`.
    """
    try:
        array: _Array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return to_array(value)
    # NumPy marks what came by version 0 read-only, though the memory may be written.
    return array if array.flags.writeable or not written else to_array(value)


def to_array(value: Any) -> _Array:
    """An array on the memory of anything with `__dlpack__`, or of a capsule "dltensor", writable, without a copy.

    Raises:
        ArgumentError: if it lives on another device, has a dtype that the IR has no name for, or does not let itself be shared.
    """
    device = tuple(value.__dlpack_device__()) if hasattr(value, "__dlpack_device__") else CPU_DEVICE
    if int(device[0]) != CPU_DEVICE[0]:
        raise ArgumentError(f"{type(value).__name__} lives on DLPack device {device}, not in CPU memory; copy it to the CPU first")
    # After the device: __dlpack__ of an array elsewhere may copy it, or wait for a stream.
    owner = _owner(value)
    array = _view(owner.managed.tensor, owner)
    # Last: until then an error leaves the capsule to its own destructor, as does an array of nothing, which has memory of its own.
    if array.size:
        _capsule_rename(owner.capsule, _USED_NAME)
    return array


def to_memory(value: Any, stream: int) -> tuple[int, tuple[int, ...], str, Owner]:
    """The address of the first element, the extents, the dtype and the owner of a compact tensor on a device.

    Args:
        value: anything with `__dlpack__`, that says it is on such a device.
        stream: in which its values will be used.

    Raises:
        ArgumentError: if it isn't compact, has a dtype that the IR has no name for, or does not let itself be shared.
    """
    owner = _owner(value, stream=stream)
    tensor = owner.managed.tensor
    shape, dtype = tuple(tensor.shape[i] for i in range(tensor.ndim)), _dtype_of(tensor)
    compact = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    if tensor.strides and any(shape[i] > 1 and tensor.strides[i] != compact[i] for i in range(len(shape))):
        raise ArgumentError(f"{type(value).__name__} of shape {shape} has gaps or another order of axes; copy it to a compact one first")
    _capsule_rename(owner.capsule, _USED_NAME)
    return (tensor.data or 0) + tensor.byte_offset, shape, dtype, owner


def _owner(value: Any, **options: Any) -> Owner:
    """The owner of what anything with `__dlpack__`, or a capsule, shares; the capsule is unused yet."""
    try:
        capsule = value.__dlpack__(**options) if hasattr(value, "__dlpack__") else value
    except (BufferError, RuntimeError, TypeError) as error:
        raise ArgumentError(f"{type(value).__name__} can't be shared through DLPack: {error}") from None
    if not _capsule_is(capsule, _NAME):
        raise ArgumentError(f"expected an object with __dlpack__ or an unused DLPack capsule, got {type(value).__name__}")
    # It holds the capsule, so the tensor lives as long as an array on it.
    return Owner(capsule, _ManagedTensor.from_address(_capsule_pointer(capsule, _NAME)))


class Owner:
    """The base of the arrays on an imported tensor: calls the tensor's deleter when the last of them is gone."""

    __array_interface__: dict[str, Any]

    def __init__(self, capsule: Any, managed: _ManagedTensor) -> None:
        self.capsule = capsule
        self.managed = managed

    def __del__(self) -> None:
        # A capsule that was never renamed cleans up after itself.
        if _capsule_is(self.capsule, _USED_NAME) and self.managed.deleter:
            _Deleter(self.managed.deleter)(ctypes.addressof(self.managed))


def _dtype_of(tensor: _Tensor) -> str:
    if tensor.code not in _CODES or tensor.lanes != 1:
        raise ArgumentError(f"DLPack type code {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes has no dtype here")
    name = _CODES[tensor.code]
    return name if name == "bool" else f"{name}{tensor.bits}"


def _view(tensor: _Tensor, owner: Owner) -> _Array:
    dtype = to_numpy(_dtype_of(tensor))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if 0 in shape:  # its data may be null
        return np.empty(shape, dtype)
    owner.__array_interface__ = {
        "version": 3,
        "shape": shape,
        "strides": tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim)) if tensor.strides else None,
        # The interface has no name for bfloat16: bits of that size first, then a view of them.
        "typestr": f"<u{dtype.itemsize}",
        "data": ((tensor.data or 0) + tensor.byte_offset, False),
    }
    # NumPy keeps the owner as the base of the array.
    return np.asarray(owner).view(dtype)
