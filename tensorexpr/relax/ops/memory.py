"""Memory as values: what CallTIRRewrite and StaticPlanBlockMemory make of results. Tensors that are made here are written by calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tir.dtype import from_numpy, to_numpy
from ..expr import Call, DataTypeImm, PrimValue, StringImm
from ..struct_info import ObjectStructInfo, RelaxExpr, StructInfo, TensorStructInfo
from .calls import VOID
from .row import Expr, Pattern, Prim, Shape, operator


def _new(shape: Sequence[int], dtype: str, *rest: Any) -> Any:
    return np.zeros(shape, to_numpy(dtype))


def _bytes(size: Sequence[int], *rest: Any) -> Any:
    return np.zeros(math.prod(size), np.uint8)


def _part(storage: Any, offset: int, shape: Sequence[int], dtype: str) -> Any:
    """A tensor in a storage, on its memory."""
    element = to_numpy(dtype)
    # A view: what calls write into the tensor is in the storage.
    return storage[offset : offset + math.prod(shape) * element.itemsize].view(element).reshape(shape)


def _tensor(shape: Any, dtype: Any) -> StructInfo:
    return TensorStructInfo(shape, dtype.value)


@operator("builtin.alloc_tensor", Pattern.OPAQUE, numpy=_new, is_pure=False)
def _alloc_tensor(shape: Shape, dtype: Expr, runtime_device_index: Prim, storage_scope: Expr) -> StructInfo:
    """Memory for a tensor."""
    return _tensor(shape, dtype)


@operator("memory.alloc_storage", Pattern.OPAQUE, numpy=_bytes, is_pure=False)
def _alloc_storage(size: Shape, virtual_device_index: Prim, storage_scope: Expr, dtype: Expr) -> StructInfo:
    """Bytes for tensors."""
    return ObjectStructInfo()


@operator("memory.alloc_tensor", Pattern.OPAQUE, numpy=_part, is_pure=False)
def _tensor_in_storage(storage: Expr, offset: Prim, shape: Shape, dtype: Expr) -> StructInfo:
    """A tensor in a storage."""
    return _tensor(shape, dtype)


@operator("memory.kill_storage", Pattern.OPAQUE, numpy=lambda storage: (), is_pure=False)
def kill_storage(storage: Expr) -> StructInfo:
    """Say that nobody uses a storage any more."""
    return VOID


@operator("memory.kill_tensor", Pattern.OPAQUE, numpy=lambda tensor: (), is_pure=False)
def kill_tensor(tensor: Expr) -> StructInfo:
    """Say that nobody uses a tensor any more."""
    return VOID


def _dtype(value: Any) -> RelaxExpr:
    return value if isinstance(value, RelaxExpr) else DataTypeImm(value if isinstance(value, str) else from_numpy(value))


def _text(value: Any) -> RelaxExpr:
    return value if isinstance(value, RelaxExpr) else StringImm(value)


def alloc_tensor(shape: Any, dtype: Any, runtime_device_index: Any = 0, storage_scope: Any = "global") -> Call:
    """Memory for a tensor, which calls write.

    Args:
        shape, dtype: of the tensor.
        runtime_device_index, storage_scope: accepted; there is one memory.
    """
    return _alloc_tensor(shape, _dtype(dtype), runtime_device_index, _text(storage_scope))


def alloc_storage(size: Any, virtual_device_index: Any = 0, storage_scope: Any = "global", dtype: Any = "uint8") -> Call:
    """Bytes for tensors.

    Args:
        size: how many, as a shape of one extent.
        virtual_device_index, storage_scope, dtype: accepted; there is one memory.
    """
    extents = size if isinstance(size, (RelaxExpr, tuple, list)) else (size,)
    return _alloc_storage(extents, virtual_device_index, _text(storage_scope), _dtype(dtype))


def alloc_tensor_in(storage: Any, offset: Any, shape: Any, dtype: Any) -> Call:
    """A tensor in a storage, from an offset in bytes on."""
    return _tensor_in_storage(storage, offset if isinstance(offset, RelaxExpr) else PrimValue(offset), shape, _dtype(dtype))


__all__ = ["alloc_storage", "alloc_tensor", "alloc_tensor_in", "kill_storage", "kill_tensor"]
