"""Operators on where elements stand: layouts in memory, devices, and sums back to the shapes that broadcasts came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import te, topi
from ...arith.index_map import IndexMap
from ...errors import DeclarationError, TypeMismatchError
from ...runtime.device import Device
from ...target.kinds import KINDS
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr
from ...tir.global_info import VDevice
from ...tir.rewriting import substitute
from ..expr import Call, PrimValue
from ..relations import same_extents
from ..struct_info import StructInfo, TensorStructInfo
from .elementwise import astype
from .manipulate import extents_of
from .row import Expr, Pattern, Shape, operator, tensor


def _te_layout(x: Any, index_map: IndexMap, pad_value: Any, axis_separators: Any, input_axis_separators: Any) -> Any:
    inverse, padding = index_map.non_surjective_inverse(x.shape)
    filler = te.const(0 if pad_value is None else pad_value, x.dtype)

    def element(*i: PrimExpr) -> Any:
        # The condition speaks of the inverse map's own variables.
        is_padding = substitute(padding, {var: one.astype(var.dtype) for var, one in zip(inverse.initial_indices, i, strict=True)})
        return te.if_then_else(is_padding, filler, x[inverse.map_indices(i)])

    return te.compute(index_map.map_shape(x.shape), element, name="layout_transform")


def _np_layout(x: Any, index_map: IndexMap, pad_value: Any, axis_separators: Any, input_axis_separators: Any) -> Any:
    moved = index_map.map_ndarray(x)
    # What nothing maps to is 0 in `moved`.
    if pad_value in (None, 0):
        return moved
    is_kept = index_map.map_ndarray(np.ones(x.shape, bool))
    return np.where(is_kept, moved, np.asarray(pad_value, x.dtype))


@operator("layout_transform", Pattern.INJECTIVE, te=_te_layout, numpy=_np_layout, kernel="te_layout_transform")
def _layout_transform(
    x: Expr,
    index_map: IndexMap,
    pad_value: float | None = None,
    axis_separators: Sequence[int] | None = None,
    input_axis_separators: Sequence[int] | None = None,
) -> StructInfo:
    """Elements where an index map says; what no element maps to is padding."""
    operand = tensor(x, "x")
    if operand.ndim not in (-1, len(index_map.initial_indices)):
        raise DeclarationError(f"relax.op.layout_transform: {index_map} for {operand.info}")
    if isinstance(pad_value, float) and operand.dtype and parse_dtype(operand.dtype).is_int:
        raise TypeMismatchError(f"relax.op.layout_transform: {pad_value} is no {operand.dtype} to pad {operand.info} with")
    ndim = len(index_map.final_indices)
    return operand.like(None if operand.extents is None else index_map.map_shape(operand.extents), ndim=ndim)


def layout_transform(
    x: Any,
    index_map: Callable[..., Any] | IndexMap,
    pad_value: Any = None,
    axis_separators: Sequence[int] | None = None,
    input_axis_separators: Sequence[int] | None = None,
) -> Call:
    """Elements where an index map, such as `lambda i: (i // 4, i % 4)`, says; what no element maps to is `pad_value`, 0 without one."""
    given = index_map if isinstance(index_map, IndexMap) else IndexMap.from_func(index_map, tensor(x, "x").ndim, index_dtype="int64")
    value = pad_value.value if isinstance(pad_value, PrimValue) else pad_value
    number = getattr(value, "value", value)
    # An empty list is none, as scripts of TVM's write it.
    made: Call = _layout_transform(x, given, number, axis_separators or None, input_axis_separators or None)
    return made


def _collapsed_axes(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, ...] | None:
    """The axes that a broadcast from `new` to `old` repeats; None if it is none."""
    extra = len(old) - len(new)
    if extra < 0 or any(same_extents(a, b) is False and as_int(b) != 1 for a, b in zip(old[extra:], new, strict=True)):
        return None
    return (*range(extra), *(extra + n for n, one in enumerate(new) if as_int(one) == 1))


def _collapsed(x: Any, extents: Sequence[PrimExpr] | None, name: str) -> StructInfo:
    operand = tensor(x, "data")
    if extents is not None and operand.extents is not None and _collapsed_axes(operand.extents, extents) is None:
        raise DeclarationError(f"relax.op.{name}: {list(extents)} doesn't broadcast to {operand.info}")
    return operand.like(extents)


def _np_collapse(data: Any, shape: Sequence[int]) -> Any:
    extra = data.ndim - len(shape)
    axes = (*range(extra), *(extra + n for n, one in enumerate(shape) if one == 1))
    return np.sum(data, axes, dtype=data.dtype).reshape(shape)


@operator("collapse_sum_to", Pattern.REDUCTION, te=topi.collapse_sum, numpy=_np_collapse, kernel="collapse_sum")
def collapse_sum_to(data: Expr, shape: Shape) -> StructInfo:
    """The sum over all that a broadcast from a shape to that of the tensor repeats."""
    return _collapsed(data, extents_of(shape), "collapse_sum_to")


@operator(
    "collapse_sum_like",
    Pattern.REDUCTION,
    te=lambda data, collapse_target: topi.collapse_sum(data, collapse_target.shape),
    numpy=lambda data, collapse_target: _np_collapse(data, collapse_target.shape),
)
def collapse_sum_like(data: Expr, collapse_target: Expr) -> StructInfo:
    """As `collapse_sum_to`, to the shape of another tensor."""
    return _collapsed(data, tensor(collapse_target, "collapse_target").extents, "collapse_sum_like")


@operator("to_vdevice", Pattern.ELEMENTWISE, te=lambda data, dst_vdevice: topi.identity(data), numpy=lambda data, dst_vdevice: data)
def _to_vdevice(data: Expr, dst_vdevice: VDevice) -> StructInfo:
    """The tensor on another device."""
    info = tensor(data, "data").info
    return TensorStructInfo(info.shape, info.dtype, dst_vdevice, info.ndim)


@operator("hint_on_device", Pattern.ELEMENTWISE, te=lambda data, dst_vdevice: topi.identity(data), numpy=lambda data, dst_vdevice: data)
def _hint_on_device(data: Expr, dst_vdevice: VDevice) -> StructInfo:
    """The tensor, which would better be on a device."""
    return tensor(data, "data").info


def to_vdevice(data: Any, dst_vdevice: VDevice | str) -> Call:
    """The tensor on another device, which is a `VDevice` or a text such as "cuda:1"."""
    made: Call = _to_vdevice(data, VDevice.of(dst_vdevice))
    return made


def hint_on_device(data: Any, dst_vdevice: VDevice | Device | str) -> Call:
    """The tensor, which would better be on a device: as `to_vdevice` has it, or one such as `tvm.cuda(1)`."""
    if isinstance(dst_vdevice, Device):
        kind = next((name for name, about in KINDS.items() if about.device_type == dst_vdevice.device_type), None)
        if kind is None:
            raise DeclarationError(f"hint_on_device: no target is of devices such as {dst_vdevice}; targets are {', '.join(KINDS)}")
        dst_vdevice = VDevice(kind, dst_vdevice.device_id)  # type: ignore[arg-type]
    made: Call = _hint_on_device(data, VDevice.of(dst_vdevice))
    return made


def wrap_param(data: Any, dtype: str = "float32") -> Call:
    """A constant in another dtype: a call of `astype`."""
    made: Call = astype(data, dtype)
    return made
