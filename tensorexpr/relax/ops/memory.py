"""Memory as values: what CallTIRRewrite and StaticPlanBlockMemory make of results. Tensors that are made here are written by calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arith.analyzer import Analyzer
from ...errors import ArgumentError, DeclarationError
from ...tir.arithmetic import as_int, cast, const
from ...tir.dtype import from_numpy, parse_dtype, to_numpy
from ...tir.expr import IntImm, PrimExpr, Range
from ...tir.op_registry import Op
from ...tir.rewriting import variables
from ..expr import Call, DataTypeImm, PrimValue, StringImm, Tuple
from ..struct_info import ObjectStructInfo, PrimStructInfo, RelaxExpr, StructInfo, TensorStructInfo
from .calls import VOID, shape_of
from .manipulate import extents_of
from .row import Expr, Exprs, Pattern, Prim, Shape, operator, tensor

_MOST = 1 << 40  # an extent that nobody reaches


def _new(shape: Sequence[int], dtype: str, *rest: Any) -> Any:
    return np.zeros(shape, to_numpy(dtype))


def _bytes(size: Sequence[int], *rest: Any) -> Any:
    return np.zeros(math.prod(size), np.uint8)


def _elements(size: Sequence[int], device: int, dtype: str, *rest: Any) -> Any:
    return np.zeros(math.prod(size) * to_numpy(dtype).itemsize, np.uint8)


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


@operator("builtin.stop_lift_params", Pattern.OPAQUE, numpy=lambda x: x, as_is=True)
def stop_lift_params(x: Expr) -> StructInfo:
    """A value as it is, of which LiftTransformParams takes nothing into the transform of weights."""
    return x.struct_info


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


def _seen(data: Any, shape: Sequence[int], dtype: Any = None, offset: int = 0) -> Any:
    """Bytes of an array as another one on the same memory."""
    element, whole = data.dtype if dtype is None else to_numpy(str(dtype)), np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    end = offset + math.prod(shape) * element.itemsize
    if not 0 <= offset <= end <= whole.size:
        raise ArgumentError(f"memory.view: bytes {offset} to {end} of a tensor of {whole.size} bytes")
    return whole[offset:end].view(element).reshape(shape)


@operator("memory.view", Pattern.OPAQUE, numpy=_seen, as_is=True)
def _view(data: Expr, shape: Shape, dtype: Expr | None = None, relative_byte_offset: Prim | None = None) -> StructInfo:
    """A tensor on the memory of another one."""
    operand, extents = tensor(data, "data"), extents_of(shape)
    named = operand.dtype if dtype is None else dtype.value if isinstance(dtype, DataTypeImm) else ""
    offset: Any = PrimStructInfo("int64", IntImm("int64", 0)) if relative_byte_offset is None else relative_byte_offset.struct_info
    if not isinstance(offset, PrimStructInfo):
        raise DeclarationError(f"relative_byte_offset is a number of bytes, not {offset}")
    first = offset.value
    if first is not None and (as_int(first) or 0) < 0:
        raise DeclarationError(f"relative_byte_offset is {first}; a view begins in the tensor")
    if extents is not None and operand.extents is not None and named and operand.dtype:
        size, whole = _size(extents, named), _size(operand.extents, operand.dtype)
        needed = size if first is None else size + cast(first, "int64")
        # Of extents that are numbers it is known, of others for those that aren't 0.
        domain = {var: Range(1, _MOST) for var in (*variables(needed), *variables(whole))}
        if Analyzer(domain).can_prove(needed > whole):
            raise DeclarationError(f"{needed} bytes of {operand.info}, which has {whole}")
    return TensorStructInfo(shape if extents is None else extents, named)


def _size(extents: Sequence[PrimExpr], dtype: str) -> PrimExpr:
    """Bytes of a tensor."""
    found: PrimExpr = const(parse_dtype(dtype).itemsize, "int64")
    for extent in extents:
        found = found * cast(extent, "int64")
    return found


@operator("memory.ensure_zero_copy", Pattern.OPAQUE, numpy=lambda data: data, as_is=True)
def ensure_zero_copy(data: Expr) -> StructInfo:
    """A tensor as it is: views here have the memory of what they show, wherever they are made."""
    return tensor(data, "data").info


def view(data: Any, shape: Any = None, dtype: Any = None, relative_byte_offset: Any = None) -> Call:
    """A tensor on the memory of another one.

    Args:
        data: the tensor.
        shape: of the view; that of the tensor by default.
        dtype: of its elements; that of the tensor by default. Elements of another size need a shape.
        relative_byte_offset: where it begins in the tensor; 0 by default.

    Raises:
        DeclarationError: for a view that is known to reach beyond the tensor.
    """
    info = tensor(data, "data").info
    named = None if dtype is None else _dtype(dtype)
    sizes = [parse_dtype(one).itemsize for one in (info.dtype, named.value if isinstance(named, DataTypeImm) else "") if one]
    if shape is None and len(set(sizes)) > 1:
        raise DeclarationError(f"relax.op.memory.view: elements of {info.dtype} as {named} have another shape, which is stated")
    seen = shape if shape is not None else info.shape if info.shape is not None else shape_of(data)
    if relative_byte_offset is None:
        return _view(data, seen) if named is None else _view(data, seen, named)
    if named is None and not info.dtype:
        raise DeclarationError("relax.op.memory.view: the dtype of the tensor isn't known, so it is stated with an offset")
    return _view(data, seen, _dtype(info.dtype) if named is None else named, relative_byte_offset)


@operator("vm.alloc_storage", Pattern.OPAQUE, numpy=_elements, is_pure=False)
def _vm_storage(shape: Shape, runtime_device_index: Prim, dtype: Expr, storage_scope: Expr) -> StructInfo:
    """Bytes for tensors."""
    return ObjectStructInfo()


@operator("vm.alloc_tensor", Pattern.OPAQUE, numpy=_part, is_pure=False)
def _vm_tensor(storage: Expr, offset: Prim, shape: Shape, dtype: Expr) -> StructInfo:
    """A tensor in a storage."""
    return _tensor(shape, dtype)


@operator("vm.kill_object", Pattern.OPAQUE, numpy=lambda obj: (), is_pure=False)
def kill_object(obj: Expr) -> StructInfo:
    """Say that nobody uses a storage or a tensor any more."""
    return VOID


@operator("vm.call_tir_dyn", Pattern.OPAQUE, is_pure=False)
def _call_tir_dyn(func: Expr, args: Exprs) -> StructInfo:
    """Call a tensor function."""
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


def vm_alloc_storage(shape: Any, runtime_device_index: Any, dtype: Any, storage_scope: Any = "global") -> Call:
    """As `alloc_storage`, as LowerRuntimeBuiltin writes it: `shape` counts elements of `dtype`."""
    extents = shape if isinstance(shape, (RelaxExpr, tuple, list)) else (shape,)
    return _vm_storage(extents, runtime_device_index, _dtype(dtype), _text(storage_scope))


def vm_alloc_tensor(storage: Any, offset: Any, shape: Any, dtype: Any) -> Call:
    """As `alloc_tensor_in`, as LowerRuntimeBuiltin writes it."""
    return _vm_tensor(storage, offset, shape, _dtype(dtype))


def call_tir_dyn(func: Any, args: Any) -> Call:
    """Call a tensor function, which writes into its last tensors.

    Args:
        func: its GlobalVar.
        args: tensors, and at the end a shape whose extents are the integers that it takes.
    """
    return Call(Op.of("relax.vm.call_tir_dyn"), (func, Tuple(tuple(args))))


__all__ = [
    "alloc_storage", "alloc_tensor", "alloc_tensor_in", "call_tir_dyn", "kill_object", "kill_storage", "kill_tensor", "vm_alloc_storage",
    "vm_alloc_tensor",
]  # fmt: skip
